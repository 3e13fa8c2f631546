"""Checkpoints as rows, one a compaction from the moment it starts, the lease under which it runs, and what left a view
before the journal had read it (F28).

What always holds:
- The live checkpoints of a generation have contiguous ranges of seq, from its first record on (I3).
- Numbers of a session grow in the order in which its compactions were begun, and, for those that were committed, in
  the order of their commits.
- Every message that a live checkpoint covers was read by the journal, or is in a waiting range. The ranges of a
  generation that wait follow one another.
- One compaction of a session at a time (F14), and none stays half done (F15): the lease and its `started`
  checkpoint come and go together, in one transaction. Another compaction may take a lease that ran out; its
  checkpoint replaces the earlier one, whose compaction is then refused. What an earlier process left started is
  `failed` after a start.

Writing functions are called inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Row
from typing import Any

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.errors import CorruptStore, StaleView
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json
from assistant.store.script.index import IS_READABLE, find_message_row
from assistant.store.script.sessions import Session, update_session
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, view_parameters

BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""
IS_COMMITTED = "state IN ('live', 'masked', 'absorbed')"

_LAST_SEQ = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """The messages that a compaction is about."""

    ids: tuple[int, int]  # of the first and the last
    seqs: tuple[int, int]

    @property
    def columns(self) -> dict[str, int]:
        (first_id, last_id), (first_seq, last_seq) = self.ids, self.seqs
        return {
            "from_message_id": first_id,
            "to_message_id": last_id,
            "from_seq": first_seq,
            "to_seq": last_seq,
        }


_read_checkpoint = class_row(
    Checkpoint, session="session_id", num="checkpoint_num", summary="summary_content", cost_usd="summary_cost_usd"
)


def list_checkpoints(db: Database, session: str) -> list[Checkpoint]:
    """All checkpoints of a session, oldest first."""
    sql = "SELECT * FROM checkpoints WHERE session_id = ? ORDER BY checkpoint_num"
    return db.read_all(_read_checkpoint, sql, (session,))


def list_unjournaled_checkpoints(db: Database, limit: int) -> list[Checkpoint]:
    """Those that were carried out and whose entries the journal may lack, oldest first."""
    sql = "SELECT * FROM checkpoints WHERE journaled = 0 AND state IN ('live', 'absorbed') ORDER BY id LIMIT ?"
    return db.read_all(_read_checkpoint, sql, (limit,))


def find_checkpoint_row(db: Database, checkpoint_id: int) -> Row | None:
    return db.row("SELECT * FROM checkpoints WHERE id = ?", (checkpoint_id,))


def list_live_checkpoint_rows(db: Database, session: Session) -> list[Row]:
    """Those that cover their ranges, oldest range first."""
    return db.rows(
        "SELECT * FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live' ORDER BY from_seq",
        session.row_key,
    )


def require_adjacent_checkpoints(db: Database, session: Session, checkpoint_ids: Sequence[int]) -> list[Row]:
    """Live checkpoints that follow one another, oldest first. Raises `CorruptStore` where they do not."""
    rows = list_live_checkpoint_rows(db, session)
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


def count_uncovered(db: Database, session: Session, start: int, end: int | None = None) -> int:
    """How many messages of the generation from seq `start` to `end` belong in a view."""
    count = db.value(
        "SELECT count(*) FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.seq <= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW}",
        (session.key, start, _LAST_SEQ if end is None else end, session.generation),
    )
    return int(count)


def insert_checkpoint(db: Database, session: Session, covered: CoveredRange, trigger: str, now: datetime) -> int:
    """A checkpoint in state `started`: its id."""
    last = db.value("SELECT max(checkpoint_num) FROM checkpoints WHERE session_id = ?", (session.key,))
    return db.insert_row(
        "checkpoints",
        session_id=session.key,
        checkpoint_num=(last or 0) + 1,
        generation=session.generation,
        scope=session.scope,
        **covered.columns,
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
    )


def finish_checkpoint(
    db: Database,
    session: Session,
    checkpoint_id: int,
    compaction: Compaction,
    covered: CoveredRange,
    state: CheckpointState,
    now: datetime,
) -> None:
    """What a started checkpoint says once its compaction is carried out. There is no other way to a live checkpoint,
    so that whatever leaves a view has been read for the journal, or waits to be (F28)."""
    ratio = compaction.compressed_tokens / compaction.original_tokens if compaction.original_tokens else 1.0
    update_checkpoint(
        db,
        checkpoint_id,
        **covered.columns,
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
    if state == "live":
        queue_extraction(db, session, covered.seqs, compaction.trigger, now)


def update_checkpoint(db: Database, checkpoint_id: int, **columns: Any) -> None:
    db.update_rows("checkpoints", {"id": checkpoint_id}, **columns)


def set_checkpoint_state(db: Database, checkpoint_ids: Sequence[int], state: CheckpointState) -> None:
    for checkpoint_id in checkpoint_ids:
        update_checkpoint(db, checkpoint_id, state=state)


def fail_checkpoint(db: Database, checkpoint_id: int, note: str) -> None:
    db.update_rows("checkpoints", {"id": checkpoint_id, "state": "started"}, state="failed", note=note)


def read_checkpoint(db: Database, checkpoint_id: int) -> Checkpoint:
    row = find_checkpoint_row(db, checkpoint_id)
    if row is None:
        raise CorruptStore
    return _read_checkpoint(row)


def compaction_refused(session: Session, why: str) -> CorruptStore:
    return CorruptStore(
        f"A compaction of {session.key!r} was refused: {why}. Nothing was changed; run `assistant verify`."
    )


_LEASE_RAN_OUT = "its lease ran out, and another compaction was begun"
_PROCESS_ENDED = "cut off: the process that had begun it ended"


def begin_lease(
    db: Database, session: Session, trigger: str, ids: tuple[int, int], holder: str, until: datetime, now: datetime
) -> int | None:
    """Inside a transaction: the lease until `until` and a started checkpoint, whose id is returned; None where the
    session has a lease that has not run out."""
    lease = db.value(
        "SELECT 1 FROM sessions WHERE key = ? AND generation = ? AND lease_until > ?", (*session.row_key, now)
    )
    if lease is not None:
        return None
    covered = range_of_messages(db, session, ids)
    for row in db.rows(
        "SELECT id FROM checkpoints INDEXED BY checkpoints_started WHERE state = 'started' AND session_id = ?",
        (session.key,),
    ):
        fail_checkpoint(db, row["id"], _LEASE_RAN_OUT)
    update_session(db, session, lease_holder=holder, lease_until=until)
    return insert_checkpoint(db, session, covered, trigger, now)


def redeem_lease(db: Database, session: Session, compaction: Compaction, covered: CoveredRange, now: datetime) -> int:
    """Inside a transaction: the checkpoint that the compaction was begun with, its lease given back; a new one where it
    was begun without. Raises `StaleView` where another compaction has taken its place, or came before it."""
    if compaction.started_id is None:
        return insert_checkpoint(db, session, covered, compaction.trigger, now)
    row = db.row(
        "SELECT session_id, generation, state, EXISTS (SELECT 1 FROM checkpoints l WHERE l.session_id = c.session_id"
        f" AND l.checkpoint_num > c.checkpoint_num AND l.{IS_COMMITTED}) AS late FROM checkpoints c WHERE id = ?",
        (compaction.started_id,),
    )
    if row is None or tuple(row) != (*session.row_key, "started", 0):
        raise StaleView
    release_lease(db, session)
    return compaction.started_id


def abandon_lease(db: Database, checkpoint_id: int, note: str) -> None:
    """Inside a transaction: nothing where the checkpoint is not a started one."""
    row = find_checkpoint_row(db, checkpoint_id)
    if row is not None and row["state"] == "started":
        fail_checkpoint(db, checkpoint_id, note)
        release_lease(db, Session(row["session_id"], row["generation"], row["scope"]))


def fail_interrupted_compactions(db: Database, own_checkpoint_ids: Collection[int]) -> None:
    """Inside a transaction: what was started by others than this process is `failed`, and its leases are void."""
    for row in db.rows("SELECT id FROM checkpoints WHERE state = 'started'"):
        if row["id"] not in own_checkpoint_ids:
            abandon_lease(db, row["id"], _PROCESS_ENDED)
    db.execute(
        "UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE lease_holder IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM checkpoints c WHERE c.session_id = sessions.key AND c.state = 'started')"
    )


def range_of_messages(db: Database, session: Session, ids: tuple[int, int]) -> CoveredRange:
    """The messages with these ids. Raises `CorruptStore` where the generation does not have them, in this order."""
    first, last = find_message_row(db, ids[0]), find_message_row(db, ids[1])
    for row in (first, last):
        if row is None or (row["session"], row["generation"]) != session.row_key:
            raise compaction_refused(
                session, f"it names messages {ids[0]} to {ids[1]}, which are not of this conversation"
            )
    if first is None or last is None or first["seq"] > last["seq"]:
        raise compaction_refused(session, f"message {ids[0]} was not said before message {ids[1]}")
    return CoveredRange(ids, (first["seq"], last["seq"]))


def release_lease(db: Database, session: Session) -> None:
    """Inside a transaction."""
    update_session(db, session, lease_holder=None, lease_until=None)


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


# ---------------------------------------------------------------------------------- ranges that wait for the journal


def queue_extraction(db: Database, session: Session, seqs: tuple[int, int], reason: str, now: datetime) -> None:
    """Inside a transaction: have what the journal has not read of these seqs wait to be read."""
    last = db.value(
        "SELECT max(s.extracted_seq, coalesce((SELECT max(q.to_seq) FROM extraction_queue q WHERE q.session = s.key"
        " AND q.generation = s.generation AND q.state = 'waiting'), 0)) FROM sessions s"
        " WHERE s.key = ? AND s.generation = ?",
        session.row_key,
    )
    start = max(seqs[0], (last or 0) + 1)
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
        f" AND extraction_queue.to_seq AND {IS_READABLE})",
        (now, session, generation),
    )


def find_unqueued_ranges(db: Database, session: Session) -> list[tuple[int, int]]:
    """Seqs, first and last of each stretch, that a live checkpoint covers, and that were neither read nor wait."""
    rows = db.rows(
        "SELECT min(m.seq), max(m.seq) FROM checkpoints c JOIN sessions s ON s.key = c.session_id"
        " AND s.generation = c.generation JOIN messages m ON m.session = c.session_id"
        " AND m.seq BETWEEN max(c.from_seq, s.extracted_seq + 1) AND c.to_seq"
        f" WHERE c.session_id = ? AND c.generation = ? AND c.state = 'live' AND {IS_READABLE}"
        " AND NOT EXISTS (SELECT 1 FROM extraction_queue q WHERE q.session = c.session_id"
        " AND q.generation = c.generation AND q.state = 'waiting' AND m.seq BETWEEN q.from_seq AND q.to_seq)"
        " GROUP BY c.id ORDER BY 1",
        session.row_key,
    )
    return [(row[0], row[1]) for row in rows]


def queue_unqueued_ranges(db: Database, session: Session, now: datetime) -> None:
    """Inside a transaction: queue what no one would read, as a repair does."""
    for seqs in find_unqueued_ranges(db, session):
        _insert_range(db, session, seqs, "repair", now)


def _insert_range(db: Database, session: Session, seqs: tuple[int, int], reason: str, now: datetime) -> None:
    db.insert_row(
        "extraction_queue",
        **session.columns,
        from_seq=seqs[0],
        to_seq=seqs[1],
        reason=reason,
        state="waiting",
        created_at=now,
    )
