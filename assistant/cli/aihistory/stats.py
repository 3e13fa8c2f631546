"""`aihistory stats`: what compactions did, month by month, and the rise and fall of a conversation's context."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import click

from assistant.cli.aihistory.compactions import filter_options, format_dollars, read_filter
from assistant.cli.home_stores import open_home_stores
from assistant.cli.output import print_json, print_text
from assistant.cli.tables import make_console, print_table
from assistant.core.checkpoints import Checkpoint

_WIDEST_PLOT = 100


@dataclass(frozen=True, slots=True)
class CompactionMonth:
    """`done` are the compactions that were installed (whatever became of them later), `failed` how many were not."""

    name: str
    done: tuple[Checkpoint, ...]
    failed: int

    @property
    def messages(self) -> int:
        """Each message once, however often its checkpoint was merged."""
        return sum(c.messages_compressed for c in self.done if not c.is_merge)

    @property
    def before(self) -> int:
        return sum(c.original_tokens for c in self.done)

    @property
    def after(self) -> int:
        return sum(c.compressed_tokens for c in self.done)

    @property
    def ratio(self) -> float:
        """The average compaction's."""
        return sum(c.ratio for c in self.done) / len(self.done) if self.done else 0.0

    @property
    def cost(self) -> float:
        return sum(c.cost_usd or 0.0 for c in self.done)

    @property
    def unpriced(self) -> int:
        return sum(c.cost_usd is None for c in self.done)

    @property
    def tiers(self) -> dict[str, float]:
        """The share of each tier, the largest first."""
        return {tier: count / len(self.done) for tier, count in Counter(c.tier for c in self.done).most_common()}


@click.command()
@filter_options("Print one JSON array, a month each, newest first.")
@click.pass_context
def stats(context: click.Context) -> None:
    """Sum compactions up by month, and draw how one conversation's context rose and fell.

    The drawing is of the conversation that was compacted most often, or of --session.

    \b
    Example:
      aihistory stats
      aihistory stats --session main --since 2026-01-01
    """
    chosen = read_filter(context)
    with open_home_stores(chosen.settings) as stores:
        found = chosen.select_checkpoints(stores.conversation)
    months = group_by_month(found, chosen.settings.zone)
    if chosen.json_out:
        print_json([_as_json(month) for month in months])
        return
    _draw(months)
    from assistant.cli.aihistory.pressure_chart import draw_pressure_chart

    drawn = draw_pressure_chart(found, chosen.settings.zone, _width())
    if drawn:
        print_text(f"\n{drawn}")


def group_by_month(found: Sequence[Checkpoint], zone: ZoneInfo) -> list[CompactionMonth]:
    """Months of the home's zone, newest first, those without a compaction left out; one under way does not count."""
    ended = sorted((c for c in found if c.state != "started"), key=lambda c: c.created_at, reverse=True)
    months = []
    for name, group in groupby(ended, key=lambda c: f"{c.created_at.astimezone(zone):%Y-%m}"):
        of_month = list(group)
        done = tuple(c for c in of_month if c.state != "failed")
        months.append(CompactionMonth(name, done, len(of_month) - len(done)))
    return months


def _draw(months: Sequence[CompactionMonth]) -> None:
    print_table(
        ("month", "compactions", "failed", "messages", "tokens saved", "ratio", "cost", "tiers"),
        [
            (
                m.name,
                f"{len(m.done):,}",
                f"{m.failed:,}",
                f"{m.messages:,}",
                f"{m.before - m.after:,}",
                f"{m.ratio:.2f}",
                format_dollars(m.cost) + (f" (+ {m.unpriced} without a price)" if m.unpriced else ""),
                ", ".join(f"{tier} {share:.0%}" for tier, share in m.tiers.items()),
            )
            for m in months
        ],
        right=("compactions", "failed", "messages", "tokens saved", "ratio", "cost"),
        empty="Nothing was compacted yet.",
    )


def _as_json(month: CompactionMonth) -> dict[str, Any]:
    return {
        "month": month.name,
        "compactions": len(month.done),
        "failed": month.failed,
        "compacted_count": month.messages,
        "original_token_count": month.before,
        "summary_token_count": month.after,
        "tokens_saved": month.before - month.after,
        "ratio": round(month.ratio, 4),
        "cost_usd": round(month.cost, 6),
        "unpriced": month.unpriced,
        "tiers": {tier: round(share, 4) for tier, share in month.tiers.items()},
    }


def _width() -> int:
    return min(make_console().width, _WIDEST_PLOT) if sys.stdout.isatty() else _WIDEST_PLOT
