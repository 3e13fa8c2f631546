"""Logs records that a log has lost again, from the inbox, the view, or the outbox.

A record keeps its id and its time; it is appended at the end, in the order of ids, since records never move (I2). If
its text is lost, or partly, the new record says so and is reported: the loss is visible in the conversation, and
references to the record stay valid.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row
from typing import get_args

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.core.messages import LogByteRange, Message, RecordKind, Role, Trust
from assistant.core.records import IntegrityProblem, LogRecord
from assistant.store.database import Database
from assistant.store.log.rebuild import KnownRecord
from assistant.store.log.writer import MessageLog
from assistant.store.rows import LOST_PLACEHOLDER, parse_time
from assistant.store.script.inbox import message_of_inbox_item, read_inbox_item
from assistant.store.script.index import span_of_row
from assistant.store.script.view import message_of_view_row

_BATCH = 200
_TRUST: Mapping[str, Trust] = {"assistant": "model", "tool": "tool", "system": "system", "user": "owner"}


@dataclass(frozen=True, slots=True)
class LoggedAgain:
    """The result: ids of completely recovered records, and descriptions of losses."""

    whole: tuple[int, ...] = ()
    gone: tuple[IntegrityProblem, ...] = ()


def known_records(db: Database, session: str) -> list[KnownRecord]:
    """Return what the index has of a session's log."""
    rows = db.rows("SELECT * FROM messages WHERE session = ?", (session,))
    return [
        KnownRecord(row["id"], row["seq"], span_of_row(row), row["commitment"], (row["kind"], row["role"], row["ts"]))
        for row in rows
    ]


def known_sessions(db: Database) -> set[str]:
    """Return sessions with logged records."""
    return {
        str(row[0])
        for row in db.rows(
            "SELECT DISTINCT session FROM messages UNION SELECT DISTINCT session FROM inbox WHERE state <> 'accepted'"
            " UNION SELECT key FROM sessions"
        )
    }


class LostRecords:
    """Looks in the stores for what the log of a session lost, and logs it again."""

    def __init__(self, db: Database, log: MessageLog) -> None:
        self._db = db
        self._log = log

    def log_again(
        self, session: str, logged: Mapping[int, str], elsewhere: Container[int], now: datetime
    ) -> LoggedAgain:
        """Log the records of a session again that are not among those `logged`, given as ids and commitments, nor have
        an id that is in the log of another session. Raises `StoreError`."""
        whole, gone = [], []
        batch: list[LogRecord] = []
        for message_id in self._lost_ids(session, logged):
            if message_id in elsewhere:
                continue
            record, state = self._record(session, message_id)
            batch.append(record)
            if state:
                where = self._log.log_place(session, LogByteRange(0, 0)).path
                said = f"message {message_id} ({record.kind}, {record.role}, {record.ts:%Y-%m-%d %H:%M:%S} UTC)"
                gone.append(IntegrityProblem("gone", where, f"{said} {state}"))
            else:
                whole.append(message_id)
            if len(batch) == _BATCH:
                self._log.append(batch)
                batch = []
        if batch:
            self._log.append(batch)
        return LoggedAgain(tuple(whole), tuple(gone))

    def _lost_ids(self, session: str, logged: Mapping[int, str]) -> list[int]:
        rows = self._db.rows(
            "SELECT id, commitment FROM messages WHERE session = ? UNION SELECT message_id, NULL FROM inbox"
            " WHERE session = ? AND state <> 'accepted' UNION SELECT message_id, NULL FROM outbox WHERE session = ?"
            " AND key LIKE 'reply:%' AND message_id IS NOT NULL",
            (session,) * 3,
        )
        # A record logged under another id is an error of the index, not a lost record.
        commitments = set(logged.values())
        return sorted({int(row[0]) for row in rows if row[0] not in logged and row[1] not in commitments})

    def _record(self, session: str, message_id: int) -> tuple[LogRecord, str]:
        """Return a record without position, and which part of it is lost, as the end of a sentence."""
        row = self._db.row("SELECT * FROM messages WHERE id = ? AND session = ?", (message_id, session))
        message, state = self._message(message_id)
        inbox = self._inbox_row(message_id)
        base = (
            row or inbox or self._db.row("SELECT *, created_at AS ts FROM outbox WHERE message_id = ?", (message_id,))
        )
        if base is None:
            raise CorruptStore
        role: Role = row["role"] if row is not None and row["role"] in _TRUST else message.role
        kind: RecordKind = row["kind"] if row is not None and row["kind"] in get_args(RecordKind) else "message"
        record = LogRecord(
            id=message_id,
            seq=0,
            ts=parse_time(row["ts"]) if row is not None else message.ts or parse_time(base["ts"]),
            session=session,
            generation=base["generation"],
            scope=base["scope"],
            kind=kind,
            role=role,
            content=message.content,
            commit="",
            prev="",
            name=message.name,
            tool_calls=message.tool_calls,
            tool_call_id=row["tool_call_id"] if row is not None else message.tool_call_id,
            media=message.media,
            thinking=message.thinking,
            bridge=inbox["bridge"] if inbox is not None else None,
            sender=inbox["sender"] if inbox is not None else None,
            trust=inbox["trust"] if inbox is not None else _TRUST[role],
            model=message.model,
            turn=base["turn"],
            refs=self._refs(message_id, row),
        )
        return record, state

    def _message(self, message_id: int) -> tuple[Message, str]:
        """Return the message, as far as it is stored anywhere."""
        inbox = self._inbox_row(message_id)
        if inbox is not None:
            with suppress(ValueError, KeyError, TypeError):
                return message_of_inbox_item(read_inbox_item(inbox)), ""
        for table, order in (("conversation_history", "carried_from IS NOT NULL, id DESC"), ("earlier_rows", "1")):
            column = "coalesce(message_id, carried_from)" if table == "conversation_history" else "message_id"
            row = self._db.row(
                f"SELECT *, '' AS ts_unset FROM {table} WHERE {column} = ? ORDER BY {order} LIMIT 1", (message_id,)
            )
            with suppress(ValueError, KeyError, TypeError, IndexError):
                if row is not None:
                    columns = dict(row)
                    message = message_of_view_row({"ts": "1970-01-01T00:00:00.000000Z", **columns, "message_id": None})
                    cut = message.metadata.get("truncated") or message.metadata.get("carried_from")
                    state = "is gone but for its beginning and end" if cut else ""
                    return replace(message, ts=None, metadata={}), state
        body = self._db.row(
            "SELECT body, created_at FROM outbox WHERE message_id = ? ORDER BY kind DESC, id LIMIT 1", (message_id,)
        )
        if body is not None and body["body"]:
            return Message("assistant", body["body"], ts=parse_time(body["created_at"])), ""
        return Message("system", LOST_PLACEHOLDER), "is gone: no backup has it, and nothing else"

    def _inbox_row(self, message_id: int) -> Row | None:
        return self._db.row("SELECT *, received_at AS ts FROM inbox_messages WHERE message_id = ?", (message_id,))

    def _refs(self, message_id: int, row: Row | None) -> tuple[int, ...]:
        """Return what it referred to: messages it hid or changed, or where a branch begins."""
        if row is None or row["kind"] == "message":
            return ()
        rows: Sequence[Row] = self._db.rows(
            "SELECT id FROM messages WHERE hidden_by = ?1 UNION SELECT message_id FROM changes WHERE record_id = ?1"
            " UNION SELECT parent_message_id FROM sessions WHERE key = ?2 AND generation = ?3 AND ?4 = 'branch'"
            " AND parent_message_id IS NOT NULL",
            (message_id, row["session"], row["generation"], row["kind"]),
        )
        return tuple(int(each[0]) for each in rows)
