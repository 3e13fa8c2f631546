"""What was spent, added up from the calls themselves: for people who ask, not for checking caps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row
from zoneinfo import ZoneInfo

from assistant.core.messages import Usage
from assistant.core.model_api import SpendTotals, UsageKey
from assistant.store.database import Database
from assistant.store.text import moment, stamp

_COLUMNS: dict[str, str] = {"model": "model", "kind": "purpose", "session": "coalesce(session, '')"}
_SUMS = """
    count(*) AS calls, sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
    sum(cache_write) AS cache_write, sum(iif(state = 'reserved', reserved_usd, usd)) AS usd,
    sum(iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write)) AS tokens,
    sum(iif(iif(state = 'reserved', reserved_usd, usd) IS NULL,
        iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write), 0)) AS unpriced_tokens,
    sum(state = 'settled' AND usd IS NOT NULL) AS priced
"""


class UsageSums:
    """`zone` is the home's: its days are those that are told."""

    def __init__(self, db: Database, zone: ZoneInfo) -> None:
        self._db = db
        self._zone = zone

    def spent(self, since: datetime, until: datetime, session: str | None) -> SpendTotals:
        """What was spent from `since` until before `until`."""
        of_session = "" if session is None else " AND session = ?"
        values = [stamp(since), stamp(until), *([] if session is None else [session])]
        row = self._db.row(f"SELECT {_SUMS} FROM usage WHERE ts >= ? AND ts < ?{of_session}", values)
        return _total([] if row is None else [row])

    def by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        """Sums since a moment: days in order, the rest by name."""
        if key == "day":
            return list(self._days(since))
        column = _COLUMNS[key]
        rows = self._db.rows(
            f"SELECT {column} AS name, {_SUMS} FROM usage WHERE ts >= ? GROUP BY name ORDER BY name", (stamp(since),)
        )
        return [(row["name"], _total([row])) for row in rows]

    def _days(self, since: datetime) -> Iterator[tuple[str, SpendTotals]]:
        # Zones are offset by whole quarters of an hour, so a quarter lies within one day of any zone.
        quarters = self._db.rows(
            "SELECT substr(ts, 1, 14) || printf('%02d', substr(ts, 15, 2) / 15 * 15) || ':00Z' AS quarter,"
            f" {_SUMS} FROM usage WHERE ts >= ? GROUP BY quarter ORDER BY quarter",
            (stamp(since),),
        )
        dated = [(moment(row["quarter"]).astimezone(self._zone).date().isoformat(), row) for row in quarters]
        for day, rows in groupby(dated, key=itemgetter(0)):
            yield day, _total(row for _, row in rows)


def _total(rows: Iterable[Row]) -> SpendTotals:
    calls = tokens = unpriced = priced = 0
    usage, usd = Usage(), 0.0
    for row in rows:
        if row["calls"]:
            calls += row["calls"]
            tokens += row["tokens"]
            unpriced += row["unpriced_tokens"]
            priced += row["priced"]
            usd += row["usd"] or 0.0
            usage += Usage(row["input"], row["output"], row["cache_read"], row["cache_write"])
    known = Usage(usage.input, usage.output, usage.cache_read, usage.cache_write, usd if priced else None)
    return SpendTotals(calls, known, usd, tokens, unpriced)
