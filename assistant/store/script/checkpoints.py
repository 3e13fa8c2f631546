"""Checkpoints as rows, one a compaction from the moment it starts, and the lease under which it runs.

What always holds:
- The live checkpoints of a generation have contiguous ranges of seq, from its first record on (I3).
- Numbers of a session grow in the order in which its compactions were begun, and, for those that were committed, in
  the order of their commits.
- One compaction of a session at a time (F14), and none stays half done (F15): the lease and its `started`
  checkpoint come and go together, in one transaction. Another compaction may take a lease that ran out; its
  checkpoint replaces the earlier one, whose compaction is then refused. What an earlier process left started is
  `failed` after a start.

Writing functions are called inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.errors import CorruptStore, StaleView
from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, format_time, parse_time
from assistant.store.script import sessions as session_rows
from assistant.store.script import unread as extraction
from assistant.store.script.index import find_message_row
from assistant.store.script.sessions import Session
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, view_parameters

BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""
IS_COMMITTED = "state IN ('live', 'masked', 'absorbed')"

_LAST_SEQ = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """What a compaction is about: its first and last message, by id and by seq."""

    ids: tuple[int, int]
    seqs: tuple[int, int]


def list_checkpoints(db: Database, session: str) -> list[Checkpoint]:
    """All checkpoints of a session, oldest first."""
    rows = db.rows("SELECT * FROM checkpoints WHERE session_id = ? ORDER BY checkpoint_num", (session,))
    return [checkpoint_of_row(row) for row in rows]


def list_unjournaled_checkpoints(db: Database, limit: int) -> list[Checkpoint]:
    """Those that were carried out and whose entries the journal may lack, oldest first."""
    rows = db.rows(
        "SELECT * FROM checkpoints WHERE journaled = 0 AND state IN ('live', 'absorbed') ORDER BY id LIMIT ?", (limit,)
    )
    return [checkpoint_of_row(row) for row in rows]


def find_checkpoint_row(db: Database, checkpoint_id: int) -> Row | None:
    return db.row("SELECT * FROM checkpoints WHERE id = ?", (checkpoint_id,))


def list_live_checkpoint_rows(db: Database, session: Session) -> list[Row]:
    """Those that cover their ranges, oldest range first."""
    return db.rows(
        "SELECT * FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live' ORDER BY from_seq",
        (session.key, session.generation),
    )


def require_adjacent_checkpoints(db: Database, session: Session, checkpoint_ids: Sequence[int]) -> list[Row]:
    """Live checkpoints that follow one another, oldest first. Raises `CorruptStore` where they do not."""
    rows = list_live_checkpoint_rows(db, session)
    found = [number for number, row in enumerate(rows) if row["id"] in checkpoint_ids]
    in_a_row = not found or found == list(range(found[0], found[-1] + 1))
    if len(found) != len(checkpoint_ids) or not in_a_row:
        raise compaction_refused(
            session, "the checkpoints that it takes over are not live ones that follow one another"
        )
    return [rows[number] for number in found]


def first_uncovered_seq(db: Database, session: Session) -> int:
    """The seq after the last live checkpoint of the generation, or its first seq."""
    row = db.row(
        "SELECT to_seq FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live'"
        " ORDER BY from_seq DESC LIMIT 1",
        (session.key, session.generation),
    )
    if row is not None:
        return int(row["to_seq"]) + 1
    row = db.row("SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", (session.key, session.generation))
    return 1 if row is None else int(row["from_seq"])


def count_uncovered(db: Database, session: Session, start: int, end: int | None = None) -> int:
    """How many messages of the generation from seq `start` to `end` belong in a view."""
    row = db.row(
        "SELECT count(*) FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.seq <= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW}",
        (session.key, start, _LAST_SEQ if end is None else end, session.generation),
    )
    return 0 if row is None else int(row[0])


def insert_checkpoint(db: Database, session: Session, covered: CoveredRange, trigger: str, now: datetime) -> int:
    """A checkpoint in state `started`: its id."""
    last = db.row("SELECT max(checkpoint_num) FROM checkpoints WHERE session_id = ?", (session.key,))
    return db.insert(
        "INSERT INTO checkpoints (session_id, checkpoint_num, generation, scope, from_message_id, to_message_id,"
        " from_seq, to_seq, messages_compressed, summary_content, key_facts, original_tokens, compressed_tokens,"
        " compression_ratio, summary_cost_usd, created_at, trigger, tier, state, view_hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, '', '{}', 0, 0, 0, 0, ?, ?, '', 'started', '')",
        (
            session.key,
            (last[0] if last is not None and last[0] else 0) + 1,
            session.generation,
            session.scope,
            *covered.ids,
            *covered.seqs,
            format_time(now),
            clean_text(trigger),
        ),
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
    db.execute(
        "UPDATE checkpoints SET from_message_id = ?, to_message_id = ?, from_seq = ?, to_seq = ?,"
        " messages_compressed = ?, summary_content = ?, key_facts = ?, original_tokens = ?, compressed_tokens = ?,"
        " compression_ratio = ?, summary_cost_usd = ?, created_at = ?, trigger = ?, tier = ?, state = ?, depth = ?,"
        " model = ?, attempts = ?, absorbs = ? WHERE id = ?",
        (
            *covered.ids,
            *covered.seqs,
            compaction.messages_compressed,
            clean_text(compaction.summary),
            dump_json(dict(compaction.key_facts)),
            compaction.original_tokens,
            compaction.compressed_tokens,
            ratio,
            compaction.cost_usd,
            format_time(now),
            clean_text(compaction.trigger),
            clean_text(compaction.tier),
            state,
            compaction.depth,
            clean_text(compaction.model),
            compaction.attempts,
            dump_json(list(compaction.absorbed_ids)),
            checkpoint_id,
        ),
    )
    set_checkpoint_state(db, compaction.absorbed_ids, "absorbed")
    if state == "live":
        extraction.queue_extraction(db, session, covered.seqs, compaction.trigger, now)


def save_replaced(db: Database, checkpoint_id: int, fingerprint: str, kept_from: int | None) -> None:
    """Note what the checkpoint replaced, and the floor as it was where that can be put back."""
    db.execute(
        "UPDATE checkpoints SET view_hash = ?, kept_from = ? WHERE id = ?", (fingerprint, kept_from, checkpoint_id)
    )


def set_checkpoint_state(db: Database, checkpoint_ids: Sequence[int], state: CheckpointState) -> None:
    for checkpoint_id in checkpoint_ids:
        db.execute("UPDATE checkpoints SET state = ? WHERE id = ?", (state, checkpoint_id))


def fail_checkpoint(db: Database, checkpoint_id: int, note: str) -> None:
    db.execute(
        "UPDATE checkpoints SET state = 'failed', note = ? WHERE id = ? AND state = 'started'",
        (clean_text(note), checkpoint_id),
    )


def read_checkpoint(db: Database, checkpoint_id: int) -> Checkpoint:
    row = find_checkpoint_row(db, checkpoint_id)
    if row is None:
        raise CorruptStore
    return checkpoint_of_row(row)


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
    row = session_rows.find_session_row(db, session.key)
    if row is not None and row["lease_until"] is not None and row["lease_until"] > format_time(now):
        return None
    covered = range_of_messages(db, session, ids)
    _fail_started(db, session, _LEASE_RAN_OUT)
    db.execute(
        "UPDATE sessions SET lease_holder = ?, lease_until = ? WHERE key = ? AND generation = ?",
        (clean_text(holder), format_time(until), session.key, session.generation),
    )
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
    if row is None or tuple(row) != (session.key, session.generation, "started", 0):
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
        if row is None or (row["session"], row["generation"]) != (session.key, session.generation):
            raise compaction_refused(
                session, f"it names messages {ids[0]} to {ids[1]}, which are not of this conversation"
            )
    if first is None or last is None or first["seq"] > last["seq"]:
        raise compaction_refused(session, f"message {ids[0]} was not said before message {ids[1]}")
    return CoveredRange(ids, (first["seq"], last["seq"]))


def _fail_started(db: Database, session: Session, note: str) -> None:
    for row in db.rows(
        "SELECT id FROM checkpoints INDEXED BY checkpoints_started WHERE state = 'started' AND session_id = ?",
        (session.key,),
    ):
        fail_checkpoint(db, row["id"], note)


def release_lease(db: Database, session: Session) -> None:
    """Inside a transaction."""
    db.execute(
        "UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE key = ? AND generation = ?",
        (session.key, session.generation),
    )


def checkpoint_of_row(row: Row) -> Checkpoint:
    return Checkpoint(
        id=row["id"],
        session=row["session_id"],
        num=row["checkpoint_num"],
        generation=row["generation"],
        from_message_id=row["from_message_id"],
        to_message_id=row["to_message_id"],
        messages_compressed=row["messages_compressed"],
        summary=row["summary_content"],
        key_facts=json.loads(row["key_facts"]),
        original_tokens=row["original_tokens"],
        compressed_tokens=row["compressed_tokens"],
        cost_usd=row["summary_cost_usd"],
        created_at=parse_time(row["created_at"]),
        trigger=row["trigger"],
        tier=row["tier"],
        state=row["state"],
        scope=row["scope"],
        depth=row["depth"],
        model=row["model"],
        attempts=row["attempts"],
        note=row["note"],
    )


def check_tail_coverage(db: Database, session: Session) -> None:
    """What follows the last checkpoint stands in the view exactly once, and nothing else does but copies."""
    start = first_uncovered_seq(db, session)
    row = db.row(
        f"SELECT count(*), count(DISTINCT m.id) FILTER (WHERE m.seq >= ?) FROM"
        f" (SELECT h.message_id{FROM_VIEW} AND {IS_MESSAGE_ROW}) AS shown JOIN messages m ON m.id = shown.message_id",
        (start, *view_parameters(session)),
    )
    expected = count_uncovered(db, session, start)
    if row is None or row[0] != expected or row[1] != expected:
        raise compaction_refused(session, f"the view would not hold the messages from seq {start} on once each")
