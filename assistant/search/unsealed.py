"""The units of a collection that are not in a page of the store yet, by stem."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Sequence
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import POSTING_DTYPE, Bools, Occurrences, UnitRows, read_postings
from assistant.search.index_values import UnsealedUnit
from assistant.search.units import REPEATS

_POSTING = Struct("<iB")  # a row of POSTING_DTYPE


class UnsealedUnits:
    def __init__(self) -> None:
        self.words: dict[str, str] = {}  # a word of each stem
        self._count = 0
        # Unit and times of each stem, as rows of POSTING_DTYPE: 5 bytes each, where objects would take 100.
        self._postings: dict[str, bytearray] = {}
        self._sources: dict[str, int] = {}  # computed when first asked for

    def __len__(self) -> int:
        return self._count

    def add(self, units: Sequence[UnsealedUnit]) -> None:
        self._count += len(units)
        self._sources.clear()
        for unit in units:
            for stem in unit.stems:
                posting = _POSTING.pack(unit.number, stem.times)
                if (postings := self._postings.get(stem.stem)) is None:
                    self._postings[stem.stem] = bytearray(posting)
                else:
                    postings += posting
                self.words[stem.stem] = stem.word

    @property
    def stems(self) -> KeysView[str]:
        return self._postings.keys()

    def occurrences(self, stem: str) -> Occurrences | None:
        """Return the units with the stem and how often each has it, None if none has it."""
        if stem not in self._postings:
            return None
        return read_postings(self._rows_of(stem))

    def source_count(self, stem: str, meta: UnitRows) -> int:
        """Return how many sources have a stem; `meta` are the rows of all units."""
        if stem not in self._sources:
            self._sources[stem] = count_sources(meta[self._rows_of(stem)["unit"]])
        return self._sources[stem]

    def _rows_of(self, stem: str) -> NDArray[np.void]:
        return np.frombuffer(bytes(self._postings.get(stem, b"")), POSTING_DTYPE)

    def by_stem(self, meta: UnitRows) -> Iterator[tuple[str, bytes, int]]:
        """Yield each stem with its postings, and with how many sources have it."""
        sizes = [len(postings) // _POSTING.size for postings in self._postings.values()]
        postings = np.frombuffer(b"".join(self._postings.values()), POSTING_DTYPE)
        stem_numbers = np.repeat(np.arange(len(sizes)), sizes)
        rows = meta[postings["unit"]]
        counted = are_counted(rows)
        is_new = _begin_a_source(rows["source"][counted], stem_numbers[counted])
        sources = np.bincount(stem_numbers[counted][is_new], minlength=len(sizes)).tolist()
        for (stem, body), count in zip(self._postings.items(), sources, strict=True):
            yield stem, bytes(body), count


def are_counted(rows: UnitRows) -> Bools:
    """Return which units count for the rarity of their words: all but questions about something, and their answers."""
    counted: Bools = rows["form"] & REPEATS == 0
    return counted


def count_sources(rows: UnitRows) -> int:
    """Return of how many sources these units are, which are in order: those of a source are adjacent."""
    return int(_begin_a_source(rows["source"][are_counted(rows)]).sum())


def _begin_a_source(*columns: np.ndarray) -> Bools:
    """Return which rows differ from the one before in one of these columns."""
    differs = np.zeros(len(columns[0]), bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs
