"""Compactions taken back: the view as it was before them, but for what was hidden or forgotten since.

What always holds: the newest goes first, so that undoing an older one undoes the later ones too. What a compaction
replaced was kept as it was, and is compared with its fingerprint before it is shown again. Later messages stay. A
checkpoint that was taken back stays in the table, and those that it had absorbed cover their ranges again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from sqlite3 import Row

from assistant.core.checkpoints import RestorePreview
from assistant.core.errors import CorruptStore, StaleView, UsageError
from assistant.core.messages import Message
from assistant.store import checkpoints, commit, earlier, index, session_rows
from assistant.store.blanking import forgotten
from assistant.store.checkpoints import COMMITTED
from assistant.store.database import Database
from assistant.store.log_files import LogFiles
from assistant.store.rows import view_message
from assistant.store.session_rows import Session
from assistant.store.view import LIVE_ROW, OF_VIEW, Counted, Views, place

Counting = Callable[[Message], Counted]

# Undone since, in the session's own log: what a branch's parent hid stays in the branch.
_HIDDEN = (
    "EXISTS (SELECT 1 FROM messages m WHERE m.id = coalesce(h.message_id, h.carried_from) AND m.session = h.session"
    " AND m.hidden_by IS NOT NULL)"
)


def restorable(db: Database, key: str, checkpoint_id: int | None) -> RestorePreview:
    """See `ports.Conversation.restorable`."""
    session = session_rows.require(db, key)
    chain = _chain(db, session, checkpoint_id)
    ids = [row["id"] for row in chain]
    marks = ", ".join("?" * len(ids))
    # Of the forms that a message had, the one that the oldest of the compactions replaced.
    first = (
        f"SELECT min(checkpoint_id) FROM earlier_rows WHERE message_id = h.message_id AND checkpoint_id IN ({marks})"
    )
    row = db.row(
        "SELECT coalesce(sum(coalesce(e.tokens, h.tokens)), 0), coalesce(sum(coalesce(e.bytes, h.bytes)), 0),"
        " coalesce(sum(coalesce(e.images, h.images)), 0),"
        f" count(*) FILTER (WHERE ({LIVE_ROW}) AND (h.position <= s.view_floor OR e.message_id IS NOT NULL)),"
        " s.prefix_rev FROM sessions s LEFT JOIN conversation_history h ON h.session = s.key"
        f" AND h.generation = s.generation AND h.position > ? AND (h.position <= ? OR ({LIVE_ROW})) AND NOT {_HIDDEN}"
        f" LEFT JOIN earlier_rows e ON e.message_id = h.message_id AND e.checkpoint_id = ({first})"
        " WHERE s.key = ? AND s.generation = ?",
        (chain[-1]["kept_from"], _prefix_from(chain), *ids, session.key, session.generation),
    )
    if row is None:
        raise CorruptStore
    return RestorePreview(tuple(ids), row[3], row[0], row[1], row[2], row[4])


def uncompact(
    db: Database, log: LogFiles, views: Views, session: Session, wanted: RestorePreview, counted: Counting
) -> None:
    """Inside a transaction. Raises `StaleView`, or `CorruptStore` where what was kept is not what was replaced."""
    chain = _chain(db, session, wanted.checkpoint_ids[-1])
    if tuple(row["id"] for row in chain) != wanted.checkpoint_ids:
        raise StaleView
    above = session_rows.floor(db, session)
    again = [message_id for row in chain for message_id in _take_back(db, views, session, row)]
    db.execute(f"DELETE{OF_VIEW} AND {_HIDDEN}", place(session))
    came_back = db.rows(f"SELECT h.*{OF_VIEW} AND h.position <= ?", (*place(session), above))
    _blank(db, log, views, session, [*came_back, *views.rows_of(session, again)], counted)
    session_rows.recount(db, session)
    commit.check_rest(db, session)


def _chain(db: Database, session: Session, checkpoint_id: int | None) -> list[Row]:
    """The compactions to undo, newest first, each with the floor it set. Raises `UsageError`."""
    kept = earlier.kept(db, session)
    if checkpoint_id is None:
        newest = db.row(
            f"SELECT id FROM checkpoints WHERE session_id = ? AND generation = ? AND {COMMITTED}"
            " ORDER BY checkpoint_num DESC LIMIT 1",
            (session.key, session.generation),
        )
        if newest is None:
            raise UsageError(f"Nothing in {session.key!r} is compacted. Nothing was changed.")
        checkpoint_id = newest["id"]
    at = next((number for number, row in enumerate(kept) if row["id"] == checkpoint_id), None)
    if at is not None:
        return kept[: at + 1]
    row = checkpoints.find(db, checkpoint_id)
    if row is None or (row["session_id"], row["generation"]) != (session.key, session.generation):
        raise UsageError(f"{session.key!r} has no compaction {checkpoint_id}. Nothing was changed.")
    if row["state"] in ("started", "undone", "failed"):
        raise UsageError(f"Compaction {checkpoint_id} is not in effect ({row['state']}). Nothing was changed.")
    raise UsageError(
        f"What compaction {checkpoint_id} replaced is no longer kept. Nothing was changed; "
        f"`aihistory recover {checkpoint_id}` shows its messages."
    )


def _take_back(db: Database, views: Views, session: Session, row: Row) -> list[int]:
    """The floor as it was, the forms as they were; the ids of the messages whose forms came back."""
    if not earlier.is_whole(db, session, row, row["set_floor"]):
        raise CorruptStore(
            f"What compaction {row['id']} of {session.key!r} replaced is not what was kept. Nothing was changed; run "
            "`assistant verify`."
        )
    if row["state"] != "masked":
        views.remove_prefix(session)
        session_rows.set_floor(db, session, row["kept_from"])
    checkpoints.set_state(db, [row["id"]], "undone")
    checkpoints.set_state(db, json.loads(row["absorbs"]), "live")
    return earlier.bring_back_forms(db, session, row["id"])


def _prefix_from(chain: Sequence[Row]) -> int:
    """Above this position, rows that are no messages were put in front by these compactions, and go with them."""
    return next((row["set_floor"] for row in reversed(chain) if row["state"] != "masked"), sys.maxsize)


def _blank(
    db: Database, log: LogFiles, views: Views, session: Session, came_back: Sequence[Row], counted: Counting
) -> None:
    """What was forgotten meanwhile stays forgotten: its words are blank in the log."""
    said = {row["id"]: row["message_id"] or row["carried_from"] for row in came_back}
    places = index.spans(db, [message_id for message_id in said.values() if message_id is not None])
    blank = {message_id for message_id, (key, span) in places.items() if log.is_blank(key, span)}
    for row in came_back:
        if said[row["id"]] in blank:
            views.replace(row["id"], counted(forgotten(view_message(row))))
