"""Small state that survives a restart: what was learned of models (correction factors, limits), circuit breakers
(F07), and how far each bridge has come and whether the owner paused it.

What always holds: a bridge's position is written in the transaction that stores the message before it, or by itself
where there was nothing to store: it is never ahead of the inbox (I1).
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from assistant.core.checkpoints import CircuitBreaker
from assistant.core.model_api import ModelLimits
from assistant.core.records import TokenCalibration
from assistant.store.database import Database
from assistant.store.rows import class_row

_read_calibration = class_row(TokenCalibration)
_read_limits = class_row(ModelLimits)
_read_breaker = class_row(CircuitBreaker)


class ModelFacts:
    """Correction factors and limits of models; the two are set independently of each other."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def calibration(self, model: str) -> TokenCalibration | None:
        sql = "SELECT * FROM model_facts WHERE model = ? AND factor IS NOT NULL"
        return self._db.read_one(_read_calibration, sql, (model,))

    def set_calibration(self, calibration: TokenCalibration, now: datetime) -> None:
        with self._db.write() as db:
            db.upsert_row("model_facts", ("model",), **asdict(calibration), updated_at=now)

    def limits(self, model: str) -> ModelLimits | None:
        sql = "SELECT * FROM model_facts WHERE model = ? AND window IS NOT NULL"
        return self._db.read_one(_read_limits, sql, (model,))

    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None:
        with self._db.write() as db:
            db.upsert_row("model_facts", ("model",), model=model, **asdict(limits), updated_at=now)


class CircuitBreakers:
    """Circuit breakers by name; one without a row is closed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, name: str) -> CircuitBreaker:
        breaker = self._db.read_one(_read_breaker, "SELECT * FROM breakers WHERE name = ?", (name,))
        return breaker or CircuitBreaker(name, 0, None)

    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """One more failure; from `limit` in a row on the breaker is open since now. The try that a half-open breaker
        lets through opens it again when it fails."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO breakers (name, failures, opened_at, last_error) VALUES (?, 1, ?, ?) ON CONFLICT (name)"
                " DO UPDATE SET failures = failures + 1, last_error = excluded.last_error,"
                " opened_at = CASE WHEN failures + 1 >= ? THEN ? END",
                (name, now if limit <= 1 else None, error, limit, now),
            )
        return self.get(name)

    def record_success(self, name: str) -> None:
        if self.get(name).failures:
            with self._db.write() as db:
                db.execute("DELETE FROM breakers WHERE name = ?", (name,))


class BridgeStates:
    """How far each bridge has come, durably, and which the owner paused. Raises `StoreError`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def load_position(self, bridge: str) -> str:
        return self._db.value("SELECT position FROM bridge_states WHERE bridge = ?", (bridge,)) or ""

    def save_position(self, bridge: str, position: str) -> None:
        if position and position != self.load_position(bridge):
            with self._db.write() as db:
                save_position(db, bridge, position)

    def is_paused(self, bridge: str) -> bool:
        return bool(self._db.value("SELECT paused FROM bridge_states WHERE bridge = ?", (bridge,)))

    def set_paused(self, bridge: str, paused: bool) -> None:
        with self._db.write() as db:
            db.upsert_row("bridge_states", ("bridge",), bridge=bridge, paused=paused)

    def delete(self, bridge: str) -> None:
        """The bridge was removed: one that is added again starts from the beginning."""
        with self._db.write() as db:
            db.execute("DELETE FROM bridge_states WHERE bridge = ?", (bridge,))


def save_position(db: Database, bridge: str, position: str) -> None:
    """Inside a transaction: the bridge continues receiving there; "" leaves it where it was."""
    if position:
        db.upsert_row("bridge_states", ("bridge",), bridge=bridge, position=position)
