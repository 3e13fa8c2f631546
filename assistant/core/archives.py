"""Archives of ended generations, and the object store that keeps them.

`store` returns only after the archive was read back and matches byte for byte; nothing may be cleared before. An
archive contains the log lines of its generation unchanged, so the hash chain and commitments can be verified from it
alone. These calls may use the network: run them in a worker thread, never on the event loop. Calls that only read the
index (`find_entry`, `list_archives`) are fast.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from assistant.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """The index entry of an archived generation. `records` is 0 and `url` "" if the generation had no records."""

    session: str
    generation: int
    scope: str
    url: str  # of the object, without credentials; relative to the home if it is inside it
    records: int  # all log lines, messages or not
    first_id: int
    last_id: int
    from_seq: int
    to_seq: int
    bytes: int  # size of the stored object, compressed and encrypted
    sha256: str  # of the stored object
    encrypted: bool
    archived_at: datetime
    reason: str
    from_ts: datetime | None = None  # of the first record
    to_ts: datetime | None = None  # of the last record


@dataclass(frozen=True, slots=True)
class ArchiveNotes:
    """The texts in an archive's header."""

    handover: str  # the handover to the next generation
    summary: str  # the latest summary


@dataclass(frozen=True, slots=True)
class LogRestoreResult:
    """How many log records a restore added or found already present."""

    already_present: int
    restored: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Metadata of an object in an object store."""

    url: str
    bytes: int
    sha256: str
    encrypted: bool


@dataclass(frozen=True, slots=True)
class FetchedObject:
    data: bytes  # decrypted
    stored: StoredObject


class ObjectStore(Protocol):
    """Stores objects by name, encrypted if configured. Names are relative paths with slashes. Methods raise
    `ArchiveUnavailable` unless stated otherwise."""

    def url_of(self, name: str) -> str:
        """Return the URL that an object of this name has or would have. Never raises."""

    def put(self, name: str, data: bytes, require_intact: Callable[[bytes], None]) -> StoredObject:
        """Store an object, replacing one of the same name. It is written under a temporary name, read back, decrypted,
        checked by `require_intact` (which raises `ArchiveUnavailable`), moved, and read back again."""

    def get(self, url: str) -> FetchedObject:
        """Raises `ArchiveMissing` if there is no such object."""

    def exists(self, url: str) -> bool:
        """Return whether there is such an object; its data is not read."""

    def is_local(self, url: str) -> bool:
        """Return whether it is a file on this machine. Never raises."""

    def remove(self, url: str) -> None:
        """Remove an object. Does nothing if it does not exist."""

    def remove_partial(self) -> None:
        """Remove leftovers of interrupted writes."""
