"""The seam between the search index and its store. Numbers cross it as bytes.

What is new is kept unit by unit (`UnsealedUnit`), so that a message costs one small row; from time to time the
unsealed units are sealed into a page with its postings. Everything here is derived: thrown away, it is made again
from the log, the journal and the memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import NamedTuple, Protocol

from assistant.core.dataclass import dataclass

META_BYTES = 34
VECTOR_BYTES = 256
POSTING_BYTES = 5
"""Lengths of one unit's meta, one vector, one posting (`assistant.search.dtypes`)."""


class UnitStem(NamedTuple):
    """A stem of a unit."""

    stem: str
    word: str  # one that it is the stem of
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
    sources: int  # how many have it in sealed units
    vector: bytes  # of a word of it; b"" for one that is stored already


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
    """What is loaded when a collection is opened: everything but sealed postings and vectors."""

    meta: bytes
    fresh: Sequence[UnsealedUnit]
    terms: Sequence[IndexTerm]
    names: Mapping[int, str]  # by number
    read_to: Mapping[str, int]  # how far each stream of the source was read
    total: bytes  # the sum of all vectors


class IndexStore(Protocol):
    """Keeps one collection. Every method raises `StoreError`. Where it `seals` not, all that is added stays fresh, and
    is gone when the index is."""

    @property
    def can_seal(self) -> bool: ...

    def load(self) -> IndexContents: ...

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None:
        """Keep new units and names, and how far streams of the source were read, in one transaction."""
        ...

    def seal(self, page: IndexPage, total: bytes) -> None:
        """Keep a page in place of the fresh units that it holds, in one transaction."""
        ...

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None:
        """Replace the meta of these units, by number. With `terms`, be they none, the words are to vanish too: vectors
        of the units become zero, fresh ones lose their stems, terms take their new counts, and those without a unit are
        removed."""
        ...

    def postings(self, term: int) -> bytes:
        """Of a term in sealed pages, in order of units."""
        ...

    def vectors(self, first: int, last: int) -> bytes:
        """Of sealed units [first, last), one after another."""
        ...

    def vectors_of(self, units: Sequence[int]) -> bytes:
        """Of these sealed units, in their order."""
        ...

    def pass_over(self, source: int, reason: str) -> None:
        """A source is not found by all of its words, or by none, for a reason in words; "" where there is none left."""
        ...

    def passed_over(self) -> dict[int, str]:
        """Sources of which that is so, with the reasons."""
        ...

    def clear(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceText:
    """A record of the log, or an entry of the journal, as it is indexed."""

    id: int
    session: str  # records of one session are neighbours; of "" each is by itself
    seq: int
    scope: str
    role: str
    speaker: str
    said_at: datetime
    text: str  # "" where it has no words
    hidden: bool = False  # taken back since
    takes_back: tuple[int, ...] = ()  # the messages that this record (an undo) hides


class TextSource(Protocol):
    """What was said, in the order of each stream of a source: a session's log, the journal. Every method raises
    `StoreError`."""

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        """Streams with records after the seq that was read (0: nothing), each with its last seq."""
        ...

    def records_after(self, stream: str, seq: int, *, limit: int) -> list[SourceText]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What a search may see."""

    scope: str
    roles: Sequence[str]  # empty: none
    after: datetime | None = None
    before: datetime | None = None  # exclusive, but for the second in which it ends
    stream: str = ""  # a session; "" for all
    last: int | None = None  # no source with a larger id


@dataclass(frozen=True, slots=True)
class SourceHit:
    """A source that answers a question."""

    source: int
    score: float  # ranks the hits of one search
    similarity: float = 0.0  # in meaning: the cosine, -1 to 1, which can be compared between searches
    parts: Mapping[str, float] = field(default_factory=dict)  # what features add to the score
    nearby: float = 0.0  # the share of the question's words in it and beside it, 0 to 1; rare words weigh most


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """How a search went: how the question was taken apart, who was a candidate, and what the hits' scores are made
    of."""

    words: Mapping[str, Sequence[str]]  # a word of the question: stems that stand for it
    asks_for: Sequence[str]  # beside its words, for people: "a time"
    sources: int  # in the collection
    by_words: int  # units that were scored and have words of the question in or around them
    by_meaning: int  # units that were scored for their meaning alone
    hits: Sequence[SourceHit]
