"""Views kept small without a summary, for bulk: imports, and an index made anew. What leaves is covered by a checkpoint
that refers to the log; it is not kept to be put back, and neither is what earlier compactions replaced.
"""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.store import checkpoints, commit, earlier, session_rows
from assistant.store.checkpoints import BELONGS_IN_VIEW, Covered
from assistant.store.database import Database
from assistant.store.session_rows import Session
from assistant.store.view import LIVE_ROW, OF_VIEW, Views, place

_TIER = "reference"


def cover(
    db: Database, views: Views, session: Session, many: int, keep: int, trigger: str, now: datetime
) -> Checkpoint | None:
    """Inside a transaction: where a view has more than `many` rows, put all but the last `keep` (from a user's
    message on) under a checkpoint."""
    row = session_rows.current_row(db, session.key)
    if row is None or row["view_messages"] <= many:
        return None
    bounds = _bounds(db, session, keep)
    if bounds is None:
        return None
    ids = bounds["first_id"], bounds["last_id"]
    compaction = _reference(session, row["prefix_rev"], trigger, ids, bounds["messages"], bounds["tokens"])
    return commit.commit(db, views, compaction, (), (), now, undo_kept=0)


def tail_start(db: Database, session: Session, start: int, many: int, keep: int) -> int | None:
    """Where more than `many` messages stand from seq `start` on: the seq at which their last `keep` begin, or the
    first user's message among them. None where they are fewer."""
    of = f"FROM messages m WHERE m.session = ? AND m.generation = ? AND m.seq >= ? AND {BELONGS_IN_VIEW}"
    values = (session.key, session.generation, start)
    count = db.row(f"SELECT count(*) {of}", values)
    if count is None or count[0] <= many:
        return None
    row = db.row(
        "SELECT coalesce(min(seq) FILTER (WHERE role = 'user'), min(seq)) FROM"
        f" (SELECT m.seq, m.role {of} ORDER BY m.seq DESC LIMIT ?)",
        (*values, keep),
    )
    return None if row is None else int(row[0])


def refer(db: Database, session: Session, start: int, end: int, trigger: str, now: datetime) -> None:
    """Inside a transaction: a checkpoint over seqs that no row of the view stands for."""
    of = f"FROM messages m WHERE m.session = ? AND m.generation = ? AND m.seq BETWEEN ? AND ? AND {BELONGS_IN_VIEW}"
    values = (session.key, session.generation, start, end)
    totals = db.row(f"SELECT count(*), coalesce(sum(tokens), 0) {of}", values)
    first = db.row(f"SELECT m.id {of} ORDER BY m.seq LIMIT 1", values)
    last = db.row(f"SELECT m.id, m.seq {of} ORDER BY m.seq DESC LIMIT 1", values)
    if totals is None or first is None or last is None:
        return
    compaction = _reference(session, 0, trigger, (first["id"], last["id"]), totals[0], totals[1])
    covered = Covered((first["id"], last["id"]), (start, last["seq"]))
    checkpoint_id = checkpoints.begin(db, session, covered, trigger, now)
    checkpoints.finish(db, session, checkpoint_id, compaction, covered, "live", now)
    earlier.give_up(db, session, checkpoints.read(db, checkpoint_id).num)


def _reference(
    session: Session, prefix_rev: int, trigger: str, ids: tuple[int, int], messages: int, tokens: int
) -> Compaction:
    return Compaction(session.key, prefix_rev, trigger, _TIER, *ids, messages, (), "", tokens, 0)


def _bounds(db: Database, session: Session, keep: int) -> Row | None:
    """First and last message to cover, how many rows, and their tokens."""
    values = place(session)
    tail = db.row(
        "SELECT min(position), min(position) FILTER (WHERE role = 'user') FROM"
        f" (SELECT h.position, h.role{OF_VIEW} ORDER BY h.position DESC LIMIT ?)",
        (*values, keep),
    )
    if tail is None or tail[0] is None:
        return None
    start = tail[0] if tail[1] is None else tail[1]
    row = db.row(
        "SELECT count(*) AS messages, sum(h.tokens) AS tokens,"
        f" (SELECT h.message_id{OF_VIEW} AND {LIVE_ROW} ORDER BY h.position LIMIT 1) AS first_id,"
        f" (SELECT h.message_id{OF_VIEW} AND {LIVE_ROW} AND h.position < ? ORDER BY h.position DESC LIMIT 1)"
        f" AS last_id{OF_VIEW} AND {LIVE_ROW} AND h.position < ?",
        (*values, *values, start, *values, start),
    )
    return row if row is not None and row["messages"] else None
