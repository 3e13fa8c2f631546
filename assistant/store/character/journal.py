"""The journal of learned entries, and each sleep phase's reading position. Implements `Journal` over character.db.

Keys make inserting entries idempotent (I4); a phase's reading position is saved in the transaction of its results;
queries are limited to one scope (I10).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.memories import FULL_CYCLE_TRIGGERS, JournalEntry, PhaseCursor, SleepReport
from assistant.store.database import Database
from assistant.store.rows import class_row, clean_text, dump_json, parse_time, to_row

UNDONE_NOTE = "taken back"
# Entries extracted by a cycle and undone with it.
_NOT_UNDONE = (
    "NOT EXISTS (SELECT 1 FROM consolidated_entry_ids c"
    f" WHERE c.entry_id = journal.id AND c.note = '{UNDONE_NOTE}' AND c.cycle IS journal.cycle)"
)

read_entry = class_row(JournalEntry)
_read_report = class_row(SleepReport)


class StoredJournal:
    """Implements `Journal`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._begun: set[int] = set()

    def add(
        self,
        entries: Sequence[JournalEntry],
        now: datetime,
        *,
        reading: PhaseCursor | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> list[JournalEntry]:
        with self._db.write():
            written = [new for entry in entries if (new := self._add(entry, now)) is not None]
            self._replace(replaced or {}, {entry.key for entry in written})
            if reading is not None:
                save_reading(self._db, reading, now)
        return written

    def _add(self, entry: JournalEntry, now: datetime) -> JournalEntry | None:
        """Insert an entry and return it with its id; None if its key exists."""
        if self._db.row("SELECT 1 FROM journal WHERE key = ?", (entry.key,)) is not None:
            return None
        columns = {**to_row(entry), "created_at": now}
        return replace(entry, content=clean_text(entry.content), id=self._db.insert_row("journal", **columns))

    def _replace(self, replaced: Mapping[str, str], new: Collection[str]) -> None:
        for previous, by in replaced.items():
            if previous in new or by in new:
                self._db.execute(
                    "UPDATE journal SET superseded_by = instead.id FROM journal instead"
                    " WHERE journal.key = ? AND instead.key = ? AND instead.scope = journal.scope",
                    (previous, by),
                )
                self._db.execute(
                    "INSERT INTO replacements (entry_id, by_entry) SELECT j.id, r.id FROM journal j, journal r"
                    " WHERE j.key = ? AND r.key = ? AND r.scope = j.scope ON CONFLICT DO NOTHING",
                    (previous, by),
                )

    def read(self, entry_ids: Sequence[int], scope: str) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            f"SELECT * FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND scope = ? AND {_NOT_UNDONE}"
            " ORDER BY id",
            (dump_json(list(entry_ids)), scope),
        )

    def read_position(self, phase: str, session: str, generation: int) -> int:
        sql = "SELECT seq FROM readings WHERE phase = ? AND session = ? AND generation = ?"
        return self._db.value(sql, (phase, session, generation)) or 0

    def entries(
        self, scope: str, *, since: datetime | None = None, source_type: str | None = None, limit: int = 100
    ) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            "SELECT * FROM journal WHERE scope = ? AND timestamp >= ? AND source_type = coalesce(?, source_type)"
            f" AND {_NOT_UNDONE} ORDER BY timestamp DESC, id DESC LIMIT ?",
            (scope, since or "", source_type, limit),
        )

    def entries_from(self, sessions: Collection[str], scope: str) -> list[int]:
        """Return the ids of entries learned in these sessions."""
        rows = self._db.rows(
            "SELECT id FROM journal WHERE scope = ? AND session IN (SELECT value FROM json_each(?)) ORDER BY id",
            (scope, dump_json(sorted(sessions))),
        )
        return [row["id"] for row in rows]

    def version(self) -> tuple[int, int]:
        """Return what differs once anything was changed."""
        return self._db.version()

    def list_current(self, scope: str, *, limit: int) -> list[JournalEntry]:
        """Return the newest current entries that may mention a day."""
        return self._db.read_all(
            read_entry,
            "SELECT * FROM journal WHERE scope = ? AND superseded_by IS NULL AND source_type <> 'context_synthesis'"
            " AND (content GLOB '*[0-9]*' OR content LIKE '%day%' OR content LIKE '%tag%')"
            f" AND {_NOT_UNDONE} ORDER BY timestamp DESC, id DESC LIMIT ?",
            (scope, limit),
        )

    def entries_sharing_words(self, scope: str, words: Sequence[str], *, limit: int) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            "SELECT * FROM (SELECT *, (SELECT count(*) FROM json_each(?) word WHERE instr(lower(content), word.value))"
            " AS shared FROM journal WHERE scope = ? AND superseded_by IS NULL AND source_type <> 'context_synthesis')"
            f" AS journal WHERE shared AND {_NOT_UNDONE} ORDER BY shared DESC, timestamp DESC, id DESC LIMIT ?",
            (dump_json(words), scope, limit),
        )

    def entries_after(self, entry_id: int, *, limit: int = 200) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry, f"SELECT * FROM journal WHERE id > ? AND {_NOT_UNDONE} ORDER BY id LIMIT ?", (entry_id, limit)
        )

    # ----------------------------------------------------------------------------------------------------------- cycles

    def last_finished_cycle(self) -> int:
        sql = "SELECT max(id) FROM sleep_cycles WHERE ended_at IS NOT NULL"
        return self._db.remembered.rows("sleep_cycles", sql)[0][0] or 0

    def interrupt_cycles(self) -> None:
        """Mark running cycles as interrupted; called at start-up and when a cycle begins, since only one process runs
        cycles."""
        if self._db.value("SELECT 1 FROM sleep_cycles WHERE state = 'running'"):
            with self._db.write() as db:
                db.execute("UPDATE sleep_cycles SET state = 'interrupted' WHERE state = 'running'")

    def begin_cycle(self, trigger: str, now: datetime) -> int:
        self.interrupt_cycles()
        with self._db.write() as db:
            cycle = db.insert_row("sleep_cycles", trigger=trigger, started_at=now, state="running", phases="{}")
        self._begun.add(cycle)
        return cycle

    def save_cycle(self, report: SleepReport) -> None:
        columns = {"ended_at": report.ended_at, "state": report.state, "phases": dump_json(report.phases)}
        with self._db.write() as db:
            db.update_rows("sleep_cycles", {"id": report.id}, **columns)

    def list_cycles(
        self, *, limit: int = 10, other_process_may_sleep: bool = False, sleeps_only: bool = False
    ) -> list[SleepReport]:
        """Return cycles, newest first; see `Journal.list_cycles`. A running cycle not begun by this process was
        interrupted by a crash."""
        chosen = "WHERE trigger <> 'phase' " if sleeps_only else ""
        sql = f"SELECT * FROM sleep_cycles {chosen}ORDER BY id DESC LIMIT ?"
        reports = self._db.read_all(_read_report, sql, (limit,))
        return [
            replace(report, state="interrupted")
            if report.state == "running" and report.id not in self._begun and not other_process_may_sleep
            else report
            for report in reports
        ]

    def last_sleep_at(self) -> datetime | None:
        started_at = self._db.value(
            "SELECT started_at FROM sleep_cycles WHERE trigger IN (SELECT value FROM json_each(?))"
            " AND state NOT IN ('running', 'interrupted') ORDER BY id DESC LIMIT 1",
            (dump_json(list(FULL_CYCLE_TRIGGERS)),),
        )
        return None if started_at is None else parse_time(started_at)


def entry_subject(entry_id: int) -> str:
    """Return the subject of a journal entry in `plan_subjects`; a memory's subject is its id."""
    return f"entry {entry_id}"


def save_reading(db: Database, reading: PhaseCursor, now: datetime) -> None:
    """Save a phase's reading position, within `write()`; it never decreases."""
    db.execute(
        "INSERT INTO readings (phase, session, generation, seq, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq), at = excluded.at",
        (reading.phase, reading.session, reading.generation, reading.seq, now),
    )
