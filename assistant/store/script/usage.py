"""Sums of spending computed from the stored calls, for reports (limits are checked in `ledger`); repeated background
requests; learned facts about models (correction factors, limits); and circuit breakers (F07).

Of a repeated request only a short digest is kept, for at most a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row
from zoneinfo import ZoneInfo

from assistant.core.budget import BlockedRequest
from assistant.core.checkpoints import CircuitBreaker
from assistant.core.errors import RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import ModelLimits, SpendTotals, UsageKey
from assistant.core.records import TokenCalibration
from assistant.store.database import Database, DatabaseStore
from assistant.store.rows import class_row, parse_time
from assistant.store.script.usage_parts import NOT_REPORTED, spent_by_part

_COLUMNS: dict[str, str] = {"model": "model", "kind": "purpose", "session": "coalesce(session, '')"}
_FAILED = "state = 'settled' AND input + output + cache_read + cache_write = 0"
_SUMS = f"""
    sum(NOT ({_FAILED})) AS calls, sum({_FAILED}) AS failed, sum(input) AS input, sum(output) AS output,
    sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
    sum(iif(state = 'reserved', reserved_usd, usd)) AS usd,
    sum(iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write)) AS tokens,
    sum(iif(iif(state = 'reserved', reserved_usd, usd) IS NULL,
        iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write), 0)) AS unpriced_tokens,
    sum(state = 'settled' AND usd IS NOT NULL) AS priced
"""


def spent_by(db: Database, zone: ZoneInfo, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
    """Return sums since a time: by day of the zone in order, other keys by name; last, what no provider reported by
    part."""
    if key == "day":
        return list(_spent_by_day(db, zone, since))
    if key == "part":
        rest = db.rows(f"SELECT {_SUMS} FROM usage WHERE ts >= ? AND parts = ''", (since,))
        return [*spent_by_part(db, since), *((NOT_REPORTED, _add_up([row])) for row in rest if row["calls"])]
    rows = db.rows(
        f"SELECT {_COLUMNS[key]} AS name, {_SUMS} FROM usage WHERE ts >= ? GROUP BY name ORDER BY name", (since,)
    )
    return [(row["name"], _add_up([row])) for row in rows]


def _spent_by_day(db: Database, zone: ZoneInfo, since: datetime) -> Iterator[tuple[str, SpendTotals]]:
    # Zone offsets are multiples of 15 minutes, so each quarter of an hour is within one day in every zone.
    quarters = db.rows(
        "SELECT substr(ts, 1, 14) || printf('%02d', substr(ts, 15, 2) / 15 * 15) || ':00Z' AS quarter,"
        f" {_SUMS} FROM usage WHERE ts >= ? GROUP BY quarter ORDER BY quarter",
        (since,),
    )
    dated = [(parse_time(row["quarter"]).astimezone(zone).date().isoformat(), row) for row in quarters]
    for day, rows in groupby(dated, key=itemgetter(0)):
        yield day, _add_up(row for _, row in rows)


def _add_up(rows: Iterable[Row]) -> SpendTotals:
    calls = tokens = unpriced = priced = failed = 0
    usage, usd = Usage(), 0.0
    for row in rows:
        if row["calls"] or row["failed"]:
            failed += row["failed"]
            calls += row["calls"]
            tokens += row["tokens"]
            unpriced += row["unpriced_tokens"]
            priced += row["priced"]
            usd += row["usd"] or 0.0
            usage += Usage(row["input"], row["output"], row["cache_read"], row["cache_write"])
    return SpendTotals(calls, replace(usage, cost_usd=usd if priced else None), usd, tokens, unpriced, failed)


_WITHIN = timedelta(hours=1)
# Until the next day begins: a day, plus an hour since a day may be longer. Longer blocks come from a wrong clock.
_MAX_BLOCK = timedelta(hours=25)


_read_blocked = class_row(BlockedRequest, times="sent", until="stopped_until")


class RepeatedCalls(DatabaseStore):
    """Counts how often the same background request was sent within the last hour, and blocks repeated ones."""

    def count_call(self, fingerprint: str, purpose: str, limit: int, now: datetime) -> None:
        """Within a transaction: count a request. Raises `RepeatedRequestBlocked` if it was sent `limit` times within
        the hour."""
        row = self._db.row("SELECT * FROM repeated_requests WHERE fingerprint = ?", (fingerprint,))
        until = parse_time(row["stopped_until"]) if row is not None and row["stopped_until"] is not None else None
        if until is not None and now < until <= now + _MAX_BLOCK:
            raise RepeatedRequestBlocked()
        # Entries that a wrong clock dated in the future are not from the last hour.
        recent = row is not None and until is None and timedelta() <= now - parse_time(row["first_at"]) < _WITHIN
        if row is not None and recent:
            if row["sent"] >= limit:
                raise RepeatedRequestBlocked()
            self._db.execute("UPDATE repeated_requests SET sent = sent + 1 WHERE fingerprint = ?", (fingerprint,))
            return
        self._db.execute(
            "DELETE FROM repeated_requests WHERE fingerprint = ? OR coalesce(stopped_until, '') < ? AND first_at < ?",
            (fingerprint, now, now - _WITHIN),
        )
        self._db.insert_row("repeated_requests", fingerprint=fingerprint, purpose=purpose, first_at=now, sent=1)

    def uncount_call(self, fingerprint: str) -> None:
        """Within a transaction: undo the count of a request that cost nothing."""
        self._db.execute(
            "UPDATE repeated_requests SET sent = sent - 1 WHERE fingerprint = ? AND sent > 0", (fingerprint,)
        )

    def block(self, fingerprint: str, until: datetime) -> BlockedRequest | None:
        """Within a transaction: block a request until a time; None if it is blocked already."""
        row = self._db.row(
            "SELECT * FROM repeated_requests WHERE fingerprint = ? AND stopped_until IS NULL", (fingerprint,)
        )
        if row is None:
            return None
        self._db.update_rows("repeated_requests", {"fingerprint": fingerprint}, stopped_until=until)
        return BlockedRequest(row["purpose"], row["sent"], until)

    def list_blocked(self, now: datetime) -> list[BlockedRequest]:
        """Return the blocks in force, those that end first coming first. One that ends implausibly late was set by a
        wrong clock and is left out."""
        return self._db.read_all(
            _read_blocked,
            "SELECT * FROM repeated_requests WHERE stopped_until > ? AND stopped_until <= ?"
            " ORDER BY stopped_until, purpose",
            (now, now + _MAX_BLOCK),
        )


_read_calibration = class_row(TokenCalibration)
_read_limits = class_row(ModelLimits)
_read_breaker = class_row(CircuitBreaker)


class ModelFacts(DatabaseStore):
    """Stores correction factors and limits of models, independently of each other."""

    def calibration(self, model: str) -> TokenCalibration | None:
        """Return what was learned of the model's token counts, None before its first reported usage."""
        sql = "SELECT * FROM model_facts WHERE model = ? AND factor IS NOT NULL"
        return self._db.read_one(_read_calibration, sql, (model,))

    def last_calibrated(self) -> str | None:
        """Return the calibration of the model that was calibrated last."""
        sql = "SELECT model FROM model_facts WHERE factor IS NOT NULL ORDER BY updated_at DESC LIMIT 1"
        model: str | None = self._db.value(sql)
        return model

    def set_calibration(self, calibration: TokenCalibration, now: datetime) -> None:
        """Not durable at once: it is learned again."""
        with self._db.write(durable=False) as db:
            db.upsert_row("model_facts", ("model",), **asdict(calibration), updated_at=now)

    def limits(self, model: str) -> ModelLimits | None:
        sql = "SELECT * FROM model_facts WHERE model = ? AND window IS NOT NULL"
        return self._db.read_one(_read_limits, sql, (model,))

    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None:
        with self._db.write() as db:
            db.upsert_row("model_facts", ("model",), model=model, **asdict(limits), updated_at=now)


class CircuitBreakers(DatabaseStore):
    """Stores circuit breakers by name; one without a row is closed."""

    def get(self, name: str) -> CircuitBreaker:
        """Return a closed one if nothing failed."""
        breaker = self._db.read_one(_read_breaker, "SELECT * FROM breakers WHERE name = ?", (name,))
        return breaker or CircuitBreaker(name, 0, None)

    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """Count a failure. The breaker opens after `limit` failures in a row; a half-open breaker opens again if its
        trial call fails."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO breakers (name, failures, opened_at, last_error) VALUES (?, 1, ?, ?) ON CONFLICT (name)"
                " DO UPDATE SET failures = failures + 1, last_error = excluded.last_error,"
                " opened_at = CASE WHEN failures + 1 >= ? THEN ? END",
                (name, now if limit <= 1 else None, error, limit, now),
            )
        return self.get(name)

    def record_success(self, name: str) -> None:
        """Close the breaker and forget its failures."""
        if self.get(name).failures:
            with self._db.write() as db:
                db.execute("DELETE FROM breakers WHERE name = ?", (name,))
