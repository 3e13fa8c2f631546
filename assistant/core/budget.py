"""Spending caps of a day and a month as values: how much of each is used, and who used it. Pure.

Sums come from rows that are kept with each call (the ledger), so that asking costs the same after years. A
reservation that is not settled counts at its worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

WARNING_SHARE = 0.8
"""The share of a cap from which the owner is warned."""

# A sum of many amounts is off by less than this: a cap that is used to the cent is used up, and what just fits, fits.
_ROUNDING = 1e-9

BudgetLevel = Literal["near", "reached"]
CAP_PERIODS = {"daily": "day", "monthly": "month"}
"""The periods that caps are of, by the first word of their settings."""


@dataclass(frozen=True, slots=True)
class PeriodSpend:
    """What a period has cost; `unpriced_tokens` are those of calls without a known price."""

    usd: float = 0.0
    tokens: int = 0
    unpriced_tokens: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class CapUsage:
    """One cap that is set, and what of it is used. `setting` is its key in `[budget]`, as in "daily_usd"; `period` the
    day or month it is of, as in "2026-11-20" or "2026-11"; `used` and `most` in US dollars or tokens. `reached`: a call
    was refused for it."""

    setting: str
    period: str
    used: float
    limit: float
    reached: bool = False

    @property
    def name(self) -> str:
        """ "daily" or "monthly"."""
        return self.setting.partition("_")[0]

    @property
    def unit(self) -> str:
        """ "day" or "month"."""
        return CAP_PERIODS[self.name]

    @property
    def share(self) -> float:
        return self.used / self.limit if self.limit else 1.0

    @property
    def is_near_limit(self) -> bool:
        return self.used >= WARNING_SHARE * self.limit - _ROUNDING

    @property
    def is_used_up(self) -> bool:
        return self.reached or self.used >= self.limit - _ROUNDING

    def amount(self, value: float) -> str:
        return f"${value:,.2f}" if self.setting.endswith("_usd") else f"{value:,.0f} tokens"

    def describe(self) -> str:
        """As in "$1.20 of $5.00"."""
        return f"{self.amount(self.used)} of {self.amount(self.limit)}"


@dataclass(frozen=True, slots=True)
class BlockedRequest:
    """A request of the background that was sent again and again, and is not sent any more until then."""

    purpose: str
    times: int
    until: datetime


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """How the budget stands. `caps` are those that are set, those of the day first; `background` is the part of each
    that work in the background may use. `forecast_usd` is what the month comes to if it goes on as it did, None where
    it is too young to tell; `today` is the day of the home, as in "2026-11-20"."""

    today: str
    day: PeriodSpend
    month: PeriodSpend
    caps: tuple[CapUsage, ...] = ()
    background: tuple[CapUsage, ...] = ()
    forecast_usd: float | None = None
    stopped: tuple[BlockedRequest, ...] = ()


def cap_usages(
    limits: Mapping[str, float], sums: Mapping[str, PeriodSpend], periods: Mapping[str, str]
) -> list[CapUsage]:
    """Those of `limits` (by setting, 0 is none) that are set, against the sums of "day" and "month"."""
    found: list[CapUsage] = []
    for setting, most in limits.items():
        if most:
            name, _, unit = setting.partition("_")
            of = sums[CAP_PERIODS[name]]
            used = of.usd if unit == "usd" else float(of.unpriced_tokens)
            found.append(CapUsage(setting, periods[CAP_PERIODS[name]], used, most))
    return found


def first_exceeded_cap(usages: Iterable[CapUsage], usd: float, unpriced_tokens: int) -> CapUsage | None:
    """The first cap that a call of this worst case would pass. What is free passes none."""
    for cap in usages:
        asked = usd if cap.setting.endswith("_usd") else float(unpriced_tokens)
        if asked and exceeds_cap(cap.used, asked, cap.limit):
            return cap
    return None


def exceeds_cap(used: float, requested: float, limit: float) -> bool:
    """Whether what is asked for, on top of what is used, is more than may be used."""
    return used + requested > limit + _ROUNDING


def forecast_spend(usd: float, since: datetime, now: datetime, until: datetime) -> float | None:
    """What a period from `since` to `until` comes to, all aware UTC, if it goes on as until now; None within its first
    day, whose hours are not alike."""
    elapsed, whole = (now - since).total_seconds(), (until - since).total_seconds()
    return usd * whole / elapsed if elapsed >= 86_400 else None
