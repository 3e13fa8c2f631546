"""The `aihistory` command: what was compacted, and what it said; read-only, whether the assistant runs or not. `stats`
is here: what compactions did, month by month, and how full a conversation's context was.
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

import click

from assistant import __version__
from assistant.cli.aihistory.compactions import (
    NEVER_INSTALLED,
    NOTHING_COMPACTED,
    filter_options,
    format_dollars,
    list_compactions,
    recover,
    select_checkpoints,
    show,
)
from assistant.cli.aihistory.missing import diff
from assistant.cli.aihistory.search import search
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.lazy import run_and_exit, show_examples
from assistant.cli.output import json_result, make_console, print_markdown, print_text
from assistant.cli.shell import run_in_shell
from assistant.commands.table import CommandGroup
from assistant.core.checkpoints import Checkpoint, describe_tier
from assistant.core.dataclass import dataclass
from assistant.core.sessions import session_name
from assistant.core.text import pluralize


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="aihistory")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@click.pass_context
def aihistory(context: click.Context, debug: bool) -> None:
    """Look at what was compacted. Without a command it lists the compactions, newest first.

    A compaction loses nothing: the words stay in the message log (`aihistory recover`, `assistant log`). These
    commands only read, beside a running assistant or without one.

    > aihistory
    > aihistory --since 2026-11-01 --session main --json
    > aihistory show 3
    > aihistory search "booking number"
    """
    context.obj = run_in_shell


for command in (list_compactions, show, recover, diff, search):
    aihistory.add_command(command)


def main() -> None:
    run_and_exit(aihistory)


# -------------------------------------------------------------------------------------------------------------- stats

_WIDEST_PLOT, _USUAL_WIDTH = 100, 80


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


@aihistory.command(cls=click.Command)
@filter_options
@json_result(list[CompactionMonth], "Print one JSON array, a month each, newest first.")
def stats(since: str | None, session: str | None) -> list[CompactionMonth]:
    """Count compactions by month. Also draws how full a conversation's context was.

    The drawing is of the conversation that was compacted most often, or of --session.

    > aihistory stats
    > aihistory stats --session main --since 2026-01-01
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        checkpoints = select_checkpoints(stores.conversation, settings.zone, since, session)
    months = group_by_month(checkpoints, settings.zone)
    print_markdown("\n".join(map(_line, months)) or NOTHING_COMPACTED)
    width = min(make_console().width, _WIDEST_PLOT) if sys.stdout.isatty() else _USUAL_WIDTH
    if drawing := draw_pressure_chart(checkpoints, settings.zone, width):
        print_text(f"\n{drawing}")
    return months


def group_by_month(checkpoints: Sequence[Checkpoint], zone: ZoneInfo) -> list[CompactionMonth]:
    """Months in your time zone, newest first, without those in which nothing was compacted; one under way does not
    count."""
    ended = sorted((it for it in checkpoints if it.state != "started"), key=lambda it: it.created_at, reverse=True)
    months = groupby(ended, key=lambda it: f"{it.created_at.astimezone(zone):%Y-%m}")
    return [_sum_up(name, list(of_month)) for name, of_month in months]


def _sum_up(month: str, ended: Sequence[Checkpoint]) -> CompactionMonth:
    installed = [it for it in ended if it.state != "failed"]
    before, after = sum(it.original_tokens for it in installed), sum(it.compressed_tokens for it in installed)
    tiers = Counter(it.tier for it in installed).most_common()
    return CompactionMonth(
        month,
        compactions=len(installed),
        failed=len(ended) - len(installed),
        compacted_count=sum(it.messages_compressed for it in installed if not it.is_merge),
        original_token_count=before,
        summary_token_count=after,
        tokens_saved=before - after,
        ratio=round(sum(it.ratio for it in installed) / len(installed), 4) if installed else 0.0,
        cost_usd=round(sum(it.cost_usd or 0.0 for it in installed), 6),
        unpriced=sum(it.cost_usd is None for it in installed),
        tiers={tier: round(count / len(installed), 4) for tier, count in tiers},
    )


def _line(month: CompactionMonth) -> str:
    tiers = ", ".join(f"{describe_tier(tier)} {share:.0%}" for tier, share in month.tiers.items())
    line = (
        f"- {month.month}: {pluralize(month.compactions, 'compaction')} ({month.failed:,} failed), "
        f"{pluralize(month.compacted_count, 'message')}, {month.tokens_saved:,} tokens saved "
        f"(to {month.ratio:.0%} on average), {format_dollars(month.cost_usd)}"
        + (f" (+ {month.unpriced} without a price)" if month.unpriced else "")
        + (f"; {tiers}" if tiers else "")
    )
    return textwrap.fill(line, _USUAL_WIDTH, subsequent_indent="  ", break_on_hyphens=False)


# --------------------------------------------------------------------------------------------------------- the drawing

_HEIGHT = 10
# What plotille puts before the drawing, and at its end.
_MARGIN = 25
# With more teeth than this the drawing is one dark band.
_MAX_TEETH = 30
# From so many days on the axis names dates, else hours.
_MANY_DAYS = 8
_BLANKS = " \u2800"


def draw_pressure_chart(checkpoints: Sequence[Checkpoint], zone: ZoneInfo, width: int) -> str:
    """The last compactions of the conversation that has most of them, `width` columns wide; empty for fewer than two,
    which make no saw. In shares of the context, or in tokens where those were not noted among the key facts."""
    installed = [it for it in checkpoints if it.state not in NEVER_INSTALLED and not it.is_merge]
    session = next((name for name, _ in Counter(it.session for it in installed).most_common(1)), "")
    teeth = sorted((it for it in installed if it.session == session), key=lambda it: it.created_at)[-_MAX_TEETH:]
    if len(teeth) < 2 or teeth[0].created_at == teeth[-1].created_at:
        return ""
    moments = [it.created_at.astimezone(zone) for it in teeth]
    pairs = [it.key_facts.get("pressure") for it in teeth]
    drops = [(100 * float(it[0]), 100 * float(it[1])) for it in pairs if isinstance(it, list) and len(it) == 2]
    name = session_name(session)
    if len(drops) == len(teeth):
        title = f"Context of {name}, in % of the room, at its last {pluralize(len(teeth), 'compaction')}"
        return f"{title}\n{_plot(moments, drops, width, '%', 100.0)}"
    title = f"What was compacted of {name}, in tokens, at its last {pluralize(len(teeth), 'compaction')}"
    sizes = [(float(it.original_tokens), float(it.compressed_tokens)) for it in teeth]
    return f"{title}\n{_plot(moments, sizes, width, 'tokens', 1.0)}"


def _plot(
    moments: Sequence[datetime], drops: Sequence[tuple[float, float]], width: int, unit: str, least_height: float
) -> str:
    """At each moment a line from the height before to the height after."""
    import plotille  # only where something is drawn

    heights = [height for drop in drops for height in drop]
    figure = plotille.Figure()
    figure.width, figure.height = max(20, width - _MARGIN), _HEIGHT
    figure.with_colors, figure.origin = False, False
    figure.x_label, figure.y_label = "time", unit
    figure.set_y_limits(0, max(least_height, *heights))
    figure.y_ticks_fkt = lambda low, _: f"{low:,.0f}"
    days = "%d %b %y" if (moments[-1] - moments[0]).days >= _MANY_DAYS else "%d. %H:%M"
    figure.x_ticks_fkt = lambda low, _: f"{low:{days}}"
    figure.plot([moment for moment in moments for _ in range(2)], heights)
    return "\n".join(line.rstrip(_BLANKS) for line in figure.show().splitlines())


show_examples(aihistory)


if __name__ == "__main__":
    main()
