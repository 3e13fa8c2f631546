"""What people asked for, and what became of it (F18): `sleep_ports.Requests` over script.db and the master log.

What always holds: a user's message that was taken up is a request, written in the transaction that takes it up. Its
answer closes it, unless it is a task: that one stays open until somebody says that it is done, or, where nothing but a
reminder was wanted, until that is set. What a schedule asks will be asked again, and is over with its answer. The words
stand in the log alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import RequestKind, RequestState, UserRequest
from assistant.core.errors import UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import InboxItem, LogRecord, is_from_schedule
from assistant.store.database import Database
from assistant.store.log_files import LogFiles
from assistant.store.session_rows import Session
from assistant.store.text import FORGOTTEN, clean, dumps, moment, stamp

Asking = Callable[[str], RequestKind]

_ALL = "SELECT r.*, m.byte_start, m.byte_end FROM requests r JOIN messages m ON m.id = r.message_id"
_CLOSE = "UPDATE requests SET state = ?, closed_by = ?, cites = ?, closed_at = ?"
_ARE_SET = (
    " AND (SELECT count(*) FROM jobs WHERE kind = 'reminder'"
    " AND made_by IN (SELECT message_id FROM requests WHERE turn = ?5))"
    " >= (SELECT count(*) FROM requests WHERE turn = ?5 AND task = ?6)"
)


def an_answer(text: str) -> RequestKind:
    """Nothing is a task."""
    return RequestKind.ANSWER


class Requests:
    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def open(self, session: str, *, limit: int = 200) -> list[UserRequest]:
        return self._read(
            f"{_ALL} WHERE r.session = ? AND r.state = 'open' ORDER BY r.message_id DESC LIMIT ?", (session, limit)
        )

    def all(self, scope: str, *, limit: int = 100) -> list[UserRequest]:
        return self._read(f"{_ALL} WHERE r.scope = ? ORDER BY r.message_id DESC LIMIT ?", (scope, limit))

    def close(
        self,
        session: str,
        message_ids: Sequence[int],
        state: RequestState,
        by: str,
        cites: Sequence[int],
        now: datetime,
    ) -> list[UserRequest]:
        closed = ("", "[]", None) if state == "open" else (clean(by), dumps(list(cites)), stamp(now))
        wanted = list(dict.fromkeys(message_ids))
        with self._db.write() as db:
            unknown = [one for one in wanted if not _is_of(db, session, one)]
            if unknown:
                names = ", ".join(f"#{one}" for one in unknown)
                raise UsageError(f"{names}: no request of {session!r} has this number. Nothing was changed.")
            for message_id in wanted:
                db.execute(f"{_CLOSE} WHERE message_id = ? AND state <> ?", (state, *closed, message_id, state))
        return [self._one(message_id) for message_id in wanted]

    def _one(self, message_id: int) -> UserRequest:
        return self._read(f"{_ALL} WHERE r.message_id = ?", (message_id,))[0]

    def _read(self, sql: str, values: Sequence[str | int]) -> list[UserRequest]:
        return [self._request(row) for row in self._db.rows(sql, values)]

    def _request(self, row: Row) -> UserRequest:
        said = self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
        return UserRequest(
            message_id=row["message_id"],
            session=row["session"],
            scope=row["scope"],
            text=said.content if said.salt.strip() else FORGOTTEN,
            state=row["state"],
            task=bool(row["task"]),
            opened_at=moment(row["opened_at"]),
            answered_by=row["answered_by"],
            closed_by=row["closed_by"],
            cites=tuple(json.loads(row["cites"])),
            closed_at=None if row["closed_at"] is None else moment(row["closed_at"]),
        )


def _is_of(db: Database, session: str, message_id: int) -> bool:
    return db.row("SELECT 1 FROM requests WHERE message_id = ? AND session = ?", (message_id, session)) is not None


def begin(db: Database, session: Session, item: InboxItem, turn: str, asked: Asking, now: datetime) -> None:
    """Inside the transaction that takes up the message."""
    task = RequestKind.ANSWER if is_from_schedule(item.incoming) else asked(item.incoming.content)
    db.execute(
        "INSERT OR IGNORE INTO requests (message_id, session, generation, scope, turn, task, state, opened_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'open', ?)",
        (
            item.message_id, session.key, session.generation, session.scope, turn, int(task), stamp(now),
        ),
    )  # fmt: skip


def answer(db: Database, turn: str, reply_id: int, now: datetime) -> None:
    """Inside the transaction that ends the turn: its questions are closed, its tasks have an answer; what asked for
    reminders alone is done where the turn has set as many."""
    db.execute("UPDATE requests SET answered_by = ? WHERE turn = ?", (reply_id, turn))
    for asked, by, more in ((RequestKind.ANSWER, "answer", ""), (RequestKind.REMINDER, "model", _ARE_SET)):
        db.execute(
            f"{_CLOSE} WHERE turn = ?5 AND state = 'open' AND task = ?6{more}",
            ("done", by, dumps([reply_id]), stamp(now), turn, int(asked)),
        )


def withdraw(db: Database, undo: LogRecord) -> None:
    """Inside the transaction that hides messages: what they asked for is wanted no longer."""
    db.execute_many(
        f"{_CLOSE} WHERE message_id = ? AND state = 'open'",
        [("superseded", "user", dumps([undo.id]), stamp(undo.ts), message_id) for message_id in undo.refs],
    )
