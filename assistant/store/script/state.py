"""Small state that survives a restart: what was learned of models (correction factors, limits), circuit breakers
(F07), and how far each bridge has come and whether the owner paused it.

What always holds: a bridge's position is written in the transaction that stores the message before it, or by itself
where there was nothing to store: it is never ahead of the inbox (I1).
"""

from __future__ import annotations

from datetime import datetime

from assistant.core.checkpoints import CircuitBreaker
from assistant.core.model_api import ModelLimits
from assistant.core.records import TokenCalibration
from assistant.store.database import Database
from assistant.store.encoding import clean_text, format_time, parse_time


class ModelFacts:
    """Implements `ports.ModelFacts`. Factor and limits of a model are set apart from each other."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def calibration(self, model: str) -> TokenCalibration | None:
        row = self._db.row("SELECT factor, samples FROM model_facts WHERE model = ? AND factor IS NOT NULL", (model,))
        return None if row is None else TokenCalibration(model, row["factor"], row["samples"])

    def set_calibration(self, calibration: TokenCalibration, now: datetime) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO model_facts (model, factor, samples, updated_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (model) DO UPDATE SET factor = excluded.factor, samples = excluded.samples,"
                " updated_at = excluded.updated_at",
                (calibration.model, calibration.factor, calibration.samples, format_time(now)),
            )

    def limits(self, model: str) -> ModelLimits | None:
        row = self._db.row("SELECT * FROM model_facts WHERE model = ? AND window IS NOT NULL", (model,))
        if row is None:
            return None
        return ModelLimits(row["window"], row["max_output"], row["max_bytes"], row["max_images"], row["source"])

    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO model_facts (model, window, max_output, max_bytes, max_images, source, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET window = excluded.window,"
                " max_output = excluded.max_output, max_bytes = excluded.max_bytes, max_images = excluded.max_images,"
                " source = excluded.source, updated_at = excluded.updated_at",
                (
                    model,
                    limits.window,
                    limits.max_output,
                    limits.max_bytes,
                    limits.max_images,
                    limits.source,
                    format_time(now),
                ),
            )


class CircuitBreakers:
    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, name: str) -> CircuitBreaker:
        row = self._db.row("SELECT * FROM breakers WHERE name = ?", (name,))
        if row is None:
            return CircuitBreaker(name, 0, None)
        opened = None if row["opened_at"] is None else parse_time(row["opened_at"])
        return CircuitBreaker(name, row["failures"], opened, row["last_error"])

    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """The try that a half-open fuse lets through opens it anew when it fails."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO breakers (name, failures, opened_at, last_error) VALUES (?, 1, ?, ?) ON CONFLICT (name)"
                " DO UPDATE SET failures = failures + 1, last_error = excluded.last_error,"
                " opened_at = CASE WHEN failures + 1 >= ? THEN ? END",
                (name, format_time(now) if limit <= 1 else None, clean_text(error), limit, format_time(now)),
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
        row = self._db.row("SELECT position FROM bridge_states WHERE bridge = ?", (bridge,))
        return "" if row is None else str(row["position"])

    def save_position(self, bridge: str, position: str) -> None:
        if position and position != self.load_position(bridge):
            with self._db.write() as db:
                save_position(db, bridge, position)

    def is_paused(self, bridge: str) -> bool:
        return self._db.row("SELECT 1 FROM bridge_states WHERE bridge = ? AND paused", (bridge,)) is not None

    def set_paused(self, bridge: str, paused: bool) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO bridge_states (bridge, paused) VALUES (?, ?)"
                " ON CONFLICT (bridge) DO UPDATE SET paused = excluded.paused",
                (bridge, int(paused)),
            )

    def delete(self, bridge: str) -> None:
        """It was removed: one that is added again begins anew."""
        with self._db.write() as db:
            db.execute("DELETE FROM bridge_states WHERE bridge = ?", (bridge,))


def save_position(db: Database, bridge: str, position: str) -> None:
    """Inside a transaction: the bridge goes on receiving there; "" leaves it where it was."""
    if position:
        db.execute(
            "INSERT INTO bridge_states (bridge, position) VALUES (?, ?)"
            " ON CONFLICT (bridge) DO UPDATE SET position = excluded.position",
            (bridge, clean_text(position)),
        )
