"""Makes search hits of messages: reads their texts from the log and cuts out what matches the question.

Text is only read from the message log, so quotes are verbatim. Of a long record at most one window is read at a time; a
record that cannot be read is omitted and reported by `assistant verify`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from sqlite3 import Row

from assistant.core.dataclass import dataclass
from assistant.core.messages import LogByteRange
from assistant.core.records import LogLocation, MatchQuality, SearchHit
from assistant.search.index_values import SourceHit
from assistant.search.match import EXCERPT_CHARACTERS, Excerpt, PreparedQuery, WordSpot, best_passage, make_excerpt
from assistant.store.log.format import split_line
from assistant.store.rows import parse_time

_LONGEST_LINE = 64 * 1024
# Searched at once: takes some milliseconds.
_WINDOW = 64 * 1024
_DEEPEST = 4 * 1024 * 1024
_CONTENT = b'"content":"'
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
# Whose words are found together, which are a megabyte at the most.
_TEXTS_AT_ONCE = 16
ReadPiece = Callable[[str, int, int], bytes]
"""Reads (session, start, size) of a log."""


class HitMaker:
    """Makes the hits of one question."""

    def __init__(
        self,
        read_piece: ReadPiece,
        log_place: Callable[[str, LogByteRange], LogLocation],
        query: PreparedQuery,
        *,
        names_unknown: bool,
    ) -> None:
        self._read_piece = read_piece
        self._log_place = log_place
        self._query = query
        self._names_unknown = names_unknown
        self._speakers: dict[str, frozenset[int]] = {}  # which of the question's words the name of each has
        self._fits: dict[frozenset[int], MatchQuality] = {}

    def make_hits(self, found: Sequence[tuple[Row, SourceHit]], limit: int) -> list[SearchHit]:
        """Return the first hits that have a text; `found` are rows of messages with those of the index."""
        hits: list[SearchHit] = []
        while found and len(hits) < limit:
            many = min(limit - len(hits), _TEXTS_AT_ONCE)
            some, found = found[:many], found[many:]
            records = [_read_text(self._read_piece, row) for row, _ in some]
            said = [(*one, text) for one, text in zip(some, records, strict=True) if text and text.text.strip()]
            spots = self._query.matcher.find_spots_of([text.text for *_, text in said])
            hits += [self._hit(*one, of_text) for one, of_text in zip(said, spots, strict=True)]
        return hits

    def _hit(self, row: Row, hit: SourceHit, record: RecordText, spots: list[WordSpot]) -> SearchHit:
        excerpt = self._excerpt(row, record, spots)
        speaker = record.speaker if row["role"] != "tool" else None
        fit = self._fit(excerpt.words | self._words_of(speaker) if speaker else excerpt.words)
        return SearchHit(
            message_id=row["id"],
            session=row["session"],
            generation=row["generation"],
            role=row["role"],
            name=record.speaker,
            ts=parse_time(row["ts"]),
            text=excerpt.text,
            score=hit.score,
            location=self._log_place(row["session"], LogByteRange(row["byte_start"], row["byte_end"])),
            quality=MatchQuality(
                words=fit.words,
                chance=fit.chance,
                share=fit.share,
                rarity=fit.rarity,
                surprise=fit.surprise,
                likeness=hit.similarity,
                nearby=hit.nearby,
                names_unknown=self._names_unknown,
            ),
        )

    def _words_of(self, speaker: str) -> frozenset[int]:
        if speaker not in self._speakers:
            self._speakers[speaker] = self._query.matcher.words_in(speaker)
        return self._speakers[speaker]

    def _fit(self, words: frozenset[int]) -> MatchQuality:
        if words not in self._fits:
            self._fits[words] = self._query.significance.measure_fit(words)
        return self._fits[words]

    def _excerpt(self, row: Row, record: RecordText, spots: list[WordSpot]) -> Excerpt:
        """Return the part of the message that matches most of the question."""
        if record.is_complete:
            return make_excerpt(record.text, spots, self._query.significance.idf)
        return self._excerpt_of_windows(row, record, spots)

    def _excerpt_of_windows(self, row: Row, record: RecordText, spots: list[WordSpot]) -> Excerpt:
        """Return the best part of a message read in windows, from the first that matches everything; `record` is its
        beginning."""
        idf = self._query.significance.idf
        best = (best_passage(spots, idf, EXCERPT_CHARACTERS)[0], record.text, spots)
        for text in _read_windows(self._read_piece, row):
            if best[0] >= sum(idf):
                break
            spots = self._query.matcher.find_spots(text)
            worth = best_passage(spots, idf, EXCERPT_CHARACTERS)[0]
            if worth > best[0]:
                best = (worth, text, spots)
        return make_excerpt(best[1], best[2], idf)


@dataclass(frozen=True, slots=True)
class RecordText:
    """The text of a record."""

    text: str  # its content, or the names of its attachments if it has none
    speaker: str | None
    is_complete: bool = True  # False: the beginning of the content


def _read_text(read_piece: ReadPiece, row: Row) -> RecordText | None:
    """Return the text of a record; None if it cannot be read."""
    length = row["byte_end"] - row["byte_start"]
    line = read_piece(row["session"], row["byte_start"], min(length, _LONGEST_LINE))
    return _beginning(line) if length > _LONGEST_LINE else _parsed(line, row["source"])


def _read_windows(read_piece: ReadPiece, row: Row) -> Iterator[str]:
    """Yield the content of one record in pieces: its first 4 MB, then its end."""
    session, start, end = row["session"], row["byte_start"], row["byte_end"]
    place = read_piece(session, start, min(_LONGEST_LINE, end - start)).find(_CONTENT)
    if place < 0:
        return
    at = start + place + len(_CONTENT)
    while at < min(end, start + _DEEPEST):
        text, used, closed = _string(read_piece(session, at, min(_WINDOW, end - at)))
        yield text
        if closed or not used:
            return
        at += used
    if at < end:
        tail = read_piece(session, max(at, end - _WINDOW), _WINDOW)
        yield _string(tail[tail.find(b" ") + 1 :])[0]


def _parsed(line: bytes, message_id: int) -> RecordText | None:
    try:
        header, _, body = split_line(line)
        raw = json.loads(body.decode())
    except ValueError:
        return None
    if b',"id":%d,' % message_id not in header:
        return None
    names = ", ".join(media.get("name", "") for media in raw.get("media", ()))
    return RecordText(raw["content"] if raw["content"].strip() else names, raw.get("name"))


def _beginning(head: bytes) -> RecordText | None:
    place = head.find(_CONTENT)
    if place < 0:
        return None
    text, _, closed = _string(head[place + len(_CONTENT) :])
    return RecordText(text, None, is_complete=closed)


def _string(piece: bytes) -> tuple[str, int, bool]:
    """Decode the JSON string that continues in `piece`; return (text, bytes used, whether the string ended). A
    character or escape cut at the end is left for the next piece."""
    match = _STRING.match(piece)
    used = match.end() if match else 0
    closed = used < len(piece) and piece[used : used + 1] == b'"'
    raw = piece[:used]
    if not closed:
        raw = raw[: len(raw) - _cut(raw)]
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(f'"{text}"', strict=False), len(raw), closed
    except ValueError:
        return text, len(raw), closed


def _cut(raw: bytes) -> int:
    r"""Return how many bytes at the end are an incomplete UTF-8 character or \u escape."""
    escape = raw.rfind(b"\\u", max(0, len(raw) - 5))
    if escape >= 0:
        return len(raw) - escape
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0
