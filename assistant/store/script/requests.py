"""What people asked for and what became of it (F18, script.db and the log), and pinned words that are in every prompt
of a session (F21, character.db).

What always holds: a user's message that was taken up is a request, written in the transaction that takes it up. Its
answer closes it, unless it is a task: that stays open until somebody says that it is done, or, where only a
reminder was wanted, until that is set. What a schedule asks is closed by its answer, since it will be asked again.
The words are in the log alone. A message is pinned once, a text as often as somebody pins it; a removed pin is
deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Pin, RequestKind, RequestState, UserRequest
from assistant.core.errors import UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import InboxItem, LogRecord, is_from_schedule
from assistant.store.database import Database
from assistant.store.encoding import FORGOTTEN_PLACEHOLDER, clean_text, dump_json, format_time, parse_time
from assistant.store.log.reader import LogFiles
from assistant.store.script.sessions import Session

ClassifyRequest = Callable[[str], RequestKind]

_SELECT_REQUESTS = "SELECT r.*, m.byte_start, m.byte_end FROM requests r JOIN messages m ON m.id = r.message_id"
_CLOSE = "UPDATE requests SET state = ?, closed_by = ?, cites = ?, closed_at = ?"
_REMINDERS_ARE_SET = (
    " AND (SELECT count(*) FROM jobs WHERE kind = 'reminder'"
    " AND made_by IN (SELECT message_id FROM requests WHERE turn = ?5))"
    " >= (SELECT count(*) FROM requests WHERE turn = ?5 AND task = ?6)"
)


def never_a_task(text: str) -> RequestKind:
    """Nothing is a task."""
    return RequestKind.ANSWER


class UserRequests:
    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def list_open(self, session: str, *, limit: int = 200) -> list[UserRequest]:
        return self._read(
            f"{_SELECT_REQUESTS} WHERE r.session = ? AND r.state = 'open' ORDER BY r.message_id DESC LIMIT ?",
            (session, limit),
        )

    def list_requests(self, scope: str, *, limit: int = 100) -> list[UserRequest]:
        return self._read(f"{_SELECT_REQUESTS} WHERE r.scope = ? ORDER BY r.message_id DESC LIMIT ?", (scope, limit))

    def close_requests(
        self,
        session: str,
        message_ids: Sequence[int],
        state: RequestState,
        by: str,
        cites: Sequence[int],
        now: datetime,
    ) -> list[UserRequest]:
        closed = ("", "[]", None) if state == "open" else (clean_text(by), dump_json(list(cites)), format_time(now))
        wanted = list(dict.fromkeys(message_ids))
        with self._db.write() as db:
            unknown = [one for one in wanted if not _has_request(db, session, one)]
            if unknown:
                names = ", ".join(f"#{one}" for one in unknown)
                raise UsageError(f"{names}: no request of {session!r} has this number. Nothing was changed.")
            for message_id in wanted:
                db.execute(f"{_CLOSE} WHERE message_id = ? AND state <> ?", (state, *closed, message_id, state))
        return [self._one(message_id) for message_id in wanted]

    def _one(self, message_id: int) -> UserRequest:
        return self._read(f"{_SELECT_REQUESTS} WHERE r.message_id = ?", (message_id,))[0]

    def _read(self, sql: str, values: Sequence[str | int]) -> list[UserRequest]:
        return [self._request(row) for row in self._db.rows(sql, values)]

    def _request(self, row: Row) -> UserRequest:
        said = self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
        return UserRequest(
            message_id=row["message_id"],
            session=row["session"],
            scope=row["scope"],
            text=said.content if said.salt.strip() else FORGOTTEN_PLACEHOLDER,
            state=row["state"],
            task=bool(row["task"]),
            opened_at=parse_time(row["opened_at"]),
            answered_by=row["answered_by"],
            closed_by=row["closed_by"],
            cites=tuple(json.loads(row["cites"])),
            closed_at=None if row["closed_at"] is None else parse_time(row["closed_at"]),
        )


def _has_request(db: Database, session: str, message_id: int) -> bool:
    return db.row("SELECT 1 FROM requests WHERE message_id = ? AND session = ?", (message_id, session)) is not None


def open_request(
    db: Database, session: Session, item: InboxItem, turn: str, classify: ClassifyRequest, now: datetime
) -> None:
    """Inside the transaction that takes up the message."""
    task = RequestKind.ANSWER if is_from_schedule(item.incoming) else classify(item.incoming.content)
    db.execute(
        "INSERT OR IGNORE INTO requests (message_id, session, generation, scope, turn, task, state, opened_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'open', ?)",
        (
            item.message_id,
            session.key,
            session.generation,
            session.scope,
            turn,
            int(task),
            format_time(now),
        ),
    )


def answer_requests(db: Database, turn: str, reply_id: int, now: datetime) -> None:
    """Inside the transaction that ends the turn: its questions are closed, its tasks have an answer; what asked for
    reminders alone is done where the turn has set as many."""
    db.execute("UPDATE requests SET answered_by = ? WHERE turn = ?", (reply_id, turn))
    for asked, by, more in ((RequestKind.ANSWER, "answer", ""), (RequestKind.REMINDER, "model", _REMINDERS_ARE_SET)):
        db.execute(
            f"{_CLOSE} WHERE turn = ?5 AND state = 'open' AND task = ?6{more}",
            ("done", by, dump_json([reply_id]), format_time(now), turn, int(asked)),
        )


def withdraw_requests(db: Database, undo: LogRecord) -> None:
    """Inside the transaction that hides messages: what they asked for is wanted no longer."""
    db.execute_many(
        f"{_CLOSE} WHERE message_id = ? AND state = 'open'",
        [("superseded", "user", dump_json([undo.id]), format_time(undo.ts), message_id) for message_id in undo.refs],
    )


class Pins:
    """Words that stand in every prompt of a session (character.db)."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def list_pins(self, session: str) -> list[Pin]:
        """Oldest first."""
        return [
            _pin_of_row(row) for row in self._db.rows("SELECT * FROM pins WHERE session = ? ORDER BY id", (session,))
        ]

    def add(self, session: str, scope: str, text: str, role: str, message_id: int | None, now: datetime) -> Pin:
        """A message that is pinned already keeps its pin."""
        with self._db.write() as db:
            known = db.row(
                "SELECT * FROM pins WHERE session = ? AND message_id IS NOT NULL AND message_id = ?",
                (session, message_id),
            )
            if known is not None:
                return _pin_of_row(known)
            pin_id = db.insert(
                "INSERT INTO pins (session, scope, text, role, message_id, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (session, scope, clean_text(text), clean_text(role), message_id, format_time(now)),
            )
        return Pin(pin_id, session, scope, clean_text(text), role, message_id, now)

    def remove(self, session: str, pin_ids: Sequence[int]) -> list[Pin]:
        """Raises `UsageError` naming the ids that do not exist; then none is removed."""
        with self._db.write() as db:
            known = {pin.id: pin for pin in self.list_pins(session)}
            unknown = [str(one) for one in pin_ids if one not in known]
            if unknown:
                raise UsageError(f"There is no pin {', '.join(unknown)} here. Nothing was changed; /pins lists them.")
            wanted = list(dict.fromkeys(pin_ids))
            for one in wanted:
                db.execute("DELETE FROM pins WHERE id = ?", (one,))
        return [known[one] for one in wanted]


def _pin_of_row(row: Row) -> Pin:
    return Pin(
        row["id"],
        row["session"],
        row["scope"],
        row["text"],
        row["role"],
        row["message_id"],
        parse_time(row["created_at"]),
    )
