"""Stores what compactions replaced, so that they can be undone, and undoes them.

Invariants:
- The rows a compaction replaced stay unchanged between the previous floor (`kept_from` of its checkpoint) and the new
  one; the original forms of rows it shortened are in `earlier_rows`.
- Only the newest compactions of a session, without gaps, can be undone: `kept_from` is NULL for all older ones, and the
  rows they replaced are deleted in small steps.
- The checkpoint has a fingerprint of these rows, which is compared before they are restored.
- Compactions are undone newest first: undoing an older one also undoes the later ones, and the merges of summaries made
  directly before it to make room. The view is then as before, except for messages hidden or erased since; later
  messages stay. The undone checkpoint stays in the table, and the checkpoints it had absorbed cover their ranges again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from sqlite3 import Row

from assistant.core.checkpoints import RestorePreview
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StaleView, UsageError
from assistant.core.messages import Message
from assistant.core.sessions import session_name
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import redact_message
from assistant.store.script import sessions as session_rows
from assistant.store.script.checkpoints import (
    IS_COMMITTED,
    check_tail_coverage,
    find_checkpoint_row,
    set_checkpoint_state,
    update_checkpoint,
)
from assistant.store.script.index import find_spans
from assistant.store.script.sessions import Session, ViewSize
from assistant.store.script.view import (
    FROM_MESSAGE_IN_VIEW,
    FROM_VIEW,
    IS_MESSAGE_ROW,
    SIZE_COLUMNS,
    CountedMessage,
    Views,
    message_of_view_row,
    view_parameters,
)

_ROWS_PER_DELETE = 500
_IS_MERGE = "json_type(key_facts, '$.merged') IS NOT NULL"
_SIZE_COLUMNS = SIZE_COLUMNS.replace("h.", "")
_ROW_COLUMNS = "role, content, parts, metadata, tokens, bytes, images"
_NOTHING_TO_UNDO = {"started": "is still under way", "undone": "was undone already", "failed": "did not succeed"}


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The rows of a view between two positions, and the original forms of shortened rows."""

    size: ViewSize
    messages: int  # number of rows that are original messages
    shortened: ViewSize
    # SHA-256 over position, message id and size of each row, never over text: proves that a view was restored as it was
    # without revealing what was said.
    fingerprint: str


def keep_original_rows(db: Database, session: Session, checkpoint_id: int, message_ids: Sequence[int]) -> None:
    """Keep the rows of these messages as they are. Raises `CorruptStore` if one is not in the view."""
    db.execute_many(
        f"INSERT INTO earlier_rows (checkpoint_id, session, generation, scope, message_id, {_ROW_COLUMNS})"
        f" SELECT ?, h.session, h.generation, h.scope, h.message_id, {_ROW_COLUMNS}{FROM_MESSAGE_IN_VIEW}",
        [(checkpoint_id, message_id, *view_parameters(session)) for message_id in message_ids],
    )
    if db.value("SELECT count(*) FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,)) != len(message_ids):
        raise CorruptStore(
            f"A compaction of {session.key!r} was refused: a message that it shortens is not in the view. Nothing was "
            "changed."
        )


def measure_replaced(db: Database, session: Session, checkpoint_id: int, low: int, high: int) -> ReplacedRows:
    """Measure what the checkpoint replaced: rows at positions in (low, high], and the original forms it kept."""
    (rows,) = db.rows(
        f"SELECT {_SIZE_COLUMNS}, count(message_id) FILTER (WHERE carried_from IS NULL),"
        " json_group_array(json_array(position, message_id, carried_from, tokens, bytes, images))"
        " FROM (SELECT position, message_id, carried_from, tokens, bytes, images FROM conversation_history"
        " WHERE session = ? AND generation = ? AND position > ? AND position <= ? ORDER BY position)",
        (*session.row_key, low, high),
    )
    (forms,) = db.rows(
        f"SELECT {_SIZE_COLUMNS}, json_group_array(json_array(message_id, tokens, bytes, images)) FROM"
        " (SELECT message_id, tokens, bytes, images FROM earlier_rows WHERE checkpoint_id = ? ORDER BY message_id)",
        (checkpoint_id,),
    )
    fingerprint = hashlib.sha256(f"{rows[5]}{forms[4]}".encode()).hexdigest()
    return ReplacedRows(ViewSize(*rows[:4]), rows[4], ViewSize(*forms[:4]), fingerprint)


def is_replaced_intact(db: Database, session: Session, checkpoint: Row, high: int) -> bool:
    """Return whether everything a checkpoint replaced is still unchanged; `high` is the floor it set."""
    low = checkpoint["kept_from"]
    return (
        low is not None
        and measure_replaced(db, session, checkpoint["id"], low, high).fingerprint == checkpoint["view_hash"]
    )


def list_undoable_checkpoint_rows(db: Database, session: Session) -> list[Row]:
    """Return the checkpoints that can be undone, newest first, each with its floor as `set_floor`."""
    return db.rows(
        f"SELECT c.*, {_IS_MERGE} AS is_merge,"
        " coalesce(lag(c.kept_from) OVER (ORDER BY c.checkpoint_num DESC), s.view_floor) AS set_floor"
        " FROM checkpoints c JOIN sessions s ON s.key = c.session_id AND s.generation = c.generation"
        " WHERE c.session_id = ? AND c.generation = ? AND c.kept_from IS NOT NULL ORDER BY c.checkpoint_num DESC",
        session.row_key,
    )


def restore_original_rows(db: Database, session: Session, checkpoint_id: int) -> list[int]:
    """Restore the original forms a checkpoint kept, of messages still in view, and delete them. Returns the message
    ids."""
    ids = [row[0] for row in db.rows("SELECT message_id FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,))]
    db.execute_many(
        f"UPDATE conversation_history SET ({_ROW_COLUMNS}) = (SELECT {_ROW_COLUMNS} FROM earlier_rows"
        f" WHERE checkpoint_id = ? AND message_id = ?) WHERE id = (SELECT h.id{FROM_MESSAGE_IN_VIEW})",
        [(checkpoint_id, message_id, message_id, *view_parameters(session)) for message_id in ids],
    )
    db.execute("DELETE FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,))
    update_checkpoint(db, checkpoint_id, kept_from=None)
    return ids


def discard_undo(db: Database, session: Session, num: int) -> None:
    """Discard what the session's checkpoints up to this number replaced."""
    discarded, values = "session_id = ? AND checkpoint_num <= ? AND kept_from IS NOT NULL", (session.key, num)
    db.execute(
        f"DELETE FROM earlier_rows WHERE checkpoint_id IN (SELECT id FROM checkpoints WHERE {discarded})", values
    )
    db.execute(f"UPDATE checkpoints SET kept_from = NULL WHERE {discarded}", values)


def limit_undo(db: Database, session: Session, limit: int) -> None:
    """Keep what the newest `limit` compactions of the session replaced, and discard the rest."""
    num = db.value(
        "SELECT checkpoint_num FROM checkpoints WHERE session_id = ? AND kept_from IS NOT NULL"
        " ORDER BY checkpoint_num DESC LIMIT 1 OFFSET ?",
        (session.key, limit),
    )
    if num is not None:
        discard_undo(db, session, num)


def delete_discarded_rows(db: Database, views: Views, session: Session) -> bool:
    """Delete some of the discarded rows; return whether any are left."""
    oldest = db.value(
        "SELECT min(kept_from) FROM checkpoints WHERE session_id = ? AND generation = ? AND kept_from IS NOT NULL",
        session.row_key,
    )
    if oldest is None:
        oldest = session_rows.read_view_floor(db, session)
    return views.remove_below(session, oldest, _ROWS_PER_DELETE)


CountMessage = Callable[[Message], CountedMessage]

# Undone since, in the session's own log: what a branch's parent hid stays in the branch.
_IS_HIDDEN = (
    "EXISTS (SELECT 1 FROM messages m WHERE m.id = coalesce(h.message_id, h.carried_from) AND m.session = h.session"
    " AND m.hidden_by IS NOT NULL)"
)


def plan_uncompact(db: Database, key: str, checkpoint_id: int | None) -> RestorePreview:
    """See `store_ports.Conversation.plan_uncompact`."""
    session = session_rows.require_session(db, key)
    chain = _undo_chain(db, session, checkpoint_id)
    ids = [row["id"] for row in chain]
    marks = ", ".join("?" * len(ids))
    # Of several kept forms of a message, the one that the oldest of the compactions replaced.
    first = (
        f"SELECT min(checkpoint_id) FROM earlier_rows WHERE message_id = h.message_id AND checkpoint_id IN ({marks})"
    )
    row = db.row(
        "SELECT coalesce(sum(coalesce(e.tokens, h.tokens)), 0), coalesce(sum(coalesce(e.bytes, h.bytes)), 0),"
        " coalesce(sum(coalesce(e.images, h.images)), 0),"
        f" count(*) FILTER (WHERE ({IS_MESSAGE_ROW}) AND (h.position <= s.view_floor OR e.message_id IS NOT NULL)),"
        " s.prefix_rev FROM sessions s LEFT JOIN conversation_history h ON h.session = s.key"
        f" AND h.generation = s.generation AND h.position > ? AND (h.position <= ? OR ({IS_MESSAGE_ROW})) AND NOT "
        f"{_IS_HIDDEN}"
        f" LEFT JOIN earlier_rows e ON e.message_id = h.message_id AND e.checkpoint_id = ({first})"
        " WHERE s.key = ? AND s.generation = ?",
        (chain[-1]["kept_from"], _prefix_from(chain), *ids, *session.row_key),
    )
    if row is None:
        raise CorruptStore
    return RestorePreview(tuple(ids), row[3], row[0], row[1], row[2], row[4])


def apply_uncompact(
    db: Database, log: LogFiles, views: Views, session: Session, plan: RestorePreview, counted: CountMessage
) -> None:
    """Apply the plan within a transaction. Raises `StaleView`, or `CorruptStore` if the kept rows are not those
    replaced."""
    chain = _undo_chain(db, session, plan.checkpoint_ids[-1])
    if tuple(row["id"] for row in chain) != plan.checkpoint_ids:
        raise StaleView
    above = session_rows.read_view_floor(db, session)
    again = [message_id for row in chain for message_id in _undo_one(db, views, session, row)]
    db.execute(f"DELETE{FROM_VIEW} AND {_IS_HIDDEN}", view_parameters(session))
    came_back = db.rows(f"SELECT h.*{FROM_VIEW} AND h.position <= ?", (*view_parameters(session), above))
    _redact_forgotten(db, log, views, session, [*came_back, *views.rows_in_view(session, again)], counted)
    session_rows.recount_totals(db, session)
    check_tail_coverage(db, session)


def _undo_chain(db: Database, session: Session, checkpoint_id: int | None) -> list[Row]:
    """Return the compactions to undo, newest first, each with the floor it set. Raises `UsageError`."""
    undoable = list_undoable_checkpoint_rows(db, session)
    if checkpoint_id is None:
        checkpoint_id = db.value(
            f"SELECT id FROM checkpoints WHERE session_id = ? AND generation = ? AND {IS_COMMITTED}"
            f" ORDER BY {_IS_MERGE}, checkpoint_num DESC LIMIT 1",
            session.row_key,
        )
        if checkpoint_id is None:
            raise UsageError(f"Nothing in {session.key!r} is compacted. Nothing was changed.")
    place = next((place for place, row in enumerate(undoable) if row["id"] == checkpoint_id), None)
    if place is not None:
        # Undoing a summary that replaced one made without a model restores nothing.
        replaced = json.loads(undoable[place]["absorbs"]) if undoable[place]["is_merge"] else []
        if len(replaced) == 1:
            place = next((n for n, row in enumerate(undoable) if row["id"] == replaced[0]), place)
        # Merges of summaries made for this compaction, or for a later one, are undone with it.
        last = place + 1
        while last < len(undoable) and undoable[last]["is_merge"]:
            last += 1
        return undoable[:last]
    row = find_checkpoint_row(db, checkpoint_id)
    if row is None or (row["session_id"], row["generation"]) != session.row_key:
        name = session_name(session.key)
        raise UsageError(f"{name} has no compaction {checkpoint_id}. Nothing was changed; `aihistory` lists them.")
    if row["state"] in _NOTHING_TO_UNDO:
        why = _NOTHING_TO_UNDO[row["state"]]
        raise UsageError(f"Compaction {checkpoint_id} {why}, so there is nothing to undo. Nothing was changed.")
    raise UsageError(
        f"What compaction {checkpoint_id} replaced is no longer kept. Nothing was changed; "
        f"`aihistory recover {checkpoint_id}` shows its messages."
    )


def _undo_one(db: Database, views: Views, session: Session, row: Row) -> list[int]:
    """Restore the previous floor and the original forms; return the ids of messages whose forms were restored."""
    if not is_replaced_intact(db, session, row, row["set_floor"]):
        raise CorruptStore(
            f"What compaction {row['id']} of {session.key!r} replaced is not what was kept. Nothing was changed; run "
            "`assistant verify`."
        )
    if row["state"] != "masked":
        views.remove_prefix(session)
        session_rows.update_session(db, session, view_floor=row["kept_from"])
    set_checkpoint_state(db, [row["id"]], "undone")
    set_checkpoint_state(db, json.loads(row["absorbs"]), "live")
    return restore_original_rows(db, session, row["id"])


def _prefix_from(chain: Sequence[Row]) -> int:
    """Return the position above which rows that are not messages were inserted by these compactions; they are
    removed."""
    return next((row["set_floor"] for row in reversed(chain) if row["state"] != "masked"), sys.maxsize)


def _redact_forgotten(
    db: Database, log: LogFiles, views: Views, session: Session, came_back: Sequence[Row], counted: CountMessage
) -> None:
    """Blank restored messages that were erased meanwhile: their text is blank in the log."""
    message_ids = {row["id"]: row["message_id"] or row["carried_from"] for row in came_back}
    places = find_spans(db, [message_id for message_id in message_ids.values() if message_id is not None])
    blank = {message_id for message_id, (key, span) in places.items() if log.is_blank(key, span)}
    for row in came_back:
        if message_ids[row["id"]] in blank:
            views.replace_row(row["id"], counted(redact_message(message_of_view_row(row))))
