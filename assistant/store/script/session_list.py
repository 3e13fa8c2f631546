"""The list of sessions, read again only after the database changed: several parts of each wake-up ask for it."""

from __future__ import annotations

from assistant.core.records import SessionInfo
from assistant.store.database import Database
from assistant.store.script.sessions import list_session_infos


class SessionList:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._version: tuple[int, int] | None = None
        self._infos: list[SessionInfo] = []

    def read(self) -> list[SessionInfo]:
        """As `list_session_infos`. Raises `StoreError`."""
        if self._db.connection.in_transaction:
            # What is read within a transaction may be rolled back.
            return list_session_infos(self._db)
        version = (int(self._db.value("SELECT total_changes()")), int(self._db.value("PRAGMA data_version")))
        if version != self._version:
            self._infos, self._version = list_session_infos(self._db), version
        return list(self._infos)
