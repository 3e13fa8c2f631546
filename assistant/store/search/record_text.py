"""The text of log records, read from the message log in pieces of bounded size.

What always holds: however long a record is, at most one window of it is in memory at a time; a record that cannot be
read is left out here and reported by `assistant verify`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sqlite3 import Row

from assistant.store.log.reader import LogFiles

_LONGEST_LINE = 64 * 1024
_WINDOW = 256 * 1024
_DEEPEST = 16 * _WINDOW
_CONTENT = b'"content":"'
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class RecordText:
    """What a record says."""

    text: str  # its content; without any, the names of its attachments
    speaker: str | None
    is_complete: bool = True  # False: the beginning of the content


class RecordTextReader:
    """Reads the words of index rows (columns `id`, `session`, `byte_start`, `byte_end`)."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files

    def read_text(self, row: Row) -> RecordText | None:
        """The words of a record; None where it cannot be read."""
        length = row["byte_end"] - row["byte_start"]
        line = self._files.read_piece(row["session"], row["byte_start"], min(length, _LONGEST_LINE))
        return _beginning(line) if length > _LONGEST_LINE else _parsed(line, row["id"])

    def read_windows(self, row: Row) -> Iterator[str]:
        """The content of one record piece by piece: its first 4 MB, then its end."""
        session, start, end = row["session"], row["byte_start"], row["byte_end"]
        head = self._files.read_piece(session, start, min(_LONGEST_LINE, end - start))
        place = head.find(_CONTENT)
        if place < 0:
            return
        at = start + place + len(_CONTENT)
        while at < min(end, start + _DEEPEST):
            text, used, closed = _string(self._files.read_piece(session, at, min(_WINDOW, end - at)))
            yield text
            if closed or not used:
                return
            at += used
        if at < end:
            tail = self._files.read_piece(session, max(at, end - _WINDOW), _WINDOW)
            yield _string(tail[tail.find(b" ") + 1 :])[0]


def _parsed(line: bytes, message_id: int) -> RecordText | None:
    try:
        raw = json.loads(line)
    except ValueError:
        return None
    if raw.get("id") != message_id:
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
    """(text, bytes used, whether the string ended) of the JSON string that `piece` continues. A character or escape
    that the end cuts apart is left for the next piece."""
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
    """How many bytes at the end are the beginning of a UTF-8 character, or of a \\u escape."""
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


FTS_TOKENIZER = "porter unicode61 remove_diacritics 2"
"""What `messages_fts` is declared with."""

_MAX_KNOWN = 20_000


class Stemmer:
    """Word -> stem, remembered for the last 20,000 words or so. A word that `unicode61` takes apart has its pieces'
    stems joined by spaces. Not for several threads at once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._scratch = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, content='', tokenize='{FTS_TOKENIZER}')")
        self._scratch.execute("CREATE VIRTUAL TABLE terms USING fts5vocab ('words', 'instance')")

    def of(self, words: Iterable[str]) -> dict[str, str]:
        """The stem of each word; "" for one that has no letter or digit."""
        distinct = list(dict.fromkeys(words))
        missing = [word for word in distinct if word not in self._known]
        if missing:
            if len(self._known) + len(missing) > _MAX_KNOWN:
                self._known.clear()
                missing = distinct
            self._known.update(self._made(missing))
        return {word: self._known[word] for word in distinct}

    def close(self) -> None:
        self._scratch.close()

    def _made(self, words: list[str]) -> dict[str, str]:
        pieces: list[list[str]] = [[] for _ in words]
        self._scratch.execute("BEGIN")
        self._scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        for term, row in self._scratch.execute("SELECT term, doc FROM terms ORDER BY doc, offset"):
            pieces[row].append(term)
        self._scratch.execute("ROLLBACK")
        return {word: " ".join(piece) for word, piece in zip(words, pieces, strict=True)}
