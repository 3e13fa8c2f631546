"""The seam between the search index and whoever keeps it on disk. Numbers cross it as bytes.

What is new is kept unit by unit (`Fresh`), so that a message costs one small row; from time to time what is fresh is
sealed into a page with its postings. Everything here is derived: thrown away, it is made again from the log, the
journal and the memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

META_BYTES = 34
VECTOR_BYTES = 256
POSTING_BYTES = 5
"""Lengths of one unit's meta, one vector, one posting (`assistant.search.forms`)."""


@dataclass(frozen=True, slots=True)
class Stemmed:
    """A stem of a unit: how often, and a word that it is the stem of."""

    stem: str
    word: str
    count: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """A unit that is not sealed yet: its meta and vector as bytes, its stems."""

    number: int
    meta: bytes
    vector: bytes
    stems: tuple[Stemmed, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A stem of the collection: in how many sealed units it stands, and the vector of a word of it."""

    id: int
    stem: str
    units: int
    vector: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Sealed units from `first` on; `terms` those that stand in them, with their new counts; `postings` by term id."""

    first: int
    units: int
    meta: bytes
    vectors: bytes
    terms: Sequence[Term]
    postings: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is loaded when a collection is opened: everything but sealed postings and vectors. `names` by number;
    `cursor` is how far its source was read; `total` the sum of all vectors."""

    meta: bytes
    fresh: Sequence[Fresh]
    terms: Sequence[Term]
    names: Mapping[int, str]
    cursor: int
    total: bytes


class Shelf(Protocol):
    """Keeps one collection. Every method raises `StoreError`."""

    def load(self) -> Contents: ...

    def add(self, fresh: Sequence[Fresh], names: Mapping[int, str], cursor: int) -> None:
        """Keep new units and names, and how far the source was read, in one transaction."""
        ...

    def seal(self, page: Page, total: bytes) -> None:
        """Keep a page in place of the fresh units that it holds, in one transaction."""
        ...

    def mark_gone(self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[Term] = ()) -> None:
        """Replace the meta of these units, by number. With `terms`, the words are to vanish too: vectors of the units
        become zero, fresh ones lose their stems, terms take their new counts, and those without a unit are removed."""
        ...

    def postings(self, term: int) -> bytes:
        """Of a term in sealed pages, in order of units."""
        ...

    def vectors(self, first: int, last: int) -> bytes:
        """Of sealed units [first, last), one after another."""
        ...

    def clear(self) -> None: ...
