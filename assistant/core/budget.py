"""Spending caps of a day and a month as values: how much of each is used, and who used it. Pure.

Sums come from rows that are kept with each call (the ledger), so that asking costs the same after years. A
reservation that is not settled counts at its worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass

WARNING_SHARE = 0.8
"""The share of a cap from which the owner is warned."""

# A sum of many amounts is off by less than this: a cap that is used to the cent is used up, and what just fits, fits.
_ROUNDING = 1e-9

CAP_PERIODS = {"daily": "day", "monthly": "month"}
"""The periods that caps are of, by the first word of their settings."""


@dataclass(frozen=True, slots=True)
class PeriodSpend:
    """What a period has cost."""

    usd: float = 0.0
    tokens: int = 0
    unpriced_tokens: int = 0  # of calls without a known price
    calls: int = 0


@dataclass(frozen=True, slots=True)
class CapUsage:
    """One cap that is set, and what of it is used."""

    setting: str  # its key in `[budget]`, as in "daily_usd"
    period: str  # its day or month, as in "2026-11-20" or "2026-11"
    used: float  # US dollars or tokens
    limit: float  # US dollars or tokens
    reached: bool = False  # a call was refused for it

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
    """A background request that was repeated too often, and is not sent again before `until`."""

    purpose: str
    times: int
    until: datetime

    @property
    def name(self) -> str:
        return f"runaway:{self.purpose}:{self.until:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class CapNotice:
    """To the owner: a cap is near or used up, or the part of it for work in the background is."""

    kind: Literal["near", "reached", "background"]
    cap: CapUsage

    @property
    def name(self) -> str:
        """Under this name it is stored that it was sent: once a period, and again for a cap that was changed."""
        level = "background:reached" if self.kind == "background" else self.kind
        return f"{level}:{self.cap.setting}:{self.cap.period}:{self.cap.limit:g}"


@dataclass(frozen=True, slots=True)
class ShareNotice:
    """To the owner, once a day: others have used their part of the budget."""

    role: str
    cap: str  # "daily" or "monthly"
    day: str

    @property
    def name(self) -> str:
        return f"share:{self.role}:{self.cap}:{self.day}"


BudgetNotice = CapNotice | ShareNotice | BlockedRequest
"""What the owner is told of the budget, each once under its name."""


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """What is used of the budget."""

    today: str  # local day, as in "2026-11-20"
    day: PeriodSpend
    month: PeriodSpend
    caps: tuple[CapUsage, ...] = ()  # those that are set, the daily ones first
    background: tuple[CapUsage, ...] = ()  # the part of each that work in the background may use
    forecast_usd: float | None = None  # for the month at this rate; None on its first day
    stopped: tuple[BlockedRequest, ...] = ()


def cap_usages(
    limits: Mapping[str, float], sums: Mapping[str, PeriodSpend], periods: Mapping[str, str]
) -> list[CapUsage]:
    """Those of `limits` (by setting, 0 is none) that are set, against the sums of "day" and "month"."""
    usages: list[CapUsage] = []
    for setting, limit in limits.items():
        if limit:
            name, _, unit = setting.partition("_")
            spend = sums[CAP_PERIODS[name]]
            used = spend.usd if unit == "usd" else float(spend.unpriced_tokens)
            usages.append(CapUsage(setting, periods[CAP_PERIODS[name]], used, limit))
    return usages


def first_exceeded_cap(usages: Iterable[CapUsage], usd: float, unpriced_tokens: int) -> CapUsage | None:
    """The first cap that a call of this worst case would exceed. What is free exceeds none."""
    for cap in usages:
        cost = usd if cap.setting.endswith("_usd") else float(unpriced_tokens)
        if cost and exceeds_cap(cap.used, cost, cap.limit):
            return cap
    return None


def exceeds_cap(used: float, requested: float, limit: float) -> bool:
    """Whether `requested` on top of `used` is more than `limit`."""
    return used + requested > limit + _ROUNDING


def forecast_spend(usd: float, since: datetime, now: datetime, until: datetime) -> float | None:
    """What a period from `since` to `until`, all aware UTC, costs at the rate until now; None within its first day,
    whose hours differ too much."""
    elapsed, whole = (now - since).total_seconds(), (until - since).total_seconds()
    return usd * whole / elapsed if elapsed >= 86_400 else None
