"""The text of log records, read from the message log in pieces of bounded size.

What always holds: however long a record is, at most one window of it is in memory at a time; a record that cannot be
read is left out here and reported by `assistant verify`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row

from assistant.core.errors import StoreError
from assistant.store.log.reader import LogFiles

_LONGEST_LINE = 64 * 1024
_WINDOW = 256 * 1024
_DEEPEST = 16 * _WINDOW
_BLOCK = 512 * 1024
_GAP = 4096
_CONTENT = b'"content":"'
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class RecordText:
    """What a record says: all of its content, or (`whole` False) the beginning of it; the names of its attachments
    where it has no other words."""

    text: str
    speaker: str | None
    is_complete: bool = True


class RecordTextReader:
    """Reads the words of index rows (columns `id`, `session`, `byte_start`, `byte_end`)."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files

    def read_texts(self, rows: Sequence[Row]) -> dict[int, RecordText]:
        """Message id -> its words, for the rows that can be read. Rows that stand together are read together."""
        found: dict[int, RecordText] = {}
        for session in dict.fromkeys(row["session"] for row in rows):
            mine = sorted((row for row in rows if row["session"] == session), key=lambda row: row["byte_start"])
            with _Opened(self._files.path(session)) as file:
                for block in _blocks(mine):
                    found.update(_read_block(file, block))
        return found

    def read_windows(self, row: Row) -> Iterator[str]:
        """The content of one record piece by piece: its first 4 MB, then its end."""
        with _Opened(self._files.path(row["session"])) as file:
            start, end = row["byte_start"], row["byte_end"]
            head = file.read(start, min(_LONGEST_LINE, end - start))
            place = head.find(_CONTENT)
            if place < 0:
                return
            at = start + place + len(_CONTENT)
            while at < min(end, start + _DEEPEST):
                text, used, closed = _string(file.read(at, min(_WINDOW, end - at)))
                yield text
                if closed or not used:
                    return
                at += used
            if at < end:
                tail = file.read(max(at, end - _WINDOW), _WINDOW)
                yield _string(tail[tail.find(b" ") + 1 :])[0]


class _Opened:
    """A log file while one search reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> _Opened:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._descriptor = -1
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}. Nothing was changed.") from error
        return self

    def __exit__(self, *exc: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read(self, start: int, size: int) -> bytes:
        if self._descriptor < 0:
            return b""
        try:
            return os.pread(self._descriptor, size, start)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}. Nothing was changed.") from error


def _blocks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows in the order of the log, together where one read serves them."""
    block: list[Row] = []
    for row in rows:
        apart = block and (
            row["byte_start"] - block[-1]["byte_end"] > _GAP
            or row["byte_end"] - block[0]["byte_start"] > _BLOCK
            or _is_long(row)
            or _is_long(block[-1])
        )
        if apart:
            yield block
            block = []
        block.append(row)
    if block:
        yield block


def _is_long(row: Row) -> bool:
    return int(row["byte_end"] - row["byte_start"]) > _LONGEST_LINE


def _read_block(file: _Opened, block: Sequence[Row]) -> Iterator[tuple[int, RecordText]]:
    first = block[0]["byte_start"]
    if _is_long(block[0]):
        words = _beginning(file.read(first, _LONGEST_LINE))
        if words is not None:
            yield block[0]["id"], words
        return
    data = file.read(first, block[-1]["byte_end"] - first)
    for row in block:
        words = _parsed(data[row["byte_start"] - first : row["byte_end"] - first], row["id"])
        if words is not None:
            yield row["id"], words


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
    """How many bytes at the end begin something that goes on: a UTF-8 character, or a \\u escape."""
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
