"""What models have cost, for people and for programs: gauges of the caps, a chart by day, model, kind, session or part
of the prompt, and plain JSON.

No line is wider than 80 columns, and none has a control character in it; the JSON has all that the text has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Annotated, Any, get_args

import click
from pydantic import AfterValidator, AliasPath, Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import TableCommand
from assistant.core.budget import BudgetStatus, CapUsage, format_usd
from assistant.core.dataclass import dataclass
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, SpendTotals, UsageKey
from assistant.core.text import pluralize, shorten

if TYPE_CHECKING:
    from assistant.store.script.ledger import Ledger

_DAYS = 31
_NOTHING = SpendTotals(0, Usage(), 0.0, 0, 0)


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What somebody wants to see: how it stands, and what was spent in the last `days`, by `grouping`, and by kind."""

    grouping: UsageKey
    days: int
    budget: BudgetStatus
    rows: Sequence[tuple[str, SpendTotals]]
    kinds: Sequence[tuple[str, SpendTotals]]

    @property
    def named_rows(self) -> list[dict[str, Any]]:
        """Each row with what it is of."""
        return [{self.grouping: name, **asdict(spent)} for name, spent in self.rows]

    @property
    def split(self) -> Mapping[str, SpendTotals]:
        """The sums of the kinds that somebody waits for, and of those that nobody does."""
        background = [spent for kind, spent in self.kinds if kind in BACKGROUND_PURPOSES]
        answering = [spent for kind, spent in self.kinds if kind not in BACKGROUND_PURPOSES]
        return {"answering": _sum(answering), "background": _sum(background)}


def _sum(parts: Sequence[SpendTotals]) -> SpendTotals:
    whole = _NOTHING
    for spent in parts:
        whole = SpendTotals(
            whole.calls + spent.calls,
            whole.usage + spent.usage,
            whole.usd + spent.usd,
            whole.tokens + spent.tokens,
            whole.unpriced_tokens + spent.unpriced_tokens,
            whole.failed + spent.failed,
        )
    return whole


def load_usage(ledger: Ledger, by: UsageKey, days: int, now: datetime) -> UsageReport:
    """What was spent in the days before `now`, and how the budget stands."""
    since = now - timedelta(days=days)
    rows = ledger.spent_by(by, since)
    kinds = rows if by == "kind" else ledger.spent_by("kind", since)
    return UsageReport(by, days, ledger.budget_status(now), rows, kinds)


# ----------------------------------------------------------------------------------------------------------------- JSON

_Amount = Annotated[float, AfterValidator(lambda amount: round(amount, 6))]


def _budget(part: str) -> Any:
    return Field(validation_alias=AliasPath("budget", part))


def _tokens(kind: str) -> Any:
    return Field(validation_alias=AliasPath("usage", kind))


def _grouping() -> Any:
    return Field(None, exclude_if=lambda name: name is None)


class SpendSums(Item):
    """What calls of models cost in US dollars; `unpriced_tokens` are of calls whose price is not known."""

    calls: int
    tokens: int
    usd: _Amount
    unpriced_tokens: int


class SpendDetails(SpendSums):
    """With what the tokens were for; `failed` are attempts that no model answered, which are no calls."""

    failed: int

    input: int = _tokens("input")
    output: int = _tokens("output")
    cache_read: int = _tokens("cache_read")
    cache_write: int = _tokens("cache_write")


class SpendRow(SpendDetails):
    """Of a day, a model, a kind, a session or a part of the prompt, whichever was asked for; calls without a session
    have an empty one, and calls of which no provider reported the parts are `not reported`."""

    day: str | None = _grouping()
    model: str | None = _grouping()
    kind: str | None = _grouping()
    session: str | None = _grouping()
    part: str | None = _grouping()


class SpendSplit(Item):
    """Calls that somebody waits for, and those that nobody does."""

    answering: SpendDetails
    background: SpendDetails


class BudgetCap(Item):
    """A limit of the budget, and how much of it is used, in US dollars or tokens. `setting` is its key in `[budget]`,
    `period` the day or month it is of."""

    setting: str
    period: str
    used: _Amount
    most: _Amount = Field(validation_alias="limit")
    share: Annotated[float, AfterValidator(lambda share: round(share, 4))]
    used_up: bool = Field(validation_alias="is_used_up")


class BlockedCall(Item):
    """A request of the background that was sent again and again, and is not sent any more until then."""

    kind: str = Field(validation_alias="purpose")
    times: int
    until: datetime


class UsageAnswer(Item):
    """What `assistant usage --json` prints: rows of the last `days`, and how the budget stands. Of each cap,
    `background_caps` has the part that work in the background may use; `forecast_usd` is what the month comes to if it
    continues as it did."""

    by: str = Field(validation_alias="grouping")
    days: int
    rows: list[SpendRow] = Field(validation_alias="named_rows")
    split: SpendSplit
    today: SpendSums = _budget("day")
    month: SpendSums = _budget("month")
    forecast_usd: _Amount | None = _budget("forecast_usd")
    caps: list[BudgetCap] = _budget("caps")
    background_caps: list[BudgetCap] = _budget("background")
    stopped: list[BlockedCall] = _budget("stopped")


# -------------------------------------------------------------------------------------------------------- how it stands

USAGE_WIDTH = 78
_GAUGE = 20
_LABEL = 13
_AMOUNT = 28
_LONGEST_NAME = 24
_LEAST_BAR, _MOST_BAR = 6, 30
_MUCH = 1_000.0
_COLUMNS = ("calls", "input", "cached", "output")
_NO_SESSION = "(no conversation)"
_UNITS = (("k", 1e3), ("M", 1e6), ("G", 1e9))
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


def usage_lines(report: UsageReport) -> list[str]:
    """All of it, for a terminal."""
    if not report.rows:
        return [*_standing(report.budget), "", f"No model was called in the last {_days(report.days)}."]
    return [*_standing(report.budget), "", _split_line(report), *_cut_off_lines(report), "", *_chart(report)]


def _standing(budget: BudgetStatus) -> list[str]:
    lines: list[str] = []
    background = [cap for cap in budget.background if cap.used or cap.reached]
    width = max([_AMOUNT, *(len(cap.describe()) + 2 for cap in (*budget.caps, *background))])
    for label, unit, sums in (("Today", "day", budget.day), ("This month", "month", budget.month)):
        caps = [cap for cap in budget.caps if cap.unit == unit]
        if not any(cap.setting.endswith("_usd") for cap in caps):
            lines.append(f"{label:<{_LABEL}}{format_usd(sums.usd)} (no cap)")
        lines += [_gauge_line(label, cap, width) for cap in caps]
    lines += [_gauge_line("Background" if cap.unit == "day" else "  this month", cap, width) for cap in background]
    if budget.forecast_usd is not None:
        lines.append(f"{'Forecast':<{_LABEL}}about {format_usd(budget.forecast_usd)} this month, at this rate")
    return lines


def _gauge_line(label: str, cap: CapUsage, width: int) -> str:
    gauge = f"{draw_gauge(cap.share, _GAUGE)} {min(cap.share, 9.99):>4.0%}"
    end = "used up" if cap.is_spent else "too little left" if cap.reached else ""
    return f"{label:<{_LABEL}}{cap.describe():<{width}}{gauge}  {end}".rstrip()


def _days(number: int) -> str:
    return "day" if number == 1 else f"{number} days"


def _split_line(report: UsageReport) -> str:
    background, whole = report.split["background"], _sum(list(report.split.values()))
    share = background.usd / whole.usd if whole.usd > 0 else background.tokens / max(1, whole.tokens)
    dollars = f"{format_usd(whole.usd)}, " if whole.usd > 0 else ""
    failed = f" and {pluralize(whole.failed, 'failed attempt')}" if whole.failed else ""
    return (
        f"Last {_days(report.days)}: {dollars}{format_count(whole.tokens)} tokens, "
        f"{pluralize(whole.calls, 'call')}{failed}; {1 - share:.0%} answers, {share:.0%} background"
    )


def _cut_off_lines(report: UsageReport) -> list[str]:
    """Why the tokens may be more than what went in and came out."""
    whole = _sum(list(report.split.values()))
    more = whole.tokens - whole.usage.prompt - whole.usage.output
    if more <= 0:
        return []
    return [
        f"{format_count(more)} of these tokens are of calls that were cut off: they",
        "count as the most that they may have used, as nobody reported what it was.",
    ]


# ------------------------------------------------------------------------------------------------------------ the chart


def _chart(report: UsageReport) -> list[str]:
    """A line of names above the rows: what it is of, what it cost, a bar, and how many of what."""
    dearest_first = sorted(report.rows, key=lambda row: (-row[1].usd, -row[1].tokens, row[0]))
    rows = _every_day(report) if report.grouping == "day" else dearest_first
    priced = any(spent.usd > 0 for _, spent in rows)
    unpriced = priced and any(spent.unpriced_tokens for _, spent in rows)
    numbers = [[*_COLUMNS, "no price"], *(_numbers(spent) for _, spent in rows)]
    numbers = numbers if unpriced else [cells[:-1] for cells in numbers]
    widths = [max(map(len, column)) for column in zip(*numbers, strict=True)]
    amounts = ["US$" if priced else "tokens", *(_amount(spent, priced=priced) for _, spent in rows)]
    amount_width = max(map(len, amounts))
    room = USAGE_WIDTH - amount_width - 4 - sum(width + 2 for width in widths)
    names = [report.grouping, *(_name(name, min(_LONGEST_NAME, room - _LEAST_BAR)) for name, _ in rows)]
    name_width = max(map(len, names))
    bar_width = min(_MOST_BAR, room - name_width)
    sizes = [spent.usd if priced else float(spent.tokens) for _, spent in rows]
    bars = ["", *(draw_bar(size / (max(sizes) or 1.0), bar_width) for size in sizes)]
    lines = []
    for name, amount, bar, cells in zip(names, amounts, bars, numbers, strict=True):
        columns = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{name:<{name_width}}  {amount:>{amount_width}}  {bar:<{bar_width}}{columns}".rstrip())
    return lines


def _numbers(spent: SpendTotals) -> list[str]:
    """The cells of a row, in the order of the columns; empty where nothing was called."""
    if not spent.calls and not spent.failed:
        return [""] * (len(_COLUMNS) + 1)
    return [
        f"{spent.calls:,}" if spent.calls < 100_000 else format_count(spent.calls),
        format_count(spent.usage.prompt),
        f"{spent.usage.cache_read / spent.usage.prompt:.0%}" if spent.usage.prompt else "",
        format_count(spent.usage.output),
        format_count(spent.unpriced_tokens),
    ]


def _amount(spent: SpendTotals, *, priced: bool) -> str:
    if not spent.calls:
        return "-"
    if not priced:
        return format_count(spent.tokens)
    return f"{spent.usd:,.4f}" if spent.usd < _MUCH else f"{spent.usd:,.2f}"


def _every_day(report: UsageReport) -> list[tuple[str, SpendTotals]]:
    """From the first day on which anything was asked until today: a day without calls is a gap that is seen."""
    spent_by_day, first = dict(report.rows), date.fromisoformat(report.rows[0][0])
    last = date.fromisoformat(max(report.budget.today, report.rows[-1][0]))
    days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    return [(day, spent_by_day.get(day, _NOTHING)) for day in days]


def _name(name: str, limit: int) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in name).strip() or _NO_SESSION
    return shorten(shown, limit)


def format_count(count: int) -> str:
    """A number in five letters at most: 950, 9.4k, 34k, 1.2M."""
    if count < 1_000:
        return str(count)
    unit, size = next((unit, size) for unit, size in _UNITS if count < 999.5 * size or unit == "G")
    value = count / size
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:,.0f}{unit}"


# ---------------------------------------------------------------------------------------------------------- the command


def render_usage(report: UsageReport, _: tzinfo) -> str:
    """Markdown that keeps its columns."""
    return "\n".join(["```", *usage_lines(report), "```"])


@click.command(cls=TableCommand, result=UsageAnswer, render=render_usage, reads=True, with_session=False)
@click.argument("by", required=False, default="model", type=click.Choice(get_args(UsageKey)))
@click.option("--by", "by_option", type=click.Choice(get_args(UsageKey)), hidden=True)  # as a shell has it
@click.option("--days", default=_DAYS, show_default=True, type=click.IntRange(1, 36500), help="How far back to look.")
def usage(context: CommandContext, by: UsageKey, by_option: UsageKey | None, days: int) -> UsageReport:
    """Show what models have cost, against the caps of the day and the month.

    > /usage kind
    """
    return load_usage(context.stores.ledger, by_option or by, days, context.now)
