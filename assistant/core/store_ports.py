"""The storage ports: `Conversation` (inbox, log, view, turns, compaction, end of a generation), `Outbox`, `Journal`,
and the small stores used by sleep cycles. The rules of `assistant.core.ports` apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction, RestorePreview
from assistant.core.memories import JournalEntry, PhaseCursor, SleepReport
from assistant.core.messages import Media, Message, RecordKind, ToolCall
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
    """The journal of learned entries, and the reading position of each sleep phase (character.db)."""

    def add(
        self,
        entries: Sequence[JournalEntry],
        now: datetime,
        *,
        reading: PhaseCursor | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> list[JournalEntry]:
        """Insert entries and save the reading position, in one transaction. Entries whose key exists are skipped.
        Returns the new ones, with ids.

        `replaced` maps keys of entries to the keys of their replacements in the same scope; recorded if either is new.
        """

    def read(self, entry_ids: Sequence[int], scope: str) -> list[JournalEntry]:
        """Return the entries with these ids that are in the scope, by id."""

    def read_position(self, phase: str, session: str, generation: int) -> int:
        """Return the last seq that a phase has read, or 0."""

    def entries(
        self, scope: str, *, since: datetime | None = None, source_type: str | None = None, limit: int = 100
    ) -> list[JournalEntry]:
        """Return entries of a scope, newest first."""

    def entries_sharing_words(self, scope: str, words: Sequence[str], *, limit: int) -> list[JournalEntry]:
        """Return entries of a scope with one of these words (in lower case) or more, those with the most first; no
        summaries of conversations, and nothing that was replaced."""

    def entries_after(self, entry_id: int, *, limit: int = 200) -> list[JournalEntry]:
        """Return entries of all scopes after an id, by id."""

    def last_finished_cycle(self) -> int:
        """Return the id of the last finished sleep cycle, or 0."""

    def interrupt_cycles(self) -> None:
        """Mark running cycles as interrupted. Called at start-up: only one process runs cycles at a time."""

    def begin_cycle(self, trigger: str, now: datetime) -> int:
        """Return the id of a new, running cycle; others that still run are marked as interrupted."""

    def save_cycle(self, report: SleepReport) -> None:
        """Replace the stored report of a cycle."""

    def list_cycles(
        self, *, limit: int = 10, other_process_may_sleep: bool = False, sleeps_only: bool = False
    ) -> list[SleepReport]:
        """Return cycles, newest first. A running one was cut off by a crash and is shown as `interrupted`, unless
        `other_process_may_sleep`. `sleeps_only` leaves out single phases, such as the reading before a compaction."""

    def last_sleep_at(self) -> datetime | None:
        """Return when the last finished full cycle began, or None."""


class LogReaderPort(Protocol):
    """Reads a session's log records in order, for phases with a cursor."""

    def read_after(self, session: str, generation: int, seq: int, *, limit: int = 200) -> list[LogRecord]:
        """Return message records after `seq`, oldest first, without undone ones; stops before the first record of a
        running turn. At most `limit` records, fewer if they are long. An edited message has its current text; one that
        was read before its edit is returned again, with the time of the edit and `refs`."""


class Conversation(Protocol):
    """Inbox, message log, message index, views and turns; guarantees the order of I1.

    Every method that takes messages writes the log first (one fsync), then commits one database transaction.
    `recover_after_crash` repairs a crash in between.
    """

    def recover_after_crash(self, now: datetime) -> RecoveryResult:
        """At start-up, bring index and view up to the end of the logs, set torn last lines aside, mark interrupted
        compactions as failed, and return the turns to continue and those just answered."""

    # inbox
    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """Persist a message before it is acknowledged. Idempotent on (bridge, external_id): the first one is kept, and
        the receipt says if a later one differs."""

    def sessions_waiting(self) -> list[str]:
        """Return sessions with accepted messages that are not in a turn yet, oldest first."""

    def list_accepted(self, session: str, *, limit: int = 100) -> list[InboxItem]:
        """Return accepted messages of a session that are not in a turn yet, oldest first."""

    def list_arrival_times(self, session: str, since: datetime) -> list[datetime]:
        """Return when a session's messages since a time arrived, oldest first."""

    def inbox_item(self, inbox_id: int) -> InboxItem | None:
        """Return None if there is no such item."""

    def inbox_item_of(self, message_id: int) -> InboxItem | None:
        """Return the inbox item whose message has this id."""

    # turns
    def prepare(self, message: Message) -> None:
        """Encode a long message in advance, in any thread, so that logging it is fast."""

    def begin_turn(self, item: InboxItem, volatile: str, now: datetime) -> Turn:
        """Open a turn: log the user's message, add it to the view, mark the item running."""

    def join_turn(self, turn: Turn, item: InboxItem, now: datetime) -> Turn:
        """Add a waiting message to a running turn: log it, add it to the view, mark the item running."""

    def record_messages(self, turn: Turn, messages: Sequence[Message], now: datetime) -> tuple[Message, ...]:
        """Log messages of a running turn (one fsync) and add them to the view (one commit). Tool results complete their
        tool run. Returns the messages as in the view: with ids, long tool output shortened."""

    def mark_untrusted(self, turn: Turn, sources: Sequence[str]) -> Turn:
        """Record which sources other than the user's current message the model has read, for a process that resumes the
        turn."""

    def start_tool(self, turn: Turn, call: ToolCall, now: datetime) -> None:
        """Record that a tool is about to run."""

    def list_tool_runs(self, turn: Turn) -> list[ToolRun]:
        """Return the tool runs of a turn in the order they were started."""

    def last_volatile(self, session: str) -> str:
        """Return the volatile block of the session's newest turn, or ""."""

    def turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        """Return this turn's logged messages as the view shows them, oldest first."""

    def finish_turn(
        self,
        turn: Turn,
        state: TurnState,
        reply: Message | None,
        outgoing: Sequence[OutgoingMessage],
        now: datetime,
        *,
        error: str = "",
        carried_out: bool = False,
    ) -> Message | None:
        """End a turn: log the reply, then update view, outbox, inbox states and turn in one transaction.

        `carried_out`: what it was asked for is done, so that its requests are closed.

        A reply that already has an id (recovered after a crash) is not logged again. `outgoing` messages without a
        message id get the reply's. Items become answered if state is answered, and failed if it is failed or aborted.
        """

    def supersede_items(self, items: Sequence[InboxItem], outgoing: Sequence[OutgoingMessage], now: datetime) -> None:
        """Log and show waiting messages that will not be answered, and mark their items superseded."""

    # the view
    def load_view(self, session: str) -> ContextView:
        """Return the session's current view; empty if there is no such session."""

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]:
        """Return the log locations of messages; unknown ids are omitted."""

    def report_usage(self, session: str, prefix_rev: int, prompt_tokens: int, last_message_id: int) -> None:
        """Store what the provider counted, for the prompt up to that message. May be lost in a power cut."""

    def hide_messages(self, session: str, message_ids: Sequence[int], now: datetime, *, by: str = "owner") -> LogRecord:
        """Hide messages from the view and log it (kind undo). Increments prefix_rev."""

    def annotate(self, session: str, kind: RecordKind, refs: Sequence[int], content: str, now: datetime) -> LogRecord:
        """Record that a message was edited or deleted on its bridge; the view shows this as a fact."""

    def list_sessions(self) -> list[SessionInfo]:
        """Return all sessions except imported ones."""

    def find_session(self, session: str) -> SessionInfo | None:
        """Return one session, which may be an imported one."""

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
        """Acquire the session's lease until `until` and insert a `started` checkpoint for the messages `ids` (first,
        last), in one transaction. Returns its id, or None if another compaction holds an unexpired lease (F14).
        `recover_after_crash` voids leases of an earlier process. Raises `StaleView`."""

    def abandon_compaction(self, checkpoint_id: int, note: str) -> None:
        """Mark a started compaction as `failed` with a reason, and release the lease."""

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint:
        """Commit a compaction: compare-and-swap on prefix_rev, coverage check (I3), shortened rows, prefix and
        checkpoint, in one transaction; replaced rows are kept for `uncompact`, and the lease is released. Covered
        messages that were not extracted yet stay pending for extraction (F28). Increments prefix_rev.

        Raises `StaleView`, or `CorruptStore` if the coverage would break; then nothing changed.
        """

    def plan_uncompact(self, session: str, checkpoint_id: int | None = None) -> RestorePreview:
        """Return what undoing would restore: the newest compaction of the generation, or the given one and all later
        ones. Raises `UsageError` if there is none, or its rows were discarded."""

    def undo_compaction(self, restorable: RestorePreview, session: str, now: datetime) -> ContextView:
        """Undo compactions, newest first: restores the replaced rows exactly, except for messages hidden or erased
        since; later messages stay. Increments prefix_rev. Raises `StaleView`."""

    def branch_session(self, session: str, message_id: int, now: datetime) -> SessionInfo:
        """Create a session `branch:<n>` of the same scope whose view starts as that of `session` up to and including
        the message: copies marked `carried_from` and `inherited`, then a `branch` record in its own log. Earlier
        messages stay in their log. Raises `UsageError` if the view has no such message."""

    def checkpoints(self, session: str, state: CheckpointState | None = None, after: int = 0) -> list[Checkpoint]:
        """Return the checkpoints of a session numbered above `after`, optionally in one state, oldest first. Without
        `after` they become more with the years."""

    def newest_checkpoints(self, session: str, limit: int) -> list[Checkpoint]:
        """Return the last checkpoints of a session, newest first."""

    def live_checkpoints(self, session: str, generation: int) -> list[Checkpoint]:
        """Return the checkpoints that currently cover messages of a generation, in message order. Their number stays
        small."""

    def list_unjournaled_checkpoints(self, *, limit: int = 100) -> list[Checkpoint]:
        """Return live and absorbed checkpoints whose entries may be missing in the journal, oldest first."""

    def mark_journaled(self, checkpoint_id: int) -> None:
        """Mark that the journal has the checkpoint's entries."""

    def mark_extracted(self, session: str, generation: int, seq: int) -> None:
        """Mark the session's log as extracted up to and including `seq`."""

    # the end of a generation
    def begin_next_generation(self, ending: GenerationEnd, now: datetime) -> SessionInfo:
        """End the current generation and begin the next with the handover text as its first record: log first, then one
        transaction. Unextracted messages of the old one stay pending (F28).

        Raises `StaleView` if the generation is not the current one or has records after `ending.seq`; `UsageError`
        while one of its turns is open, or if there is nothing to resume. Then nothing was changed.
        """

    def list_unread_generations(self) -> list[SessionInfo]:
        """Return ended generations with messages not yet extracted to the journal."""


class ImportsPort(Protocol):
    """Conversations imported from other programs."""

    def list_unread(self, *, limit: int) -> list[SessionInfo]:
        """Return those with messages not yet extracted to the journal, earliest first."""


class Outbox(Protocol):
    """The queue of replies and notices to deliver (I8)."""

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        """Enqueue a notice. If the key exists, its first body is kept and that item is returned."""

    def pending_items(
        self, bridge: str, *, limit: int = 100, except_targets: Collection[str] = (), except_ids: Collection[int] = ()
    ) -> list[OutboxItem]:
        """Return pending and sending items, oldest first, except to `except_targets` or with `except_ids`."""

    def find_open(self, item_id: int) -> OutboxItem | None:
        """Return the current item, or None if it is not to be sent any more."""

    def set_state(
        self, item_id: int, state: OutboxState, now: datetime, *, error: str = "", durable: bool = True
    ) -> None:
        """Set an item's state. Changing to `sending` without an error counts as an attempt. Durable on return, except
        for `sent` and where `durable` is False: `sync` makes it durable."""

    def sync(self) -> None:
        """Wait until the disk has every state that was set; in any thread. Raises `StoreError`."""

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        """Stop automatic retries; stored in one transaction with the notice about it."""

    def save_parts(self, item_id: int, texts: Sequence[str], now: datetime) -> None:
        """Store the texts of a split message; kept from its first send to its last."""

    def record_parts_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """Record how many parts the network has."""

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        """Change the destination of an unsent item."""

    def count_by_state(self) -> dict[OutboxState, int]: ...

    def count_open(self, bridge: str) -> int:
        """Return the number of pending and sending items of a bridge."""

    def list_by_turn(self, turn: str) -> list[OutboxItem]:
        """Return what a turn sends, in any state, oldest first."""

    def list_media(self, key: str, scope: str) -> tuple[Media, ...]:
        """Return the files of a delivery, in any state; none if there is none."""

    def list_open(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Return a session's unsent items for a bridge, oldest first."""

    def list_between(
        self, bridge: str, session: str, *, after: int, before: int | None = None, limit: int = 100
    ) -> list[OutboxItem]:
        """Return items with ids between the two, in any state, oldest first."""

    def newest(self, bridge: str, session: str, until: int | None = None) -> OutboxItem | None:
        """Return a session's newest item on a bridge, up to an id."""

    def first_since(self, bridge: str, session: str, at: datetime) -> OutboxItem | None:
        """Return a session's first item on a bridge that was created after a time."""

    def has(self, key: str, scope: str) -> bool:
        """Return whether an item with this key was ever stored in a scope."""

    def stored_keys(self, keys: Sequence[str], scope: str) -> frozenset[str]:
        """Return those of the keys under which an item was ever stored in a scope."""
