"""The spending ledger: reserves the worst case before each call, settles it afterwards, and enforces caps (I9) and the
shares of guests and rooms (I10).

- A reservation counts as soon as it is written, so that concurrent or interrupted calls cannot exceed a cap together.
  It is on the disk before its call: by its own commit, or by the one that accepted the message (`reserved_ahead`).
- Daily and monthly sums (in the configured zone) are stored as rows: in total, per role other than the owner, and for
  background work, so caps are checked without summing. Settling changes the sums of the period of the reservation.
  Where the clock jumps, they are carried over (`spending_periods`).
- A role without a share may only make free calls. Texts for others contain none of the owner's sums.
- A notice about a cap is sent once, in the transaction that detects it (`notices.StoredNotices`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.budget import (
    CAP_PERIODS,
    BudgetNotice,
    BudgetStatus,
    CapNotice,
    CapUsage,
    PeriodSpend,
    ShareNotice,
    call_spend,
    cap_usages,
    exceeds_cap,
    first_exceeded_cap,
    forecast_spend,
    format_usd,
)
from assistant.core.errors import BudgetExceeded, RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, ModelCall, PromptPart, Reservation, SpendTotals, UsageKey
from assistant.core.notices import Notice
from assistant.core.permissions import OWNER_ONLY_PERMISSIONS, Permissions
from assistant.core.sessions import session_role
from assistant.settings.sections import BudgetSettings
from assistant.store.database import Database
from assistant.store.rows import class_row, parse_time
from assistant.store.script.notices import StoredNotices
from assistant.store.script.reserved_ahead import AheadReservations, worst_case
from assistant.store.script.spending_periods import find_periods
from assistant.store.script.usage import RepeatedCalls, spent_by
from assistant.store.script.usage_parts import CarriedTokens, carried_tokens, dump_parts

_ROLE_NAMES = {"guest": "guests", "room": "rooms"}
_BACKGROUND_PART = "background"
_REFUSALS = ("reached", _BACKGROUND_PART)  # kinds of `CapNotice`
_NEXT = {"day": "tomorrow", "month": "next month"}
# Purposes of sleep cycle calls.
_SLEEP_PURPOSES = BACKGROUND_PURPOSES - {"schedule"}

_NO_PARTS: Mapping[PromptPart, Usage] = {}
_PART_COLUMNS = "usd, 0 AS tokens, unpriced_tokens, 0 AS calls"
_read_spend = class_row(PeriodSpend)


class _CallRefused(BudgetExceeded):
    """The budget, or the share of it for guests, rooms or background work, is used up."""

    def __init__(self, text: str, notice: BudgetNotice, remedy: str = "") -> None:
        super().__init__(text, remedy)
        self.notice = notice


class Ledger:
    """Reserves and settles the cost of calls; caps are per day and month of `zone`."""

    def __init__(
        self,
        db: Database,
        budget: BudgetSettings,
        zone: ZoneInfo,
        render_notice: Callable[[BudgetNotice, ZoneInfo], Notice],
        permissions: Permissions = OWNER_ONLY_PERMISSIONS,
    ) -> None:
        self._db = db
        # May be replaced while the daemon runs; reloaded before a call is refused.
        self.budget = budget
        self.reload_budget: Callable[[], None] = lambda: None
        self._zone = zone
        self._render_notice = render_notice
        self._permissions = permissions
        self.notices = StoredNotices(db)
        self._repeats = RepeatedCalls(db)
        # Marks of refused calls that may be there, set by this process or an earlier one.
        self._refusals = {_refused_name(kind, f"*_{unit}:*") for kind in _REFUSALS for unit in ("usd", "tokens")}
        self.ahead = AheadReservations(db, zone, self._insert, self._add)

    # ------------------------------------------------------------------------------------------------------------ calls

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        """As the port says. Before it refuses, it reads the caps again, which another process may have raised; the
        owner is told once of a refusal."""
        try:
            return self._reserve(call, now)
        except BudgetExceeded as error:
            previous = self.budget
            self.reload_budget()
            if self.budget == previous:
                self.ahead.release(call.session or "")
                self._notify_refused(error, call, now)
                raise
        return self.reserve(call, now)

    def _reserve(self, call: ModelCall, now: datetime) -> Reservation:
        session = call.session if call.purpose == "chat" and call.session else ""
        ahead = self.ahead.find(session)
        # What was reserved ahead is on the disk, and counts until this commit is there as well.
        covered = ahead is not None and ahead.covers(call, find_periods(now, self._zone))
        with self._db.write(durable=not covered):
            if call.fingerprint:
                self._repeats.count_call(call.fingerprint, call.purpose, self.budget.runaway_calls, now)
            if ahead is not None:
                self.ahead.delete(ahead)
            row_id = self._insert(call, now)
            self._end_refusal(call.purpose, worst_case(call))
        if session:
            self.ahead.note_call(session, call)
        return Reservation(row_id, call.usd, call.input_tokens + call.max_output, call.fingerprint)

    def _insert(self, call: ModelCall, now: datetime, boot: str | None = None) -> int:
        """Within a transaction: reserve the worst case of a call, and return the id of its row. `boot`: of the machine,
        where the call is not known yet. Raises `BudgetExceeded`, with nothing written."""
        worst = worst_case(call)
        self._check(worst, call, now)
        row_id = self._db.insert_row(
            "usage",
            ts=now,
            purpose=call.purpose,
            provider=call.provider,
            model=call.model,
            session=call.session,
            turn=call.turn,
            state="reserved",
            reserved_tokens=worst.tokens,
            reserved_usd=call.usd,
            boot=boot,
        )
        self._add(find_periods(now, self._zone), call.purpose, call.session, worst)
        return row_id

    def settle_reservation(
        self, reservation: Reservation, usage: Usage, now: datetime, parts: Mapping[PromptPart, Usage] = _NO_PARTS
    ) -> None:
        """Settle a reservation; idempotent."""
        tokens = usage.prompt + usage.output
        usd = usage.cost_usd if tokens or usage.cost_usd is not None else 0.0
        # After a power cut the reservation still counts, which is more.
        with self._db.write(durable=False) as db:
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
                usd=usd,
                settled_at=now,
                parts=dump_parts(parts),
            )
            periods = find_periods(parse_time(row["ts"]), self._zone)
            reserved, billed = call_spend(row["reserved_usd"], row["reserved_tokens"]), call_spend(usd, tokens)
            self._add(periods, row["purpose"], row["session"], billed - reserved)
            if reservation.fingerprint and not tokens:
                self._repeats.uncount_call(reservation.fingerprint)
            for cap in self._caps(periods):
                reached = CapNotice("reached", cap)
                if cap.is_used_up:
                    self._send_once(reached, now)
                elif cap.is_near_limit and not self.notices.was_sent(reached.name):
                    self._send_once(CapNotice("near", cap), now)

    # ------------------------------------------------------------------------------------------------------------ sums

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        """Return sums since a moment: days in order, others by name."""
        return spent_by(self._db, self._zone, key, since)

    def carried_tokens(self, session: str, since: datetime, until: datetime) -> CarriedTokens:
        """Return what the tokens of the session's summary and history were billed in the period."""
        return carried_tokens(self._db, session, since, until)

    def sleep_usd_since(self, since: datetime) -> float:
        """Return what sleep cycles have spent since a moment, in US dollars."""
        return sum(total.usd for purpose, total in self.spent_by("kind", since) if purpose in _SLEEP_PURPOSES)

    def budget_status(self, now: datetime) -> BudgetStatus:
        """Return the current use of the budget; reads only a few rows."""
        periods = find_periods(now, self._zone)
        month = self._spent(periods["month"])
        caps = (CapNotice("reached", cap) for cap in self._caps(periods))
        background = (CapNotice("background", cap) for cap in self._caps(periods, background=True))
        return BudgetStatus(
            periods["day"],
            self._spent(periods["day"]),
            month,
            tuple(self._with_refusal(notice) for notice in caps),
            tuple(self._with_refusal(notice) for notice in background),
            self._forecast(month, now),
            tuple(self._repeats.list_blocked(now)),
        )

    def _with_refusal(self, notice: CapNotice) -> CapUsage:
        return replace(notice.cap, reached=self.notices.was_sent(_refused_name(notice.kind, notice.name)))

    def _forecast(self, month: PeriodSpend, now: datetime) -> float | None:
        """Extrapolate from the month's first day with calls, since the data folder may be younger than the month."""
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

    def _check(self, cost: PeriodSpend, call: ModelCall, now: datetime) -> None:
        """Raises `BudgetExceeded` if the worst case of a call exceeds the budget or its share."""
        periods, role = find_periods(now, self._zone), _role_of_call(call.session)
        amount = f"{cost.tokens:,} tokens" if call.usd is None else format_usd(cost.usd)
        if cap := first_exceeded_cap(self._caps(periods), cost.usd, cost.unpriced_tokens):
            raise _refused(f"The {cap.name} budget", CapNotice("reached", cap), cap.setting, role, amount)
        if role != "owner":
            self._check_share(cost, role, periods)
        background = self._caps(periods, background=True) if call.purpose in BACKGROUND_PURPOSES else []
        if cap := first_exceeded_cap(background, cost.usd, cost.unpriced_tokens):
            part = f"The part of the {cap.name} budget that work in the background may use"
            raise _refused(part, CapNotice("background", cap), "background_share", role, amount)

    def _check_share(self, cost: PeriodSpend, role: str, periods: Mapping[str, str]) -> None:
        share = self._permissions.budget_share(role)
        for setting, limit in self._limits().items():
            name, _, kind = setting.partition("_")
            unit = CAP_PERIODS[name]
            used = self._spent(periods[unit], role)
            amount, spent = (cost.usd, used.usd) if kind == "usd" else (cost.unpriced_tokens, used.unpriced_tokens)
            if amount and (share == 0 or (limit and exceeds_cap(spent, amount, limit * share))):
                text = (
                    f"The part of the {name} budget that {_ROLE_NAMES.get(role, role)} may use is used up. "
                    f"Your message is kept; ask again {_NEXT[unit]}."
                )
                raise _CallRefused(text, ShareNotice(role, name, periods["day"]))

    def _caps(self, periods: Mapping[str, str], *, background: bool = False) -> list[CapUsage]:
        """Return the usage of configured caps, or of the background share of each."""
        limits = self._limits()
        if not any(limits.values()):
            return []
        spent = self._spent_in(periods, _BACKGROUND_PART if background else "")
        caps = cap_usages(limits, spent, periods)
        return [replace(cap, limit=cap.limit * self.budget.background_share) for cap in caps] if background else caps

    def _limits(self) -> dict[str, float]:
        """Return the caps by setting; 0: none."""
        budget = self.budget
        return {
            "daily_usd": budget.daily_usd,
            "daily_tokens": budget.daily_tokens,
            "monthly_usd": budget.monthly_usd,
            "monthly_tokens": budget.monthly_tokens,
        }

    def _notify_refused(self, error: BudgetExceeded, call: ModelCall, now: datetime) -> None:
        """Notify the owner, once, why a call was refused. Outside of transactions."""
        with self._db.write():
            if isinstance(error, RepeatedRequestBlocked):
                blocked = self._repeats.block(call.fingerprint, self._next_day(now))
                if blocked is not None:
                    self._send_once(blocked, now)
            elif isinstance(error, _CallRefused):
                if call.purpose not in BACKGROUND_PURPOSES and _role_of_call(call.session) == "owner":
                    # The answer, or what comes instead of it, says why: once is enough.
                    self.notices.mark(error.notice.name, now)
                else:
                    self._send_once(error.notice, now)
                if isinstance(error.notice, CapNotice):
                    kind, unit = error.notice.kind, error.notice.cap.setting.rpartition("_")[2]
                    self._refusals.add(_refused_name(kind, f"*_{unit}:*"))
                    self.notices.mark(_refused_name(kind, error.notice.name), now)

    def _end_refusal(self, purpose: str, cost: PeriodSpend) -> None:
        """Note, within a transaction, that a call of this kind is made again. One that costs nothing shows nothing."""
        kind = _BACKGROUND_PART if purpose in BACKGROUND_PURPOSES else "reached"
        pattern = _refused_name(kind, f"*_{'usd' if cost.usd else 'tokens'}:*")
        if pattern in self._refusals and (cost.usd or cost.unpriced_tokens):
            self.notices.unmark(pattern)
            self._refusals.discard(pattern)

    def _send_once(self, notice: BudgetNotice, now: datetime) -> None:
        """Send a notice once, within a transaction; not for a cap of zero, which is intentional."""
        if not isinstance(notice, CapNotice) or notice.cap.limit:
            self.notices.send_once(notice.name, self._render_notice(notice, self._zone), now)

    # ------------------------------------------------------------------------------------------------- sums of periods

    def _spent(self, period: str, part: str = "") -> PeriodSpend:
        """Return the spending of a period, or of a part of the budget (US dollars and unpriced tokens)."""
        return self._spent_in({"": period}, part)[""]

    def _spent_in(self, periods: Mapping[str, str], part: str = "") -> dict[str, PeriodSpend]:
        """Return the spending of periods, by their names."""
        where = f"period IN ({', '.join('?' * len(periods))})"
        sql, values = f"SELECT * FROM usage_totals WHERE {where}", [*periods.values()]
        if part:
            sql = f"SELECT period, {_PART_COLUMNS} FROM usage_by_role WHERE {where} AND role = ?"
            values.append(part)
        spent = {row["period"]: _read_spend(row) for row in self._db.rows(sql, values)}
        return {name: spent.get(period, PeriodSpend()) for name, period in periods.items()}

    def _add(self, periods: Mapping[str, str], purpose: str, session: str | None, spend: PeriodSpend) -> None:
        """Add to the sums of periods and those of the affected parts, within a transaction."""
        usd, unpriced = spend.usd, spend.unpriced_tokens
        parts = {_role_of_call(session), *([_BACKGROUND_PART] if purpose in BACKGROUND_PURPOSES else [])} - {"owner"}
        each = ", ".join(["(?, ?, ?, ?, ?)"] * len(periods))
        self._db.execute(
            f"INSERT INTO usage_totals (period, usd, tokens, unpriced_tokens, calls) VALUES {each}"
            " ON CONFLICT (period) DO UPDATE SET usd = usd + excluded.usd, tokens = tokens + excluded.tokens,"
            " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens, calls = calls + excluded.calls",
            [value for period in periods.values() for value in (period, usd, spend.tokens, unpriced, spend.calls)],
        )
        for period in periods.values():
            for part in parts:
                self._db.execute(
                    "INSERT INTO usage_by_role (role, period, usd, unpriced_tokens) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (role, period) DO UPDATE SET usd = usd + excluded.usd,"
                    " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens",
                    (part, period, usd, unpriced),
                )

    def _next_day(self, now: datetime) -> datetime:
        today = now.astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return (today + timedelta(days=1)).astimezone(UTC)


def _refused_name(kind: str, name: str) -> str:
    """Return the name of the mark that the last call was refused by a cap."""
    return f"refused:{kind}:{name}"


def _role_of_call(session: str | None) -> str:
    """Return the role a call counts for; without a session, the owner."""
    return "owner" if session is None else session_role(session)


def _refused(part: str, notice: CapNotice, setting: str, role: str, cost: str) -> _CallRefused:
    cap = notice.cap
    if role != "owner":
        return _CallRefused(f"{part} is used up. Your message is kept; ask again {_NEXT[cap.unit]}.", notice)
    remedy = f"raise the budget with `assistant config set budget.{setting} NUMBER`, or wait for the next {cap.unit}"
    text = f"{part} {cap.state}, and this call may cost {cost}. Your message is kept; {remedy}, then type `/retry`."
    return _CallRefused(text, notice, remedy)
