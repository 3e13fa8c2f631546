"""Checks whether the write-ahead log of a database left open by a killed process (`*.db-wal`) still has all commits.

SQLite treats a truncated log as a shorter one. The shared-memory file next to it (`*.db-shm`) shows the difference:
with every commit SQLite records there the number of frames and the checksum of the last one. The first connection after
a crash resets that file, so it has to be read before.

Nothing is changed; if the shared-memory file is missing or damaged itself, no loss is reported.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.plain_files import open_own_file

# https://www.sqlite.org/walformat.html: two copies of the index header, then the number of frames in the database.
_INDEX_HEADER = struct.Struct("=12xBxHI4xII8s8x")
_HEADER_BYTES, _CHECKED_BYTES = _INDEX_HEADER.size, _INDEX_HEADER.size - 8
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_MAGIC_BIG = 0x377F0683
_MASK = 0xFFFFFFFF
# In a longer log only the last frame is checked: summing up this much takes a second.
_MOST_READ = 16 << 20


@dataclass(frozen=True, slots=True)
class _LogIndex:
    """What SQLite recorded about the log at its last commit."""

    page: int  # bytes
    frames: int
    checksum: tuple[int, int]  # of all frames up to the last one
    salt: bytes
    moved: int  # frames that are in the database file, too


def has_lost_commits(path: Path) -> bool:
    """Return whether the database at `path` has lost commits from its log. Call it before this process opens the
    database (see `create_private_file`); another process may be writing. Raises `StoreError`."""
    index = _read_index(path)
    if index is None or index.moved >= index.frames or _has_all_frames(path, index):
        return False
    # If another process has it open, both files may have changed between the two reads.
    return _read_index(path) == index


def _read_index(path: Path) -> _LogIndex | None:
    """Return the index; None if it is missing or damaged."""
    data = _read(path.with_name(f"{path.name}-shm"), 0, 2 * _HEADER_BYTES + 4)
    header = data[:_HEADER_BYTES]
    if len(data) < 2 * _HEADER_BYTES + 4 or header != data[_HEADER_BYTES : 2 * _HEADER_BYTES]:
        return None
    is_begun, page, frames, first, second, salt = _INDEX_HEADER.unpack(header)
    (moved,) = struct.unpack_from("=I", data, 2 * _HEADER_BYTES)
    if not is_begun or _add_up(header[:_CHECKED_BYTES], (0, 0), sys.byteorder) != struct.unpack_from(
        "=II", header, _CHECKED_BYTES
    ):
        return None
    # A page size of 65,536 is stored as 1.
    return _LogIndex((page & 0xFE00) + ((page & 1) << 16), frames, (first, second), salt, moved)


def _has_all_frames(path: Path, index: _LogIndex) -> bool:
    log = path.with_name(f"{path.name}-wal")
    frame = _FRAME_HEADER_BYTES + index.page
    end = _LOG_HEADER_BYTES + index.frames * frame
    last = _read(log, end - frame, _FRAME_HEADER_BYTES)
    if last[8:] != index.salt + struct.pack(">II", *index.checksum):
        return False
    data = _read(log, 0, end) if end <= _MOST_READ else b""
    return end > _MOST_READ or (len(data) == end and _add_up_frames(data, frame) == index.checksum)


def _add_up_frames(data: bytes, frame: int) -> tuple[int, int]:
    """Return the checksum of a log up to its last frame."""
    order = "big" if struct.unpack_from(">I", data)[0] == _MAGIC_BIG else "little"
    checksum = _add_up(data[: _LOG_HEADER_BYTES - 8], (0, 0), order)
    for start in range(_LOG_HEADER_BYTES, len(data), frame):
        checked = data[start : start + 8] + data[start + _FRAME_HEADER_BYTES : start + frame]
        checksum = _add_up(checked, checksum, order)
    return checksum


def _add_up(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Continue SQLite's checksum over words in a byte order."""
    first, second = before
    for one, other in struct.iter_unpack(">II" if order == "big" else "<II", data):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second


def _read(path: Path, start: int, length: int) -> bytes:
    try:
        with open_own_file(path, 0) as file:
            file.seek(start)
            return file.read(length)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error
