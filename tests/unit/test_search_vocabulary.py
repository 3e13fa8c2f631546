"""Which stems of a collection are near in meaning to the words of a question, while new ones are said."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from assistant.search.dtypes import Floats
from assistant.search.embedded_texts import EmbeddedTexts
from assistant.search.vocabulary import Vocabulary, normalise_rows
from assistant.wire.search import builtin_embedder

_LETTERS = str.maketrans("0123456789", "klmnopqrst")
STEMS = [f"{first}{number}".translate(_LETTERS) for number in range(100, 160) for first in "abc"]
ASKED = {word: word for word in ("aword", "bword", "akk", "cll", "zword")}


def embed(texts: Sequence[str]) -> Floats:
    """Words that begin alike are alike."""
    rows: list[NDArray[np.float64]] = []
    for text in texts:
        own, alike = (np.random.default_rng(zlib.crc32(part.encode())) for part in (text, text[0]))
        rows.append(alike.normal(size=256) + 0.8 * own.normal(size=256))
    return normalise_rows(np.array(rows, np.float32))


def new_vocabulary() -> Vocabulary:
    return Vocabulary(EmbeddedTexts(embed).rows)


def similar(vocabulary: Vocabulary) -> dict[str, tuple[float, str]]:
    vectors = dict(zip(ASKED, embed(list(ASKED)), strict=True))
    return vocabulary.similar_stems(ASKED, vectors, exclude=frozenset())


def test_words_that_were_asked_for_are_near_to_what_is_said_later_as_if_they_were_asked_for_then() -> None:
    early, late = new_vocabulary(), new_vocabulary()
    for start in range(0, len(STEMS), 30):
        early.add_words({stem: stem for stem in STEMS[start : start + 30]})
        found = similar(early)
    late.add_words({stem: stem for stem in STEMS})
    expected = similar(late)
    assert len(expected) > 10 and found.keys() == expected.keys()
    for stem, (weight, stands_for) in expected.items():
        assert found[stem][0] == pytest.approx(weight, abs=2e-3) and found[stem][1] == stands_for


def test_a_word_is_compared_with_all_stems_once_and_then_with_new_ones_alone() -> None:
    vocabulary = new_vocabulary()
    vocabulary.add_words({stem: stem for stem in STEMS})
    similar(vocabulary)
    known = {word: vocabulary._known[word] for word in ASKED.values()}
    vocabulary.add_words({"anew": "aword"})
    assert "anew" in similar(vocabulary)
    assert all(vocabulary._known[word] is known[word] for word in known)


def test_a_word_that_exists_is_no_misspelt_one_even_if_nobody_said_it() -> None:
    vocabulary, embedder = new_vocabulary(), builtin_embedder()
    vocabulary.add_words({"marker": "marker", "umbrella": "umbrella"})
    asked = {"market": "market", "umbrela": "umbrela"}
    vectors = dict(zip(asked, embed(list(asked.values())), strict=True))
    spelt = vocabulary.similar_stems(asked, vectors, exclude=frozenset())
    assert spelt["marker"][1] == "market" and spelt["umbrella"][1] == "umbrela"
    found = vocabulary.similar_stems(asked, vectors, exclude=frozenset(), is_word=embedder.is_word)
    assert found["umbrella"] == spelt["umbrella"] and found["marker"][0] < spelt["marker"][0]
