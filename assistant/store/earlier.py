"""What compactions replaced, kept so that they can be undone.

What always holds: the rows that a compaction replaced stand untouched between the floor that was (`kept_from` of its
checkpoint) and the one it set; the rows that it shortened stand as they were in `earlier_rows`. Only the newest
compactions of a session keep theirs, without a gap: `kept_from` is NULL for all before them, and what they replaced is
taken out bit by bit. The fingerprint of all of it stands in the checkpoint.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Row

from assistant.core.errors import CorruptStore
from assistant.store import session_rows
from assistant.store.database import Database
from assistant.store.session_rows import Session, Size
from assistant.store.view import OF_MESSAGE, Views, place

_TAKEN_OUT_AT_ONCE = 500
_FORM = "role, content, parts, metadata, tokens, bytes, images"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows of a view between two positions, and those that were shortened, as they were: `messages` of the former are
    live rows. `fingerprint` is a SHA-256 over place, message and size of each, never over words: it proves later that
    a view was restored as it was, and tells nothing of what was said."""

    size: Size
    messages: int
    shortened: Size
    fingerprint: str


def keep_forms(db: Database, session: Session, checkpoint_id: int, message_ids: Sequence[int]) -> None:
    """Keep the rows of these messages as they are. Raises `CorruptStore` where one is not in the view."""
    db.execute_many(
        f"INSERT INTO earlier_rows (checkpoint_id, session, generation, scope, message_id, {_FORM})"
        f" SELECT ?, h.session, h.generation, h.scope, h.message_id, {_FORM}{OF_MESSAGE}",
        [(checkpoint_id, message_id, *place(session)) for message_id in message_ids],
    )
    kept = db.row("SELECT count(*) FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,))
    if kept is None or kept[0] != len(message_ids):
        raise CorruptStore(
            f"A compaction of {session.key!r} was refused: a message that it shortens is not in the view. Nothing was "
            "changed."
        )


def replaced(db: Database, session: Session, checkpoint_id: int, low: int, high: int) -> Replaced:
    """What the checkpoint has replaced: rows at positions above `low` and up to `high`, and the forms it kept."""
    rows = db.row(
        "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(bytes), 0), coalesce(sum(images), 0),"
        " count(message_id) FILTER (WHERE carried_from IS NULL),"
        " json_group_array(json_array(position, message_id, carried_from, tokens, bytes, images))"
        " FROM (SELECT position, message_id, carried_from, tokens, bytes, images FROM conversation_history"
        " WHERE session = ? AND generation = ? AND position > ? AND position <= ? ORDER BY position)",
        (session.key, session.generation, low, high),
    )
    forms = db.row(
        "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(bytes), 0), coalesce(sum(images), 0),"
        " json_group_array(json_array(message_id, tokens, bytes, images)) FROM"
        " (SELECT message_id, tokens, bytes, images FROM earlier_rows WHERE checkpoint_id = ? ORDER BY message_id)",
        (checkpoint_id,),
    )
    if rows is None or forms is None:
        raise CorruptStore
    fingerprint = hashlib.sha256(f"{rows[5]}{forms[4]}".encode()).hexdigest()
    return Replaced(Size(*rows[:4]), rows[4], Size(*forms[:4]), fingerprint)


def is_whole(db: Database, session: Session, checkpoint: Row, high: int) -> bool:
    """Whether all that a checkpoint replaced is still kept as it was; `high` is the floor that it set."""
    low = checkpoint["kept_from"]
    return (
        low is not None
        and replaced(db, session, checkpoint["id"], low, high).fingerprint == checkpoint["view_hash"]
    )  # fmt: skip


def kept(db: Database, session: Session) -> list[Row]:
    """The checkpoints whose rows are kept, newest first, each with the floor it set as `set_floor`."""
    return db.rows(
        "SELECT c.*, coalesce(lag(c.kept_from) OVER (ORDER BY c.checkpoint_num DESC), s.view_floor) AS set_floor"
        " FROM checkpoints c JOIN sessions s ON s.key = c.session_id AND s.generation = c.generation"
        " WHERE c.session_id = ? AND c.generation = ? AND c.kept_from IS NOT NULL ORDER BY c.checkpoint_num DESC",
        (session.key, session.generation),
    )


def bring_back_forms(db: Database, session: Session, checkpoint_id: int) -> list[int]:
    """The forms that a checkpoint kept take their rows again, where the messages are in view, and are kept no longer;
    the ids of the messages."""
    ids = [row[0] for row in db.rows("SELECT message_id FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,))]
    db.execute_many(
        f"UPDATE conversation_history SET ({_FORM}) = (SELECT {_FORM} FROM earlier_rows"
        f" WHERE checkpoint_id = ? AND message_id = ?) WHERE id = (SELECT h.id{OF_MESSAGE})",
        [(checkpoint_id, message_id, message_id, *place(session)) for message_id in ids],
    )
    db.execute("DELETE FROM earlier_rows WHERE checkpoint_id = ?", (checkpoint_id,))
    db.execute("UPDATE checkpoints SET kept_from = NULL WHERE id = ?", (checkpoint_id,))
    return ids


def give_up(db: Database, session: Session, num: int) -> None:
    """What the session's checkpoints up to this number replaced is kept no longer."""
    of = "FROM checkpoints WHERE session_id = ? AND checkpoint_num <= ? AND kept_from IS NOT NULL"
    db.execute(
        f"DELETE FROM earlier_rows WHERE checkpoint_id IN (SELECT id {of})", (session.key, num)
    )  # fmt: skip
    db.execute(
        "UPDATE checkpoints SET kept_from = NULL WHERE session_id = ? AND checkpoint_num <= ?"
        " AND kept_from IS NOT NULL",
        (session.key, num),
    )


def keep_newest(db: Database, session: Session, most: int) -> None:
    """Keep what the newest `most` compactions of the session replaced, and no more."""
    row = db.row(
        "SELECT checkpoint_num FROM checkpoints WHERE session_id = ? AND kept_from IS NOT NULL"
        " ORDER BY checkpoint_num DESC LIMIT 1 OFFSET ?",
        (session.key, most),
    )
    if row is not None:
        give_up(db, session, row["checkpoint_num"])


def take_out(db: Database, views: Views, session: Session, *, everything: bool = False) -> bool:
    """Take out rows that are kept no longer, some at a time; whether some are left."""
    row = db.row(
        "SELECT min(kept_from) FROM checkpoints WHERE session_id = ? AND generation = ? AND kept_from IS NOT NULL",
        (session.key, session.generation),
    )
    oldest = session_rows.floor(db, session) if row is None or row[0] is None else int(row[0])
    return views.remove_below(session, oldest, sys.maxsize if everything else _TAKEN_OUT_AT_ONCE)
