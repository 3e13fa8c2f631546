"""`aihistory stats`: what compactions did, month by month, and how full a conversation's context was."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

import click

from assistant.cli.aihistory.compactions import (
    NOTHING_COMPACTED,
    describe_tier,
    filter_options,
    format_dollars,
    select_checkpoints,
)
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.output import make_console, print_markdown, print_text, print_value
from assistant.core.checkpoints import Checkpoint
from assistant.core.text import pluralize

_WIDEST_PLOT = 100


@dataclass(frozen=True, slots=True)
class CompactionMonth:
    """The compactions of a month that were installed, whatever became of them later."""

    month: str  # as in "2026-11"
    compactions: int
    failed: int  # how many were not installed
    compacted_count: int  # messages, each once, however often its checkpoint was merged
    original_token_count: int
    summary_token_count: int
    tokens_saved: int
    ratio: float  # of the average compaction
    cost_usd: float
    unpriced: int
    tiers: dict[str, float]  # the share of each tier, the largest first


@click.command()
@filter_options
@click.option("--json", "json_out", is_flag=True, help="Print one JSON array, a month each, newest first.")
def stats(since: str | None, session: str | None, json_out: bool) -> None:
    """Sum compactions up by month, and draw how full one conversation's context was.

    The drawing is of the conversation that was compacted most often, or of --session.

    \b
    Example:
      aihistory stats
      aihistory stats --session main --since 2026-01-01
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        checkpoints = select_checkpoints(stores.conversation, settings.zone, since, session)
    months = group_by_month(checkpoints, settings.zone)
    if json_out:
        print_value(list[CompactionMonth], months)
        return
    print_markdown("\n".join(map(_line, months)) or NOTHING_COMPACTED)
    width = min(make_console().width, _WIDEST_PLOT) if sys.stdout.isatty() else _WIDEST_PLOT
    if drawing := draw_pressure_chart(checkpoints, settings.zone, width):
        print_text(f"\n{drawing}")


def group_by_month(checkpoints: Sequence[Checkpoint], zone: ZoneInfo) -> list[CompactionMonth]:
    """Months in your time zone, newest first, without those in which nothing was compacted; one under way does not
    count."""
    ended = sorted((it for it in checkpoints if it.state != "started"), key=lambda it: it.created_at, reverse=True)
    months = groupby(ended, key=lambda it: f"{it.created_at.astimezone(zone):%Y-%m}")
    return [_month(name, list(of_month)) for name, of_month in months]


def _month(name: str, of_month: Sequence[Checkpoint]) -> CompactionMonth:
    done = [it for it in of_month if it.state != "failed"]
    before, after = sum(it.original_tokens for it in done), sum(it.compressed_tokens for it in done)
    return CompactionMonth(
        name,
        len(done),
        len(of_month) - len(done),
        sum(it.messages_compressed for it in done if not it.is_merge),
        before,
        after,
        before - after,
        round(sum(it.ratio for it in done) / len(done), 4) if done else 0.0,
        round(sum(it.cost_usd or 0.0 for it in done), 6),
        sum(it.cost_usd is None for it in done),
        {tier: round(count / len(done), 4) for tier, count in Counter(it.tier for it in done).most_common()},
    )


def _line(month: CompactionMonth) -> str:
    tiers = ", ".join(f"{describe_tier(tier)} {share:.0%}" for tier, share in month.tiers.items())
    return (
        f"- {month.month}: {pluralize(month.compactions, 'compaction')} ({month.failed:,} failed), "
        f"{pluralize(month.compacted_count, 'message')}, {month.tokens_saved:,} tokens saved "
        f"(to {month.ratio:.0%} on average), {format_dollars(month.cost_usd)}"
        + (f" (+ {month.unpriced} without a price)" if month.unpriced else "")
        + (f"; {tiers}" if tiers else "")
    )


# --------------------------------------------------------------------------------------------------------- the drawing

_HEIGHT = 10
# What plotille puts before the drawing, and at its end.
_MARGIN = 15
# With more teeth than this the drawing is one dark band.
_TEETH = 30
_NEVER_INSTALLED = ("started", "failed")
_SHARE = "%"
# From so many days on the axis names dates, else hours.
_MANY_DAYS = 8
_BLANKS = " \u2800"


@dataclass(frozen=True, slots=True)
class _Drop:
    """What a compaction did at a moment; in shares of the context, or in tokens where those were not noted."""

    at: datetime
    before: float
    after: float


def draw_pressure_chart(checkpoints: Sequence[Checkpoint], zone: ZoneInfo, width: int) -> str:
    """The last compactions of the conversation that has most of them, `width` columns wide; empty for fewer than two,
    which make no saw."""
    done = [c for c in checkpoints if c.state not in _NEVER_INSTALLED and not c.is_merge]
    if not done:
        return ""
    session = Counter(c.session for c in done).most_common(1)[0][0]
    of_session = sorted((c for c in done if c.session == session), key=lambda c: c.created_at)[-_TEETH:]
    if len(of_session) < 2 or of_session[0].created_at == of_session[-1].created_at:
        return ""
    shares = [drop for c in of_session if (drop := _in_shares(c)) is not None]
    if len(shares) == len(of_session):
        title = f"Context of {session}, in % of the room, at its last {len(shares)} compactions"
        return f"{title}\n{_plot(shares, zone, width, _SHARE)}"
    tokens = [_Drop(c.created_at, c.original_tokens, c.compressed_tokens) for c in of_session]
    title = f"What was compacted of {session}, in tokens, at its last {len(tokens)} compactions"
    return f"{title}\n{_plot(tokens, zone, width, 'tokens')}"


def _in_shares(c: Checkpoint) -> _Drop | None:
    """From the pressure before and after that a compaction noted among its key facts."""
    noted = c.key_facts.get("pressure")
    if not isinstance(noted, list) or len(noted) != 2:
        return None
    return _Drop(c.created_at, 100 * float(noted[0]), 100 * float(noted[1]))


def _plot(drops: Sequence[_Drop], zone: ZoneInfo, width: int, unit: str) -> str:
    import plotille  # only where something is drawn

    moments = [drop.at.astimezone(zone) for drop in drops for _ in range(2)]
    heights = [height for drop in drops for height in (drop.before, drop.after)]
    figure = plotille.Figure()
    figure.width, figure.height = max(20, width - _MARGIN), _HEIGHT
    figure.with_colors, figure.origin = False, False
    figure.x_label, figure.y_label = "time", unit
    figure.set_y_limits(0, max(100.0 if unit == _SHARE else 1.0, *heights))
    figure.y_ticks_fkt = lambda low, _: f"{low:,.0f}"
    days = "%d %b %y" if (moments[-1] - moments[0]).days >= _MANY_DAYS else "%d. %H:%M"
    figure.x_ticks_fkt = lambda low, _: f"{low:{days}}"
    figure.plot(moments, heights)
    return "\n".join(line.rstrip(_BLANKS) for line in figure.show().splitlines())
