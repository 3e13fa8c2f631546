"""Implements `store_ports.Conversation` over script.db and the message log.

A message is stored in the inbox, then logged, then added to the view (I1). The first two are durable before the next
step, the view before anyone outside learns of it. Every method is atomic; inconsistencies between log and database
after a crash or full disk are repaired by `recover_after_crash`, or before the session is next written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction, RestorePreview
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import Message, RecordKind, Role, ToolCall, Trust
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
from assistant.core.sessions import GenerationEnd
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from assistant.store.rows import clean_message, clean_text, dump_json
from assistant.store.script import sessions as session_rows
from assistant.store.script.append import Appender, CountMessageTokens, RecordOrigin, ToViewMessage
from assistant.store.script.checkpoints import (
    LiveCheckpoints,
    begin_lease,
    fail_checkpoint,
    fail_interrupted_compactions,
    list_checkpoints,
    mark_extracted,
    read_checkpoint_row,
    update_checkpoint,
)
from assistant.store.script.compact import commit_compaction
from assistant.store.script.edits import draft_unlogged, mark_waiting_logged
from assistant.store.script.generations import (
    check_rollover,
    clear_ended_rows,
    has_rows_to_clear,
    last_message_of_generation,
    plan_branch,
)
from assistant.store.script.inbox import Inbox
from assistant.store.script.index import find_message_row, find_spans, last_indexed, span_of_row
from assistant.store.script.notices import send_in_transaction
from assistant.store.script.outbox import complete_outgoing, insert_outgoing
from assistant.store.script.session_list import SessionList
from assistant.store.script.sessions import Session, session_of_turn, sort_parents_first
from assistant.store.script.turns import (
    ClassifyRequest,
    answer_requests,
    end_turn,
    insert_tool_run,
    is_sent_as_logged,
    list_message_rows,
    load_unfinished_turns,
    open_request,
    read_tool_run,
    require_running_turn,
    turn_id_of_message,
    turn_of_row,
)
from assistant.store.script.undo import apply_uncompact, delete_discarded_rows, plan_uncompact
from assistant.store.script.view import CountedMessage, Views

_TRUST: Mapping[Role, Trust] = {"assistant": "model", "tool": "tool", "system": "system", "user": "owner"}


class StoredConversation:
    """Implements `store_ports.Conversation`.

    - `to_view_message(message, place)`: returns the message as the view stores it: long tool output is cut, with a
      reference to the log. Pure.
    - `count_tokens(message)`: returns its size in tokens. Pure.
    - `classify_request(text)`: returns what a person asks for, and whether it may stay open after the answer. Pure.
    - `undo_kept`: number of newest compactions per session that can be undone.
    """

    def __init__(
        self,
        db: Database,
        log: MessageLog,
        *,
        to_view_message: ToViewMessage,
        count_tokens: CountMessageTokens,
        classify_request: ClassifyRequest,
        undo_kept: int,
    ) -> None:
        self._db, self._log = db, log
        self._classify_request, self._undo_kept = classify_request, undo_kept
        self._own_compactions, self._discarding = set[int](), set[str]()
        self._sessions, self._live_checkpoints = SessionList(db), LiveCheckpoints(db)
        self.views = Views(db)
        self.appender = Appender(db, log, self.views, to_view_message=to_view_message, count_tokens=count_tokens)
        self.inbox = Inbox(db, self.appender.next_id)

    def recover_after_crash(self, now: datetime) -> RecoveryResult:
        indexed = [row["key"] for row in self._db.rows("SELECT DISTINCT key FROM sessions")]
        results = [
            self.appender.catch_up_index(session, now, force=True)
            for session in sort_parents_first({*indexed, *self._log.sessions()})
        ]
        with self._db.write() as db:
            fail_interrupted_compactions(db, self._own_compactions)
        running, answered = load_unfinished_turns(self._db, self.inbox.list_by_turn)
        torn = [result.torn_file for result in results if result.torn_file] + self._log.quarantine_torn_logs(now)
        adopted = sum(result.adopted_records for result in results)
        return RecoveryResult(adopted, tuple(map(str, torn)), running, answered)

    # -------------------------------------------------------------------------------------------------------- inbox

    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        return self.inbox.accept(incoming, now)

    def sessions_waiting(self) -> list[str]:
        return self.inbox.sessions_waiting()

    def list_accepted(self, session: str, *, limit: int = 100) -> list[InboxItem]:
        return self.inbox.list_accepted(session, limit)

    def list_arrival_times(self, session: str, since: datetime) -> list[datetime]:
        return self.inbox.list_arrival_times(session, since)

    def inbox_item(self, inbox_id: int) -> InboxItem | None:
        return self.inbox.find_item(inbox_id)

    def inbox_item_of(self, message_id: int) -> InboxItem | None:
        return self.inbox.find_item_of(message_id)

    # -------------------------------------------------------------------------------------------------------- turns

    def prepare(self, message: Message) -> None:
        self._log.prepare(message)

    def begin_turn(self, item: InboxItem, volatile: str, now: datetime) -> Turn:
        turn, volatile = turn_id_of_message(item.message_id), clean_text(volatile)
        session = self.appender.current_session(item.incoming.session, now)
        row = self._db.row("SELECT * FROM turns WHERE id = ?", (turn,))
        if row is not None:
            return turn_of_row(row, self.inbox.list_by_turn(turn))
        # Not durable: after a power cut, start-up redoes it from the inbox and the log, and the call's reservation
        # follows.
        with self._appending_items(session, [item], turn, now, durable=False):
            columns = {"state": "running", "volatile": volatile, "started_at": now}
            self._db.insert_row("turns", id=turn, **session.columns, **columns)
            items = self._take_up(session, item, turn, now)
        return Turn(turn, session.key, session.generation, session.scope, volatile, "running", now, items)

    def join_turn(self, turn: Turn, item: InboxItem, now: datetime) -> Turn:
        session = session_of_turn(turn)
        require_running_turn(self._db, turn)
        with self._appending_items(session, [item], turn.id, now):
            items = self._take_up(session, item, turn.id, now)
        return replace(turn, items=(*turn.items, *items))

    def _appending_items(
        self, session: Session, items: Sequence[InboxItem], turn: str | None, now: datetime, *, durable: bool = True
    ) -> AbstractContextManager[object]:
        drafts = draft_unlogged(self._db, self.appender, session, items, turn, now)
        return self.appender.appending(session, drafts, now, durable=durable)

    def _take_up(self, session: Session, item: InboxItem, turn: str, now: datetime) -> tuple[InboxItem, ...]:
        """Within a transaction: assign an item to a turn."""
        items = self.inbox.mark_running([item], turn)
        mark_waiting_logged(self._db, items, turn)
        open_request(self._db, session, item, turn, self._classify_request, now)
        return items

    def record_messages(self, turn: Turn, messages: Sequence[Message], now: datetime) -> tuple[Message, ...]:
        session = session_of_turn(turn)
        require_running_turn(self._db, turn)
        new = [message for message in messages if message.id is None]
        drafts = [self.appender.draft_record(session, message, _turn_origin(turn, message), now) for message in new]
        with self.appender.appending(session, drafts, now) as shown:
            fresh = iter(shown)
            return tuple(next(fresh) if message.id is None else message for message in messages)

    def mark_untrusted(self, turn: Turn, sources: Sequence[str]) -> Turn:
        known = tuple(dict.fromkeys((*turn.untrusted, *sources)))
        if known != turn.untrusted:
            with self._db.write() as db:
                db.update_rows("turns", {"id": turn.id}, untrusted=dump_json(known))
        return replace(turn, untrusted=known)

    def start_tool(self, turn: Turn, call: ToolCall, now: datetime) -> None:
        with self._db.write() as db:
            insert_tool_run(db, turn, call, now)

    def list_tool_runs(self, turn: Turn) -> list[ToolRun]:
        return self._db.read_all(read_tool_run, "SELECT * FROM tool_runs WHERE turn = ? ORDER BY id", (turn.id,))

    def turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        rows = list_message_rows(self._db, turn)
        messages = self.views.messages_in_view(session_of_turn(turn), [row["id"] for row in rows])
        for row in rows:
            if row["id"] not in messages:
                record = self._log.read(turn.session, span_of_row(row))
                shown = self.appender.view_record(record)
                if shown is not None:
                    messages[record.id] = shown.message
        return tuple(messages[row["id"]] for row in rows)

    def last_volatile(self, session: str) -> str:
        sql = "SELECT volatile FROM turns WHERE session = ? ORDER BY started_at DESC, rowid DESC LIMIT 1"
        return self._db.value(sql, (session,)) or ""

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
        session = session_of_turn(turn)
        require_running_turn(self._db, turn)
        new = [] if reply is None or reply.id is not None else [reply]
        drafts = [self.appender.draft_record(session, message, _turn_origin(turn, message), now) for message in new]
        # Not durable where start-up redoes it from the log after a power cut, with the same keys and bodies.
        durable = state != "answered" or reply is None or not outgoing or not is_sent_as_logged(reply, outgoing)
        with self.appender.appending(session, drafts, now, durable=durable) as shown:
            logged = shown[0] if shown else reply
            reply_id = None if logged is None else logged.id
            complete = complete_outgoing(self._db, turn.id, outgoing, reply_id)
            insert_outgoing(self._db, complete, now, generation=turn.generation, turn=turn.id)
            inbox_ids = [row["id"] for row in self._db.rows("SELECT id FROM inbox WHERE turn = ?", (turn.id,))]
            self.inbox.end_items(inbox_ids, "answered" if state == "answered" else "failed", now)
            end_turn(self._db, turn, state, error, now)
            if state == "answered" and reply_id is not None:
                answer_requests(self._db, turn.id, reply_id, now, carried_out=carried_out)
        return logged

    def supersede_items(self, items: Sequence[InboxItem], outgoing: Sequence[OutgoingMessage], now: datetime) -> None:
        """Supersede items in one transaction per session, with its outgoing messages."""
        for key in dict.fromkeys(item.incoming.session for item in items):
            session = self.appender.current_session(key, now)
            own_items = [item for item in items if item.incoming.session == key]
            with self._appending_items(session, own_items, None, now):
                self.inbox.end_items([item.id for item in own_items], "superseded", now)
                mark_waiting_logged(self._db, own_items, None)
                own_messages = [message for message in outgoing if message.session == key]
                insert_outgoing(self._db, own_messages, now, generation=session.generation)

    # ----------------------------------------------------------------------------------------------------- the view

    def load_view(self, session: str) -> ContextView:
        return self.views.read(session)

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]:
        return {id_: self._log.log_place(*place) for id_, place in find_spans(self._db, message_ids).items()}

    def report_usage(self, session: str, prefix_rev: int, prompt_tokens: int, last_message_id: int) -> None:
        columns = {"reported_rev": prefix_rev, "reported_tokens": prompt_tokens, "reported_message_id": last_message_id}
        with self._db.write(durable=False) as db:
            session_rows.update_session(db, session_rows.require_session(db, session), **columns)

    # -------------------------------------------------------------------------------------------------- compactions

    def begin_compaction(
        self, session: str, prefix_rev: int, trigger: str, ids: tuple[int, int], until: datetime, now: datetime
    ) -> int | None:
        with self._db.write() as db:
            current = session_rows.require_prefix_rev(db, session, prefix_rev)
            checkpoint_id = begin_lease(db, current, trigger, ids, until, now)
        if checkpoint_id is not None:
            self._own_compactions.add(checkpoint_id)
        return checkpoint_id

    def abandon_compaction(self, checkpoint_id: int, note: str) -> None:
        with self._db.write() as db:
            fail_checkpoint(db, checkpoint_id, note)
        self._own_compactions.discard(checkpoint_id)

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint:
        if not compaction.prefix and not compaction.shortened:
            raise CorruptStore(f"A compaction of {compaction.session!r} was refused: it is empty. Nothing was changed.")
        prefix, shorten = self._counted(compaction.prefix), self._counted(compaction.shortened)
        with self._db.write() as db:
            checkpoint = commit_compaction(db, self.views, compaction, prefix, shorten, now, undo_kept=self._undo_kept)
            send_in_transaction(db, compaction.notices, compaction.notice_address, now)
        self._own_compactions.discard(checkpoint.id)
        self._discarding.add(checkpoint.session)
        return checkpoint

    def plan_uncompact(self, session: str, checkpoint_id: int | None = None) -> RestorePreview:
        return plan_uncompact(self._db, session, checkpoint_id)

    def undo_compaction(self, restorable: RestorePreview, session: str, now: datetime) -> ContextView:
        with self._db.write() as db:
            current = session_rows.require_prefix_rev(db, session, restorable.prefix_rev)
            apply_uncompact(db, self._log, self.views, current, restorable, self.appender.with_tokens)
        return self.load_view(session)

    def branch_session(self, session: str, message_id: int, now: datetime) -> SessionInfo:
        branch, text = plan_branch(self._db, self.views, session, message_id)
        origin = RecordOrigin("branch", None, None, "system", None, (message_id,))
        self._append(branch, Message("system", text), origin, now)
        return session_rows.session_info(self._db, branch.key)

    def begin_next_generation(self, ending: GenerationEnd, now: datetime) -> SessionInfo:
        current = self.appender.current_session(ending.session, now)
        check_rollover(self._db, current, ending)
        kind: RecordKind = "handover"
        sources = ending.sources
        if ending.resumes is not None:
            kind, sources = "resume", (last_message_of_generation(self._db, current, ending.resumes),)
        following = Session(current.key, current.generation + 1, current.scope)
        origin = RecordOrigin(kind, None, ending.reason, "system", None, sources)
        self._append(following, Message("system", ending.handover_text), origin, now)
        return session_rows.session_info(self._db, current.key)

    def list_unread_generations(self) -> list[SessionInfo]:
        return session_rows.list_unread_generations(self._db)

    def mark_extracted(self, session: str, generation: int, seq: int) -> None:
        with self._db.write() as db:
            mark_extracted(db, session, generation, seq)

    def checkpoints(self, session: str, state: CheckpointState | None = None, after: int = 0) -> list[Checkpoint]:
        return list_checkpoints(self._db, session, state, after)

    def newest_checkpoints(self, session: str, limit: int) -> list[Checkpoint]:
        sql = "SELECT * FROM checkpoints WHERE session_id = ? ORDER BY checkpoint_num DESC LIMIT ?"
        return self._db.read_all(read_checkpoint_row, sql, (session, limit))

    def live_checkpoints(self, session: str, generation: int) -> list[Checkpoint]:
        return self._live_checkpoints.read((session, generation))

    def list_unjournaled_checkpoints(self, *, limit: int = 100) -> list[Checkpoint]:
        sql = "SELECT * FROM checkpoints WHERE journaled = 0 AND state IN ('live', 'absorbed') ORDER BY id LIMIT ?"
        return self._db.read_all(read_checkpoint_row, sql, (limit,))

    def mark_journaled(self, checkpoint_id: int) -> None:
        with self._db.write() as db:
            update_checkpoint(db, checkpoint_id, journaled=1)

    def hide_messages(self, session: str, message_ids: Sequence[int], now: datetime, *, by: str = "owner") -> LogRecord:
        current = self.appender.current_session(session, now)
        for message_id in message_ids:
            row = find_message_row(self._db, message_id)
            if row is None or row["session"] != session or row["kind"] in ("undo", "redaction"):
                raise StoreError(f"There is no message {message_id} in {session!r} to undo. Nothing was changed.")
        hides = RecordOrigin("undo", None, by, "owner", None, tuple(message_ids))
        return self._append(current, Message("system"), hides, now)

    def annotate(self, session: str, kind: RecordKind, refs: Sequence[int], content: str, now: datetime) -> LogRecord:
        origin = RecordOrigin(kind, None, None, "system", None, tuple(refs))
        return self._append(self.appender.current_session(session, now), Message("system", content), origin, now)

    def list_sessions(self) -> list[SessionInfo]:
        return self._sessions.read()

    def find_session(self, session: str) -> SessionInfo | None:
        return session_rows.find_session_info(self._db, session)

    # ------------------------------------------------------------------------------------------------------ writing

    def run_maintenance(self) -> None:
        """Run maintenance of some milliseconds; called while idle."""
        for key in tuple(self._discarding):
            with self._db.write() as db:
                if not delete_discarded_rows(db, self.views, session_rows.require_session(db, key)):
                    self._discarding.discard(key)
        if has_rows_to_clear(self._db):
            with self._db.write() as db:
                clear_ended_rows(db)
        self._db.checkpoint()

    def _counted(self, messages: Sequence[Message]) -> list[CountedMessage]:
        return [self.appender.with_tokens(clean_message(message)) for message in messages]

    def _append(self, session: Session, message: Message, origin: RecordOrigin, now: datetime) -> LogRecord:
        """Log a message outside of turns."""
        draft = self.appender.draft_record(session, message, origin, now)
        with self.appender.appending(session, [draft], now):
            # Not the draft's id: if an earlier call logged it but failed to index it, that record is used.
            appended = last_indexed(self._db, session.key)
        assert appended is not None
        return self._log.read(session.key, span_of_row(appended))


def _turn_origin(turn: Turn, message: Message) -> RecordOrigin:
    return RecordOrigin(trust=_TRUST[message.role], turn=turn.id)
