"""Verifies a data folder (I2, I3), and rebuilds the index from the logs.

Verifying checks chain, commitments, index against log, foreign keys and the structure of the database; and coverage:
checkpoints without gap or overlap, the remaining messages in the view exactly once and in order, correct totals, and
rows kept for undo. It only reads, also while a daemon runs.

A repair first restores the logs: damaged lines from backups and archives, as far as they have them; a torn end is moved
aside; and lost records are logged again from other stores, each loss being reported. Then the index is rebuilt in one
transaction, and views that do not match it are built again. Checkpoints, turns, requests, inbox and outbox stay. A
compaction whose replaced rows are damaged can no longer be undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sqlite3 import Row

from assistant.core.messages import LogByteRange
from assistant.core.records import IntegrityProblem, IntegrityReport, LogRecord
from assistant.core.sessions import is_imported
from assistant.core.text import pluralize
from assistant.store.character.memory_files import MEMORY_FILE
from assistant.store.database import Database
from assistant.store.derived import DERIVED_DATABASES
from assistant.store.files import TextFile
from assistant.store.home.guard import find_special_files
from assistant.store.home.repair_files import kept_folder
from assistant.store.log.format import decode_record
from assistant.store.log.rebuild import LogCopies, rebuild_log
from assistant.store.log.writer import MessageLog
from assistant.store.script import sessions as session_rows
from assistant.store.script.append import BULK_MAX_ROWS, BULK_TAIL_ROWS, batch_records
from assistant.store.script.checkpoints import BELONGS_IN_VIEW, first_uncovered_seq
from assistant.store.script.compact import cover_old_messages
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.generations import ROLLOVER_KINDS, end_previous_generation, list_uncovered_messages
from assistant.store.script.index import hide_messages, insert_records, span_of_row, withdrawn_ids
from assistant.store.script.sessions import Session, session_of_row, sort_parents_first
from assistant.store.script.undo import discard_undo, is_replaced_intact, list_undoable_checkpoint_rows
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, SIZE_COLUMNS, view_parameters
from assistant.store.verify.chain import Findings, LogScan, list_logged_sessions
from assistant.store.verify.checkpoint_ranges import repair_checkpoints
from assistant.store.verify.lost_records import LostRecords, known_records, known_sessions
from assistant.store.verify.salvage import drop_dangling


class Verifier:
    """Verifies I2 and I3 (chain, commitments, index against log, coverage, foreign keys), and rebuilds the index."""

    def __init__(self, home: Path, db: Database, log: MessageLog, conversation: StoredConversation) -> None:
        self._home = home
        self._db = db
        self._log = log
        self._views = conversation.views
        self._appender = conversation.appender

    def verify(self, *, is_served: Callable[[], bool] = lambda: False) -> IntegrityReport:
        """Check everything. `is_served`: whether a daemon runs at this moment."""
        start_time = time.monotonic()
        findings, name = Findings(), self._db.path.name
        scans: list[LogScan] = []
        with findings.collect_store_errors(name):
            scans = self._scan_logs(findings, is_served=is_served)
        with findings.collect_store_errors(name):
            self._check_inbox(findings)
        with findings.collect_store_errors(name), self._db.snapshot():
            check_coverage(self._db, findings)
        with findings.collect_store_errors(name):
            _check_structure(self._db, findings)
        for path in (self._home / name for name in ("character.db", *DERIVED_DATABASES)):
            if path.is_file():
                with findings.collect_store_errors(path.name), closing(Database.open_reader(path)) as db:
                    _check_structure(db, findings)
        with findings.collect_store_errors(self._home.name):
            for line in find_special_files(self._home, deep=True):
                findings.add("file", self._home.name, line)
        with findings.collect_store_errors(MEMORY_FILE):
            TextFile(self._home, MEMORY_FILE).read()
        return IntegrityReport(
            sessions=len(scans),
            records=sum(scan.records for scan in scans),
            bytes=sum(scan.bytes for scan in scans),
            problems=findings.problems(),
            redactions=tuple(sorted(message_id for scan in scans for message_id in scan.blank_ids)),
            seconds=time.monotonic() - start_time,
        )

    def verify_recent(self, last: int) -> tuple[IntegrityProblem, ...]:
        """Check only the `last` so many records of each session: fast, however long the logs are."""
        findings = Findings()
        with findings.collect_store_errors(self._db.path.name):
            self._scan_logs(findings, last)
            self._check_inbox(findings)
        return findings.problems()

    def _scan_logs(
        self, findings: Findings, last: int | None = None, *, is_served: Callable[[], bool] = lambda: False
    ) -> list[LogScan]:
        indexed = [row["key"] for row in self._db.rows("SELECT DISTINCT key FROM sessions")]
        sessions = {*list_logged_sessions(self._log, findings), *indexed}
        return [LogScan(self._db, self._log, one, findings, is_served).run(last) for one in sorted(sessions)]

    def _check_inbox(self, findings: Findings) -> None:
        """Check that messages taken by a turn are in the log (I1)."""
        for row in self._db.iterate(
            "SELECT id, message_id FROM inbox WHERE state <> 'accepted'"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = inbox.message_id)"
        ):
            text = f"accepted message {row['message_id']} was taken up and is not in the log"
            findings.add("inbox", f"inbox {row['id']}", text, repairable=True)

    # ------------------------------------------------------------------------------------------------------- repairing

    def repair(self, now: datetime, copies: LogCopies | None = None) -> IntegrityReport:
        """Repair the data folder. Raises `StoreError`, with the database unchanged."""
        repaired, gone = self._repair_logs(copies or LogCopies(), now)
        sessions = self._log.sessions()
        with self._db.write(references=False) as db:
            db.execute("DELETE FROM messages")
            for session in sessions:
                for batch in batch_records(self._records(session)):
                    self._index(batch)
            self._views.remove_unindexed()
            for row in db.rows("SELECT * FROM sessions"):
                repair_checkpoints(db, session_of_row(row))
            for key in sort_parents_first([row["key"] for row in db.rows("SELECT DISTINCT key FROM sessions")]):
                self._mend(session_rows.require_session(db, key), now)
            for row in db.rows("SELECT * FROM sessions"):
                ended = session_of_row(row)
                for num in find_broken_undo(db, ended)[:1]:
                    discard_undo(db, ended, num)
            drop_dangling(db)
        report = self.verify()
        return replace(report, problems=(*gone, *report.problems), repaired=tuple(repaired))

    def _repair_logs(self, copies: LogCopies, now: datetime) -> tuple[list[str], list[IntegrityProblem]]:
        """Restore the logs as far as possible, while the old index is available; return what was done, and what is
        lost. After a crash, a repeated call does the rest."""
        lost = LostRecords(self._db, self._log)
        repaired: list[str] = []
        gone: list[IntegrityProblem] = []
        kept = kept_folder(self._home, now)
        logged = [session for _, session in self._log.list_logs() if session is not None]
        copied = [] if copies.newest is None else copies.newest.log.sessions()
        # A row of a damaged index may name another session than the log that has its record.
        owners = {record.id: session for session in logged for record in self._records(session)}
        for session in sorted({*known_sessions(self._db), *logged, *copied}):
            known = [one for one in known_records(self._db, session) if owners.get(one.id, session) == session]
            rebuilt = rebuild_log(self._log, session, known, copies, kept)
            self._log.read_head(session, now)
            elsewhere = {message_id for message_id, owner in owners.items() if owner != session}
            logged_here = {record.id: record.commit for record in self._records(session)}
            again = lost.log_again(session, logged_here, elsewhere, now)
            where = self._log.log_place(session, LogByteRange(0, 0)).path
            for name, count in rebuilt.restored.items():
                repaired.append(f"{where}: {pluralize(count, 'record')} came back from {name}.")
            if again.whole:
                records = pluralize(len(again.whole), "record was", "records were")
                repaired.append(f"{where}: {records} logged again from script.db.")
            if rebuilt.aside is not None:
                repaired.append(f"{where}: the damaged file is kept in {kept.name}.")
            gone += again.gone
        return repaired, gone

    def _mend(self, session: Session, now: datetime) -> None:
        """Rebuild what the database has of a session, to match the index."""
        self._inherit(session)
        if not is_imported(session.key) and any(find_view_problems(self._db, session)):
            self._show_again(session, now)
        session_rows.recount_totals(self._db, session)

    def _inherit(self, session: Session) -> None:
        """Restore the copied messages of a branch, or of a generation that continues an earlier one, as far as they are
        still visible."""
        span = self._db.read_one(
            span_of_row,
            "SELECT m.byte_start, m.byte_end FROM messages m"
            " JOIN sessions s ON s.key = m.session AND s.generation = m.generation"
            " WHERE m.session = ? AND m.generation = ? AND (m.kind = 'branch' AND s.parent_session IS NULL"
            " OR m.kind = 'resume' AND s.resumed IS NULL)",
            session.row_key,
        )
        if span is not None:
            self._appender.begin_generation(self._log.read(session.key, span))

    def _records(self, session: str) -> Iterator[LogRecord]:
        """Yield the readable records of a log; `verify` reports the others."""
        for offset, line in self._log.iterate_lines(session):
            try:
                yield decode_record(line, offset)
            except (ValueError, KeyError, TypeError):
                continue

    def _index(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            session_rows.insert_session(self._db, record.session, record.generation, record.scope, record.ts)
        insert_records(self._db, records, [self._tokens(record) for record in records])
        self._appender.reserve_ids(records)
        for record in records:
            if withdrawn := withdrawn_ids(self._db, record):
                hide_messages(self._db, replace(record, refs=withdrawn))
            elif record.kind in ROLLOVER_KINDS:
                end_previous_generation(self._db, record)

    def _tokens(self, record: LogRecord) -> int:
        row = self._appender.view_record(record)
        return 0 if row is None else row.tokens

    def _show_again(self, session: Session, now: datetime) -> None:
        """Rebuild the view rows after the last checkpoint; if there are too many, a checkpoint covers all but the
        newest."""
        self._views.remove_message_rows(session)
        cover_old_messages(self._db, session, BULK_MAX_ROWS, BULK_TAIL_ROWS, "repair", now)
        rows = list_uncovered_messages(self._db, self._log, session, self._appender.view_record)
        self._views.append(session, rows)


def _check_structure(db: Database, findings: Findings) -> None:
    """Check references, and the pages of the database file."""
    name = db.path.name
    for row in db.rows("PRAGMA foreign_key_check"):
        findings.add("reference", name, f"row {row['rowid']} of {row['table']} refers to nothing in {row['parent']}")
    for row in db.rows("PRAGMA quick_check(20)"):
        if row[0] != "ok":
            findings.add("database", name, row[0])


def check_coverage(db: Database, findings: Findings) -> None:
    """Check ranges and checkpoints of every generation, and the views of current ones."""
    # Read once: an old data folder has hundreds of generations, and no index has their starts.
    grouped = db.rows("SELECT session, generation, min(seq) AS seq FROM messages GROUP BY session, generation")
    first_seqs = {(row["session"], row["generation"]): int(row["seq"]) for row in grouped}
    lost = _list_lost_checkpoints(db)
    for row in db.rows("SELECT * FROM sessions ORDER BY key, generation"):
        session = session_of_row(row)
        where = f"{session.key} (conversation {session.generation})"
        for text in _find_range_problems(db, session, first_seqs.get(session.row_key, 1)):
            findings.add("coverage", where, text)
        if row["ended_at"] is None:
            for text in [*find_view_problems(db, session), *_find_wrong_totals(db, session, row)]:
                findings.add("coverage", where, text, repairable=True)
        for number in lost.get(session.row_key, ()):
            findings.add("compaction", where, f"checkpoint {number} was taken over by none that covers its range")
        for checkpoint in find_broken_undo(db, session):
            text = f"what checkpoint {checkpoint} replaced is not as it was; it cannot be undone"
            findings.add("compaction", where, text, repairable=True)


def _find_range_problems(db: Database, session: Session, expected: int) -> Iterator[str]:
    """Check the ranges of a generation, which begin at seq `expected`."""
    for row in db.rows(
        "SELECT c.*, f.seq AS first_seq, t.seq AS last_seq FROM checkpoints c"
        " LEFT JOIN messages f ON f.id = c.from_message_id LEFT JOIN messages t ON t.id = c.to_message_id"
        " WHERE c.session_id = ? AND c.generation = ? AND c.state = 'live' ORDER BY c.from_seq",
        session.row_key,
    ):
        name = f"checkpoint {row['checkpoint_num']}"
        if row["from_seq"] != expected:
            yield f"{name} starts at seq {row['from_seq']} where {expected} would follow"
        if row["last_seq"] != row["to_seq"] or row["first_seq"] is None or row["first_seq"] < row["from_seq"]:
            yield f"{name} (seq {row['from_seq']}-{row['to_seq']}) does not match its first and last message"
        expected = row["to_seq"] + 1


def find_view_problems(db: Database, session: Session) -> Iterator[str]:
    """Compare the messages after the last checkpoint to the rows of the view."""
    start = first_uncovered_seq(db, session)
    yield from _find_missing(db, session, start)
    yield from _find_misplaced(db, session, start)
    ancestors = session_rows.branch_ancestry(db, session.key)
    for row in db.rows(
        f"SELECT h.carried_from{FROM_VIEW} AND h.carried_from IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM messages m WHERE m.id = h.carried_from AND m.session IN ({', '.join('?' * len(ancestors))}))",
        (*view_parameters(session), *ancestors),
    ):
        yield f"the view carries a copy of message {row['carried_from']}, which is unknown"


def _find_missing(db: Database, session: Session, start: int) -> Iterator[str]:
    for row in db.rows(
        f"SELECT m.id FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ? AND {BELONGS_IN_VIEW}"
        f" AND m.id NOT IN (SELECT h.message_id{FROM_VIEW} AND {IS_MESSAGE_ROW})",
        (session.key, start, session.generation, *view_parameters(session)),
    ):
        yield f"message {row['id']} is neither in the view nor under a checkpoint"


def _find_misplaced(db: Database, session: Session, start: int) -> Iterator[str]:
    for row in db.rows(
        f"SELECT h.message_id, count(*) AS times{FROM_VIEW} AND {IS_MESSAGE_ROW} GROUP BY h.message_id"
        " HAVING times > 1",
        view_parameters(session),
    ):
        yield f"message {row['message_id']} is in the view {row['times']} times"
    for row in db.rows(
        f"SELECT h.message_id{FROM_VIEW} AND {IS_MESSAGE_ROW} AND NOT EXISTS (SELECT 1 FROM messages m"
        f" WHERE m.id = h.message_id AND m.session = h.session AND m.seq >= ? AND {BELONGS_IN_VIEW})",
        (*view_parameters(session), start),
    ):
        yield f"message {row['message_id']} is in the view and should not be (covered, hidden or unknown)"
    last_seq = 0
    for row in db.rows(
        f"SELECT CASE WHEN {IS_MESSAGE_ROW} THEN (SELECT m.seq FROM messages m WHERE m.id = h.message_id) ELSE 0 END"
        f" AS seq{FROM_VIEW} ORDER BY h.position",
        view_parameters(session),
    ):
        seq = row["seq"] or 0
        if seq < last_seq:
            yield f"the view has a copy or a message (seq {seq}) after one that belongs behind it (seq {last_seq})"
        last_seq = max(last_seq, seq)


def _find_wrong_totals(db: Database, session: Session, stored: Row) -> Iterator[str]:
    row = db.row(f"SELECT {SIZE_COLUMNS}{FROM_VIEW}", view_parameters(session))
    names = ("view_messages", "view_tokens", "view_bytes", "view_images")
    for name, total in zip(names, () if row is None else row, strict=True):
        if total != stored[name]:
            yield f"{name} is {stored[name]} and the rows add up to {total}"


def find_broken_undo(db: Database, session: Session) -> list[int]:
    """Return the numbers of checkpoints whose kept rows are missing or changed."""
    undoable = list_undoable_checkpoint_rows(db, session)
    return [row["checkpoint_num"] for row in undoable if not is_replaced_intact(db, session, row, row["set_floor"])]


def _list_lost_checkpoints(db: Database) -> dict[tuple[str, int], list[int]]:
    """Return numbers of absorbed checkpoints that are not part of an existing one, by session key and generation."""
    lost: dict[tuple[str, int], list[int]] = {}
    for row in db.rows(
        "SELECT session_id, generation, checkpoint_num FROM checkpoints WHERE state = 'absorbed' AND id NOT IN"
        " (SELECT a.id FROM checkpoints c, json_each(c.absorbs) e JOIN checkpoints a ON a.id = e.value"
        " WHERE c.state IN ('live', 'absorbed') AND c.session_id = a.session_id"
        " AND c.from_seq <= a.from_seq AND c.to_seq >= a.to_seq) ORDER BY checkpoint_num"
    ):
        lost.setdefault((row["session_id"], row["generation"]), []).append(row["checkpoint_num"])
    return lost
