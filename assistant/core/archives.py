"""The archive of ended generations, whole, and the object store below it, which knows where and nothing of what.

`store` returns only when the archive was read back from where it is kept and was, byte for byte, what was meant;
until then nothing may be cleared. An archive has the log's own lines of its generation, so that chain and
commitments can be proved from it alone. All of it is slow (a network may lie between): called in a worker thread,
never on the event loop. What reads the index alone (`find_entry`, `list_archives`) is as fast as any store.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from assistant.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """Where one generation was archived. One without a record is not archived: `records` is 0 and `url` ""."""

    session: str
    generation: int
    scope: str
    url: str  # of the object, without credentials; in the home's own folder a path within the home
    records: int  # all log lines, messages or not
    first_id: int
    last_id: int
    from_seq: int
    to_seq: int
    bytes: int  # of the object as it is stored, compressed and encrypted
    sha256: str  # of the same bytes
    encrypted: bool
    archived_at: datetime
    reason: str
    from_ts: datetime | None = None  # of the first record
    to_ts: datetime | None = None  # of the last record


@dataclass(frozen=True, slots=True)
class ArchiveNotes:
    """What an archive's header says in words."""

    handover: str  # what was handed over to the next generation
    summary: str  # the last one


@dataclass(frozen=True, slots=True)
class LogRestoreResult:
    """Records of the log."""

    already_present: int
    restored: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it is stored."""

    url: str
    bytes: int
    sha256: str
    encrypted: bool


@dataclass(frozen=True, slots=True)
class FetchedObject:
    data: bytes  # decrypted
    stored: StoredObject


class ObjectStore(Protocol):
    """Keeps objects by name, encrypted where it should. Names are relative, parts joined by slashes. Every method
    raises `ArchiveUnavailable`."""

    def url_of(self, name: str) -> str:
        """Where an object of this name is, or would be. Never raises."""

    def put(self, name: str, data: bytes, require_intact: Callable[[bytes], None]) -> StoredObject:
        """Keep an object in place of what had this name. It is written under another name, read back, decrypted, given
        to `require_intact` (which raises `ArchiveUnavailable`), then moved, and read back again."""

    def get(self, url: str) -> FetchedObject:
        """Raises `ArchiveMissing` where there is none."""

    def exists(self, url: str) -> bool: ...

    def is_local(self, url: str) -> bool:
        """Whether it is a file of this machine. Never raises."""

    def remove(self, url: str) -> None:
        """None there is as good."""

    def remove_partial(self) -> None:
        """Remove what was being written when an attempt was cut off."""
