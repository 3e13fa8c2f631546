"""The tokens of words are those that the library `tokenizers` makes of them."""

from __future__ import annotations

import importlib.util
import random
import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from assistant.mem0.subwords import SubwordTokenizer, read_tokenizer

# Runs of one character, of blanks, and of what has no token, beside ordinary words.
ALPHABETS = (
    "abcdefghij",
    "aeiou",
    "x",
    "=-_.",
    "   \u2581ab",
    "0123456789. ",
    "\u00e9\u00fc\u00df\u65e5\u672c\u8a9eab",
    "\U0001f408\n\tz ",
)
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def file() -> Path:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"


@pytest.fixture(scope="module")
def tokenizer(file: Path) -> SubwordTokenizer:
    return read_tokenizer(file)


@pytest.fixture(scope="module")
def library(file: Path) -> Tokenizer:
    return Tokenizer.from_file(str(file))


def drawn_words() -> list[str]:
    chance = random.Random(5)
    return ["".join(chance.choices(letters, k=chance.randrange(1, 60))) for letters in ALPHABETS for _ in range(200)]


def assert_alike(words: list[str], tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    for word, encoding in zip(words, library.encode_batch(words, add_special_tokens=False), strict=True):
        # The library begins each text with a blank.
        assert tokenizer.encode(f" {word}") == encoding.ids, word


def test_words_of_texts(tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    texts = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    words = sorted({word for text in texts for word in re.findall(r"\S+", text)})
    assert len(words) > 5_000
    assert_alike(words, tokenizer, library)


def test_every_token_is_made_of_its_characters(tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    """So that a word that is a token needs no joining."""
    words = [word.removeprefix("\u2581") for word in library.get_vocab() if word.startswith("\u2581")]
    assert_alike([word for word in words if word], tokenizer, library)


def test_drawn_words(tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    assert_alike(drawn_words(), tokenizer, library)


def test_a_word_of_a_hundred_thousand_characters(tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    letters = random.Random(6).choices("abcdefghijklmnopqrstuvwxyz", k=50_000)
    assert_alike(["x" * 100_000, "".join(letters)], tokenizer, library)


def test_half_a_character_is_the_byte_of_a_question_mark(tokenizer: SubwordTokenizer, library: Tokenizer) -> None:
    assert tokenizer.encode("\ud83d") == [library.token_to_id("<0x3F>")]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"model": {}}', b'{"model": {"vocab": {"a": "b"}}}', b'{"model": {"vocab": {"a": 1}}}'],
)
def test_a_file_that_is_none_of_a_tokenizer_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises((ValueError, KeyError)):
        read_tokenizer(tmp_path / "file.json")
