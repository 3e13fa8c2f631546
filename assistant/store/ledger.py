"""What models cost: reserved at the worst case before each call, settled after it, never above a cap (I9).

What always holds: a reservation is counted from the moment it is written, so that calls side by side, and a call whose
end a crash hid, cannot pass a cap together. The sums of a day and a month (of the home's time zone) are kept as rows;
a cap is checked without adding up. Settling moves the sums of the period in which the reservation was made. Others
than the owner may use a share of each cap (`store/shares.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.errors import BudgetExceeded
from assistant.messages import Usage
from assistant.requests import Call, Reservation, Spent
from assistant.settings_sections import BudgetSettings
from assistant.store.database import Database
from assistant.store.shares import ShareExceeded, Shares, role
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


@dataclass(frozen=True, slots=True)
class _Cost:
    usd: float | None
    tokens: int

    @property
    def unpriced(self) -> int:
        return self.tokens if self.usd is None else 0


@dataclass(frozen=True, slots=True)
class _Cap:
    """The caps of one period; 0 is none."""

    name: str
    unit: str
    period: str
    usd: float
    tokens: int

    def told(self, role: str, used: str, asked: str, key: str) -> str:
        if role != "owner":
            return f"The {self.name} budget is used up. Your message is kept; ask again next {self.unit}."
        return (
            f"The {self.name} budget is used up: {used}, and this call may cost {asked}. Your message is kept; "
            f"raise `budget.{self.name}_{key}`, or wait for the next {self.unit}."
        )


class Ledger:
    """Implements `ports.Ledger`. `zone` is the home's: its days and months are what caps are of."""

    def __init__(
        self, db: Database, budget: BudgetSettings, zone: ZoneInfo, shares: Shares | None = None
    ) -> None:  # fmt: skip
        """Without `shares` only the owner may spend."""
        self._db = db
        self.shares = shares or Shares(db)
        # Replaced where the owner changes it while the daemon runs.
        self.budget = budget
        self._zone = zone

    def reserve(self, call: Call, now: datetime) -> Reservation:
        try:
            return self._reserve(call, now)
        except ShareExceeded as error:
            self.shares.share_used(error.role, error.cap, now)
            raise

    def _reserve(self, call: Call, now: datetime) -> Reservation:
        cost, of = _Cost(call.usd, call.input_tokens + call.max_output), role(call.session)
        with self._db.write() as db:
            self._check(cost, of, now)
            row_id = db.insert(
                "INSERT INTO usage (ts, purpose, provider, model, session, turn, state, reserved_tokens, reserved_usd)"
                " VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?, ?)",
                (
                    stamp(now), call.purpose, call.provider, call.model, call.session, call.turn, cost.tokens,
                    cost.usd,
                ),
            )  # fmt: skip
            for period in self._periods(now):
                self._add(period, cost, 1, calls=1)
                self.shares.add(of, period, cost.usd or 0.0, cost.unpriced)
        return Reservation(row_id, cost.usd, cost.tokens)

    def settle(self, reservation: Reservation, usage: Usage, now: datetime) -> None:
        """Settling again what is settled changes nothing."""
        tokens = usage.prompt + usage.output
        billed = _Cost(usage.cost_usd if tokens or usage.cost_usd is not None else 0.0, tokens)
        with self._db.write() as db:
            row = db.row("SELECT * FROM usage WHERE id = ? AND state = 'reserved'", (reservation.id,))
            if row is None:
                return
            db.execute(
                "UPDATE usage SET state = 'settled', input = ?, output = ?, cache_read = ?, cache_write = ?, usd = ?,"
                " settled_at = ? WHERE id = ?",
                (
                    usage.input, usage.output, usage.cache_read, usage.cache_write, billed.usd, stamp(now),
                    reservation.id,
                ),
            )  # fmt: skip
            reserved, of = _Cost(row["reserved_usd"], row["reserved_tokens"]), role(row["session"])
            usd, unpriced = (billed.usd or 0.0) - (reserved.usd or 0.0), billed.unpriced - reserved.unpriced
            for period in self._periods(moment(row["ts"])):
                self._add(period, reserved, -1)
                self._add(period, billed, 1)
                self.shares.add(of, period, usd, unpriced)

    def spent(self, since: datetime, until: datetime, *, session: str | None = None) -> Spent:
        """What was spent from `since` until before `until`."""
        of_session = "" if session is None else " AND session = ?"
        values = [stamp(since), stamp(until), *([] if session is None else [session])]
        row = self._db.row(f"SELECT {_SUMS} FROM usage WHERE ts >= ? AND ts < ?{of_session}", values)
        return _total([] if row is None else [row])

    def by(self, key: Literal["day", "model", "kind", "session"], since: datetime) -> list[tuple[str, Spent]]:
        """Sums since a moment: days in order, the rest by name."""
        if key == "day":
            return list(self._days(since))
        column = _COLUMNS[key]
        rows = self._db.rows(
            f"SELECT {column} AS name, {_SUMS} FROM usage WHERE ts >= ? GROUP BY name ORDER BY name", (stamp(since),)
        )
        return [(row["name"], _total([row])) for row in rows]

    def _days(self, since: datetime) -> Iterator[tuple[str, Spent]]:
        # Zones are offset by whole quarters of an hour, so a quarter lies within one day of any zone.
        quarters = self._db.rows(
            "SELECT substr(ts, 1, 14) || printf('%02d', substr(ts, 15, 2) / 15 * 15) || ':00Z' AS quarter,"
            f" {_SUMS} FROM usage WHERE ts >= ? GROUP BY quarter ORDER BY quarter",
            (stamp(since),),
        )
        dated = [(self._periods(moment(row["quarter"]))[0], row) for row in quarters]
        for day, rows in groupby(dated, key=itemgetter(0)):
            yield day, _total(row for _, row in rows)

    # -------------------------------------------------------------------------------------------------------- caps

    def _check(self, cost: _Cost, of: str, now: datetime) -> None:
        day, month = self._periods(now)
        budget = self.budget
        for cap in (
            _Cap("daily", "day", day, budget.daily_usd, budget.daily_tokens),
            _Cap("monthly", "month", month, budget.monthly_usd, budget.monthly_tokens),
        ):
            row = self._db.row("SELECT usd, unpriced_tokens FROM usage_totals WHERE period = ?", (cap.period,))
            usd, tokens = (0.0, 0) if row is None else (row["usd"], row["unpriced_tokens"])
            if cap.usd and cost.usd and usd + cost.usd > cap.usd:
                raise BudgetExceeded(cap.told(of, f"${usd:.2f} of ${cap.usd:.2f}", f"${cost.usd:.2f}", "usd"))
            if cap.tokens and cost.unpriced and tokens + cost.unpriced > cap.tokens:
                raise BudgetExceeded(
                    cap.told(of, f"{tokens:,} tokens of {cap.tokens:,}", f"{cost.unpriced:,} tokens", "tokens")
                )
            self.shares.check(
                of, (cap.name, cap.unit, cap.period), (cap.usd, cap.tokens), cost.usd or 0.0, cost.unpriced
            )  # fmt: skip

    def _add(self, period: str, cost: _Cost, sign: int, *, calls: int = 0) -> None:
        self._db.execute(
            "INSERT INTO usage_totals (period, usd, tokens, unpriced_tokens, calls) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (period) DO UPDATE SET usd = usd + excluded.usd, tokens = tokens + excluded.tokens,"
            " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens, calls = calls + excluded.calls",
            (period, sign * (cost.usd or 0.0), sign * cost.tokens, sign * cost.unpriced, calls),
        )

    def _periods(self, now: datetime) -> tuple[str, str]:
        day = now.astimezone(self._zone).date().isoformat()
        return day, day[:7]


def _total(rows: Iterable[Row]) -> Spent:
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
    return Spent(calls, known, usd, tokens, unpriced)
