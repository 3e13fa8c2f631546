"""The checkpoints of a home, as rows: one a compaction, from the moment it starts.

What always holds (I3): the live checkpoints of a generation have contiguous ranges of seq, from its first record on.
Numbers of a session grow in the order in which its compactions were begun, and those that were committed, in the order
of their commits. Writing functions are called inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.errors import CorruptStore
from assistant.store import extraction
from assistant.store.database import Database
from assistant.store.rows import checkpoint
from assistant.store.session_rows import Session
from assistant.store.text import clean, dumps, stamp

BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""
COMMITTED = "state IN ('live', 'masked', 'absorbed')"

_LAST_SEQ = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Covered:
    """What a compaction is about: its first and last message, by id and by seq."""

    ids: tuple[int, int]
    seqs: tuple[int, int]


def listed(db: Database, session: str) -> list[Checkpoint]:
    """All checkpoints of a session, oldest first."""
    rows = db.rows("SELECT * FROM checkpoints WHERE session_id = ? ORDER BY checkpoint_num", (session,))
    return [checkpoint(row) for row in rows]


def unjournaled(db: Database, limit: int) -> list[Checkpoint]:
    """Those that were carried out and whose entries the journal may lack, oldest first."""
    rows = db.rows(
        "SELECT * FROM checkpoints WHERE journaled = 0 AND state IN ('live', 'absorbed') ORDER BY id LIMIT ?", (limit,)
    )
    return [checkpoint(row) for row in rows]


def find(db: Database, checkpoint_id: int) -> Row | None:
    return db.row("SELECT * FROM checkpoints WHERE id = ?", (checkpoint_id,))


def live(db: Database, session: Session) -> list[Row]:
    """Those that cover their ranges, oldest range first."""
    return db.rows(
        "SELECT * FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live' ORDER BY from_seq",
        (session.key, session.generation),
    )


def run_of(db: Database, session: Session, checkpoint_ids: Sequence[int]) -> list[Row]:
    """Live checkpoints that follow one another, oldest first. Raises `CorruptStore` where they do not."""
    rows = live(db, session)
    found = [number for number, row in enumerate(rows) if row["id"] in checkpoint_ids]
    in_a_row = not found or found == list(range(found[0], found[-1] + 1))
    if len(found) != len(checkpoint_ids) or not in_a_row:
        raise refused(session, "the checkpoints that it takes over are not live ones that follow one another")
    return [rows[number] for number in found]


def first_uncovered(db: Database, session: Session) -> int:
    """The seq after the last live checkpoint of the generation, or its first seq."""
    row = db.row(
        "SELECT to_seq FROM checkpoints WHERE session_id = ? AND generation = ? AND state = 'live'"
        " ORDER BY from_seq DESC LIMIT 1",
        (session.key, session.generation),
    )
    if row is not None:
        return int(row["to_seq"]) + 1
    row = db.row(
        "SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", (session.key, session.generation)
    )  # fmt: skip
    return 1 if row is None else int(row["from_seq"])


def uncovered(db: Database, session: Session, start: int, end: int | None = None) -> int:
    """How many messages of the generation from seq `start` to `end` belong in a view."""
    row = db.row(
        "SELECT count(*) FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.seq <= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW}",
        (session.key, start, _LAST_SEQ if end is None else end, session.generation),
    )
    return 0 if row is None else int(row[0])


def begin(db: Database, session: Session, covered: Covered, trigger: str, now: datetime) -> int:
    """A checkpoint in state `started`: its id."""
    last = db.row("SELECT max(checkpoint_num) FROM checkpoints WHERE session_id = ?", (session.key,))
    return db.insert(
        "INSERT INTO checkpoints (session_id, checkpoint_num, generation, scope, from_message_id, to_message_id,"
        " from_seq, to_seq, messages_compressed, summary_content, key_facts, original_tokens, compressed_tokens,"
        " compression_ratio, summary_cost_usd, created_at, trigger, tier, state, view_hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, '', '{}', 0, 0, 0, 0, ?, ?, '', 'started', '')",
        (
            session.key, (last[0] if last is not None and last[0] else 0) + 1, session.generation, session.scope,
            *covered.ids, *covered.seqs, stamp(now), clean(trigger),
        ),
    )  # fmt: skip


def finish(
    db: Database,
    session: Session,
    checkpoint_id: int,
    compaction: Compaction,
    covered: Covered,
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
            *covered.ids, *covered.seqs, compaction.messages_compressed, clean(compaction.summary),
            dumps(dict(compaction.key_facts)), compaction.original_tokens, compaction.compressed_tokens, ratio,
            compaction.cost_usd, stamp(now), clean(compaction.trigger), clean(compaction.tier),
            state, compaction.depth, clean(compaction.model), compaction.attempts,
            dumps(list(compaction.absorbs)), checkpoint_id,
        ),
    )  # fmt: skip
    set_state(db, compaction.absorbs, "absorbed")
    if state == "live":
        extraction.queue(db, session, covered.seqs, compaction.trigger, now)


def keep(db: Database, checkpoint_id: int, fingerprint: str, kept_from: int | None) -> None:
    """Note what the checkpoint replaced, and the floor as it was where that can be put back."""
    db.execute(
        "UPDATE checkpoints SET view_hash = ?, kept_from = ? WHERE id = ?", (fingerprint, kept_from, checkpoint_id)
    )


def set_state(db: Database, checkpoint_ids: Sequence[int], state: CheckpointState) -> None:
    for checkpoint_id in checkpoint_ids:
        db.execute("UPDATE checkpoints SET state = ? WHERE id = ?", (state, checkpoint_id))


def fail(db: Database, checkpoint_id: int, note: str) -> None:
    db.execute(
        "UPDATE checkpoints SET state = 'failed', note = ? WHERE id = ? AND state = 'started'",
        (clean(note), checkpoint_id),
    )


def read(db: Database, checkpoint_id: int) -> Checkpoint:
    row = find(db, checkpoint_id)
    if row is None:
        raise CorruptStore
    return checkpoint(row)


def refused(session: Session, why: str) -> CorruptStore:
    return CorruptStore(
        f"A compaction of {session.key!r} was refused: {why}. Nothing was changed; run `assistant verify`."
    )
