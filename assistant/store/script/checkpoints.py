"""Checkpoints as rows, one a compaction from the moment it starts, with the lease under which it runs; and how far the
journal has read.

What always holds:
- The live checkpoints of a generation have contiguous ranges of seq, from its first record on (I3).
- Numbers of a session grow in the order in which its compactions were begun, and, for those that were committed, in
  the order of their commits.
- What the journal has not read waits for it (F28): the messages after `sessions.extracted_seq` that a live checkpoint
  covers, or that were said in an ended generation. Nothing else is noted of them, so that none can be passed over.
- One compaction of a session at a time (F14), and none stays half done (F15): a `started` checkpoint is the lease,
  until its time. Another compaction may replace one whose time is over, and the earlier one is then refused. What an
  earlier process left started is `failed` after a start.

Writing functions are called inside a transaction.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from sqlite3 import Row
from typing import Any

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StaleView
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json
from assistant.store.script.index import find_message_row
from assistant.store.script.sessions import Session
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, view_parameters

BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""
IS_COMMITTED = "state IN ('live', 'masked', 'absorbed')"


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """The messages that a compaction is about."""

    from_message_id: int
    to_message_id: int
    from_seq: int
    to_seq: int


read_checkpoint_row = class_row(
    Checkpoint, session="session_id", num="checkpoint_num", summary="summary_content", cost_usd="summary_cost_usd"
)


def find_checkpoint_row(db: Database, checkpoint_id: int) -> Row | None:
    return db.row("SELECT * FROM checkpoints WHERE id = ?", (checkpoint_id,))


def list_live_checkpoint_rows(db: Database, row_key: tuple[str, int]) -> list[Row]:
    """Those of a generation (`Session.row_key`) that cover their ranges, oldest range first."""
    return db.rows(
        "SELECT * FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live' ORDER BY from_seq",
        row_key,
    )


def require_adjacent_checkpoints(db: Database, session: Session, checkpoint_ids: Sequence[int]) -> list[Row]:
    """Live checkpoints that follow one another, oldest first. Raises `CorruptStore` where they do not."""
    rows = list_live_checkpoint_rows(db, session.row_key)
    places = [place for place, row in enumerate(rows) if row["id"] in checkpoint_ids]
    adjacent = not places or places == list(range(places[0], places[-1] + 1))
    if len(places) != len(checkpoint_ids) or not adjacent:
        raise compaction_refused(
            session, "the checkpoints that it takes over are not live ones that follow one another"
        )
    return [rows[place] for place in places]


def first_uncovered_seq(db: Database, session: Session) -> int:
    """The seq after the last live checkpoint of the generation, or its first seq."""
    last = db.value(
        "SELECT to_seq FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live'"
        " ORDER BY from_seq DESC LIMIT 1",
        session.row_key,
    )
    if last is not None:
        return int(last) + 1
    return db.value("SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", session.row_key) or 1


def count_uncovered(db: Database, session: Session, start: int, end: int = sys.maxsize) -> int:
    """How many messages of the generation from seq `start` to `end` belong in a view."""
    count = db.value(
        "SELECT count(*) FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.seq <= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW}",
        (session.key, start, end, session.generation),
    )
    return int(count)


def insert_checkpoint(
    db: Database,
    session: Session,
    covered: CoveredRange,
    trigger: str,
    now: datetime,
    lease_until: datetime | None = None,
) -> int:
    """A checkpoint in state `started`: its id."""
    last = db.value("SELECT max(checkpoint_num) FROM checkpoints WHERE session_id = ?", (session.key,))
    return db.insert_row(
        "checkpoints",
        session_id=session.key,
        checkpoint_num=(last or 0) + 1,
        generation=session.generation,
        scope=session.scope,
        **asdict(covered),
        messages_compressed=0,
        summary_content="",
        key_facts="{}",
        original_tokens=0,
        compressed_tokens=0,
        compression_ratio=0.0,
        summary_cost_usd=0.0,
        created_at=now,
        trigger=trigger,
        tier="",
        state="started",
        view_hash="",
        lease_until=lease_until,
    )


def finish_checkpoint(
    db: Database,
    checkpoint_id: int,
    compaction: Compaction,
    covered: CoveredRange,
    state: CheckpointState,
    now: datetime,
) -> None:
    """What a started checkpoint says once its compaction is carried out."""
    ratio = compaction.compressed_tokens / compaction.original_tokens if compaction.original_tokens else 1.0
    update_checkpoint(
        db,
        checkpoint_id,
        **asdict(covered),
        messages_compressed=compaction.messages_compressed,
        summary_content=compaction.summary,
        key_facts=dump_json(dict(compaction.key_facts)),
        original_tokens=compaction.original_tokens,
        compressed_tokens=compaction.compressed_tokens,
        compression_ratio=ratio,
        summary_cost_usd=compaction.cost_usd,
        created_at=now,
        trigger=compaction.trigger,
        tier=compaction.tier,
        state=state,
        depth=compaction.depth,
        model=compaction.model,
        attempts=compaction.attempts,
        absorbs=dump_json(list(compaction.absorbed_ids)),
    )
    set_checkpoint_state(db, compaction.absorbed_ids, "absorbed")


def update_checkpoint(db: Database, checkpoint_id: int, **columns: Any) -> None:
    db.update_rows("checkpoints", {"id": checkpoint_id}, **columns)


def set_checkpoint_state(db: Database, checkpoint_ids: Sequence[int], state: CheckpointState) -> None:
    for checkpoint_id in checkpoint_ids:
        update_checkpoint(db, checkpoint_id, state=state)


def fail_checkpoint(db: Database, checkpoint_id: int, note: str) -> None:
    """Nothing where the checkpoint is not a started one."""
    db.update_rows("checkpoints", {"id": checkpoint_id, "state": "started"}, state="failed", note=note)


def read_checkpoint(db: Database, checkpoint_id: int) -> Checkpoint:
    row = find_checkpoint_row(db, checkpoint_id)
    if row is None:
        raise CorruptStore
    return read_checkpoint_row(row)


def compaction_refused(session: Session, why: str) -> CorruptStore:
    return CorruptStore(
        f"A compaction of {session.key!r} was refused: {why}. Nothing was changed; run `assistant verify`."
    )


_LEASE_RAN_OUT = "its lease ran out, and another compaction was begun"
_PROCESS_ENDED = "cut off: the process that had begun it ended"


def begin_lease(
    db: Database, session: Session, trigger: str, ids: tuple[int, int], until: datetime, now: datetime
) -> int | None:
    """A started checkpoint with the lease until `until`: its id; None where another one has a lease that has not run
    out."""
    started = db.rows(
        "SELECT id, generation = ? AND lease_until > ? AS has_lease FROM checkpoints INDEXED BY checkpoints_started"
        " WHERE state = 'started' AND session_id = ?",
        (session.generation, now, session.key),
    )
    if any(row["has_lease"] for row in started):
        return None
    covered = range_of_messages(db, session, ids)
    for row in started:
        fail_checkpoint(db, row["id"], _LEASE_RAN_OUT)
    return insert_checkpoint(db, session, covered, trigger, now, until)


def redeem_lease(db: Database, session: Session, compaction: Compaction, covered: CoveredRange, now: datetime) -> int:
    """The checkpoint that the compaction was begun with; a new one where it was begun without. Raises `StaleView` where
    another compaction has taken its place, or came before it."""
    if compaction.started_id is None:
        return insert_checkpoint(db, session, covered, compaction.trigger, now)
    row = db.row(
        "SELECT session_id, generation, state, EXISTS (SELECT 1 FROM checkpoints l WHERE l.session_id = c.session_id"
        f" AND l.checkpoint_num > c.checkpoint_num AND l.{IS_COMMITTED}) AS late FROM checkpoints c WHERE id = ?",
        (compaction.started_id,),
    )
    if row is None or tuple(row) != (*session.row_key, "started", 0):
        raise StaleView
    return compaction.started_id


def fail_interrupted_compactions(db: Database, own_checkpoint_ids: Collection[int]) -> None:
    """What was started by others than this process is `failed`."""
    for row in db.rows("SELECT id FROM checkpoints WHERE state = 'started'"):
        if row["id"] not in own_checkpoint_ids:
            fail_checkpoint(db, row["id"], _PROCESS_ENDED)


def range_of_messages(db: Database, session: Session, ids: tuple[int, int]) -> CoveredRange:
    """The messages with these ids. Raises `CorruptStore` where the generation does not have them, in this order."""
    places = [find_message_row(db, message_id) for message_id in ids]
    rows = [row for row in places if row is not None and (row["session"], row["generation"]) == session.row_key]
    if len(rows) < len(places):
        raise compaction_refused(session, f"it names messages {ids[0]} to {ids[1]}, which are not of this conversation")
    first, last = rows
    if first["seq"] > last["seq"]:
        raise compaction_refused(session, f"message {ids[0]} was not said before message {ids[1]}")
    return CoveredRange(*ids, first["seq"], last["seq"])


def check_tail_coverage(db: Database, session: Session) -> None:
    """What follows the last checkpoint is in the view exactly once, and nothing else is but copies."""
    start = first_uncovered_seq(db, session)
    row = db.row(
        "SELECT count(*), count(DISTINCT m.id) FILTER (WHERE m.seq >= ?) FROM"
        f" (SELECT h.message_id{FROM_VIEW} AND {IS_MESSAGE_ROW}) AS shown JOIN messages m ON m.id = shown.message_id",
        (start, *view_parameters(session)),
    )
    expected = count_uncovered(db, session, start)
    if row is None or row[0] != expected or row[1] != expected:
        raise compaction_refused(session, f"the view would not have each message from seq {start} on exactly once")


def mark_extracted(db: Database, session: str, generation: int, seq: int) -> None:
    """The journal has read the generation up to and including `seq`, as far as there is one."""
    db.execute(
        "UPDATE sessions SET extracted_seq = max(extracted_seq, min(?, coalesce((SELECT m.seq FROM messages m"
        " WHERE m.session = sessions.key AND m.generation = sessions.generation ORDER BY m.seq DESC LIMIT 1), 0)))"
        " WHERE key = ? AND generation = ?",
        (seq, session, generation),
    )
