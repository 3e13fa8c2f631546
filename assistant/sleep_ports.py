"""The seams that sleep and compaction work through, under the rules of `assistant.ports`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from assistant.compactions import Breaker, Delegation, DelegationState, Pin, RequestState, UserRequest
from assistant.records import Record
from assistant.remembered import CycleReport, JournalEntry, Reading


class Journal(Protocol):
    """What was learned, entry by entry, and how far each phase of sleep has read (character.db)."""

    def add(
        self, entries: Sequence[JournalEntry], now: datetime, *, reading: Reading | None = None
    ) -> list[JournalEntry]:
        """Write entries, and where reading stands, in one transaction. An entry whose key exists is left as it is.
        Returns those that are new, with their ids."""
        ...

    def reading(self, phase: str, session: str, generation: int) -> int:
        """The last seq that the phase has read; 0 where it has read nothing."""
        ...

    def entries(
        self, scope: str, *, since: datetime | None = None, source_type: str | None = None, limit: int = 100
    ) -> list[JournalEntry]:
        """Of a scope, newest first."""
        ...

    def search(self, query: str, scope: str, *, limit: int = 8) -> list[JournalEntry]:
        """Entries by their words, best first."""
        ...

    def begin_cycle(self, trigger: str, now: datetime) -> int: ...

    def note_cycle(self, report: CycleReport) -> None:
        """Replace what is kept of a cycle."""
        ...

    def cycles(self, *, limit: int = 10) -> list[CycleReport]:
        """Newest first. A cycle that a crash cut off is `interrupted`."""
        ...


class LogReader(Protocol):
    """Records of a session in the order they were said, for phases that read with a cursor."""

    def after(self, session: str, generation: int, seq: int, *, limit: int = 200) -> list[Record]:
        """The records of kind message with a larger seq that were not undone, oldest first, those of a turn that
        still runs left out (and what follows them)."""
        ...


class Pins(Protocol):
    """Words that stand in every prompt of a session (character.db)."""

    def all(self, session: str) -> list[Pin]: ...

    def add(self, session: str, scope: str, text: str, role: str, message_id: int | None, now: datetime) -> Pin:
        """A message that is pinned already keeps its pin."""
        ...

    def remove(self, session: str, pin_ids: Sequence[int]) -> list[Pin]:
        """Raises `UsageError` naming the ids that do not exist; then none is removed."""
        ...


class Requests(Protocol):
    """What people asked for and what became of it (script.db). `Conversation` opens them and closes answered questions."""

    def open(self, session: str, *, limit: int = 200) -> list[UserRequest]:
        """The open ones, newest first."""
        ...

    def all(self, scope: str, *, limit: int = 100) -> list[UserRequest]:
        """Of a scope in every state, newest first."""
        ...

    def close(
        self,
        session: str,
        message_ids: Sequence[int],
        state: RequestState,
        by: str,
        cites: Sequence[int],
        now: datetime,
    ) -> list[UserRequest]:
        """Mark them done or superseded, or open again; repeating it changes nothing. Raises `UsageError` naming ids
        that are no requests of the session; then none is changed."""
        ...


class Breakers(Protocol):
    """Fuses that survive a restart (script.db)."""

    def get(self, name: str) -> Breaker: ...
    def failed(self, name: str, error: str, most: int, now: datetime) -> Breaker:
        """One more failure; from `most` in a row on, open since now."""
        ...

    def succeeded(self, name: str) -> None: ...


class Delegations(Protocol):
    """Tasks given to helpers (script.db): written before a helper starts, so that a restart can tell of them (F22)."""

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]: ...
    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None: ...
    def of(self, session: str, *, state: DelegationState | None = None, limit: int = 50) -> list[Delegation]:
        """Newest first."""
        ...

    def interrupt(self, now: datetime) -> list[Delegation]:
        """At start: those an earlier process left running are `interrupted`."""
        ...
