"""The content of one shipment, its wire format, and how it is applied to a restored folder.

A shipment is a JSON header with lengths, then the bytes of its parts in the same order, compressed; with a key it is an
age file. Applying it again changes nothing: it has pages and log bytes with their positions, and whole files.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.replica.wal import apply_changes

_LENGTH = struct.Struct(">I")
# Pages are mostly text and zeros: a higher level takes three times as long for a tenth less.
_LEVEL = 1

ChangeBytes = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Cipher:
    """How what leaves the machine is encrypted; without a key it is not."""

    key_id: str = ""  # of the key, "" for none
    encrypt: ChangeBytes | None = None
    decrypt: ChangeBytes | None = None


@dataclass(frozen=True, slots=True)
class DatabasePages:
    """Pages of a database, by number from 1, and its size in pages after them."""

    page_size: int
    page_count: int
    pages: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Shipment:
    """What changed in a home; paths are relative to it."""

    databases: Mapping[str, DatabasePages] = field(default_factory=dict)
    logs: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)  # byte offset, and the bytes from there
    files: Mapping[str, bytes] = field(default_factory=dict)  # whole
    removed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.databases or self.logs or self.files or self.removed)


def pack(shipment: Shipment, encrypt: ChangeBytes | None) -> bytes:
    """Return the bytes that leave the machine."""
    header = {
        "databases": [
            [name, change.page_size, change.page_count, list(change.pages)]
            for name, change in shipment.databases.items()
        ],
        "logs": [[path, start, len(data)] for path, (start, data) in shipment.logs.items()],
        "files": [[path, len(data)] for path, data in shipment.files.items()],
        "removed": shipment.removed,
    }
    # ASCII: file names that are not UTF-8 are escaped.
    head = json.dumps(header).encode()
    blobs = [page for change in shipment.databases.values() for page in change.pages.values()]
    blobs += [data for _, data in shipment.logs.values()]
    data = zlib.compress(b"".join([_LENGTH.pack(len(head)), head, *blobs, *shipment.files.values()]), _LEVEL)
    return encrypt(data) if encrypt is not None else data


def unpack(data: bytes, decrypt: ChangeBytes | None) -> Shipment:
    """Return the shipment of these bytes. Raises `CorruptStore`, and what `decrypt` raises."""
    try:
        return _read(zlib.decompress(decrypt(data) if decrypt is not None else data))
    except (zlib.error, ValueError, KeyError, TypeError, struct.error) as error:
        raise CorruptStore(f"A change in the replica cannot be read ({error}). Nothing was restored.") from error


def _read(data: bytes) -> Shipment:
    start = _LENGTH.size
    (length,) = _LENGTH.unpack_from(data)
    header: dict[str, Any] = json.loads(data[start : start + length])
    at = start + length

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        if at > len(data):
            raise ValueError("it is cut")
        return data[at - size : at]

    databases = {
        _checked(name): DatabasePages(size, count, {page: take(size) for page in pages})
        for name, size, count, pages in header["databases"]
    }
    logs = {_checked(path): (begin, take(size)) for path, begin, size in header["logs"]}
    files = {_checked(path): take(size) for path, size in header["files"]}
    return Shipment(databases, logs, files, tuple(map(_checked, header["removed"])))


def _checked(path: str) -> str:
    """Return a path that stays within the folder. Raises `ValueError`."""
    if not path or {"", ".", ".."} & {*path.split("/")} or "\0" in path:
        raise ValueError(f"{path!r} is no path in a data folder")
    return path


def apply_shipment(shipment: Shipment, home: Path) -> None:
    """Apply the changes to a folder that no process has open. Raises `OSError`."""
    for name, change in shipment.databases.items():
        apply_changes(_with_folder(home / name), change.pages, change.page_size, change.page_count)
    for path, (start, data) in shipment.logs.items():
        with _with_folder(home / path).open("r+b" if (home / path).exists() else "w+b") as file:
            file.seek(start)
            file.write(data)
    for path in shipment.removed:
        (home / path).unlink(missing_ok=True)
    for path, data in shipment.files.items():
        _with_folder(home / path).write_bytes(data)
        (home / path).chmod(0o600)


def _with_folder(path: Path) -> Path:
    """Return the path after creating its folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
