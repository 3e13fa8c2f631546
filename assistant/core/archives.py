"""The archive of ended generations, whole, and the object store below it, which knows where and nothing of what.

`store` returns only when the archive was read back from where it is kept and was, byte for byte, what was meant;
until then nothing may be cleared. An archive has the log's own lines of its generation, so that chain and
commitments can be proved from it alone. All of it is slow (a network may lie between): called in a worker thread,
never on the event loop. What reads the index alone (`find`, `list_archived`) is as fast as any store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """Where one generation was archived. `records` counts all log lines, messages or not; `bytes` and `sha256` are of
    the object as it is kept, compressed and encrypted; `url` names it (a path within the home for the home's own
    folder) and never has credentials; `from_ts` and `to_ts` are when the first and the last record were said.

    A generation without a record is not archived: its `records` is 0 and its `url` ""."""

    session: str
    generation: int
    scope: str
    url: str
    records: int
    first_id: int
    last_id: int
    from_seq: int
    to_seq: int
    bytes: int
    sha256: str
    encrypted: bool
    archived_at: datetime
    reason: str
    from_ts: datetime | None = None
    to_ts: datetime | None = None


@dataclass(frozen=True, slots=True)
class ArchiveNotes:
    """What an archive's header says in words: what was handed over to the next generation, the last summary."""

    handover: str
    summary: str


@dataclass(frozen=True, slots=True)
class LogRestoreResult:
    """How many records the log had still, and how many were brought back."""

    already_present: int
    restored: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object on the shelf: where, how long, its SHA-256 (as it is kept), and whether it is encrypted."""

    url: str
    bytes: int
    sha256: str
    encrypted: bool


@dataclass(frozen=True, slots=True)
class FetchedObject:
    """An object taken from the shelf: `data` deciphered, `bytes` and `sha256` as it was kept."""

    data: bytes
    bytes: int
    sha256: str


class ObjectStore(Protocol):
    """Keeps objects by name, encrypted where it should. Names are relative, parts joined by slashes. Every method
    raises `ArchiveUnavailable`."""

    def url_of(self, name: str) -> str:
        """Where an object of this name stands, or would. Never raises."""
        ...

    def put(self, name: str, data: bytes, require_intact: Callable[[bytes], None]) -> StoredObject:
        """Keep an object in place of what had this name. It is written under another name, read back, deciphered,
        given to `prove` (which raises `ArchiveUnavailable`), then moved, and read back again."""
        ...

    def get(self, url: str) -> FetchedObject:
        """Raises `ArchiveMissing` where there is none."""
        ...

    def exists(self, url: str) -> bool: ...

    def is_local(self, url: str) -> bool:
        """Whether it is a file of this machine. Never raises."""
        ...

    def remove(self, url: str) -> None:
        """None there is as good."""
        ...

    def remove_partial(self) -> None:
        """Remove what was being written when an attempt was cut off."""
        ...
