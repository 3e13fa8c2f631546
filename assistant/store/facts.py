"""What was learned of models, remembered between starts: correction factors and limits."""

from __future__ import annotations

from datetime import datetime

from assistant.core.model_api import ModelLimits
from assistant.core.records import TokenCalibration
from assistant.store.database import Database
from assistant.store.text import stamp


class ModelFacts:
    """Implements `ports.ModelFacts`. Factor and limits of a model are set apart from each other."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def calibration(self, model: str) -> TokenCalibration | None:
        row = self._db.row(
            "SELECT factor, samples FROM model_facts WHERE model = ? AND factor IS NOT NULL", (model,)
        )  # fmt: skip
        return None if row is None else TokenCalibration(model, row["factor"], row["samples"])

    def set_calibration(self, calibration: TokenCalibration, now: datetime) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO model_facts (model, factor, samples, updated_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (model) DO UPDATE SET factor = excluded.factor, samples = excluded.samples,"
                " updated_at = excluded.updated_at",
                (calibration.model, calibration.factor, calibration.samples, stamp(now)),
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
                    model, limits.window, limits.max_output, limits.max_bytes, limits.max_images, limits.source,
                    stamp(now),
                ),
            )  # fmt: skip
