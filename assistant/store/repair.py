"""The index made again from the logs alone, and the views that no longer agree with it.

What always holds: the logs are not changed, but for a torn end that is set aside and for accepted messages that a log
has lost, which are logged again. All of the index changes in one transaction, or nothing of it. Checkpoints, turns,
requests, inbox and outbox stay. What a compaction replaced and is not as it was can no longer be put back; what no one
would read for the journal is queued again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store import (
    branch,
    bulk,
    checkpoints,
    compacted,
    coverage,
    earlier,
    extraction,
    index,
    lease,
    session_rows,
    turnover,
)
from assistant.store.append import MANY, SHOWN_OF_MANY, batches, origin_of
from assistant.store.checkpoints import BELONGS_IN_VIEW
from assistant.store.conversation import Conversation, parents_first
from assistant.store.database import Database
from assistant.store.inbox import message_of
from assistant.store.line import decode
from assistant.store.log import MasterLog
from assistant.store.rows import inbox_item
from assistant.store.session_rows import Session


class Repair:
    def __init__(self, db: Database, log: MasterLog, conversation: Conversation) -> None:
        self._db = db
        self._log = log
        self._views = conversation.views
        self._appender = conversation.appender

    def run(self, now: datetime) -> None:
        """Raises `StoreError`, with nothing changed in the database."""
        sessions = [session for _, session in self._log.found() if session is not None]
        for session in sessions:
            self._log.head(session, now)
        with self._db.write(references=False) as db:
            index.clear(db)
            for session in sessions:
                for batch in batches(self._records(session)):
                    self._index(batch)
            self._views.remove_unknown()
            for key in parents_first([row["key"] for row in db.rows("SELECT DISTINCT key FROM sessions")]):
                self._mend(session_rows.require(db, key), now)
        self._log_again(now)
        with self._db.write() as db:
            db.execute("DELETE FROM requests WHERE message_id NOT IN (SELECT id FROM messages)")

    def _mend(self, session: Session, now: datetime) -> None:
        """What the database has of a session, as the index has it now."""
        self._inherit(session)
        if any(coverage.uncovered(self._db, session)):
            self._show_again(session, now)
        session_rows.recount(self._db, session)
        for num in compacted.broken(self._db, session)[:1]:
            earlier.give_up(self._db, session, num)
        if compacted.stray_lease(self._db, session):
            lease.release(self._db, session)
        extraction.queue_again(self._db, session, now)

    def _inherit(self, session: Session) -> None:
        """A branch, or a generation that goes on from an earlier one, which lost its row has its copies again, where
        the messages can still be shown."""
        row = self._db.row(
            "SELECT m.byte_start, m.byte_end FROM messages m"
            " JOIN sessions s ON s.key = m.session AND s.generation = m.generation"
            " WHERE m.session = ? AND m.generation = ? AND (m.kind = 'branch' AND s.parent_session IS NULL"
            " OR m.kind = 'resume' AND s.resumed IS NULL)",
            (session.key, session.generation),
        )
        if row is None:
            return
        record = self._log.read(session.key, LogByteRange(row["byte_start"], row["byte_end"]))
        if record.kind == "branch":
            branch.inherit(self._db, self._views, record)
        else:
            appender = self._appender
            turnover.begin_next(self._db, self._log, self._views, record, appender.viewed, appender.counted)

    def _records(self, session: str) -> Iterator[LogRecord]:
        """The records of a log that can be read; `verify` names the others."""
        for offset, line in self._log.lines(session):
            try:
                yield decode(line, offset)
            except (ValueError, KeyError, TypeError):
                continue

    def _index(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            session_rows.begin(self._db, record.session, record.generation, record.scope, record.ts)
        index.insert(self._db, records, [self._tokens(record) for record in records])
        self._appender.saw(records)
        for record in records:
            if withdrawn := index.withdrawn(self._db, record):
                index.hide(self._db, replace(record, refs=withdrawn))
            elif record.kind in turnover.KINDS:
                turnover.end_former(self._db, record)

    def _tokens(self, record: LogRecord) -> int:
        message = self._appender.viewed(record)
        return 0 if message is None else self._appender.counted(message).tokens

    def _show_again(self, session: Session, now: datetime) -> None:
        """Make the rows after the last checkpoint anew; a long tail goes under a checkpoint but for its end."""
        self._views.remove_live(session)
        start = checkpoints.first_uncovered(self._db, session)
        cut = bulk.tail_start(self._db, session, start, MANY, SHOWN_OF_MANY)
        if cut is not None:
            bulk.refer(self._db, session, start, cut - 1, "repair", now)
        rows = self._db.rows(
            "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ?"
            f" AND {BELONGS_IN_VIEW} ORDER BY m.seq",
            (session.key, start if cut is None else cut, session.generation),
        )
        records = (self._log.read(session.key, LogByteRange(row["byte_start"], row["byte_end"])) for row in rows)
        viewed = [self._appender.viewed(record) for record in records]
        self._views.append(session, [self._appender.counted(message) for message in viewed if message is not None])

    def _log_again(self, now: datetime) -> None:
        """Messages that were accepted and taken up, and that their log no longer has: the inbox still has them."""
        rows = self._db.rows(
            "SELECT * FROM inbox WHERE state <> 'accepted'"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = inbox.message_id) ORDER BY id"
        )
        for item in (inbox_item(row) for row in rows):
            session = session_rows.require(self._db, item.incoming.session)
            draft = self._appender.draft(session, message_of(item), origin_of(item, item.turn), now)
            with self._appender.appending(session, [draft], now):
                continue
