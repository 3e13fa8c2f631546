"""The archive as the house sees it: where ended generations of sessions are kept, whole.

What always holds: `store` returns only when the archive was read back from where it is kept and found to be, byte for
byte, what was meant; until then nobody may clear anything. An archive holds the log's own lines of its generation, so
that chain and commitments can be proved from it alone.

All of it is slow (a network may lie between): called in a worker thread, never on the event loop. What looks through
the index alone (`listed`, `find`) is as fast as any store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assistant.records import Problem, Record


@dataclass(frozen=True, slots=True)
class Archived:
    """Where one generation was archived. `records` counts all log lines (first_id..last_id, from_seq..to_seq), messages
    or not; `bytes` and `sha256` are of the object as it is kept, compressed and encrypted; `url` names it (a path for
    the home's own folder) and never has credentials. A generation without a line has zeros and `url` ""."""

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


class Archive(Protocol):
    """Errors of the place where archives are kept are `ArchiveUnavailable`, those of the home `StoreError`."""

    def store(
        self, session: str, generation: int, now: datetime, *, handover: str, summary: str, reason: str
    ) -> Archived:
        """Archive a generation and prove it by reading it back. The same generation again finds what is there, or
        replaces it. Raises `ArchiveUnavailable`: then nothing may be cleared."""
        ...

    def find(self, session: str, generation: int) -> Archived | None:
        """Where a generation was archived, as the index says."""
        ...

    def listed(self, scope: str | None = None) -> Sequence[Archived]:
        """Everything archived, oldest first; of one scope, or of all (None)."""
        ...

    def read(self, session: str, generation: int) -> Sequence[Record]:
        """The records of an archived generation, oldest first. Raises `UsageError` where it was never archived,
        `ArchiveUnavailable` where it cannot be read or is not what was stored."""
        ...

    def verify(self, session: str, generation: int) -> Sequence[Problem]:
        """What is wrong with an archive: missing, other bytes, broken chain or commitments. Empty: it is whole."""
        ...

    def remove(self, session: str, generation: int) -> None:
        """Take an archive away, and its row. Nothing there is as good as taken away."""
        ...
