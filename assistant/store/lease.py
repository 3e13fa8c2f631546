"""One compaction of a session at a time (F14), and none that stays half done (F15).

What always holds: a session's lease and the `started` checkpoint it was given for come and go together, in one
transaction. A lease that ran out can be taken by another, whose checkpoint takes the place of the one before; then
that one's compaction is refused. What an earlier process left started is `failed` after a start.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from assistant.core.checkpoints import Compaction
from assistant.core.errors import StaleView
from assistant.store import checkpoints, index, session_rows
from assistant.store.checkpoints import COMMITTED, Covered, refused
from assistant.store.database import Database
from assistant.store.session_rows import Session
from assistant.store.text import clean, stamp

_RAN_OUT = "its lease ran out, and another compaction was begun"
_CUT_OFF = "cut off: the process that had begun it ended"


def begin(
    db: Database, session: Session, trigger: str, ids: tuple[int, int], holder: str, until: datetime, now: datetime
) -> int | None:
    """Inside a transaction: the lease until `until` and a started checkpoint, whose id is returned; None where the
    session has a lease that has not run out."""
    row = session_rows.current_row(db, session.key)
    if row is not None and row["lease_until"] is not None and row["lease_until"] > stamp(now):
        return None
    covered = named(db, session, ids)
    _fail_started(db, session, _RAN_OUT)
    db.execute(
        "UPDATE sessions SET lease_holder = ?, lease_until = ? WHERE key = ? AND generation = ?",
        (clean(holder), stamp(until), session.key, session.generation),
    )
    return checkpoints.begin(db, session, covered, trigger, now)


def redeem(db: Database, session: Session, compaction: Compaction, covered: Covered, now: datetime) -> int:
    """Inside a transaction: the checkpoint that the compaction was begun with, its lease given back; a new one where it
    was begun without. Raises `StaleView` where another compaction has taken its place, or came before it."""
    if compaction.started is None:
        return checkpoints.begin(db, session, covered, compaction.trigger, now)
    row = db.row(
        "SELECT session_id, generation, state, EXISTS (SELECT 1 FROM checkpoints l WHERE l.session_id = c.session_id"
        f" AND l.checkpoint_num > c.checkpoint_num AND l.{COMMITTED}) AS late FROM checkpoints c WHERE id = ?",
        (compaction.started,),
    )
    if row is None or tuple(row) != (session.key, session.generation, "started", 0):
        raise StaleView
    release(db, session)
    return compaction.started


def abandon(db: Database, checkpoint_id: int, note: str) -> None:
    """Inside a transaction: nothing where the checkpoint is not a started one."""
    row = checkpoints.find(db, checkpoint_id)
    if row is not None and row["state"] == "started":
        checkpoints.fail(db, checkpoint_id, note)
        release(db, Session(row["session_id"], row["generation"], row["scope"]))


def settle(db: Database, own: Collection[int]) -> None:
    """Inside a transaction: what was started by others than this process is `failed`, and its leases are void."""
    for row in db.rows("SELECT id FROM checkpoints WHERE state = 'started'"):
        if row["id"] not in own:
            abandon(db, row["id"], _CUT_OFF)
    db.execute(
        "UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE lease_holder IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM checkpoints c WHERE c.session_id = sessions.key AND c.state = 'started')"
    )


def named(db: Database, session: Session, ids: tuple[int, int]) -> Covered:
    """The messages with these ids. Raises `CorruptStore` where the generation does not have them, in this order."""
    first, last = index.find(db, ids[0]), index.find(db, ids[1])
    for row in (first, last):
        if row is None or (row["session"], row["generation"]) != (session.key, session.generation):
            raise refused(session, f"it names messages {ids[0]} to {ids[1]}, which are not of this conversation")
    if first is None or last is None or first["seq"] > last["seq"]:
        raise refused(session, f"message {ids[0]} was not said before message {ids[1]}")
    return Covered(ids, (first["seq"], last["seq"]))


def _fail_started(db: Database, session: Session, note: str) -> None:
    for row in db.rows(
        "SELECT id FROM checkpoints INDEXED BY checkpoints_started WHERE state = 'started' AND session_id = ?",
        (session.key,),
    ):
        checkpoints.fail(db, row["id"], note)


def release(db: Database, session: Session) -> None:
    """Inside a transaction."""
    db.execute(
        "UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE key = ? AND generation = ?",
        (session.key, session.generation),
    )
