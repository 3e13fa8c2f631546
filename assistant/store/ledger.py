"""What models cost: reserved at the worst case before each call, settled after it, never above a cap (I9).

What always holds: a reservation is counted from the moment it is written, so that calls side by side, and a call whose
end a crash hid, cannot pass a cap together. The sums of a day and a month (of the home's time zone) are kept as rows;
a cap is checked without adding up. Settling moves the sums of the period in which the reservation was made. Others
than the owner may use a share of each cap (`store/shares.py`), and so may work in the background. That a cap is near,
or used up, is told once (`store/spending_guard.py`), in the transaction that found it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.budget import BudgetStatus, CapUsage, PeriodSpend, cap_usages, first_exceeded_cap, forecast_spend
from assistant.core.errors import BudgetExceeded, RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, ModelCall, Reservation, SpendTotals, UsageKey
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import background_notice, cap_notice, notice_key, runaway_notice
from assistant.store.database import Database
from assistant.store.shares import ShareExceeded, Shares, role
from assistant.store.spending_guard import Marks, Repeats
from assistant.store.text import moment, stamp
from assistant.store.usage_sums import UsageSums

_BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class _Cost:
    usd: float | None
    tokens: int

    @property
    def unpriced(self) -> int:
        return self.tokens if self.usd is None else 0


class _CapReached(BudgetExceeded):
    """A cap, or the part of it that work in the background may use."""

    def __init__(self, text: str, cap: CapUsage, *, background: bool) -> None:
        super().__init__(text)
        self.cap = cap
        self.background = background


def _unchanged() -> None:
    """The settings stay as they are."""


class Ledger:
    """Implements `ports.Ledger`. `zone` is the home's: its days and months are what caps are of."""

    def __init__(
        self, db: Database, budget: BudgetSettings, zone: ZoneInfo, shares: Shares | None = None
    ) -> None:  # fmt: skip
        """Without `shares` only the owner may spend."""
        self._db = db
        self.shares = shares or Shares(db)
        # Replaced where the owner changes it while the daemon runs; asked for before a call is refused.
        self.budget = budget
        self.look_again: Callable[[], None] = _unchanged
        self._zone = zone
        self._sums = UsageSums(db, zone)
        self.marks = Marks(db)
        self._repeats = Repeats(db)

    # ------------------------------------------------------------------------------------------------------------ calls

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        try:
            return self._reserve(call, now)
        except BudgetExceeded as error:
            known = self.budget
            self.look_again()
            if self.budget == known:
                self._tell(error, call, now)
                raise
        return self.reserve(call, now)

    def _reserve(self, call: ModelCall, now: datetime) -> Reservation:
        cost = _Cost(call.usd, call.input_tokens + call.max_output)
        with self._db.write() as db:
            if call.fingerprint:
                self._repeats.sent(call.fingerprint, call.purpose, self.budget.runaway_calls, now)
            self._check(cost, call, now)
            row_id = db.insert(
                "INSERT INTO usage (ts, purpose, provider, model, session, turn, state, reserved_tokens, reserved_usd)"
                " VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?, ?)",
                (
                    stamp(now), call.purpose, call.provider, call.model, call.session, call.turn, cost.tokens,
                    cost.usd,
                ),
            )  # fmt: skip
            for period in self._periods(now).values():
                self._add(period, cost, 1, calls=1)
                for part in _parts(call.purpose, call.session):
                    self.shares.add(part, period, cost.usd or 0.0, cost.unpriced)
        return Reservation(row_id, cost.usd, cost.tokens, call.fingerprint)

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
            reserved, periods = _Cost(row["reserved_usd"], row["reserved_tokens"]), self._periods(moment(row["ts"]))
            usd, unpriced = (billed.usd or 0.0) - (reserved.usd or 0.0), billed.unpriced - reserved.unpriced
            for period in periods.values():
                self._add(period, reserved, -1)
                self._add(period, billed, 1)
                for part in _parts(row["purpose"], row["session"]):
                    self.shares.add(part, period, usd, unpriced)
            if reservation.fingerprint and not tokens:
                self._repeats.not_sent(reservation.fingerprint)
            for cap in self._caps(periods):
                if cap.is_used_up:
                    self.marks.tell(notice_key("reached", cap), cap_notice("reached", cap), now)
                elif cap.is_near and not self.marks.has(notice_key("reached", cap)):
                    self.marks.tell(notice_key("near", cap), cap_notice("near", cap), now)

    # ---------------------------------------------------------------------------------------------------------- looking

    def spent(self, since: datetime, until: datetime, *, session: str | None = None) -> SpendTotals:
        """What was spent from `since` until before `until`."""
        return self._sums.spent(since, until, session)

    def by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        """Sums since a moment: days in order, the rest by name."""
        return self._sums.by(key, since)

    def standing(self, now: datetime) -> BudgetStatus:
        """How the budget stands, from a few rows."""
        periods = self._periods(now)
        day, month = (self._total(period) for period in (periods["day"], periods["month"]))
        caps, part = self._caps(periods), self._caps(periods, part=_BACKGROUND)
        known = self.marks.known(notice_key("reached", cap) for cap in caps)
        known_of_part = self.marks.known(notice_key("reached", cap, background=True) for cap in part)
        return BudgetStatus(
            periods["day"], day, month,
            tuple(replace(cap, reached=notice_key("reached", cap) in known) for cap in caps),
            tuple(replace(cap, reached=notice_key("reached", cap, background=True) in known_of_part) for cap in part),
            self._forecast(month, now), tuple(self._repeats.stopped(now)),
        )  # fmt: skip

    def _forecast(self, month: PeriodSpend, now: datetime) -> float | None:
        """From the first day of the month on which anything was asked, for a home may be younger than that."""
        local = now.astimezone(self._zone)
        first = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        row = self._db.row(
            "SELECT min(period) AS first FROM usage_totals WHERE period >= ? AND period <= ?",
            (first.date().isoformat(), local.date().isoformat()),
        )
        if row is None or row["first"] is None:
            return None
        begun = datetime.fromisoformat(row["first"]).replace(tzinfo=self._zone)
        until = (first + timedelta(days=32)).replace(day=1)
        return forecast_spend(month.usd, begun.astimezone(UTC), now.astimezone(UTC), until.astimezone(UTC))

    # ------------------------------------------------------------------------------------------------------------- caps

    def _check(self, cost: _Cost, call: ModelCall, now: datetime) -> None:
        periods, of = self._periods(now), role(call.session)
        usd, unpriced = cost.usd or 0.0, cost.unpriced
        asked = f"${usd:.2f}" if cost.usd is not None else f"{unpriced:,} tokens"
        if cap := first_exceeded_cap(self._caps(periods), usd, unpriced):
            raise _CapReached(_told(cap, of, asked), cap, background=False)
        budget = self.budget
        for name, unit in (("daily", "day"), ("monthly", "month")):
            most = getattr(budget, f"{name}_usd"), getattr(budget, f"{name}_tokens")
            self.shares.check(of, (name, unit, periods[unit]), most, usd, unpriced)
        part = self._caps(periods, part=_BACKGROUND) if call.purpose in BACKGROUND_PURPOSES else []
        if cap := first_exceeded_cap(part, usd, unpriced):
            raise _CapReached(_told_of_part(cap, of, asked), cap, background=True)

    def _caps(self, periods: dict[str, str], *, part: str = "") -> list[CapUsage]:
        """The caps that are set, or the part of each that `part` may use, as they stand."""
        budget = self.budget
        limits: dict[str, float] = {
            "daily_usd": budget.daily_usd, "daily_tokens": budget.daily_tokens, "monthly_usd": budget.monthly_usd,
            "monthly_tokens": budget.monthly_tokens,
        }  # fmt: skip
        if not part:
            return cap_usages(limits, {unit: self._total(period) for unit, period in periods.items()}, periods)
        found = cap_usages(limits, {unit: self.shares.used(part, period) for unit, period in periods.items()}, periods)
        return [replace(cap, most=cap.most * budget.background_share) for cap in found]

    def _tell(self, error: BudgetExceeded, call: ModelCall, now: datetime) -> None:
        """Why a call was refused, for the owner: once. Outside of any transaction."""
        match error:
            case ShareExceeded():
                self.shares.share_used(error.role, error.cap, now)
            case _CapReached(cap=cap, background=background):
                # That a part is nothing was somebody's wish.
                if cap.most:
                    notice = background_notice(cap) if background else cap_notice("reached", cap)
                    with self._db.write():
                        self.marks.tell(notice_key("reached", cap, background=background), notice, now)
            case RepeatedRequestBlocked():
                with self._db.write():
                    stopped = self._repeats.stop(call.fingerprint, self._next_day(now))
                    if stopped is not None:
                        notice = runaway_notice(stopped, self._zone, now)
                        self.marks.tell(notice.key, notice, now)

    def _total(self, period: str) -> PeriodSpend:
        row = self._db.row("SELECT * FROM usage_totals WHERE period = ?", (period,))
        return (
            PeriodSpend()
            if row is None
            else PeriodSpend(row["usd"], row["tokens"], row["unpriced_tokens"], row["calls"])
        )

    def _add(self, period: str, cost: _Cost, sign: int, *, calls: int = 0) -> None:
        self._db.execute(
            "INSERT INTO usage_totals (period, usd, tokens, unpriced_tokens, calls) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (period) DO UPDATE SET usd = usd + excluded.usd, tokens = tokens + excluded.tokens,"
            " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens, calls = calls + excluded.calls",
            (period, sign * (cost.usd or 0.0), sign * cost.tokens, sign * cost.unpriced, calls),
        )

    def _periods(self, now: datetime) -> dict[str, str]:
        day = now.astimezone(self._zone).date().isoformat()
        return {"day": day, "month": day[:7]}

    def _next_day(self, now: datetime) -> datetime:
        today = now.astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return (today + timedelta(days=1)).astimezone(UTC)


def _parts(purpose: str, session: str | None) -> list[str]:
    """Those parts of the budget that a call counts against, beside the whole."""
    return [role(session), *([_BACKGROUND] if purpose in BACKGROUND_PURPOSES else [])]


def _told(cap: CapUsage, role: str, asked: str) -> str:
    if role != "owner":
        return f"The {cap.name} budget is used up. Your message is kept; ask again next {cap.unit}."
    return (
        f"The {cap.name} budget is used up: {cap.describe()}, and this call may cost {asked}. Your message is kept; "
        f"raise `budget.{cap.setting}`, or wait for the next {cap.unit}."
    )


def _told_of_part(cap: CapUsage, role: str, asked: str) -> str:
    part = f"The part of the {cap.name} budget that work in the background may use is used up"
    if role != "owner":
        return f"{part}. Your message is kept; ask again next {cap.unit}."
    return (
        f"{part}: {cap.describe()}, and this call may cost {asked}. Your message is kept; raise "
        f"`budget.background_share`, or wait for the next {cap.unit}."
    )
