"""What was read of days in texts, so that each text is read once (`assistant/agenda/mentioned_dates.py`).

Derived: a row that is missing or damaged, or that was made of other words or by other rules, is made again. An erasure
removes all rows of its scope in the transaction that erases the words (`assistant/store/erasure/script_rows.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from zlib import crc32

from assistant.store.database import Database, DatabaseStore
from assistant.store.rows import insert_sql

# A row that only says that nothing was erased since `begin`. Digests are not empty.
_MARK = b""
_COLUMNS = ("scope", "made_of", "mentions", "checksum")


class StoredDatedTexts(DatabaseStore):
    """What each text mentions, as JSON, by a digest of all that it was made of."""

    def read(self, scope: str) -> dict[bytes, str]:
        rows = self._db.rows("SELECT made_of, mentions, checksum FROM dated_texts WHERE scope = ?", (scope,))
        found = {made_of: mentions for made_of, mentions, checksum in rows if checksum == _checksum(made_of, mentions)}
        found.pop(_MARK, None)
        return found

    def begin(self, scope: str) -> None:
        """Call before the texts are read of which rows are to be kept; one caller at a time."""
        if not self._is_begun(scope):
            with self._db.write() as db:
                db.insert_row("dated_texts", scope=scope, made_of=_MARK, mentions="", checksum=0)

    def keep(self, scope: str, new: Mapping[bytes, str], outdated: Collection[bytes] = ()) -> bool:
        """Store rows and remove outdated ones; returns False, with nothing stored, if something was erased since
        `begin`, which the texts may have had."""
        with self._db.write() as db:
            if not self._is_begun(scope):
                return False
            db.execute_many(
                insert_sql("dated_texts", _COLUMNS, _COLUMNS[:2]),
                [(scope, made_of, mentions, _checksum(made_of, mentions)) for made_of, mentions in new.items()],
            )
            db.execute_many(
                "DELETE FROM dated_texts WHERE scope = ? AND made_of = ?", [(scope, made_of) for made_of in outdated]
            )
        return True

    def _is_begun(self, scope: str) -> bool:
        row = self._db.value("SELECT 1 FROM dated_texts WHERE scope = ? AND made_of = ?", (scope, _MARK))
        return row is not None


def erase_dated_texts(db: Database, scope: str) -> None:
    """Remove all rows of a scope, within `write()`."""
    db.execute("DELETE FROM dated_texts WHERE scope = ?", (scope,))


def _checksum(made_of: bytes, mentions: str) -> int:
    return crc32(mentions.encode(), crc32(made_of))
