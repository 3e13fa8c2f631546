"""Checkpoints of compactions as rows, with the lease of a running compaction, and the progress of the journal.

Invariants:
- The live checkpoints of a generation have contiguous seq ranges, starting at its first record (I3).
- Numbers of a session increase in the order in which its compactions started and, for committed ones, in the order of
  their commits.
- Messages wait for extraction into the journal (F28) if they are after `sessions.extracted_seq` and covered by a live
  checkpoint or in an ended generation. This is computed and not stored per message, so no message can be skipped.
- One compaction per session at a time (F14), and none stays unfinished (F15): a `started` checkpoint is the lease until
  it expires. Another compaction may replace an expired one, whose commit is then refused. Start-up marks checkpoints
  left `started` by an earlier process as `failed`.

Writing functions are called inside a transaction.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from functools import cache
from sqlite3 import Row
from typing import Any, cast

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StaleView
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json
from assistant.store.script.index import find_message_row
from assistant.store.script.sessions import Session
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, view_parameters
from assistant.store.sqlite_errors import unreadable_rows_explained

BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""
IS_COMMITTED = "state IN ('live', 'masked', 'absorbed')"


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """The messages that a compaction covers."""

    from_message_id: int
    to_message_id: int
    from_seq: int
    to_seq: int


_RENAMED = {
    "session": "session_id",
    "num": "checkpoint_num",
    "summary": "summary_content",
    "cost_usd": "summary_cost_usd",
}
read_checkpoint_row = class_row(Checkpoint, **_RENAMED)


def find_checkpoint_row(db: Database, checkpoint_id: int) -> Row | None:
    return db.row("SELECT * FROM checkpoints WHERE id = ?", (checkpoint_id,))


def list_checkpoints(db: Database, session: str, state: str | None, after: int) -> list[Checkpoint]:
    """Return the checkpoints of a session numbered above `after`, in one state if one is given, oldest first. Raises
    `StoreError`."""
    where = "session_id = ? AND checkpoint_num > ? AND state = coalesce(?, state) ORDER BY checkpoint_num"
    return _to_checkpoints(db, db.rows(_in_one_row(where), (session, after, state)))


def list_live_checkpoint_rows(
    db: Database, row_key: tuple[str, int], columns: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return these columns, or those of a `Checkpoint`, of the live checkpoints of a generation (`Session.row_key`),
    oldest range first. Raises `StoreError`."""
    return _to_rows(db, db.rows(_in_one_row(_IS_LIVE, columns), row_key), columns)


class LiveCheckpoints:
    """The live checkpoints of a generation, read again only after checkpoints changed: a compaction asks several
    times."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._read: list[Row] = []
        self._checkpoints: list[Checkpoint] = []

    def read(self, row_key: tuple[str, int]) -> list[Checkpoint]:
        """Return them by their `Session.row_key`, oldest range first. Raises `StoreError`."""
        read = self._db.remembered.rows("checkpoints", _in_one_row(_IS_LIVE), row_key)
        if read is not self._read:
            self._checkpoints, self._read = _to_checkpoints(self._db, read), read
        return list(self._checkpoints)


_IS_LIVE = "session_id = ? AND generation = ? AND state = 'live' ORDER BY from_seq"


def _in_one_row(where: str, columns: Sequence[str] = ()) -> str:
    # With each row that is read, another thread may take the interpreter, and an import leaves thousands.
    values = ", ".join(columns or _all_columns())
    return f"SELECT json_group_array(json_array({values})) FROM (SELECT * FROM checkpoints WHERE {where})"


def _to_rows(db: Database, read: Sequence[Row], columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    names = columns or _all_columns()
    with unreadable_rows_explained(db.path):
        return [dict(zip(names, values, strict=True)) for values in json.loads(read[0][0])]


def _to_checkpoints(db: Database, read: Sequence[Row]) -> list[Checkpoint]:
    rows = _to_rows(db, read)
    with unreadable_rows_explained(db.path):
        return list(map(read_checkpoint_row, cast(list[Row], rows)))


@cache
def _all_columns() -> tuple[str, ...]:
    return tuple(_RENAMED.get(field.name, field.name) for field in fields(Checkpoint))


def require_adjacent_checkpoints(db: Database, session: Session, checkpoint_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return ids and ranges of adjacent live checkpoints, oldest first. Raises `CorruptStore` if they are not
    adjacent."""
    # An import leaves thousands.
    columns = ("id", "from_message_id", "to_message_id", "from_seq", "to_seq")
    rows = list_live_checkpoint_rows(db, session.row_key, columns) if checkpoint_ids else []
    wanted = {*checkpoint_ids}
    places = [place for place, row in enumerate(rows) if row["id"] in wanted]
    adjacent = not places or places == list(range(places[0], places[-1] + 1))
    if len(places) != len(checkpoint_ids) or not adjacent:
        raise compaction_refused(
            session, "the checkpoints that it takes over are not live ones that follow one another"
        )
    return [rows[place] for place in places]


def first_uncovered_seq(db: Database, session: Session) -> int:
    """Return the seq after the last live checkpoint of the generation, or its first seq."""
    last = db.value(
        "SELECT to_seq FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live'"
        " ORDER BY from_seq DESC LIMIT 1",
        session.row_key,
    )
    if last is not None:
        return int(last) + 1
    return db.value("SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", session.row_key) or 1


def count_uncovered(db: Database, session: Session, start: int, end: int = sys.maxsize) -> int:
    """Return the number of messages of the generation in seq range [start, end] that belong in a view."""
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
    """Insert a checkpoint in state `started` and return its id."""
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
    """Store the result of a compaction in its started checkpoint."""
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
    """Set columns, within a transaction."""
    db.update_rows("checkpoints", {"id": checkpoint_id}, **columns)


def set_checkpoint_state(db: Database, checkpoint_ids: Sequence[int], state: CheckpointState) -> None:
    """Within a transaction."""
    db.execute(
        "UPDATE checkpoints SET state = ? WHERE id IN (SELECT value FROM json_each(?))",
        (state, dump_json(list(checkpoint_ids))),
    )


def fail_checkpoint(db: Database, checkpoint_id: int, note: str) -> None:
    """Mark a checkpoint as failed if it is `started`."""
    db.update_rows("checkpoints", {"id": checkpoint_id, "state": "started"}, state="failed", note=note)


def read_checkpoint(db: Database, checkpoint_id: int) -> Checkpoint:
    """Raises `CorruptStore` if there is no such checkpoint."""
    row = find_checkpoint_row(db, checkpoint_id)
    if row is None:
        raise CorruptStore
    return read_checkpoint_row(row)


def compaction_refused(session: Session, why: str) -> CorruptStore:
    """Return the error to raise."""
    return CorruptStore(
        f"A compaction of {session.key!r} was refused: {why}. Nothing was changed; run `assistant verify`."
    )


_LEASE_RAN_OUT = "its lease ran out, and another compaction was begun"
_PROCESS_ENDED = "cut off: the process that had begun it ended"


def begin_lease(
    db: Database, session: Session, trigger: str, ids: tuple[int, int], until: datetime, now: datetime
) -> int | None:
    """Insert a started checkpoint with a lease until `until`, and return its id; None if another lease has not
    expired."""
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
    """Return the checkpoint a compaction was started with, or a new one if it was started without. Raises `StaleView`
    if another compaction replaced it or was committed first."""
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
    """Mark checkpoints started by other processes as `failed`."""
    for row in db.rows("SELECT id FROM checkpoints WHERE state = 'started'"):
        if row["id"] not in own_checkpoint_ids:
            fail_checkpoint(db, row["id"], _PROCESS_ENDED)


def range_of_messages(db: Database, session: Session, ids: tuple[int, int]) -> CoveredRange:
    """Return the range of these messages. Raises `CorruptStore` if the generation does not have them in this order."""
    places = [find_message_row(db, message_id) for message_id in ids]
    rows = [row for row in places if row is not None and (row["session"], row["generation"]) == session.row_key]
    if len(rows) < len(places):
        raise compaction_refused(session, f"it names messages {ids[0]} to {ids[1]}, which are not of this conversation")
    first, last = rows
    if first["seq"] > last["seq"]:
        raise compaction_refused(session, f"message {ids[0]} was not said before message {ids[1]}")
    return CoveredRange(*ids, first["seq"], last["seq"])


def check_tail_coverage(db: Database, session: Session) -> None:
    """Check that each message after the last checkpoint is in the view exactly once, and otherwise only copies are."""
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
    """Record that the journal has read the generation up to and including `seq`."""
    db.execute(
        "UPDATE sessions SET extracted_seq = max(extracted_seq, min(?, coalesce((SELECT m.seq FROM messages m"
        " WHERE m.session = sessions.key AND m.generation = sessions.generation ORDER BY m.seq DESC LIMIT 1), 0)))"
        " WHERE key = ? AND generation = ?",
        (seq, session, generation),
    )
