"""What the log has of edits and deletions, looked up by the messages that they are about."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Row

from assistant.store import index
from assistant.store.database import Database
from assistant.store.log_files import LogFiles


def facts(db: Database, message_ids: Sequence[int]) -> list[Row]:
    """What was changed of these messages after a turn had taken them, oldest first."""
    marks = ", ".join("?" * len(message_ids))
    return db.rows(
        f"SELECT * FROM changes WHERE message_id IN ({marks}) AND state = 'logged' ORDER BY id", tuple(message_ids)
    )


def as_changed(db: Database, log: LogFiles, session: str, message_ids: Sequence[int]) -> dict[int, str]:
    """Of those messages that were changed since they were said, the words that hold: "" where it was deleted."""
    hold: dict[int, str] = {}
    for row in facts(db, message_ids):
        found = index.spans(db, [row["record_id"]]).get(row["record_id"])
        if row["kind"] == "delete" or found is None:
            hold[row["message_id"]] = ""
        else:
            hold[row["message_id"]] = log.read(session, found[1]).content
    return hold
