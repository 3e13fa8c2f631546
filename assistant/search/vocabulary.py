"""The stems of a collection, and which of them are similar in meaning, so that a question finds text in other words.
Words are folded. Bounded to 4 MB: above 30,000 stems the rarest are left out, and only the first 128 dimensions are
stored, one byte each. In a large vocabulary sketches (`sketches`) tell which stems are worth comparing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from assistant.core.dataclass import dataclass
from assistant.core.text import STOP_WORDS
from assistant.search.dtypes import ByteVectors, Floats, Ints, distinct_values
from assistant.search.index_values import IndexTerm
from assistant.search.sketches import differing_bits, nearest_places, sketches_of
from assistant.search.spelling import KnownWords

_MAX_STEMS_KEPT = 30_000
_DIMENSIONS = 128
_NEAREST, _LEAST_COSINE, _WEIGHT = 5, 0.35, 0.55
# An unknown word may not be a word at all.
_LEAST_COSINE_UNSAID = 0.5
# A likely misspelling counts almost like the stem itself; the other words of a question show which stem is meant.
_SLIP_WEIGHT = 0.9
_MAX_MEANT = 4
_WORDS_KEPT = 1_024
_SLIPS_KEPT = 4_096
# Rows compared at once: more need more memory, fewer more time. A smaller vocabulary is compared whole.
_BATCH_ROWS = 4_096
# Of a larger one those whose sketches are nearest: 99% of the words that a comparison with all finds are among them.
_COMPARED = 1_024


@dataclass(slots=True)
class _KnownWord:
    """A word of a question with the stems that are nearest to it, nearest first, each with its cosine."""

    vector: NDArray[np.float16]
    nearest: list[tuple[str, float]]


class Vocabulary:
    def __init__(self, vectors_of: Callable[[Sequence[str]], ByteVectors]) -> None:
        """`vectors_of` returns the quantised vectors of words."""
        self._vectors_of = vectors_of
        self._stems: list[str] = []
        self._rows: dict[str, int] = {}
        self._matrix = np.zeros((1_024, _DIMENSIONS), np.int8)
        self._lengths = np.zeros(1_024, np.float32)  # of the rows of the matrix
        self._sketches = sketches_of(self._matrix[:0])  # of the first rows, made when they are needed
        self._waiting: dict[str, str] = {}
        self._known: OrderedDict[str, _KnownWord] = OrderedDict()
        self._slips: dict[str, list[str]] = {}  # unknown stems, with the stems that may be meant
        self._spelt: KnownWords | None = None  # the stems, built when one is misspelt

    def load(self, terms: Iterable[IndexTerm], vectors_of: Callable[[Sequence[int]], list[bytes]]) -> None:
        """Load the stems of most sources; `vectors_of` returns the vectors (int8) of terms by their ids."""
        usual = sorted((term for term in terms if _is_telling(term.stem)), key=lambda term: -term.sources)
        del usual[_MAX_STEMS_KEPT:]
        if not usual:
            return
        vectors = np.frombuffer(b"".join(vectors_of([term.id for term in usual])), np.int8).reshape(len(usual), -1)
        self._stems = [term.stem for term in usual]
        self._rows = {stem: row for row, stem in enumerate(self._stems)}
        self._matrix = vectors[:, :_DIMENSIONS].copy()
        self._lengths = _lengths_of(self._matrix)

    def add_words(self, words: Mapping[str, str]) -> None:
        """Add new stems, each with a word; embedded at first use."""
        for stem, word in words.items():
            if stem not in self._rows and _is_telling(stem):
                self._waiting[stem] = word

    def similar_stems(
        self,
        words: Mapping[str, str],
        vectors: Mapping[str, Floats],
        *,
        exclude: frozenset[str],
        is_word: Callable[[str], bool] = lambda word: False,
    ) -> dict[str, tuple[float, str]]:
        """Return for the stems of a question (each with a word, and the vector of that) other stems of the collection
        with similar meaning, each with a weight below 1 and the question's stem it is most similar to; none of
        `exclude`. `is_word` tells words that exist: they are no misspelt ones, even if nobody ever said them."""
        self.take_in()
        unknown = {stem: word for stem, word in words.items() if word not in self._known}
        if unknown and self._stems:
            compared = normalise_rows(np.stack([vectors[stem] for stem in unknown])[:, :_DIMENSIONS])
            rows = self._rows_like(compared)
            cosines = compared @ self._matrix.take(rows, axis=0).astype(np.float32).T / self._lengths[rows]
            for vector, of_word, word in zip(compared, cosines, unknown.values(), strict=True):
                nearest = [(self._stems[rows[place]], cosine) for place, cosine in _best(of_word)]
                self._known[word] = _KnownWord(vector.astype(np.float16), nearest)
        while len(self._known) > _WORDS_KEPT:
            self._known.popitem(last=False)
        if len(self._slips) > _SLIPS_KEPT:
            self._slips.clear()
        similar: dict[str, tuple[float, str]] = {}
        for own, word in words.items():
            if own not in self._rows and not is_word(word):
                similar |= {meant: (_SLIP_WEIGHT, own) for meant in self._meant(own) if meant not in words}
        for own, word in words.items():
            least = _LEAST_COSINE if own in self._rows else _LEAST_COSINE_UNSAID
            for stem, cosine in self._known[word].nearest if word in self._known else ():
                if cosine >= least and stem not in exclude and stem not in words:
                    similar[stem] = max(similar.get(stem, (0.0, "")), (_WEIGHT * cosine, own))
        return similar

    def _meant(self, stem: str) -> list[str]:
        """Return the stems of the collection of which an unknown one may be a misspelling."""
        if stem not in self._slips:
            known = self._spelt = self._spelt or KnownWords(self._stems)
            self._slips[stem] = known.nearest(stem, _MAX_MEANT)
        return self._slips[stem]

    def _rows_like(self, vectors: Floats) -> Ints:
        """The rows that are worth comparing with these."""
        count = len(self._stems)
        if count <= _BATCH_ROWS:
            return np.arange(count)
        self._make_sketches()
        nearest = [nearest_places(differing_bits(self._sketches, one), _COMPARED) for one in vectors]
        rows: Ints = distinct_values(np.concatenate(nearest))[0]
        return rows

    def prepare(self) -> None:
        """Make what questions need of the stems known by now."""
        self._make_sketches()
        if self._spelt is None:
            self._spelt = KnownWords(self._stems)

    def _make_sketches(self) -> None:
        """Compute those that are missing, where there are so many stems that they are used."""
        count, sketched = len(self._stems), self._sketches.shape[1]
        if count > _BATCH_ROWS and sketched < count:
            new = sketches_of(self._matrix[sketched:count])
            self._sketches = np.concatenate([self._sketches, new], axis=1)

    def take_in(self) -> None:
        """Embed the words that were added: else the next question does, which takes as long as there are many."""
        new = {stem: word for stem, word in self._waiting.items() if stem not in self._rows}
        self._waiting.clear()
        if not new:
            return
        rows = self._vectors_of(list(new.values()))[:, :_DIMENSIONS]
        first, self._stems = len(self._stems), [*self._stems, *new]
        self._rows.update({stem: first + offset for offset, stem in enumerate(new)})
        if len(self._stems) > len(self._matrix):
            more = max(len(self._matrix) // 4, len(new))
            self._matrix = np.concatenate([self._matrix[:first], np.zeros((more, _DIMENSIONS), np.int8)])
            self._lengths = np.concatenate([self._lengths[:first], np.zeros(more, np.float32)])
        self._matrix[first : first + len(new)] = rows
        self._lengths[first : first + len(new)] = _lengths_of(rows)
        self._compare_known(list(new), rows)
        self._slips.clear()
        if self._spelt is not None:
            self._spelt.add(new)

    def _compare_known(self, stems: list[str], rows: ByteVectors) -> None:
        """New stems may be nearer to words that were asked for before."""
        if not self._known:
            return
        known = list(self._known.values())
        vectors = np.stack([word.vector for word in known]).astype(np.float32)
        cosines = vectors @ rows.astype(np.float32).T / _lengths_of(rows)
        farthest = np.array([word.nearest[-1][1] if len(word.nearest) > _NEAREST else -1.0 for word in known])
        for place in np.flatnonzero((cosines > farthest[:, None]).any(axis=1)):
            nearer = [(stems[column], cosine) for column, cosine in _best(cosines[place])]
            known[place].nearest = sorted([*known[place].nearest, *nearer], key=lambda pair: -pair[1])[: _NEAREST + 1]


def _best(cosines: Floats) -> list[tuple[int, float]]:
    """The places of the greatest cosines, the greatest first: one more than are used, as a word may be there itself."""
    count = min(_NEAREST + 1, len(cosines))
    best = np.argpartition(-cosines, count - 1)[:count]
    return sorted(((int(place), float(cosines[place])) for place in best), key=lambda pair: -pair[1])


def normalise_rows(rows: Floats) -> Floats:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    normalised: Floats = rows / np.maximum(lengths, 1e-6)
    return normalised


def _lengths_of(rows: ByteVectors) -> Floats:
    """Computed once per row and not per search, in batches to limit memory."""
    batches = (rows[start : start + _BATCH_ROWS] for start in range(0, len(rows), _BATCH_ROWS))
    lengths = [np.linalg.norm(batch.astype(np.float32), axis=1) for batch in batches]
    joined: Floats = np.maximum(np.concatenate([*lengths, np.zeros(0)]), 1e-6).astype(np.float32)
    return joined


def _is_telling(stem: str) -> bool:
    return len(stem) > 2 and stem.isalpha() and stem not in STOP_WORDS
