"""The conversation of a home: `ports.Conversation` over script.db and the master log.

What always holds: a message is accepted by SQLite, then logged, then shown, in that order (I1), and each step is
durable before the next. Every method either takes effect as a whole or raises and leaves what was; what a crash, or a
full disk, leaves between log and database is settled by `recover_after_crash`, or before the session is next written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.checkpoints import Checkpoint, Compaction, RestorePreview
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange, Message, RecordKind, Role, ToolCall, Trust
from assistant.core.records import (
    ContextView,
    InboxItem,
    InboxReceipt,
    IncomingMessage,
    LogLocation,
    LogRecord,
    OutgoingMessage,
    RecoveryResult,
    SessionInfo,
    ToolRun,
    Turn,
    TurnState,
)
from assistant.core.sessions import BRANCH_PREFIX, GenerationEnd
from assistant.store.database import Database
from assistant.store.encoding import clean_message, clean_text
from assistant.store.log.writer import MessageLog
from assistant.store.script import edits as changes
from assistant.store.script import sessions as session_rows
from assistant.store.script import unread as extraction
from assistant.store.script.append import Appender, CountMessageTokens, RecordOrigin, ToViewMessage
from assistant.store.script.checkpoints import (
    abandon_lease,
    begin_lease,
    fail_interrupted_compactions,
    list_checkpoints,
    list_unjournaled_checkpoints,
)
from assistant.store.script.compact import commit_compaction, cover_old_rows
from assistant.store.script.generations import clear_ended_rows, has_rows_to_clear
from assistant.store.script.inbox import Inbox
from assistant.store.script.index import find_message_row, find_spans
from assistant.store.script.outbox import attach_turn_files, insert_outgoing, with_message_id
from assistant.store.script.requests import ClassifyRequest, answer_requests, never_a_task, open_request
from assistant.store.script.rollover import check_rollover, last_message_of_generation, plan_branch
from assistant.store.script.sessions import Session
from assistant.store.script.turns import (
    end_turn,
    find_last_volatile,
    find_turn_row,
    insert_tool_run,
    insert_turn,
    list_running_turn_rows,
    list_tool_runs,
    require_running_turn,
    turn_id_of_message,
    turn_of_row,
)
from assistant.store.script.undo import apply_uncompact, delete_discarded_rows, plan_uncompact
from assistant.store.script.view import CountedMessage, Views

_TRUST: Mapping[Role, Trust] = {"assistant": "model", "tool": "tool", "system": "system", "user": "owner"}


class StoredConversation:
    """Implements `ports.Conversation`.

    `as_viewed(message, place)` says what a message becomes in the working context (long tool output is cut there,
    with the reference); `count(message)` is its size in tokens; `asked(text)` what a person asks for, which may stay
    open after its answer. All are pure. Of the newest `undo_kept` compactions of a session, what they replaced is kept.
    """

    def __init__(
        self,
        db: Database,
        log: MessageLog,
        *,
        to_view_message: ToViewMessage,
        count_tokens: CountMessageTokens,
        classify_request: ClassifyRequest = never_a_task,
        undo_kept: int = 10,
    ) -> None:
        self._db = db
        self._log = log
        self._asked = classify_request
        self._undo_kept = undo_kept
        self._begun: set[int] = set()
        self._to_take_out: set[str] = set()
        self.views = Views(db)
        self.appender = Appender(db, log, self.views, to_view_message=to_view_message, count_tokens=count_tokens)
        self._inbox = Inbox(db, self.appender.next_id)

    def recover_after_crash(self, now: datetime) -> RecoveryResult:
        known = [row["key"] for row in self._db.rows("SELECT DISTINCT key FROM sessions")]
        settled = [
            self.appender.catch_up_index(session, now, force=True)
            for session in sort_parents_first({*known, *self._log.sessions()})
        ]
        with self._db.write() as db:
            fail_interrupted_compactions(db, self._begun)
        running = [turn_of_row(row, self._inbox.list_by_turn(row["id"])) for row in list_running_turn_rows(self._db)]
        torn = [one.torn_file for one in settled if one.torn_file is not None] + self._log.quarantine_torn_logs(now)
        return RecoveryResult(sum(one.adopted_records for one in settled), tuple(map(str, torn)), tuple(running))

    # -------------------------------------------------------------------------------------------------------- inbox

    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        return self._inbox.accept(incoming, now)

    def sessions_waiting(self) -> list[str]:
        return self._inbox.sessions_waiting()

    def list_accepted(self, session: str, *, limit: int = 100) -> list[InboxItem]:
        return self._inbox.list_accepted(session, limit)

    def inbox_item(self, inbox_id: int) -> InboxItem | None:
        return self._inbox.find_item(inbox_id)

    # -------------------------------------------------------------------------------------------------------- turns

    def begin_turn(self, item: InboxItem, volatile: str, now: datetime) -> Turn:
        turn, volatile = turn_id_of_message(item.message_id), clean_text(volatile)
        session = self.appender.current_session(item.incoming.session, now)
        begun = find_turn_row(self._db, turn)
        if begun is not None:
            return turn_of_row(begun, self._inbox.list_by_turn(turn))
        with self.appender.appending(
            session, changes.draft_unlogged(self._db, self.appender, session, [item], turn, now), now
        ):
            insert_turn(self._db, turn, session, volatile, now)
            items = self._inbox.mark_running([item], turn)
            changes.mark_waiting_logged(self._db, items, turn)
            open_request(self._db, session, item, turn, self._asked, now)
        return Turn(turn, session.key, session.generation, session.scope, volatile, "running", now, items)

    def join_turn(self, turn: Turn, item: InboxItem, now: datetime) -> Turn:
        session = _session_of_turn(turn)
        require_running_turn(self._db, turn)
        with self.appender.appending(
            session, changes.draft_unlogged(self._db, self.appender, session, [item], turn.id, now), now
        ):
            items = self._inbox.mark_running([item], turn.id)
            changes.mark_waiting_logged(self._db, items, turn.id)
            open_request(self._db, session, item, turn.id, self._asked, now)
        return replace(turn, items=(*turn.items, *items))

    def record_messages(self, turn: Turn, messages: Sequence[Message], now: datetime) -> tuple[Message, ...]:
        session = _session_of_turn(turn)
        require_running_turn(self._db, turn)
        new = [message for message in messages if message.id is None]
        drafts = [self.appender.draft_record(session, message, _turn_origin(turn, message), now) for message in new]
        with self.appender.appending(session, drafts, now) as shown:
            fresh = iter(shown)
            return tuple(next(fresh) if message.id is None else message for message in messages)

    def start_tool(self, turn: Turn, call: ToolCall, now: datetime) -> None:
        with self._db.write() as db:
            insert_tool_run(db, turn, call, now)

    def list_tool_runs(self, turn: Turn) -> list[ToolRun]:
        return list_tool_runs(self._db, turn.id)

    def turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        # Left to itself, the planner reads all of the session for the order of seq.
        found = self._db.rows(
            "SELECT id, byte_start, byte_end FROM messages INDEXED BY messages_turn WHERE turn = ? AND session = ?"
            " AND kind = 'message' AND hidden_by IS NULL ORDER BY seq",
            (turn.id, turn.session),
        )
        shown = self.views.messages_in_view(_session_of_turn(turn), [row["id"] for row in found])
        for row in found:
            if row["id"] not in shown:
                record = self._log.read(turn.session, LogByteRange(row["byte_start"], row["byte_end"]))
                again = self.appender.view_message_of(record)
                if again is not None:
                    shown[record.id] = again
        return tuple(shown[row["id"]] for row in found)

    def last_volatile(self, session: str) -> str:
        return find_last_volatile(self._db, session)

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
        session = _session_of_turn(turn)
        require_running_turn(self._db, turn)
        new = [] if reply is None or reply.id is not None else [reply]
        drafts = [self.appender.draft_record(session, message, _turn_origin(turn, message), now) for message in new]
        with self.appender.appending(session, drafts, now) as shown:
            said = shown[0] if shown else reply
            with_files = attach_turn_files(self._db, turn.id, outgoing)
            about = with_message_id(with_files, None if said is None else said.id)
            insert_outgoing(self._db, about, turn.generation, turn.id, now)
            ended = [row["id"] for row in self._db.rows("SELECT id FROM inbox WHERE turn = ?", (turn.id,))]
            self._inbox.end_items(ended, "answered" if state == "answered" else "failed", now)
            end_turn(self._db, turn, state, error, now)
            if state == "answered" and said is not None and said.id is not None:
                answer_requests(self._db, turn.id, said.id, now)
        return said

    def supersede_items(self, items: Sequence[InboxItem], outgoing: Sequence[OutgoingMessage], now: datetime) -> None:
        """Items of several sessions are settled session by session, the outgoing ones with the last."""
        by_session = dict.fromkeys(item.incoming.session for item in items)
        for key in by_session:
            session = self.appender.current_session(key, now)
            of_it = [item for item in items if item.incoming.session == key]
            with self.appender.appending(
                session, changes.draft_unlogged(self._db, self.appender, session, of_it, None, now), now
            ):
                self._inbox.end_items([item.id for item in of_it], "superseded", now)
                changes.mark_waiting_logged(self._db, of_it, None)
                insert_outgoing(
                    self._db, [one for one in outgoing if one.session == key], session.generation, None, now
                )

    # ----------------------------------------------------------------------------------------------------- the view

    def load_view(self, session: str) -> ContextView:
        return self.views.read(session)

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]:
        found = find_spans(self._db, message_ids)
        return {one: self._log.log_place(session, span) for one, (session, span) in found.items()}

    def report_usage(self, session: str, prefix_rev: int, prompt_tokens: int, last_message_id: int) -> None:
        with self._db.write() as db:
            session_rows.save_reported_usage(
                db, session_rows.require_session(db, session), prefix_rev, prompt_tokens, last_message_id
            )

    # -------------------------------------------------------------------------------------------------- compactions

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
        with self._db.write() as db:
            of = session_rows.require_prefix_rev(db, session, prefix_rev)
            begun = begin_lease(db, of, trigger, ids, holder, until, now)
        if begun is not None:
            self._begun.add(begun)
        return begun

    def abandon_compaction(self, checkpoint_id: int, note: str, now: datetime) -> None:
        with self._db.write() as db:
            abandon_lease(db, checkpoint_id, note)
        self._begun.discard(checkpoint_id)

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint:
        if not compaction.prefix and not compaction.shortened:
            raise CorruptStore(f"A compaction of {compaction.session!r} was refused: it is empty. Nothing was changed.")
        prefix, shorten = self._counted(compaction.prefix), self._counted(compaction.shortened)
        with self._db.write() as db:
            done = commit_compaction(db, self.views, compaction, prefix, shorten, now, undo_kept=self._undo_kept)
        self._begun.discard(done.id)
        self._to_take_out.add(done.session)
        return done

    def plan_uncompact(self, session: str, checkpoint_id: int | None = None) -> RestorePreview:
        return plan_uncompact(self._db, session, checkpoint_id)

    def undo_compaction(self, restorable: RestorePreview, session: str, now: datetime) -> ContextView:
        with self._db.write() as db:
            of = session_rows.require_prefix_rev(db, session, restorable.prefix_rev)
            apply_uncompact(db, self._log, self.views, of, restorable, self.appender.with_tokens)
        return self.load_view(session)

    def branch_session(self, session: str, message_id: int, now: datetime) -> SessionInfo:
        of, words = plan_branch(self._db, self.views, session, message_id)
        self._note(of, Message("system", words), RecordOrigin("branch", None, None, "system", None, (message_id,)), now)
        return session_rows.session_info(self._db, of.key)

    def begin_next_generation(self, ending: GenerationEnd, now: datetime) -> SessionInfo:
        of = self.appender.current_session(ending.session, now)
        check_rollover(self._db, of, ending)
        kind: RecordKind = "handover"
        sources = ending.sources
        if ending.resumes is not None:
            kind, sources = "resume", (last_message_of_generation(self._db, of, ending.resumes),)
        following = Session(of.key, of.generation + 1, of.scope)
        origin = RecordOrigin(kind, None, ending.reason, "system", None, sources)
        self._note(following, Message("system", ending.handover_text), origin, now)
        return session_rows.session_info(self._db, of.key)

    def list_unread_generations(self) -> list[SessionInfo]:
        return session_rows.list_unread_generations(self._db)

    def mark_extracted(self, session: str, generation: int, seq: int, now: datetime) -> None:
        with self._db.write() as db:
            extraction.mark_extracted(db, session, generation, seq, now)

    def checkpoints(self, session: str) -> list[Checkpoint]:
        return list_checkpoints(self._db, session)

    def list_unjournaled_checkpoints(self, *, limit: int = 100) -> list[Checkpoint]:
        return list_unjournaled_checkpoints(self._db, limit)

    def mark_journaled(self, checkpoint_id: int) -> None:
        with self._db.write() as db:
            db.execute("UPDATE checkpoints SET journaled = 1 WHERE id = ?", (checkpoint_id,))

    def hide_messages(self, session: str, message_ids: Sequence[int], now: datetime, *, by: str = "owner") -> LogRecord:
        of = self.appender.current_session(session, now)
        for message_id in message_ids:
            row = find_message_row(self._db, message_id)
            if row is None or row["session"] != session or row["kind"] in ("undo", "redaction"):
                raise StoreError(f"There is no message {message_id} in {session!r} to undo. Nothing was changed.")
        return self._note(of, Message("system"), RecordOrigin("undo", None, by, "owner", None, tuple(message_ids)), now)

    def annotate(self, session: str, kind: RecordKind, refs: Sequence[int], content: str, now: datetime) -> LogRecord:
        of = self.appender.current_session(session, now)
        return self._note(
            of, Message("system", content), RecordOrigin(kind, None, None, "system", None, tuple(refs)), now
        )

    def list_sessions(self) -> list[SessionInfo]:
        return session_rows.list_session_infos(self._db)

    # ------------------------------------------------------------------------------------------------------ writing

    def import_messages(
        self, session: str, scope: str, messages: Sequence[Message], now: datetime, *, keep: int | None = None
    ) -> tuple[Message, ...]:
        """Append messages in bulk (one fsync, one commit), as imports do. With `keep`, what is older than the last
        `keep` rows of the view goes under a checkpoint that refers to the log, whenever twice as many stand there."""
        with self._db.write() as db:
            of = session_rows.ensure_session(db, session, scope, now)
        drafts = [
            self.appender.draft_record(of, message, RecordOrigin(trust=_default_trust(message)), now)
            for message in messages
        ]
        with self.appender.appending(of, drafts, now) as shown:
            if keep is not None:
                cover_old_rows(self._db, self.views, of, 2 * keep, keep, "import", now)
            return shown

    def run_maintenance(self) -> None:
        """Some milliseconds of work that turns need not do: called when nothing else is to be done."""
        self._take_out()
        if has_rows_to_clear(self._db):
            with self._db.write() as db:
                clear_ended_rows(db)
        self._db.checkpoint()

    def _take_out(self) -> None:
        """Some more of what compactions replaced and is kept no longer."""
        for key in tuple(self._to_take_out):
            with self._db.write() as db:
                if not delete_discarded_rows(db, self.views, session_rows.require_session(db, key)):
                    self._to_take_out.discard(key)

    def _counted(self, messages: Sequence[Message]) -> list[CountedMessage]:
        return [self.appender.with_tokens(clean_message(message)) for message in messages]

    def _note(self, session: Session, message: Message, origin: RecordOrigin, now: datetime) -> LogRecord:
        draft = self.appender.draft_record(session, message, origin, now)
        with self.appender.appending(session, [draft], now):
            row = find_message_row(self._db, draft.record.id)
        if row is None:
            raise CorruptStore
        return self._log.read(session.key, LogByteRange(row["byte_start"], row["byte_end"]))


def sort_parents_first(sessions: Collection[str]) -> list[str]:
    """Sessions in an order in which every branch comes after what it branched from."""
    return sorted(
        sessions, key=lambda key: (key.startswith(BRANCH_PREFIX), len(key) if key.startswith(BRANCH_PREFIX) else 0, key)
    )


def _session_of_turn(turn: Turn) -> Session:
    return Session(turn.session, turn.generation, turn.scope)


def _default_trust(message: Message) -> Trust:
    return _TRUST[message.role]


def _turn_origin(turn: Turn, message: Message) -> RecordOrigin:
    return RecordOrigin(trust=_default_trust(message), turn=turn.id)
