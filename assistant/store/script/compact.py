"""Commits a compaction: a new prefix for a view, shortened forms of what remains, and its checkpoint. Also removes
messages from a view without a summary, when a lost index is rebuilt.

Invariants (I3), checked inside the transaction that commits: the range of a checkpoint follows the one before it
without gap or overlap; what follows the last one is in the view exactly once, or was hidden by an undo. Messages a
compaction keeps verbatim are copies marked `carried_from`, which do not count as covered. Messages removed in bulk are
covered by a checkpoint that refers to the log; it cannot be undone, nor can earlier compactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from assistant.core.checkpoints import REFERENCE_TIER, Checkpoint, CheckpointState, Compaction
from assistant.core.dataclass import dataclass
from assistant.store.database import Database
from assistant.store.script import sessions as session_rows
from assistant.store.script.checkpoints import (
    BELONGS_IN_VIEW,
    CoveredRange,
    check_tail_coverage,
    compaction_refused,
    count_uncovered,
    finish_checkpoint,
    first_uncovered_seq,
    insert_checkpoint,
    list_live_checkpoint_rows,
    range_of_messages,
    read_checkpoint,
    redeem_lease,
    require_adjacent_checkpoints,
    update_checkpoint,
)
from assistant.store.script.index import find_message_row
from assistant.store.script.sessions import Session, sum_view_sizes
from assistant.store.script.undo import (
    delete_discarded_rows,
    discard_undo,
    keep_original_rows,
    limit_undo,
    measure_replaced,
)
from assistant.store.script.view import FROM_VIEW, IS_MESSAGE_ROW, CountedMessage, Views, view_parameters


@dataclass(frozen=True, slots=True)
class _ViewCut:
    """The rows that leave a view."""

    covered: CoveredRange
    position: int  # position of the last row that leaves it
    messages: int  # number of rows that are original messages


def commit_compaction(
    db: Database,
    views: Views,
    compaction: Compaction,
    prefix: Sequence[CountedMessage],
    shorten: Sequence[CountedMessage],
    now: datetime,
    *,
    undo_kept: int,
) -> Checkpoint:
    """Commit within a transaction. Raises `StaleView`, `CorruptStore`."""
    session = session_rows.require_prefix_rev(db, compaction.session, compaction.prefix_rev)
    only_shortens = compaction.shortened and not compaction.prefix
    cut = None if only_shortens else _find_cut(db, views, session, compaction)
    # Without a prefix nothing is covered; the range is then the first and last shortened message.
    named = compaction.from_message_id, compaction.to_message_id
    covered = range_of_messages(db, session, named) if cut is None else cut.covered
    checkpoint_id = redeem_lease(db, session, compaction, covered, now)
    floor = session_rows.read_view_floor(db, session)
    position = floor if cut is None else cut.position
    session_rows.update_session(db, session, view_floor=position)
    keep_original_rows(db, session, checkpoint_id, [row.message.id or 0 for row in shorten])
    replaced = measure_replaced(db, session, checkpoint_id, floor, position)
    if replaced.messages != (0 if cut is None else cut.messages):
        raise compaction_refused(
            session, f"the view lacks messages between seq {covered.from_seq} and {covered.to_seq}"
        )
    state: CheckpointState = "masked" if cut is None else "live"
    finish_checkpoint(db, checkpoint_id, compaction, covered, state, now)
    update_checkpoint(db, checkpoint_id, view_hash=replaced.fingerprint, kept_from=floor)
    change = views.rewrite_rows(session, shorten) - replaced.shortened - replaced.size
    if cut is not None:
        change += sum_view_sizes(views.insert_rows(session, position + 1, _date_prefix(db, session, prefix, now)))
        check_tail_coverage(db, session)
    session_rows.add_to_totals_and_bump(db, session, change)
    limit_undo(db, session, undo_kept)
    delete_discarded_rows(db, views, session)
    return read_checkpoint(db, checkpoint_id)


def _find_cut(db: Database, views: Views, session: Session, compaction: Compaction) -> _ViewCut:
    """Return where the compaction cuts the view. Raises `CorruptStore` if that would break coverage."""
    absorbed = require_adjacent_checkpoints(db, session, compaction.absorbed_ids)
    if absorbed and compaction.to_message_id == absorbed[-1]["to_message_id"]:
        return _cut_for_merge(views, session, compaction, absorbed)
    start = first_uncovered_seq(db, session)
    first = db.value(
        f"SELECT h.message_id{FROM_VIEW} AND {IS_MESSAGE_ROW} ORDER BY h.position LIMIT 1", view_parameters(session)
    )
    if first != compaction.from_message_id:
        raise compaction_refused(session, f"it does not start at message {compaction.from_message_id}")
    last = find_message_row(db, compaction.to_message_id)
    position = views.position_of(session, compaction.to_message_id)
    if position is None or last is None:
        raise compaction_refused(session, f"message {compaction.to_message_id} is not in the view")
    messages = count_uncovered(db, session, start, last["seq"])
    if not absorbed:
        covered = CoveredRange(compaction.from_message_id, compaction.to_message_id, start, last["seq"])
    elif absorbed[-1]["to_seq"] == start - 1:
        first = absorbed[0]
        covered = CoveredRange(first["from_message_id"], compaction.to_message_id, first["from_seq"], last["seq"])
    else:
        raise compaction_refused(session, "the checkpoints that it takes over are not those directly before it")
    return _ViewCut(covered, position, messages)


def _cut_for_merge(
    views: Views, session: Session, compaction: Compaction, absorbed: Sequence[Mapping[str, Any]]
) -> _ViewCut:
    """Return the cut for a merge of checkpoints, which replaces only the prefix."""
    if compaction.from_message_id != absorbed[0]["from_message_id"]:
        raise compaction_refused(session, f"it does not start at message {compaction.from_message_id}")
    seqs = absorbed[0]["from_seq"], absorbed[-1]["to_seq"]
    covered = CoveredRange(compaction.from_message_id, compaction.to_message_id, *seqs)
    return _ViewCut(covered, views.prefix_end(session), 0)


def _date_prefix(
    db: Database, session: Session, prefix: Sequence[CountedMessage], now: datetime
) -> list[CountedMessage]:
    """Return the new prefix with dates; its summary names the live checkpoints."""
    live = [row["id"] for row in list_live_checkpoint_rows(db, session.row_key, ("id",))]
    dated = []
    for row in prefix:
        message = row.message if row.message.ts is not None else replace(row.message, ts=now)
        if message.is_summary:
            message = replace(message, metadata={**message.metadata, "checkpoints": live})
        dated.append(replace(row, message=message))
    return dated


def cover_old_messages(
    db: Database, session: Session, max_messages: int, keep: int, trigger: str, now: datetime
) -> bool:
    """Within a transaction: if more than `max_messages` follow the last checkpoint, cover all but the last `keep`
    (starting at a user message) by one that refers to the log. Returns whether it did. The caller removes their
    rows."""
    start = first_uncovered_seq(db, session)
    if count_uncovered(db, session, start) <= max_messages:
        return False
    of = f"FROM messages m WHERE m.session = ? AND m.generation = ? AND m.seq >= ? AND {BELONGS_IN_VIEW}"
    values = (*session.row_key, start)
    tail: int = db.value(
        "SELECT coalesce(min(seq) FILTER (WHERE role = 'user'), min(seq)) FROM"
        f" (SELECT m.seq, m.role {of} ORDER BY m.seq DESC LIMIT ?)",
        (*values, keep),
    )
    covered = f"{of} AND m.seq < ?", (*values, tail)
    (first,) = db.rows(f"SELECT m.id {covered[0]} ORDER BY m.seq LIMIT 1", covered[1])
    (last,) = db.rows(f"SELECT m.id, m.seq {covered[0]} ORDER BY m.seq DESC LIMIT 1", covered[1])
    (totals,) = db.rows(f"SELECT count(*) AS messages, sum(m.tokens) AS tokens {covered[0]}", covered[1])
    named = first["id"], last["id"]
    compaction = Compaction(
        session.key, 0, trigger, REFERENCE_TIER, *named, totals["messages"], (), "", totals["tokens"], 0
    )
    covered_range = CoveredRange(*named, start, last["seq"])
    checkpoint_id = insert_checkpoint(db, session, covered_range, trigger, now)
    finish_checkpoint(db, checkpoint_id, compaction, covered_range, "live", now)
    discard_undo(db, session, read_checkpoint(db, checkpoint_id).num)
    return True
