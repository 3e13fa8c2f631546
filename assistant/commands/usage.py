"""What models have cost, for people and for programs: gauges of the caps, a chart by day, model, kind or session, and
plain JSON.

No line is wider than 80 columns, and none has a control character in it; the JSON has all that the text has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Annotated, Any, Protocol, get_args

import click
from pydantic import PlainSerializer

from assistant.commands.context import CommandContext
from assistant.commands.table import TableCommand
from assistant.core.budget import BudgetStatus, CapUsage, PeriodSpend
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, SpendTotals, UsageKey
from assistant.core.text import pluralize

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL, _REST = "█", "░"


def draw_bar(share: float, width: int) -> str:
    """A length of `share` of `width` columns; something is drawn for whatever is more than nothing."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    eighths = max(eighths, 1) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return _FULL * whole + (_EIGHTHS[rest] if rest else "")


def draw_gauge(share: float, width: int) -> str:
    """How much of something is used, always `width` columns wide; full only where all is."""
    used = width if share >= 1 else min(int(max(share, 0.0) * width + 0.5), width - 1)
    return _FULL * used + _REST * (width - used)


USAGE_WIDTH = 80
_GAUGE = 20
_LABEL = 13
_AMOUNT = 28
_LONGEST_NAME = 24
_LEAST_BAR, _MOST_BAR = 6, 30
_MUCH = 1_000.0
_NOTHING = SpendTotals(0, Usage(), 0.0, 0, 0)
_COLUMNS = ("calls", "input", "cached", "output")
_NO_SESSION = "(no conversation)"


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What somebody wants to see: how it stands, and what was spent in the last `days`, `by` what, and by kind."""

    grouping: UsageKey
    days: int
    budget: BudgetStatus
    rows: Sequence[tuple[str, SpendTotals]]
    kinds: Sequence[tuple[str, SpendTotals]]


def usage_lines(asked: UsageReport) -> list[str]:
    """All of it, for a terminal."""
    if not asked.rows:
        return [*_standing(asked.budget), "", f"No model was called in the last {_days(asked.days)}."]
    return [*_standing(asked.budget), "", *_split(asked), "", *_chart(asked)]


def usage_json(asked: UsageReport) -> dict[str, Any]:
    standing = asked.budget
    parts = {"answering": _part(asked.kinds, background=False), "background": _part(asked.kinds, background=True)}
    return {
        "by": asked.grouping,
        "days": asked.days,
        "rows": [{asked.grouping: name, **_spent_json(spent)} for name, spent in asked.rows],
        "split": {name: _spent_json(spent) for name, spent in parts.items()},
        "today": _sums_json(standing.day),
        "month": _sums_json(standing.month),
        "forecast_usd": None if standing.forecast_usd is None else round(standing.forecast_usd, 6),
        "caps": [_cap_json(cap) for cap in standing.caps],
        "background_caps": [_cap_json(cap) for cap in standing.background],
        "stopped": [
            {"kind": one.purpose, "times": one.times, "until": one.until.isoformat()} for one in standing.stopped
        ],
    }


# -------------------------------------------------------------------------------------------------------- how it stands


def _standing(standing: BudgetStatus) -> list[str]:
    drawn: list[str] = []
    background = [cap for cap in standing.background if cap.used or cap.reached]
    amount = max([_AMOUNT, *(len(cap.describe()) + 2 for cap in (*standing.caps, *background))])
    for label, unit, sums in (("Today", "day", standing.day), ("This month", "month", standing.month)):
        caps = [cap for cap in standing.caps if cap.unit == unit]
        money = [cap for cap in caps if cap.setting.endswith("_usd")]
        drawn += [] if money else [f"{label:<{_LABEL}}${sums.usd:,.2f} (no cap)"]
        drawn += [_gauge(label, cap, amount) for cap in caps]
    drawn += [_gauge(f"Background {cap.name[0]}", cap, amount) for cap in background]
    if standing.forecast_usd is not None:
        drawn.append(f"{'Forecast':<{_LABEL}}about ${standing.forecast_usd:,.2f} this month, at this rate")
    return drawn


def _gauge(label: str, cap: CapUsage, amount: int) -> str:
    label = {"Background d": "Background", "Background m": "  this month"}.get(label, label)
    full = "  used up" if cap.is_used_up else ""
    return (
        f"{label:<{_LABEL}}{cap.describe():<{amount}}{draw_gauge(cap.share, _GAUGE)} {min(cap.share, 9.99):>4.0%}{full}"
    )


def _days(number: int) -> str:
    return "day" if number == 1 else f"{number} days"


def _split(asked: UsageReport) -> list[str]:
    whole, quiet = _part(asked.kinds), _part(asked.kinds, background=True)
    priced = whole.usd > 0
    share = (quiet.usd / whole.usd) if priced else quiet.tokens / max(1, whole.tokens)
    of = f"${whole.usd:,.2f}, " if priced else ""
    return [
        f"Last {_days(asked.days)}: {of}{format_count(whole.tokens)} tokens, {pluralize(whole.calls, 'call')}; "
        f"{1 - share:.0%} answers, {share:.0%} background"
    ]


# ------------------------------------------------------------------------------------------------------------ the chart


def _chart(asked: UsageReport) -> list[str]:
    rows = _every_day(asked) if asked.grouping == "day" else _dearest_first(asked.rows)
    priced = any(spent.usd > 0 for _, spent in rows)
    unpriced = any(spent.unpriced_tokens for _, spent in rows) and priced
    columns = (*_COLUMNS, *(("no price",) if unpriced else ()))
    cells = [[_cell(column, spent) for column in columns] for _, spent in rows]
    widths = [max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(columns)]
    amounts = [_amount(spent, priced=priced) for _, spent in rows]
    head = "US$" if priced else "tokens"
    amount = max(len(head), *map(len, amounts))
    room = USAGE_WIDTH - amount - 4 - sum(width + 2 for width in widths)
    names = [_name(name, min(_LONGEST_NAME, room - _LEAST_BAR)) for name, _ in rows]
    left = max(len(asked.grouping), *map(len, names))
    length = min(_MOST_BAR, room - left)
    sizes = [spent.usd if priced else float(spent.tokens) for _, spent in rows]
    most = max(sizes) or 1.0
    told = [_line((asked.grouping, left), (head, amount), " " * length, columns, widths)]
    for name, money, size, row in zip(names, amounts, sizes, cells, strict=True):
        told.append(_line((name, left), (money, amount), f"{draw_bar(size / most, length):<{length}}", row, widths))
    return [line.rstrip() for line in told]


def _line(
    name: tuple[str, int], amount: tuple[str, int], drawn: str, cells: Sequence[str], widths: Sequence[int]
) -> str:
    numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{name[0]:<{name[1]}}  {amount[0]:>{amount[1]}}  {drawn}{numbers}"


def _amount(spent: SpendTotals, *, priced: bool) -> str:
    if not spent.calls:
        return "-"
    if not priced:
        return format_count(spent.tokens)
    return f"{spent.usd:,.4f}" if spent.usd < _MUCH else f"{spent.usd:,.2f}"


def _cell(column: str, spent: SpendTotals) -> str:
    used = spent.usage
    if not spent.calls:
        return ""
    match column:
        case "calls":
            return f"{spent.calls:,}" if spent.calls < 100_000 else format_count(spent.calls)
        case "input":
            return format_count(used.prompt)
        case "cached":
            return f"{used.cache_read / used.prompt:.0%}" if used.prompt else ""
        case "output":
            return format_count(used.output)
        case _:
            return format_count(spent.unpriced_tokens)


def _every_day(asked: UsageReport) -> list[tuple[str, SpendTotals]]:
    """From the first day on which anything was asked until today: a day without calls is a gap that is seen."""
    known, day, rows = dict(asked.rows), date.fromisoformat(asked.rows[0][0]), []
    last = date.fromisoformat(max(asked.budget.today, asked.rows[-1][0]))
    while day <= last:
        rows.append((day.isoformat(), known.get(day.isoformat(), _NOTHING)))
        day += timedelta(days=1)
    return rows


def _dearest_first(rows: Sequence[tuple[str, SpendTotals]]) -> list[tuple[str, SpendTotals]]:
    return sorted(rows, key=lambda row: (-row[1].usd, -row[1].tokens, row[0]))


def _name(name: str, most: int) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in name).strip() or _NO_SESSION
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def format_count(count: int) -> str:
    """A number in five letters at most: 950, 9.4k, 34k, 1.2M."""
    if count < 1_000:
        return str(count)
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if count < 999.5 * size or unit == "G":
            value = count / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:,.0f}{unit}"
    return str(count)


# ----------------------------------------------------------------------------------------------------------------- JSON


def _part(kinds: Sequence[tuple[str, SpendTotals]], *, background: bool | None = None) -> SpendTotals:
    """The sum of those kinds, all where nobody asks which."""
    whole = _NOTHING
    for kind, spent in kinds:
        if background is None or (kind in BACKGROUND_PURPOSES) is background:
            whole = SpendTotals(
                whole.calls + spent.calls,
                whole.usage + spent.usage,
                whole.usd + spent.usd,
                whole.tokens + spent.tokens,
                whole.unpriced_tokens + spent.unpriced_tokens,
            )
    return whole


def _spent_json(spent: SpendTotals) -> dict[str, Any]:
    used = spent.usage
    return {
        "calls": spent.calls,
        "input": used.input,
        "output": used.output,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "tokens": spent.tokens,
        "usd": round(spent.usd, 6),
        "unpriced_tokens": spent.unpriced_tokens,
    }


def _sums_json(sums: PeriodSpend) -> dict[str, Any]:
    return {
        "calls": sums.calls,
        "tokens": sums.tokens,
        "usd": round(sums.usd, 6),
        "unpriced_tokens": sums.unpriced_tokens,
    }


def _cap_json(cap: CapUsage) -> dict[str, Any]:
    return {
        "setting": cap.setting,
        "period": cap.period,
        "used": round(cap.used, 6),
        "most": round(cap.limit, 6),
        "share": round(cap.share, 4),
        "used_up": cap.is_used_up,
    }


_DAYS = 31


class UsageSource(Protocol):
    """What a ledger tells."""

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]: ...
    def budget_status(self, now: datetime) -> BudgetStatus: ...


def load_usage(ledger: UsageSource, by: UsageKey, days: int, now: datetime) -> UsageReport:
    """What was spent in the days before `now`, and how the budget stands."""
    since = now - timedelta(days=days)
    rows = ledger.spent_by(by, since)
    return UsageReport(
        by, days, ledger.budget_status(now), rows, rows if by == "kind" else ledger.spent_by("kind", since)
    )


def render_usage(report: UsageReport, _: tzinfo) -> str:
    """Markdown that keeps its columns."""
    return "\n".join(["```", *usage_lines(report), "```"])


@click.command(
    cls=TableCommand,
    result=Annotated[Any, PlainSerializer(usage_json)],
    render=render_usage,
    reads=True,
    with_session=False,
)
@click.argument("by", required=False, default="model", type=click.Choice(get_args(UsageKey)))
@click.option("--days", default=_DAYS, show_default=True, type=click.IntRange(1, 36500), help="How far back to look.")
def usage(context: CommandContext, by: UsageKey, days: int) -> UsageReport:
    """Show what models have cost, against the caps of the day and the month.

    \b
    Example:
      /usage kind
    """
    return load_usage(context.stores.ledger, by, days, context.now)
