"""The seams that sleep and compaction work through, under the rules that `assistant.core.ports` states for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from assistant.core.compactions import (
    Breaker,
    Checkpoint,
    Compaction,
    Delegation,
    DelegationState,
    Pin,
    RequestState,
    Restorable,
    UserRequest,
)
from assistant.core.records import Record, SessionInfo, View
from assistant.core.remembered import CycleReport, JournalEntry, Reading


class Compactions(Protocol):
    """The part of `assistant.core.ports.Conversation` by which views become smaller, come back, and fork
    (script.db)."""

    def begin_compaction(
        self,
        session: str,
        prefix_rev: int,
        trigger: str,
        ids: tuple[int, int],
        holder: str,
        until: datetime,
        now: datetime,
    ) -> int | None:
        """Take the session's lease until `until` and note a `started` checkpoint over the messages `ids` (first, last),
        in one transaction: its id, or None where another holder has a lease that has not run out (F14). `holder` is
        unique to a process: leases of an earlier process are void after `reconcile`. Raises `StaleView`."""
        ...

    def abandon_compaction(self, checkpoint_id: int, note: str, now: datetime) -> None:
        """A started compaction will not be committed: state `failed` with the reason, the lease given back."""
        ...

    def compact(self, compaction: Compaction, now: datetime) -> Checkpoint:
        """Commit a compaction: compare-and-swap on prefix_rev, coverage check (I3), shortened rows, prefix, checkpoint
        and the note that its range waits to be extracted, unless it was (F28), all in one transaction; what it
        replaces is kept for `uncompact`; the lease is given back. Bumps prefix_rev.

        Raises `StaleView`, or `CorruptStore` when the coverage would break; then nothing changed."""
        ...

    def restorable(self, session: str, checkpoint_id: int | None = None) -> Restorable:
        """What `uncompact` would bring back: the newest compaction of the generation, or that one and all later ones.
        Raises `UsageError` where there is none, or where its rows are no longer kept."""
        ...

    def uncompact(self, restorable: Restorable, session: str, now: datetime) -> View:
        """Take compactions back, newest first: the rows that they replaced stand in the view again exactly as they
        were, but for messages hidden or forgotten since; later messages stay. Bumps prefix_rev. Raises `StaleView`."""
        ...

    def branch(self, session: str, message_id: int, now: datetime) -> SessionInfo:
        """A new session `branch:<n>` of the same scope whose view starts as that of `session` up to and including the
        message: copies marked `carried_from` and `inherited`, then a record of kind `branch` in its own log. The
        earlier messages stay in the log they are in. Raises `UsageError` where the view has no such message."""
        ...

    def checkpoints(self, session: str) -> list[Checkpoint]:
        """All of a session in every state, oldest first."""
        ...

    def unjournaled(self, *, limit: int = 100) -> list[Checkpoint]:
        """Live and absorbed checkpoints whose entries the journal may lack, oldest first."""
        ...

    def journaled(self, checkpoint_id: int) -> None:
        """The journal has the checkpoint's entries."""
        ...

    def extracted(self, session: str, generation: int, seq: int, now: datetime) -> None:
        """The journal has read the session's log up to and including `seq`: what waited up to there does no longer."""
        ...


class Journal(Protocol):
    """What was learned, entry by entry, and how far each phase of sleep has read (character.db)."""

    def add(
        self,
        entries: Sequence[JournalEntry],
        now: datetime,
        *,
        reading: Reading | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> list[JournalEntry]:
        """Write entries, and where reading stands, in one transaction. An entry whose key exists is left as it is.
        Returns those that are new, with their ids.

        `replaced` maps keys of entries to the keys of those that hold in their place, in the same scope; noted where
        either is new."""
        ...

    def read(self, entry_ids: Sequence[int], scope: str) -> list[JournalEntry]:
        """Those of the ids that are of the scope, in the order of their ids."""
        ...

    def reading(self, phase: str, session: str, generation: int) -> int:
        """The last seq that the phase has read; 0 where it has read nothing."""
        ...

    def entries(
        self, scope: str, *, since: datetime | None = None, source_type: str | None = None, limit: int = 100
    ) -> list[JournalEntry]:
        """Of a scope, newest first."""
        ...

    def after(self, entry_id: int, *, limit: int = 200) -> list[JournalEntry]:
        """Entries of every scope with a larger id, by their ids."""
        ...

    def search(self, query: str, scope: str, *, limit: int = 8) -> list[JournalEntry]:
        """Entries by their words, best first."""
        ...

    def last_cycle(self) -> int:
        """The id of the last sleep that came to its end; 0 before the first."""
        ...

    def begin_cycle(self, trigger: str, now: datetime) -> int: ...

    def note_cycle(self, report: CycleReport) -> None:
        """Replace what is kept of a cycle."""
        ...

    def cycles(self, *, limit: int = 10, elsewhere: bool = False) -> list[CycleReport]:
        """Newest first. A cycle that a crash cut off is `interrupted`; `elsewhere`: unless another process may be
        asleep."""
        ...

    def slept_at(self) -> datetime | None:
        """When the last whole sleep that came to its end was begun; None before the first."""
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
    """What people asked for and what became of it (script.db). `Conversation` opens requests and closes those that
    were answered."""

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
