"""A compaction committed: a new prefix for a view, shorter forms of what stays, and the checkpoint of it.

What always holds (I3): what a checkpoint covers follows the one before it without gap or overlap; what follows the
last one stands in the view exactly once, or was hidden by an undo. What a compaction keeps verbatim are copies marked
`carried_from`, outside of coverage. All of it is checked inside the transaction that commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.store import checkpoints, earlier, index, lease, session_rows
from assistant.store.checkpoints import Covered, refused, uncovered
from assistant.store.database import Database
from assistant.store.session_rows import Session, total
from assistant.store.view import LIVE_ROW, OF_VIEW, Counted, Views, place


@dataclass(frozen=True, slots=True)
class _Cut:
    """What leaves a view: everything up to `position`, of which `messages` are the messages themselves."""

    covered: Covered
    position: int
    messages: int


def commit(
    db: Database,
    views: Views,
    compaction: Compaction,
    prefix: Sequence[Counted],
    shorten: Sequence[Counted],
    now: datetime,
    *,
    undo_kept: int,
) -> Checkpoint:
    """Inside a transaction. With `undo_kept` 0 what is replaced is not kept. Raises `StaleView`, `CorruptStore`."""
    session = session_rows.compare(db, compaction.session, compaction.prefix_rev)
    cut = _cut(db, views, session, compaction) if covers(compaction) else None
    covered = _named(db, session, compaction) if cut is None else cut.covered
    checkpoint_id = lease.redeem(db, session, compaction, covered, now)
    floor = session_rows.floor(db, session)
    position = floor if cut is None else cut.position
    session_rows.set_floor(db, session, position)
    earlier.keep_forms(db, session, checkpoint_id, [row.message.id or 0 for row in shorten])
    gone = earlier.replaced(db, session, checkpoint_id, floor, position)
    if gone.messages != (0 if cut is None else cut.messages):
        raise refused(session, f"the view lacks messages between seq {covered.seqs[0]} and {covered.seqs[1]}")
    state: CheckpointState = "masked" if cut is None else "live"
    checkpoints.finish(db, session, checkpoint_id, compaction, covered, state, now)
    checkpoints.keep(db, checkpoint_id, gone.fingerprint, floor)
    change = views.rewrite(session, shorten) - gone.shortened - gone.size
    if cut is not None:
        change += total(views.insert(session, position + 1, _said(db, session, prefix, now)))
        check_rest(db, session)
    session_rows.revise(db, session, change)
    earlier.keep_newest(db, session, undo_kept)
    earlier.take_out(db, views, session, everything=undo_kept == 0)
    return checkpoints.read(db, checkpoint_id)


def covers(compaction: Compaction) -> bool:
    """Whether messages leave the view, or are only shortened."""
    return bool(compaction.prefix) or not compaction.shorten


def _cut(db: Database, views: Views, session: Session, compaction: Compaction) -> _Cut:
    """Where the compaction cuts the view. Raises `CorruptStore` where that would break coverage."""
    absorbed = checkpoints.run_of(db, session, compaction.absorbs)
    if absorbed and compaction.to_message_id == absorbed[-1]["to_message_id"]:
        return _merged(views, session, compaction, absorbed)
    start = checkpoints.first_uncovered(db, session)
    first = db.row(f"SELECT h.message_id{OF_VIEW} AND {LIVE_ROW} ORDER BY h.position LIMIT 1", place(session))
    if first is None or first["message_id"] != compaction.from_message_id:
        raise refused(session, f"it does not start at message {compaction.from_message_id}")
    last = index.find(db, compaction.to_message_id)
    position = views.position_of(session, compaction.to_message_id)
    if position is None or last is None:
        raise refused(session, f"message {compaction.to_message_id} is not in the view")
    messages = uncovered(db, session, start, last["seq"])
    if not absorbed:
        covered = Covered((compaction.from_message_id, compaction.to_message_id), (start, last["seq"]))
    elif absorbed[-1]["to_seq"] == start - 1:
        ids = (absorbed[0]["from_message_id"], compaction.to_message_id)
        covered = Covered(ids, (absorbed[0]["from_seq"], last["seq"]))
    else:
        raise refused(session, "the checkpoints that it takes over are not those directly before it")
    return _Cut(covered, position, messages)


def _merged(views: Views, session: Session, compaction: Compaction, absorbed: Sequence[Row]) -> _Cut:
    """Checkpoints become one, and nothing but the prefix is replaced."""
    if compaction.from_message_id != absorbed[0]["from_message_id"]:
        raise refused(session, f"it does not start at message {compaction.from_message_id}")
    ids = (compaction.from_message_id, compaction.to_message_id)
    covered = Covered(ids, (absorbed[0]["from_seq"], absorbed[-1]["to_seq"]))
    return _Cut(covered, views.prefix_end(session), 0)


def _named(db: Database, session: Session, compaction: Compaction) -> Covered:
    """The messages that a compaction without a prefix names; it covers nothing."""
    return lease.named(db, session, (compaction.from_message_id, compaction.to_message_id))


def _said(db: Database, session: Session, prefix: Sequence[Counted], now: datetime) -> list[Counted]:
    """The new prefix, dated; its summary names the live checkpoints."""
    live = [row["id"] for row in checkpoints.live(db, session)]
    said = []
    for row in prefix:
        message = row.message if row.message.ts is not None else replace(row.message, ts=now)
        if message.is_summary:
            message = replace(message, metadata={**message.metadata, "checkpoints": live})
        said.append(replace(row, message=message))
    return said


def check_rest(db: Database, session: Session) -> None:
    """What follows the last checkpoint stands in the view exactly once, and nothing else does but copies."""
    start = checkpoints.first_uncovered(db, session)
    row = db.row(
        f"SELECT count(*), count(DISTINCT m.id) FILTER (WHERE m.seq >= ?) FROM"
        f" (SELECT h.message_id{OF_VIEW} AND {LIVE_ROW}) AS shown JOIN messages m ON m.id = shown.message_id",
        (start, *place(session)),
    )
    expected = uncovered(db, session, start)
    if row is None or row[0] != expected or row[1] != expected:
        raise refused(session, f"the view would not hold the messages from seq {start} on once each")
