"""What a restored home says again that had been forgotten since the backup was made."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.script.index import find_spans


def said_again(old: Path, new: Path) -> list[int]:
    """Messages that redactions of the old home name and that have their words in the new one; of an old home that
    cannot be read, nothing."""
    try:
        named = _redacted(old)
        with closing(Database.reader(new / "script.db")) as db, closing(LogFiles(new)) as log:
            places = find_spans(db, sorted(named))
            return sorted(one for one, (session, span) in places.items() if not log.is_blank(session, span))
    except StoreError:
        return []


def _redacted(home: Path) -> set[int]:
    if not (home / "script.db").exists():
        return set()
    with closing(Database.reader(home / "script.db")) as db, closing(LogFiles(home)) as log:
        rows = db.rows("SELECT session, byte_start, byte_end FROM messages WHERE kind = 'redaction'")
        records = [log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])) for row in rows]
    return {message_id for record in records for message_id in record.refs}
