"""Values and ports between the search index and its store. Numbers are passed as bytes.

New units are stored individually (`UnsealedUnit`), so that a message costs one small row; from time to time they are
sealed into a page with its postings. Everything here is derived: if deleted, it is rebuilt from the log, the journal
and the memories.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import NamedTuple, Protocol

from assistant.core.dataclass import dataclass

META_BYTES = 35
VECTOR_BYTES = 256
POSTING_BYTES = 5
"""Lengths of one unit's meta, one vector, one posting (`assistant.search.dtypes`)."""

VECTORS_A_BLOCK = 16
"""Vectors that are stored together, so that those around a unit are read with it."""


class IndexingStopped(Exception):
    """Texts were not indexed, because the program stops; nothing of them was stored."""


class UnitStem(NamedTuple):
    """A stem of a unit."""

    stem: str
    word: str  # a word with this stem
    times: int  # how often it is in the unit


@dataclass(frozen=True, slots=True)
class UnsealedUnit:
    """A unit that is not sealed yet."""

    number: int
    meta: bytes
    vector: bytes
    stems: tuple[UnitStem, ...]


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """A stem of the collection."""

    id: int
    stem: str
    sources: int  # number of sources that have it in sealed units
    vector: bytes = b""  # of a word with this stem; b"" if already stored


@dataclass(frozen=True, slots=True)
class IndexPage:
    """Sealed units."""

    first: int  # number of the first unit
    units: int
    meta: bytes
    vectors: bytes
    terms: Sequence[IndexTerm]  # those in these units, with their new counts
    postings: Mapping[int, bytes]  # by term id


@dataclass(frozen=True, slots=True)
class IndexContents:
    """What is loaded when a collection is opened: everything except for sealed postings and vectors."""

    sealed: int  # number of sealed units
    pages: Iterator[bytes]  # the metadata of the sealed units, read when it is asked for
    fresh: Sequence[UnsealedUnit]
    terms: Sequence[IndexTerm]
    names: Mapping[int, str]  # by number
    read_to: Mapping[str, int]  # how far each stream of the source was read
    total: bytes  # sum of all vectors


class IndexStore(Protocol):
    """Stores one collection. Every method raises `StoreError`. If it cannot `seal`, additions stay unsealed and are
    lost when the index is closed."""

    @property
    def can_seal(self) -> bool:
        """Whether units may be stored in pages; not while another process writes."""

    def load(self) -> IndexContents:
        """Return all but the sealed units' postings and vectors, and those of terms. Raises `IndexDamaged`, also while
        its pages are read."""

    def term_vectors(self, terms: Sequence[int]) -> list[bytes]:
        """Return the vectors of terms, in order."""
        ...

    def map_file(self, size: int) -> mmap.mmap | None:
        """Map so many bytes of zeros in a file that is gone once the map is; None where there is no room."""

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None:
        """Store new units and names, and how far streams of the source were read, in one transaction."""
        ...

    def seal(self, page: IndexPage, total: bytes) -> None:
        """Store a page and delete the unsealed units it contains, in one transaction."""
        ...

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None:
        """Replace the metadata of these units, by number. If `terms` is given, even empty, the words are erased too:
        vectors of the units become zero, unsealed ones lose their stems, terms get their new counts, and those without
        a unit are deleted."""
        ...

    def postings(self, terms: Sequence[int]) -> dict[int, bytes]:
        """Return the postings of each of these terms in sealed pages, in order of units."""
        ...

    def vectors(self, first: int, last: int) -> bytes:
        """Return the vectors of sealed units [first, last), concatenated."""
        ...

    def vector_blocks(self, blocks: Sequence[int]) -> bytes:
        """Return the vectors of the sealed units [VECTORS_A_BLOCK * block, VECTORS_A_BLOCK * (block + 1)) of each block
        (in order), concatenated; zeros where the last of all has fewer."""
        ...

    def pass_over(self, source: int, reason: str) -> None:
        """Record why a source is not indexed, or only in part; "" deletes the record."""
        ...

    def passed_over(self) -> dict[int, str]:
        """Return these sources with the reasons."""
        ...

    def clear(self) -> None:
        """Delete everything in the collection."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A log record, or a journal entry, as it is indexed."""

    id: int
    session: str  # records of one session are neighbours; with "" it has none
    seq: int
    scope: str
    role: str
    speaker: str
    said_at: datetime
    text: str  # "" without words
    hidden: bool = False  # ids whose text this record replaces
    takes_back: tuple[int, ...] = ()  # messages that this record (an undo) hides


class TextSource(Protocol):
    """A source of texts in the order of its streams: a session's log, the journal. Every method raises `StoreError`."""

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        """Return streams with records after the seq that was read (0: none), each with its last seq."""
        ...

    def records_after(self, stream: str, seq: int, *, limit: int) -> list[SourceText]:
        """Return records of a stream after `seq`, in order, at most `limit`."""

    def has_until(self, stream: str, seq: int, until: datetime) -> bool:
        """Return whether a record of a stream after `seq` may be from before `until`, or change one that is."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """The permissions and filters of a search."""

    scope: str
    roles: Sequence[str]  # empty: none
    after: datetime | None = None
    before: datetime | None = None  # exclusive, to the second
    stream: str = ""  # a session; "" for all
    last: int | None = None  # no source with a larger id


@dataclass(frozen=True, slots=True)
class SourceHit:
    """A source that matches a question."""

    source: int
    score: float  # ranks the hits of one search
    similarity: float = 0.0  # similarity in meaning: the cosine, -1 to 1, comparable between searches
    parts: Mapping[str, float] = field(default_factory=dict)  # what each feature adds to the score, where explained
    nearby: float = 0.0  # share of the question's words in it and next to it, 0 to 1; weighted by rarity


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """How a search worked: how the question was parsed, which candidates there were, and how hits were scored."""

    words: Mapping[str, Sequence[str]]  # word of the question: stems searched for it
    asks_for: Sequence[str]  # what it asks for, for people: "a time"
    sources: int  # in the collection
    by_words: int  # scored units with words of the question in or around them
    by_meaning: int  # units scored only for their meaning
    hits: Sequence[SourceHit]
