"""Reads the write-ahead log of an SQLite database while others write: the pages committed since a position.

Only frames of complete commits are returned, with the salts of the log's header and a valid checksum, which covers all
frames from the first. A frame being written, and remains of an earlier log after the newest commit, have neither. The
format: https://sqlite.org/fileformat2.html#walformat.

The log has no locks (they are on the database and its `-shm`), so opening and closing it is safe while a process uses
it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy
import numpy.typing

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore

_LITTLE, _BIG = 0x377F0682, 0x377F0683
_VERSION = 3007000
_HEADER, _FRAME_HEADER = 32, 24
_WORD = 1 << 32
_SHORTEST_PAGE, _LONGEST_PAGE = 512, 1 << 16


@dataclass(frozen=True, slots=True)
class WalPosition:
    """A position after a commit in one write-ahead log, or before its first frame."""

    salts: bytes = b""  # of the log's header; b"" before there is any log
    frames: int = 0
    checksum: tuple[int, int] = (0, 0)  # of everything up to here
    page_size: int = 0
    page_count: int = 0  # of the database, at the last commit; 0 where none was read

    @property
    def end(self) -> int:
        """The byte offset of the next frame."""
        return _HEADER + self.frames * (_FRAME_HEADER + self.page_size)


@dataclass(frozen=True, slots=True)
class WalChanges:
    """Changes committed since a position."""

    pages: Mapping[int, bytes]  # the newest content of each, by page number from 1
    position: WalPosition


class WalRestarted(CorruptStore):
    """The write-ahead log was restarted, so changes in between cannot be read."""


def wal_path(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def read_changes(path: Path, since: WalPosition, *, sealed: bool = False) -> WalChanges:
    """Return what was committed after `since`. `sealed`: all of the earlier log was read and checkpointed, so the next
    log continues where it ended. Raises `WalRestarted`, `OSError`."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return WalChanges({}, since)
    with file:
        header = file.read(_HEADER)
        start = _read_header(header)
        if start is None:
            return WalChanges({}, since)
        position = since
        if start.salts != since.salts:
            if since.salts and not (sealed and _follows(start.salts, since.salts)):
                raise WalRestarted(f"{path} was started again before all of it was read.")
            position = start
        file.seek(position.end)
        return _read_commits(file.read(), position, _is_big_endian(header))


def _is_big_endian(header: bytes) -> bool:
    """Return whether checksums use big-endian words; everything else in the file always is big-endian."""
    return header.startswith(struct.pack(">I", _BIG))


def _follows(salts: bytes, earlier: bytes) -> bool:
    """Return whether a log directly follows another: SQLite increments the first salt, and the second is random."""
    before, now = (int.from_bytes(each[:4]) for each in (earlier, salts))
    return (before + 1) % _WORD == now


def _read_header(data: bytes) -> WalPosition | None:
    """Return the position before the first frame, None if there is no valid header (yet)."""
    if len(data) < _HEADER:
        return None
    magic, version, page_size, _, _, _, first, second = struct.unpack(">8I", data)
    if magic not in (_LITTLE, _BIG) or version != _VERSION:
        return None
    if page_size & (page_size - 1) or not _SHORTEST_PAGE <= page_size <= _LONGEST_PAGE:
        return None
    if _add_checksum(data[:24], (0, 0), _is_big_endian(data)) != (first, second):
        return None
    return WalPosition(data[16:24], 0, (first, second), page_size)


def _read_commits(data: bytes, position: WalPosition, big: bool) -> WalChanges:
    size = _FRAME_HEADER + position.page_size
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    checksum = position.checksum
    for number, at in enumerate(range(0, len(data) - size + 1, size), position.frames + 1):
        page, page_count, salts, first, second = struct.unpack_from(">2I8s2I", data, at)
        if salts != position.salts or not page:
            break
        content = data[at + _FRAME_HEADER : at + size]
        checksum = _add_checksum(data[at : at + 8] + content, checksum, big)
        if checksum != (first, second):
            break
        pending[page] = content
        if page_count:
            committed |= pending
            pending.clear()
            position = WalPosition(salts, number, checksum, position.page_size, page_count)
    # The database may have shrunk since.
    pages = {page: content for page, content in committed.items() if page <= position.page_count}
    return WalChanges(pages, position)


def _add_checksum(data: bytes, checksum: tuple[int, int], big: bool) -> tuple[int, int]:
    """Return the checksum of a log, continued over `data` (a multiple of 8 bytes).

    SQLite adds two words at a time, each to both sums so far. Written out, a word counts as often as the Fibonacci
    number of its distance from the end says: a product of two rows, fifteen times as fast here as the loop.
    """
    words = numpy.frombuffer(data, dtype=">u4" if big else "<u4")
    numbers = _fibonacci()
    count = len(words)
    first, second = checksum
    own = [int((words * numbers[start : start + count][::-1]).sum(dtype=numpy.uint32)) for start in (0, 1)]
    before, at, after = (int(numbers[index]) for index in (count - 1, count, count + 1))
    return (own[0] + first * before + second * at) % _WORD, (own[1] + first * at + second * after) % _WORD


@cache
def _fibonacci() -> numpy.typing.NDArray[numpy.uint32]:
    """Return Fibonacci numbers modulo 2**32, as many as the longest page and its frame header have words."""
    numbers = [0, 1]
    while len(numbers) < _LONGEST_PAGE // 4 + 8:
        numbers.append((numbers[-1] + numbers[-2]) % _WORD)
    return numpy.array(numbers, dtype=numpy.uint32)


def apply_changes(database: Path, pages: Mapping[int, bytes], page_size: int, page_count: int) -> None:
    """Write pages into a database that no process has open, and set its size. Raises `OSError`."""
    with database.open("r+b" if database.exists() else "w+b") as file:
        for page, content in sorted(pages.items()):
            file.seek((page - 1) * page_size)
            file.write(content)
        file.truncate(page_count * page_size)
