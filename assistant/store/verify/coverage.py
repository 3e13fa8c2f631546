"""Coverage (I3) and checkpoints, as checks.

Coverage: checkpoints without gap or overlap, the rest in the view exactly once and in order, totals that add up.
Checkpoints: rows kept for undo, and absorbed checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Row

from assistant.store.database import Database
from assistant.store.script import sessions as session_rows
from assistant.store.script.checkpoints import BELONGS_IN_VIEW, first_uncovered_seq
from assistant.store.script.sessions import Session, session_of_row
from assistant.store.script.undo import is_replaced_intact, list_undoable_checkpoint_rows
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, SIZE_COLUMNS, view_parameters
from assistant.store.verify.chain import Findings


def check_coverage(db: Database, findings: Findings) -> None:
    """Check ranges and checkpoints of every generation, and the views of current ones."""
    for row in db.rows("SELECT * FROM sessions ORDER BY key, generation"):
        session = session_of_row(row)
        where = f"{session.key} (conversation {session.generation})"
        for text in _find_range_problems(db, session):
            findings.add("coverage", where, text)
        if row["ended_at"] is None:
            for text in [*find_view_problems(db, session), *_find_wrong_totals(db, session, row)]:
                findings.add("coverage", where, text, repairable=True)
        for text in _find_absorbed_problems(db, session):
            findings.add("compaction", where, text)
        for checkpoint in find_broken_undo(db, session):
            text = f"what checkpoint {checkpoint} replaced is not as it was; it cannot be undone"
            findings.add("compaction", where, text, repairable=True)


def _find_range_problems(db: Database, session: Session) -> Iterator[str]:
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


def find_view_problems(db: Database, session: Session) -> Iterator[str]:
    """What is wrong between the messages after the last checkpoint and the rows of the view."""
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
    """Numbers of the checkpoints whose rows were to be kept and are not what they were."""
    undoable = list_undoable_checkpoint_rows(db, session)
    return [row["checkpoint_num"] for row in undoable if not is_replaced_intact(db, session, row, row["set_floor"])]


def _find_absorbed_problems(db: Database, session: Session) -> Iterator[str]:
    """A checkpoint that was taken over is part of the one that did it."""
    for row in db.rows(
        "SELECT a.checkpoint_num FROM checkpoints a WHERE a.session_id = ? AND a.generation = ?"
        " AND a.state = 'absorbed' AND NOT EXISTS (SELECT 1 FROM checkpoints c, json_each(c.absorbs) e"
        " WHERE c.session_id = a.session_id AND c.state IN ('live', 'absorbed') AND e.value = a.id"
        " AND c.from_seq <= a.from_seq AND c.to_seq >= a.to_seq)",
        session.row_key,
    ):
        yield f"checkpoint {row['checkpoint_num']} was taken over by none that covers its range"
