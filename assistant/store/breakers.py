"""Fuses that survive a restart (F07): `sleep_ports.Breakers` over script.db."""

from __future__ import annotations

from datetime import datetime

from assistant.core.checkpoints import CircuitBreaker
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp


class Breakers:
    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, name: str) -> CircuitBreaker:
        row = self._db.row("SELECT * FROM breakers WHERE name = ?", (name,))
        if row is None:
            return CircuitBreaker(name, 0, None)
        opened = None if row["opened_at"] is None else moment(row["opened_at"])
        return CircuitBreaker(name, row["failures"], opened, row["last_error"])

    def failed(self, name: str, error: str, most: int, now: datetime) -> CircuitBreaker:
        """The try that a half-open fuse lets through opens it anew when it fails."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO breakers (name, failures, opened_at, last_error) VALUES (?, 1, ?, ?) ON CONFLICT (name)"
                " DO UPDATE SET failures = failures + 1, last_error = excluded.last_error,"
                " opened_at = CASE WHEN failures + 1 >= ? THEN ? END",
                (name, stamp(now) if most <= 1 else None, clean(error), most, stamp(now)),
            )
        return self.get(name)

    def succeeded(self, name: str) -> None:
        if self.get(name).failures:
            with self._db.write() as db:
                db.execute("DELETE FROM breakers WHERE name = ?", (name,))
