"""What the journal has still to read: ranges that left a view before it had (F28), and the log read with a cursor.

What always holds: every message that a live checkpoint covers was read by the journal, or lies in a waiting range. The
ranges of a generation that wait follow one another.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database
from assistant.store.encoding import clean_text, format_time
from assistant.store.log.reader import LogFiles
from assistant.store.script.index import current_contents
from assistant.store.script.sessions import Session

_IS_READABLE = "m.kind = 'message' AND m.hidden_by IS NULL"


class UnreadMessages:
    """Implements `LogReaderPort` over the index of script.db and the master log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def read_after(self, session: str, generation: int, seq: int, *, limit: int = 200) -> list[LogRecord]:
        # What a running turn has said so far is not its end; its few messages are found by their turn.
        running = self._db.row(
            "SELECT min(m.seq) FROM turns t CROSS JOIN messages m INDEXED BY messages_turn ON m.turn = t.id"
            " WHERE t.session = ? AND t.state = 'running' AND m.session = t.session",
            (session,),
        )
        end = None if running is None else running[0]
        rows = self._db.rows(
            "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq > ? AND m.generation = ?"
            f" AND {_IS_READABLE} AND (? IS NULL OR m.seq < ?) ORDER BY m.seq LIMIT ?",
            (session, seq, generation, end, end, limit),
        )
        records = [self._log.read(session, LogByteRange(row["byte_start"], row["byte_end"])) for row in rows]
        hold = current_contents(self._db, self._log, session, [record.id for record in records])
        # What somebody took back is not to be learned, and of what they corrected the correction is.
        return [
            replace(one, content=hold[one.id], media=one.media if hold[one.id] else ()) if one.id in hold else one
            for one in records
        ]


def queue_extraction(db: Database, session: Session, seqs: tuple[int, int], reason: str, now: datetime) -> None:
    """Inside a transaction: have what the journal has not read of these seqs wait to be read."""
    row = db.row(
        "SELECT max(s.extracted_seq, coalesce((SELECT max(q.to_seq) FROM extraction_queue q WHERE q.session = s.key"
        " AND q.generation = s.generation AND q.state = 'waiting'), 0)) AS known FROM sessions s"
        " WHERE s.key = ? AND s.generation = ?",
        (session.key, session.generation),
    )
    start = max(seqs[0], (0 if row is None else row["known"]) + 1)
    if start <= seqs[1]:
        _insert_range(db, session, (start, seqs[1]), reason, now)


def mark_extracted(db: Database, session: str, generation: int, seq: int, now: datetime) -> None:
    """Inside a transaction: the journal has read the generation up to and including `seq`, as far as there is one.
    What has no message left to read waits no longer."""
    db.execute(
        "UPDATE sessions SET extracted_seq = max(extracted_seq, min(?, coalesce((SELECT m.seq FROM messages m"
        " WHERE m.session = sessions.key AND m.generation = sessions.generation ORDER BY m.seq DESC LIMIT 1), 0)))"
        " WHERE key = ? AND generation = ?",
        (seq, session, generation),
    )
    db.execute(
        "UPDATE extraction_queue SET state = 'done', done_at = ? WHERE session = ? AND generation = ?"
        " AND state = 'waiting' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session = extraction_queue.session"
        " AND m.seq BETWEEN max(extraction_queue.from_seq, 1 + (SELECT s.extracted_seq FROM sessions s"
        " WHERE s.key = extraction_queue.session AND s.generation = extraction_queue.generation))"
        f" AND extraction_queue.to_seq AND {_IS_READABLE})",
        (format_time(now), session, generation),
    )


def find_unqueued_ranges(db: Database, session: Session) -> list[tuple[int, int]]:
    """Seqs, first and last of each stretch, that a live checkpoint covers, and that were neither read nor wait."""
    rows = db.rows(
        "SELECT min(m.seq), max(m.seq) FROM checkpoints c JOIN sessions s ON s.key = c.session_id"
        " AND s.generation = c.generation JOIN messages m ON m.session = c.session_id"
        " AND m.seq BETWEEN max(c.from_seq, s.extracted_seq + 1) AND c.to_seq"
        f" WHERE c.session_id = ? AND c.generation = ? AND c.state = 'live' AND {_IS_READABLE}"
        " AND NOT EXISTS (SELECT 1 FROM extraction_queue q WHERE q.session = c.session_id"
        " AND q.generation = c.generation AND q.state = 'waiting' AND m.seq BETWEEN q.from_seq AND q.to_seq)"
        " GROUP BY c.id ORDER BY 1",
        (session.key, session.generation),
    )
    return [(row[0], row[1]) for row in rows]


def queue_unqueued_ranges(db: Database, session: Session, now: datetime) -> None:
    """Inside a transaction: queue what no one would read, as a repair does."""
    for seqs in find_unqueued_ranges(db, session):
        _insert_range(db, session, seqs, "repair", now)


def _insert_range(db: Database, session: Session, seqs: tuple[int, int], reason: str, now: datetime) -> None:
    db.insert(
        "INSERT INTO extraction_queue (session, generation, scope, from_seq, to_seq, reason, state, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?)",
        (session.key, session.generation, session.scope, *seqs, clean_text(reason), format_time(now)),
    )
