"""Repairs the ranges of checkpoints when a checkpoint, or one end of its range, is lost (I3).

Only ranges change, never a summary. If a checkpoint is lost, those it had absorbed are restored; messages that no other
covers are added to the next one, whose range then begins earlier.
"""

from __future__ import annotations

from sqlite3 import Row

from assistant.store.database import Database
from assistant.store.script.checkpoints import list_live_checkpoint_rows, set_checkpoint_state, update_checkpoint
from assistant.store.script.sessions import Session

_ORPHANS = """
    SELECT a.id FROM checkpoints a WHERE a.session_id = ? AND a.generation = ? AND a.state = 'absorbed'
    AND NOT EXISTS (SELECT 1 FROM checkpoints c, json_each(c.absorbs) e WHERE c.session_id = a.session_id
    AND c.state IN ('live', 'absorbed') AND e.value = a.id AND c.from_seq <= a.from_seq AND c.to_seq >= a.to_seq)
    AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.session_id = a.session_id AND c.state = 'live'
    AND c.generation = a.generation AND c.from_seq <= a.to_seq AND c.to_seq >= a.from_seq)
    ORDER BY a.to_seq - a.from_seq DESC, a.id LIMIT 1
"""
_WITHOUT_PLACE = f"{_ORPHANS[: _ORPHANS.rindex('AND NOT EXISTS')]} LIMIT 1"


def repair_checkpoints(db: Database, session: Session) -> None:
    """Within a transaction, after the index is correct."""
    while (orphan := db.value(_ORPHANS, session.row_key)) is not None:
        set_checkpoint_state(db, [orphan], "live")
    expected: int = db.value("SELECT min(seq) FROM messages WHERE session = ? AND generation = ?", session.row_key) or 1
    for row in sorted(list_live_checkpoint_rows(db, session.row_key), key=lambda row: int(row["from_seq"])):
        first = _message(db, session, "seq >= ?", expected, "ASC")
        last = _message(db, session, "seq <= ?", row["to_seq"], "DESC")
        if first is None or last is None or last["seq"] < expected:
            set_checkpoint_state(db, [row["id"]], "failed")
            continue
        ends = {
            "from_message_id": first["id"],
            "to_message_id": last["id"],
            "from_seq": expected,
            "to_seq": last["seq"],
        }
        if any(row[name] != value for name, value in ends.items()):
            update_checkpoint(db, row["id"], **ends)
        expected = last["seq"] + 1
    while (orphan := db.value(_WITHOUT_PLACE, session.row_key)) is not None:
        set_checkpoint_state(db, [orphan], "failed")


def _message(db: Database, session: Session, condition: str, seq: int, order: str) -> Row | None:
    where = f"session = ? AND generation = ? AND {condition}"
    sql = f"SELECT id, seq FROM messages WHERE {where} ORDER BY seq {order} LIMIT 1"
    return db.row(sql, (*session.row_key, seq))
