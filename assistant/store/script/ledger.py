"""What models cost: reserved at the worst case before each call, settled after it, never above a cap (I9); and the
part of the budget that guests and rooms may use (I10).

What always holds:
- A reservation counts from the moment it is written, so that concurrent calls, and a call whose end a crash hid,
  cannot pass a cap together.
- The sums of a day and a month (in the configured time zone) are kept as rows, for the whole, for each role other than
  the owner, and for work in the background; a cap is checked without adding up. Settling changes the sums of the
  period in which the reservation was made.
- A role with a share of nothing may only make calls that are free. What others read names none of the owner's sums.
- A notice that a cap is near or used up is sent once, in the transaction that found it (`usage.SpendingNotices`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.budget import (
    BudgetStatus,
    CapUsage,
    PeriodSpend,
    cap_usages,
    exceeds_cap,
    first_exceeded_cap,
    forecast_spend,
)
from assistant.core.errors import BudgetExceeded, RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, ModelCall, Reservation, SpendTotals, UsageKey
from assistant.core.people import OWNER_ONLY_PERMISSIONS, Permissions
from assistant.core.sessions import session_role
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import background_notice, cap_notice, notice_key, runaway_notice
from assistant.store.database import Database
from assistant.store.rows import class_row, parse_time
from assistant.store.script.usage import RepeatedCalls, SpendingNotices, spent_by, total_spent

_ROLE_NAMES = {"guest": "guests", "room": "rooms"}

# Called when a call was refused for its role's share: the role, the name of the cap ("daily", "monthly"), the time.
OnRoleBudgetExceeded = Callable[[str, str, datetime], None]


def ignore_exceeded(role: str, cap: str, now: datetime) -> None:
    """No notice is sent."""


class RoleBudgetExceeded(BudgetExceeded):
    """The part of the budget for guests, or for rooms, is used up."""

    def __init__(self, role: str, cap: str, unit: str) -> None:
        super().__init__(
            f"The part of the {cap} budget that {_ROLE_NAMES.get(role, role)} may use is used up. Your message is "
            f"kept; ask again next {unit}."
        )
        self.role = role
        self.cap = cap


def role_of_call(session: str | None) -> str:
    """Whose call it is that was made for a session; calls without a session are the owner's."""
    return "owner" if session is None else session_role(session)


_read_spend = class_row(PeriodSpend)


class RoleBudgets:
    """The shares of roles other than the owner. `on_exceeded` is called outside of any transaction."""

    def __init__(
        self,
        db: Database,
        authority: Permissions = OWNER_ONLY_PERMISSIONS,
        on_exceeded: OnRoleBudgetExceeded = ignore_exceeded,
    ) -> None:
        self._db = db
        self.authority = authority
        self.on_exceeded = on_exceeded

    def check(self, role: str, cap: tuple[str, str, str], limits: tuple[float, int], usd: float, unpriced: int) -> None:
        """Inside the transaction that reserves: raises `RoleBudgetExceeded` where a call of this worst case (US
        dollars, tokens without a price) does not fit the role's share of a cap (name, unit, period) of `limits`
        (dollars, tokens; 0 is none)."""
        if role == "owner":
            return
        name, unit, period = cap
        share = self.authority.budget_share(role)
        used = self.read_used(role, period)
        for amount, used_amount, limit in zip((usd, unpriced), (used.usd, used.unpriced_tokens), limits, strict=True):
            if amount and (share == 0 or (limit and exceeds_cap(used_amount, amount, limit * share))):
                raise RoleBudgetExceeded(role, name, unit)

    def read_used(self, role: str, period: str) -> PeriodSpend:
        """What a role has used of a period, in US dollars and tokens without a price."""
        sql = "SELECT usd, 0 AS tokens, unpriced_tokens, 0 AS calls FROM usage_by_role WHERE role = ? AND period = ?"
        return self._db.read_one(_read_spend, sql, (role, period)) or PeriodSpend()

    def add(self, role: str, period: str, usd: float, unpriced: int) -> None:
        """Inside a transaction."""
        if role != "owner":
            self._db.execute(
                "INSERT INTO usage_by_role (role, period, usd, unpriced_tokens) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (role, period) DO UPDATE SET usd = usd + excluded.usd,"
                " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens",
                (role, period, usd, unpriced),
            )


_BACKGROUND_PART = "background"
# What a sleep asks models for.
_SLEEP_PURPOSES = BACKGROUND_PURPOSES - {"schedule"}


@dataclass(frozen=True, slots=True)
class _Cost:
    usd: float | None
    tokens: int

    @property
    def unpriced(self) -> int:
        return self.tokens if self.usd is None else 0


class _CapReached(BudgetExceeded):
    """A cap, or its part for background work, is used up."""

    def __init__(self, text: str, cap: CapUsage, *, background: bool) -> None:
        super().__init__(text)
        self.cap = cap
        self.background = background


def _no_reload() -> None:
    """The settings stay as they are."""


class Ledger:
    """What calls cost, reserved before each and settled after it; caps are of days and months of `zone`."""

    def __init__(
        self, db: Database, budget: BudgetSettings, zone: ZoneInfo, role_budgets: RoleBudgets | None = None
    ) -> None:
        """Without `role_budgets` only the owner may spend."""
        self._db = db
        self.role_budgets = role_budgets or RoleBudgets(db)
        # Replaced where the owner changes it while the daemon runs; asked for before a call is refused.
        self.budget = budget
        self.reload_budget: Callable[[], None] = _no_reload
        self._zone = zone
        self.notices = SpendingNotices(db)
        self._repeats = RepeatedCalls(db)

    # ------------------------------------------------------------------------------------------------------------ calls

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        try:
            return self._reserve(call, now)
        except BudgetExceeded as error:
            previous = self.budget
            self.reload_budget()
            if self.budget == previous:
                self._notify_refused(error, call, now)
                raise
        return self.reserve(call, now)

    def _reserve(self, call: ModelCall, now: datetime) -> Reservation:
        cost = _Cost(call.usd, call.input_tokens + call.max_output)
        with self._db.write() as db:
            if call.fingerprint:
                self._repeats.count_call(call.fingerprint, call.purpose, self.budget.runaway_calls, now)
            self._check(cost, call, now)
            row_id = db.insert_row(
                "usage",
                ts=now,
                purpose=call.purpose,
                provider=call.provider,
                model=call.model,
                session=call.session,
                turn=call.turn,
                state="reserved",
                reserved_tokens=cost.tokens,
                reserved_usd=cost.usd,
            )
            for period in self._periods(now).values():
                self._add(period, cost, 1, calls=1)
                for part in _budget_parts(call.purpose, call.session):
                    self.role_budgets.add(part, period, cost.usd or 0.0, cost.unpriced)
        return Reservation(row_id, cost.usd, cost.tokens, call.fingerprint)

    def settle_reservation(self, reservation: Reservation, usage: Usage, now: datetime) -> None:
        """Settling again what is settled changes nothing."""
        tokens = usage.prompt + usage.output
        billed = _Cost(usage.cost_usd if tokens or usage.cost_usd is not None else 0.0, tokens)
        with self._db.write() as db:
            row = db.row("SELECT * FROM usage WHERE id = ? AND state = 'reserved'", (reservation.id,))
            if row is None:
                return
            db.update_rows(
                "usage",
                {"id": reservation.id},
                state="settled",
                input=usage.input,
                output=usage.output,
                cache_read=usage.cache_read,
                cache_write=usage.cache_write,
                usd=billed.usd,
                settled_at=now,
            )
            reserved, periods = _Cost(row["reserved_usd"], row["reserved_tokens"]), self._periods(parse_time(row["ts"]))
            usd, unpriced = (billed.usd or 0.0) - (reserved.usd or 0.0), billed.unpriced - reserved.unpriced
            for period in periods.values():
                self._add(period, reserved, -1)
                self._add(period, billed, 1)
                for part in _budget_parts(row["purpose"], row["session"]):
                    self.role_budgets.add(part, period, usd, unpriced)
            if reservation.fingerprint and not tokens:
                self._repeats.uncount_call(reservation.fingerprint)
            for cap in self._caps(periods):
                if cap.is_used_up:
                    self.notices.send_once(notice_key("reached", cap), cap_notice("reached", cap), now)
                elif cap.is_near_limit and not self.notices.was_sent(notice_key("reached", cap)):
                    self.notices.send_once(notice_key("near", cap), cap_notice("near", cap), now)

    # ------------------------------------------------------------------------------------------------------------ sums

    def total_spent(self, since: datetime, until: datetime, *, session: str | None = None) -> SpendTotals:
        """What was spent from `since` until before `until`."""
        return total_spent(self._db, since, until, session)

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        """Sums since a moment: days in order, the rest by name."""
        return spent_by(self._db, self._zone, key, since)

    def sleep_usd_since(self, since: datetime) -> float:
        """What sleeps have spent since a moment, in US dollars."""
        return sum(total.usd for purpose, total in self.spent_by("kind", since) if purpose in _SLEEP_PURPOSES)

    def budget_status(self, now: datetime) -> BudgetStatus:
        """How much of the budget is used, from a few rows."""
        periods = self._periods(now)
        day, month = (self._total(period) for period in (periods["day"], periods["month"]))
        caps, part = self._caps(periods), self._caps(periods, part=_BACKGROUND_PART)
        return BudgetStatus(
            periods["day"],
            day,
            month,
            tuple(self._with_reached(cap) for cap in caps),
            tuple(self._with_reached(cap, background=True) for cap in part),
            self._forecast(month, now),
            tuple(self._repeats.list_blocked(now)),
        )

    def _with_reached(self, cap: CapUsage, *, background: bool = False) -> CapUsage:
        return replace(cap, reached=self.notices.was_sent(notice_key("reached", cap, background=background)))

    def _forecast(self, month: PeriodSpend, now: datetime) -> float | None:
        """From the first day of the month that has calls on: the data folder may be younger than the month."""
        local = now.astimezone(self._zone)
        first = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        first_day = self._db.value(
            "SELECT min(period) FROM usage_totals WHERE period >= ? AND period <= ?",
            (first.date().isoformat(), local.date().isoformat()),
        )
        if first_day is None:
            return None
        start = datetime.fromisoformat(first_day).replace(tzinfo=self._zone)
        until = (first + timedelta(days=32)).replace(day=1)
        return forecast_spend(month.usd, start.astimezone(UTC), now.astimezone(UTC), until.astimezone(UTC))

    # ------------------------------------------------------------------------------------------------------------- caps

    def _check(self, cost: _Cost, call: ModelCall, now: datetime) -> None:
        periods, role = self._periods(now), role_of_call(call.session)
        usd, unpriced = cost.usd or 0.0, cost.unpriced
        amount = f"${usd:.2f}" if cost.usd is not None else f"{unpriced:,} tokens"
        if cap := first_exceeded_cap(self._caps(periods), usd, unpriced):
            raise _CapReached(_refusal_text(cap, role, amount), cap, background=False)
        budget = self.budget
        for name, unit in (("daily", "day"), ("monthly", "month")):
            limits = getattr(budget, f"{name}_usd"), getattr(budget, f"{name}_tokens")
            self.role_budgets.check(role, (name, unit, periods[unit]), limits, usd, unpriced)
        part = self._caps(periods, part=_BACKGROUND_PART) if call.purpose in BACKGROUND_PURPOSES else []
        if cap := first_exceeded_cap(part, usd, unpriced):
            raise _CapReached(_background_refusal_text(cap, role, amount), cap, background=True)

    def _caps(self, periods: dict[str, str], *, part: str = "") -> list[CapUsage]:
        """The caps that are set, or the part of each that `part` may use, with what is used."""
        budget = self.budget
        limits: dict[str, float] = {
            "daily_usd": budget.daily_usd,
            "daily_tokens": budget.daily_tokens,
            "monthly_usd": budget.monthly_usd,
            "monthly_tokens": budget.monthly_tokens,
        }
        if not part:
            return cap_usages(limits, {unit: self._total(period) for unit, period in periods.items()}, periods)
        used = {unit: self.role_budgets.read_used(part, period) for unit, period in periods.items()}
        caps = cap_usages(limits, used, periods)
        return [replace(cap, limit=cap.limit * budget.background_share) for cap in caps]

    def _notify_refused(self, error: BudgetExceeded, call: ModelCall, now: datetime) -> None:
        """Why a call was refused, for the owner: once. Outside of any transaction."""
        match error:
            case RoleBudgetExceeded():
                self.role_budgets.on_exceeded(error.role, error.cap, now)
            case _CapReached(cap=cap, background=background):
                # A limit of nothing was set on purpose.
                if cap.limit:
                    notice = background_notice(cap) if background else cap_notice("reached", cap)
                    with self._db.write():
                        self.notices.send_once(notice_key("reached", cap, background=background), notice, now)
            case RepeatedRequestBlocked():
                with self._db.write():
                    blocked = self._repeats.block(call.fingerprint, self._next_day(now))
                    if blocked is not None:
                        notice = runaway_notice(blocked, self._zone, now)
                        self.notices.send_once(notice.key, notice, now)

    def _total(self, period: str) -> PeriodSpend:
        spend = self._db.read_one(_read_spend, "SELECT * FROM usage_totals WHERE period = ?", (period,))
        return spend or PeriodSpend()

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


def _budget_parts(purpose: str, session: str | None) -> list[str]:
    """Those parts of the budget that a call counts against, beside the whole."""
    return [role_of_call(session), *([_BACKGROUND_PART] if purpose in BACKGROUND_PURPOSES else [])]


def _refusal_text(cap: CapUsage, role: str, cost: str) -> str:
    if role != "owner":
        return f"The {cap.name} budget is used up. Your message is kept; ask again next {cap.unit}."
    return (
        f"The {cap.name} budget is used up: {cap.describe()}, and this call may cost {cost}. Your message is kept; "
        f"raise `budget.{cap.setting}`, or wait for the next {cap.unit}."
    )


def _background_refusal_text(cap: CapUsage, role: str, cost: str) -> str:
    part = f"The part of the {cap.name} budget that work in the background may use is used up"
    if role != "owner":
        return f"{part}. Your message is kept; ask again next {cap.unit}."
    return (
        f"{part}: {cap.describe()}, and this call may cost {cost}. Your message is kept; raise "
        f"`budget.background_share`, or wait for the next {cap.unit}."
    )
