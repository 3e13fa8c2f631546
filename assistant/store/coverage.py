"""I3 as a check: checkpoints without gap or overlap, the rest in the view exactly once and in order, totals that add
up.
"""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Row

from assistant.store import checkpoints, session_rows
from assistant.store.checkpoints import BELONGS_IN_VIEW
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.session_rows import Session
from assistant.store.view import LIVE_ROW, OF_VIEW, SIZES, place


def check(db: Database, findings: Findings) -> None:
    """Check ranges of every generation, and the views of current ones."""
    for row in db.rows("SELECT * FROM sessions ORDER BY key, generation"):
        session = Session(row["key"], row["generation"], row["scope"])
        for text in _ranges(db, session):
            findings.add("coverage", where(session), text)
        if row["ended_at"] is None:
            for text in [*uncovered(db, session), *_totals(db, session, row)]:
                findings.add("coverage", where(session), text, repairable=True)


def where(session: Session) -> str:
    return f"{session.key} (generation {session.generation})"


def _ranges(db: Database, session: Session) -> Iterator[str]:
    values = (session.key, session.generation)
    first = db.row("SELECT min(seq) FROM messages WHERE session = ? AND generation = ?", values)
    expected = 1 if first is None or first[0] is None else int(first[0])
    for row in db.rows(
        "SELECT c.*, f.seq AS first_seq, t.seq AS last_seq FROM checkpoints c"
        " LEFT JOIN messages f ON f.id = c.from_message_id LEFT JOIN messages t ON t.id = c.to_message_id"
        " WHERE c.session_id = ? AND c.generation = ? AND c.state = 'live' ORDER BY c.from_seq",
        values,
    ):
        name = f"checkpoint {row['checkpoint_num']}"
        if row["from_seq"] != expected:
            yield f"{name} starts at seq {row['from_seq']} where {expected} would follow"
        if row["last_seq"] != row["to_seq"] or row["first_seq"] is None or row["first_seq"] < row["from_seq"]:
            yield f"{name} (seq {row['from_seq']}-{row['to_seq']}) does not match its first and last message"
        expected = row["to_seq"] + 1


def uncovered(db: Database, session: Session) -> Iterator[str]:
    """What is wrong between the messages after the last checkpoint and the rows of the view."""
    start = checkpoints.first_uncovered(db, session)
    yield from _missing(db, session, start)
    yield from _misplaced(db, session, start)
    ancestors = session_rows.line(db, session.key)
    for row in db.rows(
        f"SELECT h.carried_from{OF_VIEW} AND h.carried_from IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM messages m WHERE m.id = h.carried_from AND m.session IN ({', '.join('?' * len(ancestors))}))",
        (*place(session), *ancestors),
    ):
        yield f"the view carries a copy of message {row['carried_from']}, which is unknown"


def _missing(db: Database, session: Session, start: int) -> Iterator[str]:
    for row in db.rows(
        f"SELECT m.id FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ? AND {BELONGS_IN_VIEW}"
        f" AND m.id NOT IN (SELECT h.message_id{OF_VIEW} AND {LIVE_ROW})",
        (session.key, start, session.generation, *place(session)),
    ):
        yield f"message {row['id']} is neither in the view nor under a checkpoint"


def _misplaced(db: Database, session: Session, start: int) -> Iterator[str]:
    for row in db.rows(
        f"SELECT h.message_id, count(*) AS times{OF_VIEW} AND {LIVE_ROW} GROUP BY h.message_id HAVING times > 1",
        place(session),
    ):
        yield f"message {row['message_id']} is in the view {row['times']} times"
    for row in db.rows(
        f"SELECT h.message_id{OF_VIEW} AND {LIVE_ROW} AND NOT EXISTS (SELECT 1 FROM messages m"
        f" WHERE m.id = h.message_id AND m.session = h.session AND m.seq >= ? AND {BELONGS_IN_VIEW})",
        (*place(session), start),
    ):
        yield f"message {row['message_id']} is in the view and should not be (covered, hidden or unknown)"
    said = 0
    for row in db.rows(
        f"SELECT CASE WHEN {LIVE_ROW} THEN (SELECT m.seq FROM messages m WHERE m.id = h.message_id) ELSE 0 END AS seq"
        f"{OF_VIEW} ORDER BY h.position",
        place(session),
    ):
        seq = row["seq"] or 0
        if seq < said:
            yield f"the view has a copy or a message (seq {seq}) after one that belongs behind it (seq {said})"
        said = max(said, seq)


def _totals(db: Database, session: Session, stored: Row) -> Iterator[str]:
    row = db.row(f"SELECT {SIZES}{OF_VIEW}", place(session))
    names = ("view_messages", "view_tokens", "view_bytes", "view_images")
    for name, found in zip(names, () if row is None else row, strict=True):
        if found != stored[name]:
            yield f"{name} is {stored[name]} and the rows add up to {found}"
