"""Turns, their tool runs, delegated tasks (F22) and user requests (F18) in script.db; and pins (F21) in character.db.

- A task is stored before its helper starts, and ends once. A call repeated with its key after a crash finds its tasks:
  finished ones keep their result, others run again.
- A message taken up by a turn is a request, stored in the same transaction. Its answer closes it unless it is a task,
  which stays open until it is reported done, or, for a mere reminder, until that is set. A schedule's request is closed
  by its answer. The text is in the log.
- A message is pinned at most once, a text any number of times; removed pins are deleted.

Functions that write run within a caller's transaction; classes open their own.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Delegation, DelegationState, Pin, RequestKind, RequestState, UserRequest
from assistant.core.errors import CorruptStore, StoreError, UsageError
from assistant.core.messages import STOPPED_REPLY, LogByteRange, Message, ToolCall
from assistant.core.records import (
    FailedTurn,
    InboxItem,
    LogRecord,
    OutgoingMessage,
    ToolRun,
    Turn,
    TurnState,
    is_from_schedule,
)
from assistant.core.sessions import session_name
from assistant.store.database import Database, DatabaseStore
from assistant.store.log.reader import LogFiles
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, LOST_PLACEHOLDER, class_row, dump_json, json_safe
from assistant.store.script.index import span_of_row
from assistant.store.script.sessions import Session, require_session, session_of_turn

# What follows an answer, such as its recording, may have been cut off for these.
_NEWEST_TURNS = 5
# Among these the last turn of each conversation is looked for; what was not answered before them is past.
_RECENT_TURNS = 500
# Texts of requests that are kept, and the longest line of the log with one, in bytes.
_MOST_KEPT, _LONGEST_KEPT = 64, 8_192
_read_turn = class_row(Turn, items=lambda row: ())
read_tool_run = class_row(ToolRun, call=lambda row: ToolCall(row["call_id"], row["name"], json.loads(row["arguments"])))
_read_delegation = class_row(Delegation)
_read_failed_turn = class_row(FailedTurn)


def turn_id_of_message(message_id: int) -> str:
    """Return the turn id, derived from the message so that a repeated start finds the same turn."""
    return f"t{message_id:08d}"


def turn_of_row(row: Row, items: tuple[InboxItem, ...]) -> Turn:
    return replace(_read_turn(row), items=items)


def load_unfinished_turns(
    db: Database, list_items: Callable[[str], tuple[InboxItem, ...]]
) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """Return running turns, oldest first, and the newest few that were answered, newest first. An answered one that is
    damaged is left out: what has ended stops no start."""
    running = db.rows("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at, id")
    newest = db.rows(
        "SELECT * FROM turns WHERE rowid > (SELECT max(rowid) FROM turns) - ? ORDER BY rowid DESC", (_NEWEST_TURNS,)
    )
    answered: list[Turn] = []
    for row in newest:
        with suppress(CorruptStore):
            if row["state"] == "answered":
                answered.append(turn_of_row(row, list_items(row["id"])))
    return tuple(turn_of_row(row, list_items(row["id"])) for row in running), tuple(answered)


def require_running_turn(db: Database, turn: Turn) -> None:
    """Raises `StoreError` if the turn has ended."""
    if db.value("SELECT state FROM turns WHERE id = ?", (turn.id,)) != "running":
        raise StoreError(f"Turn {turn.id} has ended. Nothing was written.")


def end_turn(db: Database, turn: Turn, state: TurnState, error: str, now: datetime) -> None:
    """End a turn; tools still marked as started were interrupted."""
    db.update_rows("turns", {"id": turn.id}, state=state, error=error, ended_at=now)
    db.update_rows("tool_runs", {"turn": turn.id, "state": "started"}, state="interrupted", ended_at=now)


def insert_tool_run(db: Database, turn: Turn, call: ToolCall, now: datetime) -> None:
    """Record that a tool starts. Does nothing if the turn has this call already."""
    db.insert_if_new(
        "tool_runs",
        turn=turn.id,
        **session_of_turn(turn).columns,
        call_id=call.id,
        name=call.name,
        arguments=dump_json(json_safe(call.arguments)),
        state="started",
        started_at=now,
    )


class Delegations(DatabaseStore):
    """Delegated tasks (script.db), stored before a helper starts, so that a restart can report them (F22)."""

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]:
        """Store the tasks, once per key, and return them with their state: after an interruption those not done run
        again."""
        with self._db.write() as db:
            if not self._list_by_key(key):
                columns = Session(session, require_session(db, session).generation, scope).columns
                for task in tasks:
                    db.insert_row(
                        "delegations", key=key, turn=turn, **columns, task=task, state="running", started_at=now
                    )
            db.update_rows(
                "delegations", {"key": key, "state": "interrupted"}, state="running", started_at=now, ended_at=None
            )
        return self._list_by_key(key)

    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None:
        """Store the result. Does nothing if the task does not run any more. `cost_usd` None: not known."""
        running = {"id": delegation_id, "state": "running"}
        with self._db.write() as db:
            db.update_rows("delegations", running, state=state, result=result, cost_usd=cost_usd, ended_at=now)

    def list_for_session(
        self, session: str, *, state: DelegationState | None = None, limit: int = 50
    ) -> list[Delegation]:
        """Return delegations, newest first."""
        return self._db.read_all(
            _read_delegation,
            "SELECT * FROM delegations WHERE session = ? AND (? IS NULL OR state = ?) ORDER BY id DESC LIMIT ?",
            (session, state, state, limit),
        )

    def interrupt_running(self, now: datetime) -> list[Delegation]:
        """At start-up, mark running delegations of an earlier process `interrupted`."""
        with self._db.write() as db:
            running = db.read_all(
                _read_delegation,
                "SELECT * FROM delegations WHERE id IN"
                " (SELECT id FROM delegations INDEXED BY delegations_running WHERE state = 'running') ORDER BY id",
            )
            for delegation in running:
                db.update_rows("delegations", {"id": delegation.id}, state="interrupted", ended_at=now)
        return [replace(delegation, state="interrupted", ended_at=now) for delegation in running]

    def _list_by_key(self, key: str) -> list[Delegation]:
        return self._db.read_all(_read_delegation, "SELECT * FROM delegations WHERE key = ? ORDER BY id", (key,))


ClassifyRequest = Callable[[str], RequestKind]

_SELECT_REQUESTS = "SELECT r.*, m.byte_start, m.byte_end FROM requests r JOIN messages m ON m.id = r.message_id"
_CLOSE = "UPDATE requests SET state = ?, closed_by = ?, cites = ?, closed_at = ?"
_REMINDERS_ARE_SET = (
    " AND (SELECT count(*) FROM jobs WHERE kind = 'reminder'"
    " AND made_by IN (SELECT message_id FROM requests WHERE turn = ?5))"
    " >= (SELECT count(*) FROM requests WHERE turn = ?5 AND task = ?6)"
)


class UserRequests:
    """User requests, with their text from the log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log
        self._read = class_row(UserRequest, text=self._text_of_row)
        self._texts: OrderedDict[tuple[str, int], tuple[bytes, str]] = OrderedDict()  # by place, with the log's line

    def clear_texts(self) -> None:
        """Keep no text in memory: some were forgotten."""
        self._texts.clear()

    def has_unanswered(self) -> bool:
        """Return whether a message waits for a turn, or a turn has not ended."""
        waiting = "EXISTS (SELECT 1 FROM inbox WHERE state = 'accepted')"
        return bool(self._db.value(f"SELECT {waiting} OR EXISTS (SELECT 1 FROM turns WHERE state = 'running')"))

    def list_failed_turns(self) -> list[FailedTurn]:
        """Return the last turn of each conversation that goes on, where it ended without an answer, oldest first. One
        that the person stopped, or whose message was undone, is none."""
        rows = self._db.rows(
            "SELECT t.id, t.session, t.generation, t.state, t.error, t.ended_at FROM turns t"
            " JOIN sessions s ON s.key = t.session AND s.generation = t.generation AND s.ended_at IS NULL"
            " WHERE t.rowid > (SELECT max(rowid) FROM turns) - ? AND t.state <> 'running' ORDER BY t.rowid",
            (_RECENT_TURNS,),
        )
        newest = {row["session"]: row for row in rows}
        return [
            _read_failed_turn(row)
            for row in sorted(newest.values(), key=lambda row: str(row["ended_at"]))
            if row["state"] != "answered" and row["error"] != STOPPED_REPLY and self._has_visible_request(row["id"])
        ]

    def _has_visible_request(self, turn: str) -> bool:
        sql = "SELECT 1 FROM messages INDEXED BY messages_turn WHERE turn = ? AND role = 'user' AND hidden_by IS NULL"
        return self._db.value(sql, (turn,)) is not None

    def list_open(self, session: str, *, limit: int = 200) -> list[UserRequest]:
        """Return open requests, newest first."""
        return self._list(
            f"{_SELECT_REQUESTS} WHERE r.session = ? AND r.state = 'open' ORDER BY r.message_id DESC LIMIT ?",
            (session, limit),
        )

    def list_open_tasks(self, session: str, *, limit: int) -> list[UserRequest]:
        """Return open requests that need more than an answer, newest first."""
        return self._list(
            f"{_SELECT_REQUESTS} WHERE r.session = ? AND r.state = 'open' AND r.task <> ?"
            " ORDER BY r.message_id DESC LIMIT ?",
            (session, int(RequestKind.ANSWER), limit),
        )

    def list_open_in_scope(self, scope: str, *, limit: int) -> list[UserRequest]:
        """Return open requests of all sessions of a scope, newest first."""
        return self._list(
            f"{_SELECT_REQUESTS} WHERE r.scope = ? AND r.state = 'open' ORDER BY r.message_id DESC LIMIT ?",
            (scope, limit),
        )

    def list_requests(self, scope: str, *, limit: int = 100) -> list[UserRequest]:
        """Return requests in any state, newest first."""
        return self._list(f"{_SELECT_REQUESTS} WHERE r.scope = ? ORDER BY r.message_id DESC LIMIT ?", (scope, limit))

    def close_requests(
        self,
        session: str,
        message_ids: Sequence[int],
        state: RequestState,
        by: str,
        cites: Sequence[int],
        now: datetime,
    ) -> list[UserRequest]:
        """Set their state and return them, in the order given. "open" takes back how they were closed. Raises
        `UsageError`, and changes none, if the session lacks one of them."""
        closing = ("", "[]", None) if state == "open" else (by, dump_json(list(cites)), now)
        ids = list(dict.fromkeys(message_ids))
        with self._db.write() as db:
            exists = "SELECT 1 FROM requests WHERE message_id = ? AND session = ?"
            unknown = [f"#{message_id}" for message_id in ids if db.value(exists, (message_id, session)) is None]
            if unknown:
                where = f"{', '.join(unknown)} in {session_name(session)}"
                raise UsageError(f"There is no request {where}. Nothing was changed; `/requests` lists them.")
            for message_id in ids:
                db.execute(f"{_CLOSE} WHERE message_id = ? AND state <> ?", (state, *closing, message_id, state))
        by_id = f"{_SELECT_REQUESTS} WHERE r.message_id = ?"
        return [request for message_id in ids for request in self._list(by_id, (message_id,))]

    def _list(self, sql: str, values: Sequence[str | int]) -> list[UserRequest]:
        """Run a query, omitting requests whose text is lost."""
        found = self._db.read_all(self._read, sql, values)
        return [request for request in found if request.text != LOST_PLACEHOLDER]

    def _text_of_row(self, row: Row) -> str:
        session, span = row["session"], span_of_row(row)
        if span.end - span.start > _LONGEST_KEPT:
            return self._text_in_log(session, span)
        # Open tasks are read with every message; a line that was overwritten since is decoded again.
        line = self._log.read_line(session, span)
        kept = self._texts.pop((session, span.start), None)
        if kept is None or kept[0] != line:
            kept = line, self._text_in_log(session, span)
        self._texts[session, span.start] = kept
        if len(self._texts) > _MOST_KEPT:
            self._texts.popitem(last=False)
        return kept[1]

    def _text_in_log(self, session: str, span: LogByteRange) -> str:
        record = self._log.read(session, span)
        return record.content if record.salt.strip() else FORGOTTEN_PLACEHOLDER


def list_message_rows(db: Database, turn: Turn) -> list[Row]:
    """Return the ids and places in the log of the turn's messages that are shown, oldest first."""
    # Without a hint, the planner would read the whole session to sort by seq.
    return db.rows(
        "SELECT id, byte_start, byte_end FROM messages INDEXED BY messages_turn WHERE turn = ? AND session = ?"
        " AND kind = 'message' AND hidden_by IS NULL ORDER BY seq",
        (turn.id, turn.session),
    )


def open_request(
    db: Database, session: Session, item: InboxItem, turn: str, classify: ClassifyRequest, now: datetime
) -> None:
    """Within the transaction that takes up the message."""
    task = RequestKind.ANSWER if is_from_schedule(item.incoming) else classify(item.incoming.content)
    db.insert_if_new(
        "requests",
        message_id=item.message_id,
        **session.columns,
        turn=turn,
        task=int(task),
        state="open",
        opened_at=now,
    )


def answer_requests(db: Database, turn: str, reply_id: int, now: datetime, *, carried_out: bool) -> None:
    """Within the transaction that ends the turn: close its questions, record the answer for tasks, close reminder
    requests if enough reminders were set, and everything if it was `carried_out`."""
    db.execute("UPDATE requests SET answered_by = ? WHERE turn = ?", (reply_id, turn))
    for kind, by, condition in (
        (RequestKind.ANSWER, "answer", ""),
        (RequestKind.REMINDER, "model", _REMINDERS_ARE_SET),
        *([(RequestKind.TASK, "model", ""), (RequestKind.REMINDER, "model", "")] if carried_out else []),
    ):
        db.execute(
            f"{_CLOSE} WHERE turn = ?5 AND state = 'open' AND task = ?6{condition}",
            ("done", by, dump_json([reply_id]), now, turn, int(kind)),
        )


def withdraw_requests(db: Database, undo: LogRecord) -> None:
    """Within the transaction that hides messages: supersede their open requests."""
    db.execute_many(
        f"{_CLOSE} WHERE message_id = ? AND state = 'open'",
        [("superseded", "user", dump_json([undo.id]), undo.ts, message_id) for message_id in undo.refs],
    )


_read_pin = class_row(Pin)


class Pins(DatabaseStore):
    """Text in every prompt of a session (character.db)."""

    def list_pins(self, session: str) -> list[Pin]:
        """Return pins, oldest first."""
        sql = "SELECT * FROM pins WHERE session = ? ORDER BY id"
        return self._db.read_all(_read_pin, sql, (session,), remember="pins")

    def add(self, session: str, scope: str, text: str, role: str, message_id: int | None, now: datetime) -> Pin:
        """Add a pin; a pinned message keeps its existing one."""
        with self._db.write() as db:
            pin = db.read_one(
                _read_pin, "SELECT * FROM pins WHERE session = ? AND message_id = ?", (session, message_id)
            )
            if pin is not None:
                return pin
            pin_id = db.insert_row(
                "pins", session=session, scope=scope, text=text, role=role, message_id=message_id, created_at=now
            )
            return db.read_all(_read_pin, "SELECT * FROM pins WHERE id = ?", (pin_id,))[0]

    def remove(self, session: str, pin_ids: Sequence[int]) -> list[Pin]:
        """Remove pins. Raises `UsageError`, without removing any, if some do not exist."""
        with self._db.write() as db:
            pins = {pin.id: pin for pin in self.list_pins(session)}
            unknown = [str(pin_id) for pin_id in pin_ids if pin_id not in pins]
            if unknown:
                raise UsageError(f"There is no pin {', '.join(unknown)} here. Nothing was changed; `/pins` lists them.")
            removed = list(dict.fromkeys(pin_ids))
            for pin_id in removed:
                db.execute("DELETE FROM pins WHERE id = ?", (pin_id,))
        return [pins[pin_id] for pin_id in removed]


def is_sent_as_logged(reply: Message, outgoing: Sequence[OutgoingMessage]) -> bool:
    """Return whether messages say nothing after the logged answer, so that start-up makes the same bodies of it."""
    content = reply.content.strip()
    return bool(content) and all(message.body.endswith(content) for message in outgoing)
