"""Compactions committed: a new prefix for a view and the checkpoint that covers what it replaces.

What always holds (I3): the live checkpoints of a generation have contiguous ranges of seq, from its first record on;
what follows the last one stands in the view exactly once, or was hidden by an undo. What a compaction keeps verbatim
are copies marked `carried_from`, outside of coverage. All of it is checked inside the transaction that commits.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.compactions import Checkpoint, Compaction
from assistant.errors import CorruptStore
from assistant.messages import Message
from assistant.store import index, session_rows
from assistant.store.database import Database
from assistant.store.rows import checkpoint
from assistant.store.session_rows import Session
from assistant.store.text import clean, dumps, stamp
from assistant.store.view import Counted, Views

LIVE = "live"
BELONGS_IN_VIEW = "m.hidden_by IS NULL AND m.kind NOT IN ('undo', 'redaction')"
"""Which messages `m` after the last checkpoint have a row in the view."""

_LAST_SEQ = (1 << 63) - 1
_FIRST_POSITION = -(1 << 63)
_OF_VIEW = "FROM conversation_history WHERE session = ? AND generation = ?"
_LIVE_ROW = "carried_from IS NULL AND message_id IS NOT NULL"


def listed(db: Database, session: str) -> list[Checkpoint]:
    """All checkpoints of a session, oldest first."""
    rows = db.rows("SELECT * FROM checkpoints WHERE session_id = ? ORDER BY checkpoint_num", (session,))
    return [checkpoint(row) for row in rows]


def first_uncovered(db: Database, session: Session) -> int:
    """The seq after the last live checkpoint of the generation, or its first seq."""
    row = db.row(
        "SELECT max(to_seq) FROM checkpoints WHERE session_id = ? AND generation = ? AND state = ?",
        (session.key, session.generation, LIVE),
    )
    if row is not None and row[0] is not None:
        return int(row[0]) + 1
    row = db.row(
        "SELECT max(seq) FROM messages WHERE session = ? AND generation < ?", (session.key, session.generation)
    )
    return int(row[0] or 0) + 1 if row is not None and session.generation > 1 else 1


def commit(
    db: Database, views: Views, session: Session, compaction: Compaction, prefix: list[Counted], now: datetime
) -> Checkpoint:
    """Inside a transaction: replace every row up to `to_message_id` by `prefix`. Raises `CorruptStore`."""
    position = views.position_of(session, compaction.to_message_id)
    last = index.find(db, compaction.to_message_id)
    if position is None or last is None:
        raise CorruptStore(_refused(session, f"message {compaction.to_message_id} is not in the view"))
    start = first_uncovered(db, session)
    _check_start(db, session, start, position, compaction, int(last["seq"]))
    view_hash = _view_hash(db, session, position)
    gone = views.remove_up_to(session, position)
    dated = [replace(row, message=_dated(row.message, now)) for row in prefix]
    added = views.insert(session, position - len(dated) + 1, dated)
    session_rows.revise(db, session, added - gone)
    _check_rest(db, session, int(last["seq"]))
    return _record(db, session, compaction, (start, int(last["seq"])), view_hash, now)


def cover(
    db: Database, views: Views, session: Session, many: int, keep: int, trigger: str, now: datetime
) -> Checkpoint | None:
    """Inside a transaction: where a view has more than `many` rows, put all but the last `keep` (from a user's
    message on) under a checkpoint that refers to the log. For bulk: imports, and an index made anew."""
    row = session_rows.current_row(db, session.key)
    if row is None or row["view_messages"] <= many:
        return None
    bounds = _bounds(db, session, keep)
    if bounds is None:
        return None
    ids = bounds["first_id"], bounds["last_id"]
    compaction = _reference(session, row["prefix_rev"], trigger, ids, bounds["messages"], bounds["tokens"])
    return commit(db, views, session, compaction, [], now)


def tail_start(db: Database, session: Session, start: int, many: int, keep: int) -> int | None:
    """Where more than `many` messages stand from seq `start` on: the seq at which their last `keep` begin, or the
    first user's message among them. None where they are fewer."""
    of = f"FROM messages m WHERE m.session = ? AND m.generation = ? AND m.seq >= ? AND {BELONGS_IN_VIEW}"
    place = (session.key, session.generation, start)
    count = db.row(f"SELECT count(*) {of}", place)
    if count is None or count[0] <= many:
        return None
    row = db.row(
        "SELECT coalesce(min(seq) FILTER (WHERE role = 'user'), min(seq)) FROM"
        f" (SELECT m.seq, m.role {of} ORDER BY m.seq DESC LIMIT ?)",
        (*place, keep),
    )
    return None if row is None else int(row[0])


def refer(db: Database, session: Session, start: int, end: int, trigger: str, now: datetime) -> None:
    """Inside a transaction: a checkpoint over seqs that no row of the view stands for, referring to the log."""
    of = f"FROM messages m WHERE m.session = ? AND m.generation = ? AND m.seq BETWEEN ? AND ? AND {BELONGS_IN_VIEW}"
    place = (session.key, session.generation, start, end)
    totals = db.row(f"SELECT count(*), coalesce(sum(tokens), 0) {of}", place)
    first = db.row(f"SELECT m.id {of} ORDER BY m.seq LIMIT 1", place)
    last = db.row(f"SELECT m.id, m.seq {of} ORDER BY m.seq DESC LIMIT 1", place)
    if totals is None or first is None or last is None:
        return
    compaction = _reference(session, 0, trigger, (first["id"], last["id"]), totals[0], totals[1])
    _record(db, session, compaction, (start, last["seq"]), _view_hash(db, session, _FIRST_POSITION), now)


def _reference(
    session: Session, prefix_rev: int, trigger: str, ids: tuple[int, int], messages: int, tokens: int
) -> Compaction:
    return Compaction(session.key, prefix_rev, trigger, "reference", *ids, messages, (), "", tokens, 0)


def _bounds(db: Database, session: Session, keep: int) -> Row | None:
    """First and last message to cover, how many rows, and their tokens."""
    place = (session.key, session.generation)
    tail = db.row(
        "SELECT min(position), min(position) FILTER (WHERE role = 'user') FROM"
        f" (SELECT position, role {_OF_VIEW} ORDER BY position DESC LIMIT ?)",
        (*place, keep),
    )
    if tail is None or tail[0] is None:
        return None
    start = tail[0] if tail[1] is None else tail[1]
    row = db.row(
        "SELECT count(*) AS messages, sum(tokens) AS tokens,"
        f" (SELECT message_id {_OF_VIEW} AND {_LIVE_ROW} ORDER BY position LIMIT 1) AS first_id,"
        f" (SELECT message_id {_OF_VIEW} AND {_LIVE_ROW} AND position < ? ORDER BY position DESC LIMIT 1) AS last_id"
        f" {_OF_VIEW} AND {_LIVE_ROW} AND position < ?",
        (*place, *place, start, *place, start),
    )
    return row if row is not None and row["messages"] else None


def _check_start(
    db: Database, session: Session, start: int, position: int, compaction: Compaction, to_seq: int
) -> None:
    """The rows to be replaced are exactly the uncovered messages up to the last one of the compaction."""
    place = (session.key, session.generation)
    first = db.row(f"SELECT message_id {_OF_VIEW} AND {_LIVE_ROW} ORDER BY position LIMIT 1", place)
    rows = db.row(f"SELECT count(*) {_OF_VIEW} AND position <= ? AND {_LIVE_ROW}", (*place, position))
    if first is None or rows is None or first["message_id"] != compaction.from_message_id:
        raise CorruptStore(_refused(session, f"it does not start at message {compaction.from_message_id}"))
    if rows[0] != _uncovered(db, session, start, to_seq):
        raise CorruptStore(_refused(session, f"the view lacks messages between seq {start} and {to_seq}"))


def _check_rest(db: Database, session: Session, to_seq: int) -> None:
    """What follows the checkpoint stands in the view exactly once, and nothing else does but copies."""
    row = db.row(
        "SELECT count(*), count(DISTINCT m.id) FILTER (WHERE m.seq > ?) FROM conversation_history h"
        " JOIN messages m ON m.id = h.message_id"
        " WHERE h.session = ? AND h.generation = ? AND h.carried_from IS NULL",
        (to_seq, session.key, session.generation),
    )
    expected = _uncovered(db, session, to_seq + 1, None)
    if row is None or row[0] != expected or row[1] != expected:
        raise CorruptStore(_refused(session, f"the view would not hold the messages after seq {to_seq} once each"))


def _uncovered(db: Database, session: Session, start: int, end: int | None) -> int:
    """How many messages of the generation from seq `start` to `end` belong in a view."""
    row = db.row(
        "SELECT count(*) FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.seq <= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW}",
        (session.key, start, _LAST_SEQ if end is None else end, session.generation),
    )
    return 0 if row is None else int(row[0])


def _refused(session: Session, why: str) -> str:
    return f"A compaction of {session.key!r} was refused: {why}. Nothing was changed; run `assistant verify`."


def _dated(message: Message, now: datetime) -> Message:
    return message if message.ts is not None else replace(message, ts=now)


def _view_hash(db: Database, session: Session, position: int) -> str:
    """SHA-256 over the rows that are replaced, by place, size and commitment, never by their words: it proves later
    that a restored view is the same, and tells nothing of what was said."""
    rows = db.rows(
        "SELECT h.position, h.role, h.message_id, h.carried_from, h.tokens, h.bytes, h.images, m.commitment"
        " FROM conversation_history h LEFT JOIN messages m ON m.id = coalesce(h.message_id, h.carried_from)"
        " WHERE h.session = ? AND h.generation = ? AND h.position <= ? ORDER BY h.position",
        (session.key, session.generation, position),
    )
    return hashlib.sha256(dumps([list(row) for row in rows]).encode()).hexdigest()


def _record(
    db: Database, session: Session, compaction: Compaction, seqs: tuple[int, int], view_hash: str, now: datetime
) -> Checkpoint:
    last = db.row("SELECT max(checkpoint_num) FROM checkpoints WHERE session_id = ?", (session.key,))
    ratio = compaction.compressed_tokens / compaction.original_tokens if compaction.original_tokens else 1.0
    row_id = db.insert(
        "INSERT INTO checkpoints (session_id, checkpoint_num, generation, scope, from_message_id, to_message_id,"
        " from_seq, to_seq, messages_compressed, summary_content, key_facts, original_tokens, compressed_tokens,"
        " compression_ratio, summary_cost_usd, created_at, trigger, tier, state, view_hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session.key, (last[0] if last is not None and last[0] else 0) + 1, session.generation, session.scope,
            compaction.from_message_id, compaction.to_message_id, *seqs, compaction.messages_compressed,
            clean(compaction.summary), dumps(dict(compaction.key_facts)), compaction.original_tokens,
            compaction.compressed_tokens, ratio, compaction.cost_usd, stamp(now), compaction.trigger, compaction.tier,
            LIVE, view_hash,
        ),
    )  # fmt: skip
    row = db.row("SELECT * FROM checkpoints WHERE id = ?", (row_id,))
    if row is None:
        raise CorruptStore(_refused(session, "its checkpoint cannot be read"))
    return checkpoint(row)
