"""What a restore changes in a folder after it was put together from the replica: it settles what a crash left. The
replica gets these changes, so the next start continues from the whole copy that is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.replica.capture import FileLimits, HomeCapture, give_own_time
from assistant.replica.shipment import DatabasePages, Shipment
from assistant.replica.wal import wal_path

_ALL = FileLimits(secrets=True, max_bytes=1 << 62)
_HASH_BYTES = 16
_PAGE_SIZE = slice(16, 18)  # in the header of a database; 1 is 65,536


@dataclass(frozen=True, slots=True)
class AssembledFolder:
    """A folder that no process has open yet."""

    pages: Mapping[str, bytes]  # the hashes of the pages of each database
    logs: Mapping[str, int]  # length in bytes
    files: Mapping[str, Any]  # size and time


def describe_assembled(home: Path) -> AssembledFolder:
    """Return the hash of each page of each database (concatenated), and the sizes and stamps of the other files, as a
    capture would. Reads everything."""
    capture = HomeCapture(home, _ALL)
    hashes = {path.name: b"".join(hashed for hashed, _ in _read_pages(path)) for path in capture.list_databases()}
    return AssembledFolder(hashes, capture.measure_logs(), capture.list_stamps())


def find_changes(home: Path, before: AssembledFolder) -> tuple[Shipment, Mapping[str, Any]] | None:
    """Return what changed in the databases and logs of a folder, which has its final place now, and what `HomeCapture`
    needs to continue from there; None if the files do not tell. No process has the folder open."""
    capture = HomeCapture(home, _ALL)
    paths = {path.name: path for path in capture.list_databases()}
    if paths.keys() != before.pages.keys() or any(wal_path(path).exists() for path in paths.values()):
        return None
    databases = {name: pages for name, path in paths.items() if (pages := _find_changed(path, before.pages[name]))}
    changes = Shipment(databases, capture.read_logs(before.logs))
    stamps = {name: give_own_time(path) for name, path in paths.items()}
    remembered = {"mark": "", "databases": stamps, "logs": capture.measure_logs(), "files": before.files}
    return changes, remembered


def _find_changed(path: Path, before: bytes) -> DatabasePages | None:
    changed, size, count = {}, 0, 0
    for hashed, page in _read_pages(path):
        size = size or len(page)
        if before[count * _HASH_BYTES : (count + 1) * _HASH_BYTES] != hashed:
            changed[count + 1] = page
        count += 1
    is_same = not changed and len(before) == count * _HASH_BYTES
    return None if is_same else DatabasePages(size, count, changed)


def _read_pages(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the hash of each page, and the page."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(_PAGE_SIZE.stop)[_PAGE_SIZE])
        file.seek(0)
        while page := file.read(1 << 16 if size == 1 else size):
            yield hashlib.blake2b(page, digest_size=_HASH_BYTES).digest(), page
