"""The seam between the search index and its store. Numbers cross it as bytes.

What is new is kept unit by unit (`UnsealedUnit`), so that a message costs one small row; from time to time the
unsealed units are sealed into a page with its postings. Everything here is derived: thrown away, it is made again
from the log, the journal and the memories.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.core.text import lazy_regex

META_BYTES = 34
VECTOR_BYTES = 256
POSTING_BYTES = 5
"""Lengths of one unit's meta, one vector, one posting (`assistant.search.index_values`)."""


@dataclass(frozen=True, slots=True)
class UnitStem:
    """A stem of a unit."""

    stem: str
    word: str  # one that it is the stem of
    count: int  # how often it is in the unit


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


UNIT_WORDS = 80
WHOLE_WORDS = 100
_SHORT = 120

QUESTION, GREETING, TIME_WORD = 1, 2, 4
"""What a unit is or has, as bits: a short question, a greeting, a word that tells a time."""

_BREAK = lazy_regex(r"(?<=[.!?…])\s+|\s*\n+\s*|(?<=[。！？])")
_ASKS = lazy_regex(r"[?？؟][\s\"'”’)»」]*$")
_GREETING = lazy_regex(
    r"^\W*(?:hi|hey|hello|thanks|thank you|bye|good ?(?:bye|morning|night|evening|afternoon)|take care|wow|cool|hallo"
    r"|danke|bonjour|salut|merci|hola|gracias|ciao|grazie|hei|takk|tack|привет|спасибо|こんにちは|ありがとう|你好|谢谢)\b",
    re.IGNORECASE,
)
_TIME = lazy_regex(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|weeks?|weekends?|months?|years?|days?|recently|since|mornings?"
    r"|evenings?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d\d|gestern|heute|morgen|hier|demain|ayer"
    r"|mañana|i går|i morgen)\b|昨天|今天|明天|昨日|今日|明日|[年月日]",
    re.IGNORECASE,
)
_CJK_A_WORD = 2
_CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


@dataclass(frozen=True, slots=True)
class SearchUnit:
    """A piece of a text as the index takes it."""

    source: int  # the id of the message, entry or memory
    part: int  # which piece of it
    stream: str  # units of one stream are neighbours in the order in which they come
    scope: str
    role: str
    speaker: str
    said_at: datetime
    day: date  # the local date
    text: str


def split_into_units(text: str) -> list[str]:
    """The pieces of a text in their order; none of a text without words."""
    if not text.strip():
        return []
    if _words(text) <= WHOLE_WORDS:
        return [text.strip()]
    return [piece for piece in _gathered(text) if piece]


def unit_flags(text: str) -> int:
    """The bits of what a unit is or has."""
    short = len(text) <= _SHORT
    bits = QUESTION if short and _ASKS.search(text) else 0
    bits |= GREETING if short and _GREETING.match(text) else 0
    return bits | (TIME_WORD if _TIME.search(text) else 0)


def _gathered(text: str) -> Iterator[str]:
    """Sentences joined up to 80 words; a longer one cut."""
    gathered: list[str] = []
    room = UNIT_WORDS
    for sentence in _BREAK.split(text):
        for piece in _cut(sentence):
            words = _words(piece)
            if gathered and words > room:
                yield " ".join(gathered)
                gathered, room = [], UNIT_WORDS
            gathered.append(piece)
            room -= words
    if gathered:
        yield " ".join(gathered)


def _cut(sentence: str) -> Iterator[str]:
    if _words(sentence) <= UNIT_WORDS:
        if sentence.strip():
            yield sentence.strip()
        return
    words = sentence.split()
    if len(words) > 1 and len(sentence) < len(words) * 24:
        for first in range(0, len(words), UNIT_WORDS):
            yield " ".join(words[first : first + UNIT_WORDS])
        return
    letters = UNIT_WORDS * (_CJK_A_WORD if _CJK.search(sentence) else 6)
    for first in range(0, len(sentence), letters):
        yield sentence[first : first + letters].strip()


def _words(text: str) -> int:
    """About how many; two characters of a script without spaces count as one."""
    return text.count(" ") + text.count("\n") + 1 + len(_CJK.findall(text)) // _CJK_A_WORD + len(text) // 400


DIMENSIONS = 256
VECTOR_SCALE = 127.0

UNIT_DTYPE = np.dtype(
    [
        ("source", "<i8"),
        ("second", "<u4"),
        ("day", "<i4"),
        ("previous", "<i4"),
        ("stream", "<i4"),
        ("scope", "<u2"),
        ("speaker", "<u2"),
        ("part", "<u2"),
        ("words", "u1"),
        ("role", "u1"),
        ("form", "u1"),
        ("gone", "u1"),
    ]
)
"""One unit. `second` since 1970 (UTC), `day` the local date's ordinal, `previous` the unit before it in its stream
(-1: none), `words` 1 to 255; `stream`, `scope`, `speaker` and `role` are numbers of names; `gone`: taken back or
forgotten."""

POSTING_DTYPE = np.dtype([("unit", "<i4"), ("count", "u1")])
"""In which unit a term stands, how often."""

UnitRows = NDArray[np.void]
ByteVectors = NDArray[np.int8]
"""Rows of length 1, times `VECTOR_SCALE`."""

Floats = NDArray[np.float32]

EmbedTexts = Callable[[Sequence[str]], Floats]
"""A row of DIMENSIONS a text, of length 1 (zeros where a text has no words)."""

if (UNIT_DTYPE.itemsize, POSTING_DTYPE.itemsize, DIMENSIONS) != (META_BYTES, POSTING_BYTES, VECTOR_BYTES):
    raise TypeError("the types differ from what the store of the index has")


def quantise(rows: Floats) -> ByteVectors:
    return np.round(rows * VECTOR_SCALE).astype(np.int8)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """In which units a stem stands, and how often in each."""

    units: NDArray[np.intp]
    counts: Floats
