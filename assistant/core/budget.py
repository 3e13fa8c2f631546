"""Daily and monthly spending caps: how much is used, and by whom. Pure.

Sums come from rows that the ledger maintains per call, so that a query's cost does not grow over the years. An
unsettled reservation counts at its worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass

WARNING_SHARE = 0.8
"""The share of a cap at which the owner is warned."""

# Tolerance for the sum of many floats: a cap that is used to the cent counts as used up, and an exact fit is allowed.
_ROUNDING = 1e-9

CAP_PERIODS = {"daily": "day", "monthly": "month"}
"""Period names by the prefix of a cap's setting."""


def format_usd(value: float) -> str:
    """Return US dollars to the cent; what is less than a cent, but not nothing, with its first digits: "$0.0002"."""
    return f"${value:,.2f}" if value >= 0.005 or value < 0.00005 else f"${value:.4f}"


@dataclass(frozen=True, slots=True)
class PeriodSpend:
    """Usage within a period."""

    usd: float = 0.0
    tokens: int = 0
    unpriced_tokens: int = 0  # tokens of calls without a known price
    calls: int = 0

    def __sub__(self, other: PeriodSpend) -> PeriodSpend:
        return PeriodSpend(
            self.usd - other.usd,
            self.tokens - other.tokens,
            self.unpriced_tokens - other.unpriced_tokens,
            self.calls - other.calls,
        )


def call_spend(usd: float | None, tokens: int, calls: int = 0) -> PeriodSpend:
    """Return the usage of a call; without `usd` it is unpriced."""
    return PeriodSpend(usd or 0.0, tokens, tokens if usd is None else 0, calls)


@dataclass(frozen=True, slots=True)
class CapUsage:
    """Usage of one cap."""

    setting: str  # key in `[budget]`, e.g. "daily_usd"
    period: str  # e.g. "2026-11-20" or "2026-11"
    used: float  # US dollars or tokens
    limit: float  # US dollars or tokens
    reached: bool = False  # the last call was refused because of it

    @property
    def name(self) -> str:
        """ "daily" or "monthly" (the prefix of the setting)."""
        return self.setting.partition("_")[0]

    @property
    def unit(self) -> str:
        """The period: "day" or "month"."""
        return CAP_PERIODS[self.name]

    @property
    def share(self) -> float:
        """1 is used up, and so is a cap of zero."""
        return self.used / self.limit if self.limit else 1.0

    @property
    def is_near_limit(self) -> bool:
        """From `WARNING_SHARE` of the cap on."""
        return self.used >= WARNING_SHARE * self.limit - _ROUNDING

    @property
    def is_spent(self) -> bool:
        """Nothing is left. A call is refused earlier: where the worst that it may cost is more than the rest."""
        return self.used >= self.limit - _ROUNDING

    @property
    def is_used_up(self) -> bool:
        """Nothing is left, or too little for the last call."""
        return self.reached or self.is_spent

    @property
    def state(self) -> str:
        """What a sentence that begins with the cap says of it, where it is used up."""
        if self.is_spent:
            return f"is used up: {self.describe()}"
        return f"has too little left for a call: {self.describe()} is used"

    @property
    def consequence(self) -> str:
        """What happens until its period ends, where it is used up."""
        if self.is_spent:
            return f"No paid model is asked until the next {self.unit}"
        return f"No call that may cost more than the rest is made before the next {self.unit}"

    def amount(self, value: float) -> str:
        """Return the value in the cap's unit, dollars or tokens."""
        return format_usd(value) if self.setting.endswith("_usd") else f"{value:,.0f} tokens"

    def describe(self) -> str:
        """Return e.g. "$1.20 of $5.00"."""
        return f"{self.amount(self.used)} of {self.amount(self.limit)}"


@dataclass(frozen=True, slots=True)
class BlockedRequest:
    """A background request that repeated too often and is blocked until `until`."""

    purpose: str
    times: int
    until: datetime

    @property
    def name(self) -> str:
        return f"runaway:{self.purpose}:{self.until:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class CapNotice:
    """A notice to the owner: a cap, or the background work's share of it, is nearly or completely used up."""

    kind: Literal["near", "reached", "background"]
    cap: CapUsage

    @property
    def name(self) -> str:
        """Deduplication name of the notice: sent once per period, and again if the cap changes."""
        level = "background:reached" if self.kind == "background" else self.kind
        return f"{level}:{self.cap.setting}:{self.cap.period}:{self.cap.limit:g}"


@dataclass(frozen=True, slots=True)
class ShareNotice:
    """A notice to the owner, at most daily: a role has used up its share of the budget."""

    role: str
    cap: str  # "daily" or "monthly"
    day: str

    @property
    def name(self) -> str:
        return f"share:{self.role}:{self.cap}:{self.day}"


BudgetNotice = CapNotice | ShareNotice | BlockedRequest
"""Budget notices to the owner; each is sent once per name."""


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The current state of the budget."""

    today: str  # local day, e.g. "2026-11-20"
    day: PeriodSpend
    month: PeriodSpend
    caps: tuple[CapUsage, ...] = ()  # the configured ones, daily first
    background: tuple[CapUsage, ...] = ()  # the share of each cap for background work
    forecast_usd: float | None = None  # for the month at the current rate; None on its first day
    stopped: tuple[BlockedRequest, ...] = ()


def cap_usages(
    limits: Mapping[str, float], sums: Mapping[str, PeriodSpend], periods: Mapping[str, str]
) -> list[CapUsage]:
    """Return the usage of each configured cap. `limits` maps settings to limits (0: none), `sums` maps "day" and
    "month" to what was spent."""
    usages: list[CapUsage] = []
    for setting, limit in limits.items():
        if limit:
            name, _, unit = setting.partition("_")
            spend = sums[CAP_PERIODS[name]]
            used = spend.usd if unit == "usd" else float(spend.unpriced_tokens)
            usages.append(CapUsage(setting, periods[CAP_PERIODS[name]], used, limit))
    return usages


def first_exceeded_cap(usages: Iterable[CapUsage], usd: float, unpriced_tokens: int) -> CapUsage | None:
    """Return the first cap that a call with this worst case would exceed. Free calls exceed none."""
    for cap in usages:
        cost = usd if cap.setting.endswith("_usd") else float(unpriced_tokens)
        if cost and exceeds_cap(cap.used, cost, cap.limit):
            return cap
    return None


def exceeds_cap(used: float, requested: float, limit: float) -> bool:
    """Return whether `used` + `requested` exceeds `limit`."""
    return used + requested > limit + _ROUNDING


def forecast_spend(usd: float, since: datetime, now: datetime, until: datetime) -> float | None:
    """Extrapolate what the period from `since` to `until` (aware UTC) will cost at the current rate. None during its
    first day, when the rate is too noisy."""
    elapsed, whole = (now - since).total_seconds(), (until - since).total_seconds()
    return usd * whole / elapsed if elapsed >= 86_400 else None
