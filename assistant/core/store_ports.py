"""The storage seams: `Conversation` (inbox, log, view, turns, compaction, end of a generation), `Outbox`, `Journal`,
and the small stores that sleep works through. The rules of `assistant.core.ports` are valid here too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction, RestorePreview
from assistant.core.memories import JournalEntry, PhaseCursor, SleepReport
from assistant.core.messages import Message, RecordKind, ToolCall
from assistant.core.records import (
    ContextView,
    InboxItem,
    InboxReceipt,
    IncomingMessage,
    LogLocation,
    LogRecord,
    OutboxItem,
    OutboxState,
    OutgoingMessage,
    RecoveryResult,
    SessionInfo,
    ToolRun,
    Turn,
    TurnState,
)
from assistant.core.sessions import GenerationEnd


class Journal(Protocol):
    """What was learned, entry by entry, and how far each phase of sleep has read (character.db)."""

    def add(
        self,
        entries: Sequence[JournalEntry],
        now: datetime,
        *,
        reading: PhaseCursor | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> list[JournalEntry]:
        """Write entries, and how far was read, in one transaction. An entry whose key exists is left as it is.
        Returns those that are new, with their ids.

        `replaced` maps keys of entries to the keys of those that replace them, in the same scope; noted where
        either is new."""

    def read(self, entry_ids: Sequence[int], scope: str) -> list[JournalEntry]:
        """Those of the ids that are of the scope, in the order of their ids."""

    def read_position(self, phase: str, session: str, generation: int) -> int:
        """The last seq that the phase has read; 0 where it has read nothing."""

    def entries(
        self, scope: str, *, since: datetime | None = None, source_type: str | None = None, limit: int = 100
    ) -> list[JournalEntry]:
        """Of a scope, newest first."""

    def entries_after(self, entry_id: int, *, limit: int = 200) -> list[JournalEntry]:
        """Entries of every scope with a larger id, by their ids."""

    def last_finished_cycle(self) -> int:
        """The id of the last sleep that came to its end; 0 before the first."""

    def interrupt_cycles(self) -> None:
        """Whatever runs still was cut off: one process sleeps at a time, and it has only started."""

    def begin_cycle(self, trigger: str, now: datetime) -> int: ...

    def save_cycle(self, report: SleepReport) -> None:
        """Replace what is kept of a cycle."""

    def list_cycles(self, *, limit: int = 10, other_process_may_sleep: bool = False) -> list[SleepReport]:
        """Newest first. A cycle that a crash cut off is `interrupted`; `elsewhere`: unless another process may be
        asleep."""

    def last_sleep_at(self) -> datetime | None:
        """When the last whole sleep that came to its end was begun; None before the first."""


class LogReaderPort(Protocol):
    """Records of a session in the order they were said, for phases that read with a cursor."""

    def read_after(self, session: str, generation: int, seq: int, *, limit: int = 200) -> list[LogRecord]:
        """The records of kind message with a larger seq that were not undone, oldest first, those of a turn that
        still runs left out (and what follows them); `limit` of them at most, and fewer where they are long. A message
        that was edited says what it says now; one that was read before it was edited comes again, at the time of the
        edit, with `refs`."""


class Conversation(Protocol):
    """Inbox, message log, message index, views and turns: the order of I1 is kept behind this port.

    Every method that takes messages writes the log first (one fsync), then one transaction on the database. A crash
    between the two is repaired by `recover_after_crash`."""

    def recover_after_crash(self, now: datetime) -> RecoveryResult: ...

    # inbox
    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """Store the whole message, durably, before anyone acknowledges it. Idempotent on (bridge, external_id): the
        first one stays; the receipt says whether a later one differs."""

    def sessions_waiting(self) -> list[str]:
        """Sessions that have accepted messages which no turn has taken up, oldest first."""

    def list_accepted(self, session: str, *, limit: int = 100) -> list[InboxItem]:
        """Accepted, not yet taken messages of a session, oldest first."""

    def list_arrival_times(self, session: str, since: datetime) -> list[datetime]:
        """When the newest messages of a session came, oldest first."""

    def inbox_item(self, inbox_id: int) -> InboxItem | None: ...
    def inbox_item_of(self, message_id: int) -> InboxItem | None:
        """The item whose message was given this id."""

    # turns
    def prepare(self, message: Message) -> None:
        """In any thread: encode a long message that is logged next, so that logging it does not take so long."""

    def begin_turn(self, item: InboxItem, volatile: str, now: datetime) -> Turn:
        """Log the user's message, show it in the view, open the turn, mark the item running."""

    def join_turn(self, turn: Turn, item: InboxItem, now: datetime) -> Turn:
        """A waiting message joins the running turn: logged, shown, its item running under this turn."""

    def record_messages(self, turn: Turn, messages: Sequence[Message], now: datetime) -> tuple[Message, ...]:
        """Log messages of a running turn (one fsync) and show them in the view (one commit). Tool results end their
        tool run. Returns them as the view has them: with ids, long tool output shortened."""

    def mark_untrusted(self, turn: Turn, sources: Sequence[str]) -> Turn:
        """Note what the turn's model has read that the person did not say now, for the process that resumes it."""

    def start_tool(self, turn: Turn, call: ToolCall, now: datetime) -> None:
        """Note that a tool is about to run, before it does."""

    def list_tool_runs(self, turn: Turn) -> list[ToolRun]: ...

    def last_volatile(self, session: str) -> str:
        """The volatile block of the session's newest turn; "" before the first."""

    def turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        """What the log has of this turn so far, as the view shows it, oldest first."""

    def finish_turn(
        self,
        turn: Turn,
        state: TurnState,
        reply: Message | None,
        outgoing: Sequence[OutgoingMessage],
        now: datetime,
        *,
        error: str = "",
    ) -> Message | None:
        """End the turn: reply to the log, then view, outbox, inbox states and turn in one transaction.

        A reply that already has an id (adopted after a crash) is not logged again. `outgoing` without message id gets
        the reply's. state answered -> items answered; failed or aborted -> items failed."""

    def supersede_items(self, items: Sequence[InboxItem], outgoing: Sequence[OutgoingMessage], now: datetime) -> None:
        """Waiting messages that will not be answered: logged and shown, their items superseded."""

    # the view
    def load_view(self, session: str) -> ContextView: ...

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]:
        """Where the log has these messages; ids that the index does not know are left out."""

    def report_usage(self, session: str, prefix_rev: int, prompt_tokens: int, last_message_id: int) -> None: ...

    def hide_messages(self, session: str, message_ids: Sequence[int], now: datetime, *, by: str = "owner") -> LogRecord:
        """Hide messages from the view and say so in the log (kind undo). Bumps prefix_rev."""

    def annotate(self, session: str, kind: RecordKind, refs: Sequence[int], content: str, now: datetime) -> LogRecord:
        """Record that a message was edited or deleted on its bridge; the model sees it as a fact in the view."""

    def list_sessions(self) -> list[SessionInfo]:
        """All but those that were imported."""

    def find_session(self, session: str) -> SessionInfo | None:
        """One session, also one that was imported."""

    # compaction: views become smaller, come back, and fork
    def begin_compaction(
        self,
        session: str,
        prefix_rev: int,
        trigger: str,
        ids: tuple[int, int],
        until: datetime,
        now: datetime,
    ) -> int | None:
        """Take the session's lease until `until` and note a `started` checkpoint over the messages `ids` (first, last),
        in one transaction: its id, or None where another compaction has a lease that has not run out (F14). Leases of
        an earlier process are void after `recover_after_crash`. Raises `StaleView`."""

    def abandon_compaction(self, checkpoint_id: int, note: str) -> None:
        """A started compaction will not be committed: state `failed` with the reason, the lease given back."""

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint:
        """Commit a compaction: compare-and-swap on prefix_rev, coverage check (I3), shortened rows, prefix and
        checkpoint, all in one transaction; what it replaces is kept for `uncompact`; the lease is given back. What it
        covers waits to be extracted, unless it was (F28). Bumps prefix_rev.

        Raises `StaleView`, or `CorruptStore` when the coverage would break; then nothing changed."""

    def plan_uncompact(self, session: str, checkpoint_id: int | None = None) -> RestorePreview:
        """What `uncompact` would bring back: the newest compaction of the generation, or that one and all later ones.
        Raises `UsageError` where there is none, or where its rows are no longer kept."""

    def undo_compaction(self, restorable: RestorePreview, session: str, now: datetime) -> ContextView:
        """Take compactions back, newest first: the rows that they replaced are in the view again exactly as they
        were, but for messages hidden or forgotten since; later messages stay. Bumps prefix_rev. Raises `StaleView`."""

    def branch_session(self, session: str, message_id: int, now: datetime) -> SessionInfo:
        """A new session `branch:<n>` of the same scope whose view starts as that of `session` up to and including the
        message: copies marked `carried_from` and `inherited`, then a record of kind `branch` in its own log. The
        earlier messages stay in the log they are in. Raises `UsageError` where the view has no such message."""

    def checkpoints(self, session: str, state: CheckpointState | None = None) -> list[Checkpoint]:
        """Those of a session in this state, or in every one, oldest first."""

    def live_checkpoints(self, session: str, generation: int) -> list[Checkpoint]:
        """Those of a conversation that cover their messages, in the order of these: few, however long it has lasted."""

    def list_unjournaled_checkpoints(self, *, limit: int = 100) -> list[Checkpoint]:
        """Live and absorbed checkpoints whose entries the journal may lack, oldest first."""

    def mark_journaled(self, checkpoint_id: int) -> None:
        """The journal has the checkpoint's entries."""

    def mark_extracted(self, session: str, generation: int, seq: int) -> None:
        """The journal has read the session's log up to and including `seq`: what waited up to there does no longer."""

    # the end of a generation
    def begin_next_generation(self, ending: GenerationEnd, now: datetime) -> SessionInfo:
        """End the current generation and begin the next with the ending's words as its first record: log first, then
        one transaction. What the journal has not read of the old one waits for it (F28). Either the old generation is
        whole or the new one is.

        Raises `StaleView` where the generation is not the current one, or something was written since `ending.seq`;
        `UsageError` while a turn of it is open, or where there is nothing to resume. Then nothing was changed."""

    def list_unread_generations(self) -> list[SessionInfo]:
        """Ended generations of which something waits to be read for the journal."""


class ImportsPort(Protocol):
    """Conversations that were brought along from other programs."""

    def list_unread(self, *, limit: int) -> list[SessionInfo]:
        """Those of which something waits to be read for the journal, the earliest first."""


class Outbox(Protocol):
    """Replies and notices on their way out (I8)."""

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        """Store a notice. A key that exists keeps its first body, and that item is returned."""

    def pending_items(
        self, bridge: str, *, limit: int = 100, except_targets: Collection[str] = (), except_ids: Collection[int] = ()
    ) -> list[OutboxItem]:
        """Items in state pending or sending, oldest first, but those to `except_targets` and with `except_ids`."""

    def find_open(self, item_id: int) -> OutboxItem | None:
        """The item as it is now; None where it is not to be sent any more."""

    def set_state(self, item_id: int, state: OutboxState, now: datetime, *, error: str = "") -> None: ...

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        """It is not sent again by itself; stored together with the notice that tells of it."""

    def save_parts(self, item_id: int, texts: Sequence[str], now: datetime) -> None:
        """The texts that a long message is sent as, from its first send to its last."""

    def record_parts_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """The network has so many of its parts."""

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        """What is to be sent goes there instead."""

    def count_by_state(self) -> dict[OutboxState, int]: ...

    def count_open(self, bridge: str) -> int:
        """How many items are pending or being sent there."""

    def list_by_turn(self, turn: str) -> list[OutboxItem]: ...

    def list_open(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Those of a session's items that wait to be sent there, oldest first."""

    def list_between(
        self, bridge: str, session: str, *, after: int, before: int | None = None, limit: int = 100
    ) -> list[OutboxItem]:
        """Items with ids between the two, in every state, oldest first."""

    def newest(self, bridge: str, session: str, until: int | None = None) -> OutboxItem | None:
        """The one with the largest id of a session's items there, up to an id."""

    def first_since(self, bridge: str, session: str, at: datetime) -> OutboxItem | None:
        """The one with the smallest id of a session's items there that were made later than that."""

    def has(self, key: str, scope: str) -> bool:
        """Whether there ever was an item of a scope under a key."""
