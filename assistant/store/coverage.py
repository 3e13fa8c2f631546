"""I3 as a check: checkpoints without gap or overlap, the rest in the view exactly once, totals that add up."""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Row

from assistant.store import checkpoints
from assistant.store.checkpoints import BELONGS_IN_VIEW, LIVE
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.session_rows import Session

_OF_VIEW = "FROM conversation_history h WHERE h.session = ? AND h.generation = ?"
_LIVE_ROW = "h.carried_from IS NULL AND h.message_id IS NOT NULL"


def check(db: Database, findings: Findings) -> None:
    """Check ranges of every generation, and the views of current ones."""
    for row in db.rows("SELECT * FROM sessions ORDER BY key, generation"):
        session = Session(row["key"], row["generation"], row["scope"])
        for text in _ranges(db, session):
            findings.add("coverage", _where(session), text)
        if row["ended_at"] is None:
            for text in [*uncovered(db, session), *_totals(db, row)]:
                findings.add("coverage", _where(session), text, repairable=True)


def _where(session: Session) -> str:
    return f"{session.key} (generation {session.generation})"


def _ranges(db: Database, session: Session) -> Iterator[str]:
    place = (session.key, session.generation)
    first = db.row("SELECT min(seq) FROM messages WHERE session = ? AND generation = ?", place)
    expected = 1 if first is None or first[0] is None else int(first[0])
    for row in db.rows(
        "SELECT c.*, f.seq AS first_seq, t.seq AS last_seq FROM checkpoints c"
        " LEFT JOIN messages f ON f.id = c.from_message_id LEFT JOIN messages t ON t.id = c.to_message_id"
        " WHERE c.session_id = ? AND c.generation = ? AND c.state = ? ORDER BY c.from_seq",
        (*place, LIVE),
    ):
        name = f"checkpoint {row['checkpoint_num']}"
        if row["from_seq"] != expected:
            yield f"{name} starts at seq {row['from_seq']} where {expected} would follow"
        if row["last_seq"] != row["to_seq"] or row["first_seq"] is None or row["first_seq"] < row["from_seq"]:
            yield f"{name} (seq {row['from_seq']}-{row['to_seq']}) does not match its first and last message"
        expected = row["to_seq"] + 1


def uncovered(db: Database, session: Session) -> Iterator[str]:
    """What is wrong between the messages after the last checkpoint and the rows of the view."""
    place = (session.key, session.generation)
    start = checkpoints.first_uncovered(db, session)
    for row in db.rows(
        f"SELECT m.id FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ? AND {BELONGS_IN_VIEW}"
        " AND NOT EXISTS (SELECT 1 FROM conversation_history h INDEXED BY history_message WHERE h.message_id = m.id"
        " AND h.session = m.session AND h.generation = m.generation AND h.carried_from IS NULL)",
        (session.key, start, session.generation),
    ):
        yield f"message {row['id']} is neither in the view nor under a checkpoint"
    for row in db.rows(
        f"SELECT h.message_id, count(*) AS times {_OF_VIEW} AND {_LIVE_ROW} GROUP BY h.message_id HAVING times > 1",
        place,
    ):
        yield f"message {row['message_id']} is in the view {row['times']} times"
    for row in db.rows(
        f"SELECT h.message_id {_OF_VIEW} AND {_LIVE_ROW} AND NOT EXISTS (SELECT 1 FROM messages m"
        f" WHERE m.id = h.message_id AND m.session = h.session AND m.seq >= ? AND {BELONGS_IN_VIEW})",
        (*place, start),
    ):
        yield f"message {row['message_id']} is in the view and should not be (covered, hidden or unknown)"
    for row in db.rows(
        f"SELECT h.carried_from {_OF_VIEW} AND h.carried_from IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM messages m WHERE m.id = h.carried_from AND m.session = h.session)",
        place,
    ):
        yield f"the view carries a copy of message {row['carried_from']}, which is unknown"


def _totals(db: Database, session: Row) -> Iterator[str]:
    row = db.row(
        "SELECT count(*) AS view_messages, coalesce(sum(tokens), 0) AS view_tokens, coalesce(sum(bytes), 0) AS"
        f" view_bytes, coalesce(sum(images), 0) AS view_images {_OF_VIEW}",
        (session["key"], session["generation"]),
    )
    for name in () if row is None else row.keys():
        if row is not None and row[name] != session[name]:
            yield f"{name} is {session[name]} and the rows add up to {row[name]}"
