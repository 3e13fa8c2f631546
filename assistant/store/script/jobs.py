"""Reminders and schedules, and the outcome of each slot (F37).

Queries of text name a scope. The end of a slot, its job's next slot, and the resulting outbox or inbox row are one
transaction, so that a slot ends once and its reminder is sent once, even across a crash. A sent reminder is logged
right afterwards, under the message id assigned with its outbox row; after a crash, start-up logs the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from sqlite3 import Row
from typing import Any

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
from assistant.store.rows import class_row, dump_json, format_time, from_json, insert_sql, parse_time, update_sql
from assistant.store.script.append import Appender, RecordOrigin
from assistant.store.script.inbox import Inbox
from assistant.store.script.index import is_indexed
from assistant.store.script.outbox import insert_outgoing
from assistant.store.script.sessions import ensure_session

_IS_WAITING = "state IN ('active', 'paused')"
_LOGGED_PER_QUERY = 100
_SLOT_COLUMNS = ("job_id", "scope", "due_at", "local_key", "state", "ended_at", "note", "told", "logged")
# Slots delayed by quiet hours came as planned.
_UNSEEN = (
    "FROM slots INDEXED BY slots_unseen WHERE state <> 'ran' AND seen_at IS NULL"
    " AND (state = 'missed' OR note NOT LIKE 'waited for quiet hours%')"
)


def _due_of_row(row: Row) -> DueSlot | None:
    return None if row["next_due_at"] is None else DueSlot(parse_time(row["next_due_at"]), row["next_key"])


def _spec_of_row(row: Row) -> ScheduleSpec:
    # mypy does not accept a union as a type argument.
    spec: ScheduleSpec = from_json(ScheduleSpec, row["spec"])  # type: ignore[arg-type]
    return spec


_read_target = class_row(DeliveryTarget)
read_job = class_row(Job, place=_read_target, spec=_spec_of_row, due=_due_of_row)
_read_slot = class_row(EndedSlot)


class Jobs:
    """Stores reminders and schedules."""

    def __init__(self, db: Database, appender: Appender) -> None:
        self._db = db
        self._appender = appender
        self._inbox = Inbox(db, appender.next_id)

    # ------------------------------------------------------------------------------------------------------- making

    def add(self, new: NewJob, limit: int, now: datetime) -> Job:
        """Create a job, or return the one with the same key. Raises `UsageError` if the scope has `limit` waiting jobs,
        or one with the name."""
        with self._db.write() as db:
            job = db.read_one(read_job, "SELECT * FROM jobs WHERE key = ?", (new.key,))
            if job is not None:
                return job
            self._require_room(new, limit)
            session = ensure_session(db, new.place.session, new.place.scope, now)
            job_id = db.insert_row(
                "jobs",
                key=new.key,
                kind=new.kind,
                name=new.name,
                generation=session.generation,
                **asdict(new.place),
                text=new.text,
                spec=dump_json(_spec_json(new.spec)),
                zone=new.zone,
                catch_up=new.catch_up,
                state="active",
                next_due_at=new.due.at,
                next_key=new.due.key,
                made_by=new.made_by,
                created_at=now,
            )
            return db.read_all(read_job, "SELECT * FROM jobs WHERE id = ?", (job_id,))[0]

    def _require_room(self, new: NewJob, limit: int) -> None:
        scope = new.place.scope
        waiting = self._db.value(f"SELECT count(*) FROM jobs WHERE scope = ? AND {_IS_WAITING}", (scope,))
        if waiting >= limit:
            raise UsageError(
                f"{waiting:,} reminders and schedules are waiting, which is the limit. Nothing was set; cancel some."
            )
        if new.name and self.find_by_name(new.name, scope) is not None:
            raise UsageError(
                f"There is a schedule {new.name!r} already. Nothing was set; remove it, or use another name."
            )

    def find_by_key(self, key: str, scope: str) -> Job | None:
        """Return the job in any state."""
        return self._db.read_one(read_job, "SELECT * FROM jobs WHERE key = ? AND scope = ?", (key, scope))

    def get_job(self, job_id: int, scope: str, kind: JobKind) -> Job | None:
        """Return the job in any state."""
        sql = "SELECT * FROM jobs WHERE id = ? AND scope = ? AND kind = ?"
        return self._db.read_one(read_job, sql, (job_id, scope, kind))

    def find_by_name(self, name: str, scope: str) -> Job | None:
        """Return the active or paused schedule with this name."""
        sql = f"SELECT * FROM jobs WHERE scope = ? AND name = ? AND name <> '' AND {_IS_WAITING}"
        return self._db.read_one(read_job, sql, (scope, name))

    def list_waiting(self, scope: str, kind: JobKind, *, limit: int = 1000) -> list[Job]:
        """Return active and paused jobs, next due first."""
        return self._db.read_all(
            read_job,
            f"SELECT * FROM jobs WHERE scope = ? AND kind = ? AND {_IS_WAITING} ORDER BY next_due_at, id LIMIT ?",
            (scope, kind, limit),
        )

    def cancel(self, job_id: int, scope: str, kind: JobKind, key: str, now: datetime) -> Job:
        """Cancel a job, idempotently by key. Raises `UsageError` if it is not waiting."""
        with self._db.write() as db:
            job = self.get_job(job_id, scope, kind)
            repeated = db.value("SELECT end_key FROM jobs WHERE id = ?", (job_id,)) == key
            if job is None or not (repeated or job.state in ("active", "paused")):
                raise UsageError(
                    f"No {kind} {job_id} is waiting. Nothing was changed; `/remind` and `/schedule` list them."
                )
            if not repeated:
                db.update_rows("jobs", {"id": job_id}, state="cancelled", ended_at=now, end_key=key)
        return job

    def list_of_other_zones(self, scope: str, zone: str) -> list[Job]:
        """Return active and paused jobs whose local times are of another zone."""
        sql = f"SELECT * FROM jobs WHERE scope = ? AND zone <> ? AND next_due_at > '' AND {_IS_WAITING} ORDER BY id"
        return self._db.read_all(read_job, sql, (scope, zone))

    def move_to_zone(self, dues: Mapping[int, DueSlot], zone: str) -> None:
        """Set the zone of these jobs, and their next slots in it."""
        with self._db.write() as db:
            for job_id, due in dues.items():
                db.update_rows("jobs", {"id": job_id}, zone=zone, next_due_at=due.at, next_key=due.key)

    def change(
        self,
        job_id: int,
        scope: str,
        key: str,
        now: datetime,
        text: str,
        due: tuple[ScheduleSpec, DueSlot] | None,
        zone: str,
    ) -> Job:
        """Change a reminder's text and times (local ones are of `zone`), once per key; a past one becomes active again.
        Raises `UsageError` if there is none."""
        with self._db.write() as db:
            job = self.get_job(job_id, scope, "reminder")
            if job is None or job.state == "cancelled":
                raise UsageError(f"No reminder {job_id} is waiting. Nothing was changed; `/remind` lists them.")
            if db.value("SELECT change_key FROM jobs WHERE id = ?", (job_id,)) == key:
                return job
            values: dict[str, Any] = {"text": text, "change_key": key}
            if due is not None:
                spec, slot = due
                values |= {"spec": dump_json(_spec_json(spec)), "next_due_at": slot.at, "next_key": slot.key}
                values |= {"state": "active", "ended_at": None}
                if zone != job.zone:
                    # The same local time may have come in the zone before; its messages have the name of that slot.
                    values |= {"zone": zone, "replanned": job.replanned + 1}
            db.update_rows("jobs", {"id": job_id}, **values)
            return db.read_all(read_job, "SELECT * FROM jobs WHERE id = ?", (job_id,))[0]

    def list_recent(self, scope: str, since: datetime, *, limit: int) -> list[tuple[Job, datetime]]:
        """Return reminders that came since a time and have ended, with when, newest first."""
        return self._db.read_all(
            lambda row: (read_job(row), parse_time(row["ended_at"])),
            "SELECT * FROM jobs WHERE scope = ? AND kind = 'reminder' AND state = 'done' AND ended_at >= ?"
            " ORDER BY ended_at DESC, id DESC LIMIT ?",
            (scope, since, limit),
        )

    def pause(self, job_id: int, scope: str) -> None:
        """Does nothing unless the job is active."""
        with self._db.write() as db:
            db.update_rows("jobs", {"id": job_id, "scope": scope, "state": "active"}, state="paused")

    def resume(self, job_id: int, scope: str, due: DueSlot | None, now: datetime) -> None:
        """Resume a paused job at a slot, or mark it done if `due` is None."""
        with self._db.write() as db:
            if db.value("SELECT 1 FROM jobs WHERE id = ? AND scope = ?", (job_id, scope)):
                self._move(job_id, due, "paused", now)

    def origin_of_turn(self, turn: str) -> tuple[DeliveryTarget, int] | None:
        """Return where a turn's newest message came from, and its message id."""
        row = self._db.row("SELECT * FROM inbox WHERE turn = ? ORDER BY id DESC LIMIT 1", (turn,))
        return None if row is None else (_read_target(row), row["message_id"])

    # ------------------------------------------------------------------------------------------------------- firing

    def list_due(self, after: datetime | None, until: datetime, *, limit: int) -> list[Job]:
        """Return active jobs with a next slot in (after, until], oldest first."""
        return self._db.read_all(
            read_job,
            "SELECT * FROM jobs WHERE state = 'active' AND next_due_at > ? AND next_due_at <= ?"
            " ORDER BY next_due_at, id LIMIT ?",
            (after or "", until, limit),
        )

    def due_of_message(self, key: str) -> datetime | None:
        """Return when the reminder was due that a message of its own has, by the key of the message; None if that is
        to come again."""
        job_id = key.split(":")[1]
        at = self._db.value("SELECT due_at FROM slots WHERE job_id = ? AND told = ?", (int(job_id), key))
        return None if at is None else parse_time(at)

    def next_due_at(self) -> datetime | None:
        """Return the earliest due time of all scopes, None if no job is active."""
        at = self._db.value("SELECT min(next_due_at) FROM jobs WHERE state = 'active'")
        return None if at is None else parse_time(at)

    def apply_firing(self, firing: FiringBatch, now: datetime) -> None:
        """End slots, advance jobs, and store outgoing messages and prompts, in one transaction."""
        with self._db.write():
            self._end_slots(firing.jobs, now)
            self._advance(firing.jobs, now)
            for message in firing.messages:
                self._send(message, now)
            for prompt in firing.prompts:
                self._inbox.accept_in_transaction(prompt, now)

    def _end_slots(self, jobs: Sequence[JobOutcome], now: datetime) -> None:
        """End slots that have not ended yet."""
        at = format_time(now)
        self._db.execute_many(
            insert_sql("slots", _SLOT_COLUMNS, ()),
            (
                (
                    *(job.job_id, job.scope, format_time(outcome.due.at), outcome.due.key, outcome.state, at),
                    *(outcome.note, message_key or None, not message_key),
                )
                for job in jobs
                for outcome, message_key in job.outcomes
            ),
        )

    def _advance(self, jobs: Sequence[JobOutcome], now: datetime) -> None:
        """Like `_move` for each of these active jobs: all that have ended are written at once."""
        at = format_time(now)
        self._db.execute_many(
            update_sql("jobs", ("state", "next_due_at", "next_key", "ended_at"), ("id", "state")),
            (("done", None, None, at, job.job_id, "active") for job in jobs if job.due is None),
        )
        for job in jobs:
            if job.due is not None:
                self._move(job.job_id, job.due, "active", now)

    def _move(self, job_id: int, due: DueSlot | None, state: str, now: datetime) -> None:
        """Set the next slot of a job in `state`; None marks it done."""
        where = {"id": job_id, "state": state}
        if due is None:
            self._db.update_rows("jobs", where, state="done", next_due_at=None, next_key=None, ended_at=now)
        else:
            self._db.update_rows("jobs", where, state="active", next_due_at=due.at, next_key=due.key)

    def _send(self, message: ReminderMessage, now: datetime) -> None:
        place = message.place
        session = ensure_session(self._db, place.session, place.scope, now)
        outgoing = OutgoingMessage(
            message.key,
            **asdict(place),
            body=message.body,
            message_id=self._appender.next_id(),
            buttons=message.buttons,
        )
        insert_outgoing(self._db, [outgoing], now, generation=session.generation)

    # ------------------------------------------------------------------------------------------------------ logging

    def log_sent_reminders(self, now: datetime) -> int:
        """Log reminders that were sent but not logged, and return their number. Called after `apply_firing`, and at
        start-up."""
        logged = 0
        while rows := self._unlogged():
            for session, group in groupby(rows, lambda row: str(row["session"])):
                logged += self._log_session(session, list(group), now)
        return logged

    def _unlogged(self) -> list[Row]:
        return self._db.rows(
            "SELECT o.key, o.session, o.bridge, o.body, o.message_id FROM outbox o WHERE o.key IN"
            " (SELECT DISTINCT told FROM slots INDEXED BY slots_unlogged WHERE logged = 0 LIMIT ?)"
            " ORDER BY o.session, o.id",
            (_LOGGED_PER_QUERY,),
        )

    def _log_session(self, key: str, rows: Sequence[Row], now: datetime) -> int:
        session = self._appender.current_session(key, now)
        # Finds records that were logged before a crash.
        self._appender.catch_up_index(key, now)
        drafts = [
            self._appender.draft_record(
                session,
                Message("system", _sent_note(row["body"]), row["message_id"]),
                RecordOrigin("reminder", row["bridge"], None, "system", None, self._requested_by(row["key"])),
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

    def _requested_by(self, message_key: str) -> tuple[int, ...]:
        rows = self._db.rows(
            "SELECT DISTINCT j.made_by FROM slots s JOIN jobs j ON j.id = s.job_id"
            " WHERE s.told = ? AND s.logged = 0 AND j.made_by IS NOT NULL ORDER BY j.made_by LIMIT 20",
            (message_key,),
        )
        return tuple(row["made_by"] for row in rows)

    # ----------------------------------------------------------------------------------------------------- ended slots

    def ended_slots(
        self, scope: str, *, kind: JobKind | None = None, job_id: int | None = None, limit: int = 100
    ) -> list[EndedSlot]:
        """Return ended slots, newest first."""
        return self._db.read_all(
            _read_slot,
            "SELECT s.*, j.kind, j.name, j.text FROM slots s JOIN jobs j ON j.id = s.job_id"
            " WHERE s.scope = ? AND (? IS NULL OR j.kind = ?) AND (? IS NULL OR s.job_id = ?)"
            " ORDER BY s.id DESC LIMIT ?",
            (scope, kind, kind, job_id, job_id, limit),
        )

    def count_unseen(self) -> dict[str, int]:
        """Return the number of unseen slots by scope: missed, or late for another reason than quiet hours."""
        rows = self._db.rows(f"SELECT scope, count(*) AS slots {_UNSEEN} GROUP BY scope")
        return {row["scope"]: row["slots"] for row in rows}

    def list_unseen(self, scope: str, *, limit: int) -> list[EndedSlot]:
        """Return the newest unseen slots."""
        sql = (
            "SELECT s.*, j.kind, j.name, j.text FROM slots s JOIN jobs j ON j.id = s.job_id"
            f" WHERE s.id IN (SELECT id {_UNSEEN} AND scope = ? ORDER BY id DESC LIMIT ?) ORDER BY s.id DESC"
        )
        return self._db.read_all(_read_slot, sql, (scope, limit))

    def mark_seen(self, now: datetime) -> None:
        """Mark missed and late slots as seen."""
        with self._db.write() as db:
            db.execute(f"UPDATE slots SET seen_at = ? WHERE id IN (SELECT id {_UNSEEN})", (now,))

    def count_active(self) -> dict[JobKind, int]:
        """Return the number of active jobs with a next slot, by kind."""
        sql = "SELECT kind, count(*) AS jobs FROM jobs WHERE state = 'active' AND next_due_at > '' GROUP BY kind"
        return {row["kind"]: row["jobs"] for row in self._db.rows(sql)}

    def count_overdue(self, before: datetime) -> int:
        """Return the number of active jobs whose next slot is before a time."""
        sql = "SELECT count(*) FROM jobs WHERE state = 'active' AND next_due_at < ?"
        return int(self._db.value(sql, (before,)))


def _spec_json(spec: ScheduleSpec) -> dict[str, str]:
    # A rule's start is local and has no zone; `format_time` is for moments.
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(spec).items()}


def _sent_note(body: str) -> str:
    """Return the log text of a sent reminder, which asks nothing of the model."""
    return f"A reminder came due, and this was sent here. It is for the person and asks nothing of you now:\n{body}"
