"""Proof that the data folder is whole (I2, I3), and the index made again from the logs alone.

Verifying checks chain, commitments, index against log, coverage, foreign keys and the database's own structure. It
only reads; a daemon may be running meanwhile.

Repair does not change the logs, except that a torn end is set aside and accepted messages that a log has lost are
logged again. All of the index changes in one transaction, or nothing of it; views that no longer agree with it are
made again. Checkpoints, turns, requests, inbox and outbox stay. What a compaction replaced and is not as it was can
no longer be undone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from assistant.core.records import IntegrityProblem, IntegrityReport, LogRecord
from assistant.store.database import Database
from assistant.store.log.format import decode_record
from assistant.store.log.writer import MessageLog
from assistant.store.script import sessions as session_rows
from assistant.store.script.append import BULK_MAX_ROWS, BULK_TAIL_ROWS, batch_records, inbox_item_origin
from assistant.store.script.compact import cover_old_messages
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.generations import (
    ROLLOVER_KINDS,
    end_previous_generation,
    list_uncovered_messages,
)
from assistant.store.script.inbox import message_of_inbox_item, read_inbox_item
from assistant.store.script.index import hide_messages, insert_records, span_of_row, withdrawn_ids
from assistant.store.script.sessions import Session, sort_parents_first
from assistant.store.script.undo import discard_undo
from assistant.store.verify.chain import Findings, LogScan, list_logged_sessions
from assistant.store.verify.coverage import (
    check_coverage,
    find_broken_undo,
    find_view_problems,
)


class Verifier:
    """Proves I2 and I3 (chain, commitments, index against log, coverage, foreign keys), and makes the index again."""

    def __init__(self, home: Path, db: Database, log: MessageLog, conversation: StoredConversation) -> None:
        self._home = home
        self._db = db
        self._log = log
        self._views = conversation.views
        self._appender = conversation.appender

    def verify(self) -> IntegrityReport:
        start_time = time.monotonic()
        findings, name = Findings(), self._db.path.name
        scans: list[LogScan] = []
        with findings.collect_store_errors(name):
            scans = self._scan_logs(findings)
        with findings.collect_store_errors(name):
            self._check_inbox(findings)
        with findings.collect_store_errors(name), self._db.snapshot():
            check_coverage(self._db, findings)
        with findings.collect_store_errors(name):
            _check_structure(self._db, findings)
        character = self._home / "character.db"
        if character.exists():
            with findings.collect_store_errors(character.name), closing(Database.open_reader(character)) as db:
                _check_structure(db, findings)
        return IntegrityReport(
            sessions=len(scans),
            records=sum(scan.records for scan in scans),
            bytes=sum(scan.bytes for scan in scans),
            problems=findings.problems(),
            redactions=tuple(sorted(message_id for scan in scans for message_id in scan.blank_ids)),
            seconds=time.monotonic() - start_time,
        )

    def verify_recent(self, last: int) -> tuple[IntegrityProblem, ...]:
        """What is wrong with the `last` so many records of each session: quick, however long the logs are."""
        findings = Findings()
        with findings.collect_store_errors(self._db.path.name):
            self._scan_logs(findings, last)
            self._check_inbox(findings)
        return findings.problems()

    def _scan_logs(self, findings: Findings, last: int | None = None) -> list[LogScan]:
        indexed = [row["key"] for row in self._db.rows("SELECT DISTINCT key FROM sessions")]
        sessions = {*list_logged_sessions(self._log, findings), *indexed}
        return [LogScan(self._db, self._log, session, findings).run(last) for session in sorted(sessions)]

    def _check_inbox(self, findings: Findings) -> None:
        """What a turn took up is in the log (I1)."""
        for row in self._db.iterate(
            "SELECT id, message_id FROM inbox WHERE state <> 'accepted'"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = inbox.message_id)"
        ):
            text = f"accepted message {row['message_id']} was taken up and is not in the log"
            findings.add("inbox", f"inbox {row['id']}", text, repairable=True)

    # ------------------------------------------------------------------------------------------------------- repairing

    def repair(self, now: datetime) -> IntegrityReport:
        """Raises `StoreError`, with nothing changed in the database."""
        sessions = self._log.sessions()
        for session in sessions:
            self._log.read_head(session, now)
        with self._db.write(references=False) as db:
            db.execute("DELETE FROM messages")
            for session in sessions:
                for batch in batch_records(self._records(session)):
                    self._index(batch)
            self._views.remove_unindexed()
            for key in sort_parents_first([row["key"] for row in db.rows("SELECT DISTINCT key FROM sessions")]):
                self._mend(session_rows.require_session(db, key), now)
        self._log_again(now)
        with self._db.write() as db:
            db.execute("DELETE FROM requests WHERE message_id NOT IN (SELECT id FROM messages)")
        return self.verify()

    def _mend(self, session: Session, now: datetime) -> None:
        """What the database has of a session, as the index has it now."""
        self._inherit(session)
        if any(find_view_problems(self._db, session)):
            self._show_again(session, now)
        session_rows.recount_totals(self._db, session)
        for num in find_broken_undo(self._db, session)[:1]:
            discard_undo(self._db, session, num)

    def _inherit(self, session: Session) -> None:
        """A branch, or a generation that continues an earlier one, which lost its row has its copies again, where
        the messages can still be shown."""
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
        """The records of a log that can be read; `verify` names the others."""
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
        """Make the rows after the last checkpoint again; a long tail goes under a checkpoint but for its end."""
        self._views.remove_message_rows(session)
        cover_old_messages(self._db, session, BULK_MAX_ROWS, BULK_TAIL_ROWS, "repair", now)
        rows = list_uncovered_messages(self._db, self._log, session, self._appender.view_record)
        self._views.append(session, rows)

    def _log_again(self, now: datetime) -> None:
        """Messages that were accepted and taken up, and that their log no longer has: the inbox still has them."""
        items = self._db.read_all(
            read_inbox_item,
            "SELECT * FROM inbox WHERE state <> 'accepted'"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = inbox.message_id) ORDER BY id",
        )
        for item in items:
            session = session_rows.require_session(self._db, item.incoming.session)
            draft = self._appender.draft_record(
                session, message_of_inbox_item(item), inbox_item_origin(item, item.turn), now
            )
            with self._appender.appending(session, [draft], now):
                continue


def _check_structure(db: Database, findings: Findings) -> None:
    """References, and the pages of the file themselves."""
    name = db.path.name
    for row in db.rows("PRAGMA foreign_key_check"):
        findings.add("reference", name, f"row {row['rowid']} of {row['table']} refers to nothing in {row['parent']}")
    for row in db.rows("PRAGMA quick_check(20)"):
        if row[0] != "ok":
            findings.add("database", name, row[0])
