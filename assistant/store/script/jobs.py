"""Reminders and schedules of a home, and what became of each of their slots (F37).

What always holds: every query that returns words names a scope. The end of a slot, its job's next slot, and the outbox
or inbox row that comes of it are one transaction, so that whatever is killed, a slot ends once and is sent once. That a
reminder was sent goes into the log right after, under the message id that its outbox row was given; what a crash leaves
unlogged is logged at start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from sqlite3 import Row

from assistant.core.errors import UsageError
from assistant.core.jobs import (
    DeliveryTarget,
    DueSlot,
    EndedSlot,
    FiringBatch,
    Job,
    JobKind,
    JobOutcome,
    NewJob,
    ReminderMessage,
    ScheduleSpec,
)
from assistant.core.messages import Message
from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, format_time, parse_time
from assistant.store.rows import from_row
from assistant.store.script import sessions as session_rows
from assistant.store.script.append import Appender, RecordOrigin
from assistant.store.script.inbox import Inbox
from assistant.store.script.index import is_indexed
from assistant.store.script.outbox import insert_outgoing

_IS_WAITING = "state IN ('active', 'paused')"
_LOGGED_PER_QUERY = 100
_INSERT = (
    "INSERT INTO jobs (key, kind, name, session, generation, scope, bridge, target, text, spec, zone, catch_up, state,"
    " next_due_at, next_key, made_by, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?)"
)


class Jobs:
    def __init__(self, db: Database, appender: Appender) -> None:
        self._db = db
        self._appender = appender
        self._inbox = Inbox(db, appender.next_id)

    # ------------------------------------------------------------------------------------------------------- making

    def add(self, new: NewJob, limit: int, now: datetime) -> Job:
        """Make a job, or give the one that was made under the same key. Raises `UsageError` where `limit` of the scope
        wait already, or one of them has the name."""
        place = new.place
        with self._db.write() as db:
            known = db.row("SELECT * FROM jobs WHERE key = ?", (new.key,))
            if known is not None:
                return _job_of_row(known)
            self._must_fit(new, limit)
            session = session_rows.ensure_session(db, place.session, place.scope, now)
            made = db.insert(
                _INSERT,
                (
                    new.key,
                    new.kind,
                    clean_text(new.name),
                    place.session,
                    session.generation,
                    place.scope,
                    place.bridge,
                    place.target,
                    clean_text(new.text),
                    dump_json(_spec_json(new.spec)),
                    new.zone,
                    new.catch_up,
                    format_time(new.due.at),
                    new.due.key,
                    new.made_by,
                    format_time(now),
                ),
            )
            return _job_of_row(self._db.rows("SELECT * FROM jobs WHERE id = ?", (made,))[0])

    def _must_fit(self, new: NewJob, most: int) -> None:
        scope = new.place.scope
        waiting = self._db.rows(f"SELECT count(*) AS jobs FROM jobs WHERE scope = ? AND {_IS_WAITING}", (scope,))[0][
            "jobs"
        ]
        if waiting >= most:
            raise UsageError(
                f"{waiting:,} reminders and schedules wait already, and no more may. Nothing was set; cancel some."
            )
        if new.name and self.find_by_name(new.name, scope) is not None:
            raise UsageError(f"There is a schedule {new.name!r} already. Nothing was set; remove it, or name this one.")

    def find_by_key(self, key: str, scope: str) -> Job | None:
        row = self._db.row("SELECT * FROM jobs WHERE key = ? AND scope = ?", (key, scope))
        return None if row is None else _job_of_row(row)

    def get_job(self, job_id: int, scope: str, kind: JobKind) -> Job | None:
        row = self._row(job_id, scope, kind)
        return None if row is None else _job_of_row(row)

    def find_by_name(self, name: str, scope: str) -> Job | None:
        """The schedule of that name which waits or is paused."""
        row = self._db.row(
            f"SELECT * FROM jobs WHERE scope = ? AND name = ? AND name <> '' AND {_IS_WAITING}",
            (scope, clean_text(name)),
        )
        return None if row is None else _job_of_row(row)

    def list_waiting(self, scope: str, kind: JobKind, *, limit: int = 1000) -> list[Job]:
        """Those that are active or paused, the next due first."""
        rows = self._db.rows(
            f"SELECT * FROM jobs WHERE scope = ? AND kind = ? AND {_IS_WAITING} ORDER BY next_due_at, id LIMIT ?",
            (scope, kind, limit),
        )
        return [_job_of_row(row) for row in rows]

    def cancel(self, job_id: int, scope: str, kind: JobKind, key: str, now: datetime) -> Job:
        """Raises `UsageError` for one that does not wait, unless it was cancelled under the same key."""
        with self._db.write() as db:
            row = self._row(job_id, scope, kind)
            if row is None or (row["state"] not in ("active", "paused") and row["end_key"] != key):
                raise UsageError(f"No {kind} {job_id} is waiting. Nothing was changed; list them for their numbers.")
            if row["end_key"] != key:
                db.execute(
                    "UPDATE jobs SET state = 'cancelled', ended_at = ?, end_key = ? WHERE id = ?",
                    (format_time(now), key, job_id),
                )
        return _job_of_row(row)

    def pause(self, job_id: int, scope: str) -> None:
        with self._db.write() as db:
            db.execute(
                "UPDATE jobs SET state = 'paused' WHERE id = ? AND scope = ? AND state = 'active'", (job_id, scope)
            )

    def resume(self, job_id: int, scope: str, due: DueSlot | None, now: datetime) -> None:
        """Go on at a slot; None: there is none left, it is done."""
        with self._db.write() as db:
            if db.row("SELECT 1 FROM jobs WHERE id = ? AND scope = ?", (job_id, scope)) is not None:
                self._move([(job_id, due)], "paused", now)

    def origin_of_turn(self, turn: str) -> tuple[DeliveryTarget, int] | None:
        """Where the newest message of a turn came from, and its message id."""
        row = self._db.row("SELECT * FROM inbox WHERE turn = ? ORDER BY id DESC LIMIT 1", (turn,))
        if row is None:
            return None
        return DeliveryTarget(row["session"], row["scope"], row["bridge"], row["target"]), row["message_id"]

    def _row(self, job_id: int, scope: str, kind: JobKind) -> Row | None:
        return self._db.row("SELECT * FROM jobs WHERE id = ? AND scope = ? AND kind = ?", (job_id, scope, kind))

    # ------------------------------------------------------------------------------------------------------- firing

    def list_due(self, after: datetime | None, until: datetime, *, limit: int) -> list[Job]:
        """Active jobs whose next slot is after the first and not after the second moment, the oldest first."""
        rows = self._db.rows(
            "SELECT * FROM jobs WHERE state = 'active' AND next_due_at > ? AND next_due_at <= ?"
            " ORDER BY next_due_at, id LIMIT ?",
            ("" if after is None else format_time(after), format_time(until), limit),
        )
        return [_job_of_row(row) for row in rows]

    def next_due_at(self) -> datetime | None:
        row = self._db.row("SELECT min(next_due_at) AS at FROM jobs WHERE state = 'active'")
        return None if row is None or row["at"] is None else parse_time(row["at"])

    def apply_firing(self, firing: FiringBatch, now: datetime) -> None:
        """End slots, move jobs on, store what goes out and the prompts that begin turns: all in one transaction."""
        with self._db.write():
            self._end(firing.jobs, now)
            self._move([(one.job_id, one.due) for one in firing.jobs], "active", now)
            for telling in firing.messages:
                self._send(telling, now)
            for prompt in firing.prompts:
                self._inbox.accept_in_transaction(prompt, now)

    def _end(self, fired: Sequence[JobOutcome], now: datetime) -> None:
        at = format_time(now)
        self._db.execute_many(
            "INSERT INTO slots (job_id, scope, due_at, local_key, state, ended_at, note, told, logged)"
            " VALUES (?1, (SELECT scope FROM jobs WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
            " ON CONFLICT (job_id, local_key) DO NOTHING",
            [
                (
                    one.job_id,
                    format_time(ending.due.at),
                    ending.due.key,
                    ending.state,
                    at,
                    ending.note,
                    told or None,
                    int(not told),
                )
                for one in fired
                for ending, told in one.outcomes
            ],
        )

    def _move(self, jobs: Sequence[tuple[int, DueSlot | None]], state: str, now: datetime) -> None:
        """Jobs in that state go on at a slot; None: there is none left."""
        self._db.execute_many(
            "UPDATE jobs SET state = 'done', next_due_at = NULL, next_key = NULL, ended_at = ?"
            " WHERE id = ? AND state = ?",
            [(format_time(now), job_id, state) for job_id, due in jobs if due is None],
        )
        self._db.execute_many(
            "UPDATE jobs SET state = 'active', next_due_at = ?, next_key = ? WHERE id = ? AND state = ?",
            [(format_time(due.at), due.key, job_id, state) for job_id, due in jobs if due is not None],
        )

    def _send(self, telling: ReminderMessage, now: datetime) -> None:
        place = telling.place
        session = session_rows.ensure_session(self._db, place.session, place.scope, now)
        outgoing = OutgoingMessage(
            telling.key,
            place.session,
            place.scope,
            place.bridge,
            place.target,
            telling.body,
            message_id=self._appender.next_id(),
            buttons=telling.buttons,
        )
        insert_outgoing(self._db, [outgoing], session.generation, None, now)

    # ------------------------------------------------------------------------------------------------------ logging

    def log_sent_reminders(self, now: datetime) -> int:
        """Log the reminders that went out and are not in their conversations yet: how many these were. Called after
        `apply_firing`, and at start for what a crash left."""
        logged = 0
        while rows := self._unlogged():
            for session, of_it in groupby(rows, lambda row: str(row["session"])):
                logged += self._log_of(session, list(of_it), now)
        return logged

    def _unlogged(self) -> list[Row]:
        return self._db.rows(
            "SELECT o.key, o.session, o.bridge, o.body, o.message_id FROM outbox o WHERE o.key IN"
            " (SELECT DISTINCT told FROM slots INDEXED BY slots_unlogged WHERE logged = 0 LIMIT ?)"
            " ORDER BY o.session, o.id",
            (_LOGGED_PER_QUERY,),
        )

    def _log_of(self, key: str, rows: Sequence[Row], now: datetime) -> int:
        session = self._appender.current_session(key, now)
        # What was logged before, and not noted, is found in the index then.
        self._appender.catch_up_index(key, now)
        drafts = [
            self._appender.draft_record(
                session,
                Message("system", _sent_note(row["body"]), row["message_id"]),
                RecordOrigin("reminder", row["bridge"], None, "system", None, self._asked_by(row["key"])),
                now,
            )
            for row in rows
            if not is_indexed(self._db, row["message_id"])
        ]
        with self._appender.appending(session, drafts, now):
            self._db.execute_many(
                "UPDATE slots SET logged = 1 WHERE told = ? AND logged = 0", [(row["key"],) for row in rows]
            )
        return len(drafts)

    def _asked_by(self, told: str) -> tuple[int, ...]:
        rows = self._db.rows(
            "SELECT DISTINCT j.made_by FROM slots s JOIN jobs j ON j.id = s.job_id"
            " WHERE s.told = ? AND s.logged = 0 AND j.made_by IS NOT NULL ORDER BY j.made_by LIMIT 20",
            (told,),
        )
        return tuple(row["made_by"] for row in rows)

    # ------------------------------------------------------------------------------------------------- looking back

    def ended_slots(
        self, scope: str, *, kind: JobKind | None = None, job_id: int | None = None, limit: int = 100
    ) -> list[EndedSlot]:
        """Slots that have ended, the newest first."""
        rows = self._db.rows(
            "SELECT s.*, j.kind, j.name, j.text FROM slots s JOIN jobs j ON j.id = s.job_id"
            " WHERE s.scope = ? AND (? IS NULL OR j.kind = ?) AND (? IS NULL OR s.job_id = ?)"
            " ORDER BY s.id DESC LIMIT ?",
            (scope, kind, kind, job_id, job_id, limit),
        )
        return [from_row(EndedSlot, row) for row in rows]

    def count_missed(self) -> dict[str, int]:
        """How many slots were missed and not looked at since, by scope."""
        rows = self._db.rows(
            "SELECT scope, count(*) AS slots FROM slots INDEXED BY slots_missed"
            " WHERE state = 'missed' AND seen_at IS NULL GROUP BY scope"
        )
        return {row["scope"]: row["slots"] for row in rows}

    def mark_missed_seen(self, now: datetime) -> None:
        """Somebody has looked at what was missed."""
        with self._db.write() as db:
            db.execute(
                "UPDATE slots SET seen_at = ? WHERE id IN (SELECT id FROM slots INDEXED BY slots_missed"
                " WHERE state = 'missed' AND seen_at IS NULL)",
                (format_time(now),),
            )

    def count_overdue(self, before: datetime) -> int:
        """How many active jobs have a next slot before that."""
        row = self._db.row(
            "SELECT count(*) AS jobs FROM jobs WHERE state = 'active' AND next_due_at < ?", (format_time(before),)
        )
        return 0 if row is None else int(row["jobs"])


def _job_of_row(row: Row) -> Job:
    due = None if row["next_due_at"] is None else DueSlot(parse_time(row["next_due_at"]), row["next_key"])
    place = DeliveryTarget(row["session"], row["scope"], row["bridge"], row["target"])
    return from_row(Job, row, place=place, due=due, spec=json.loads(row["spec"]))


def _spec_json(spec: ScheduleSpec) -> dict[str, str]:
    # The start of a rule is local, without a zone: `format_time` is for moments.
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(spec).items()}


def _sent_note(body: str) -> str:
    """What the conversation has of a reminder that went out; words in it are words, and ask for nothing."""
    return f"A reminder came due, and this was sent here. It is for the person and asks nothing of you now:\n{body}"
