"""`assistant usage`: what models have cost, against what they may."""

from __future__ import annotations

from typing import ClassVar, get_args

import click
from rich.highlighter import RegexHighlighter
from rich.theme import Theme

from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.output import json_result, make_console
from assistant.commands.usage import UsageAnswer, UsageReport, load_usage, usage_lines
from assistant.core.calendar import utc_now
from assistant.core.model_api import UsageKey


class _Bars(RegexHighlighter):
    """Colours for what is drawn, where somebody looks at colours."""

    base_style = "usage."
    highlights: ClassVar[list[str]] = [r"(?P<bar>[█▏▎▍▌▋▊▉]+)", r"(?P<rest>░+)", r"(?P<full>used up|too little left)$"]


_COLOURS = Theme({"usage.bar": "cyan", "usage.rest": "bright_black", "usage.full": "bold red"})


@click.command()
@click.option(
    "--by",
    default="day",
    show_default=True,
    type=click.Choice(get_args(UsageKey)),
    help="What each bar stands for.",
)
@click.option("--days", default=31, show_default=True, type=click.IntRange(1, 36500), help="How far back to look.")
@json_result(UsageAnswer, "Print a JSON object: rows, split, caps, forecast.")
def usage(by: UsageKey, days: int) -> UsageReport:
    """Show what models have cost, against the caps of the day and the month.

    Calls that are under way count at the most they may cost. Kinds that nobody waits for are the background:
    schedules, and what is done in sleep. Parts are those of the prompts, as far as the providers reported what they
    read from their cache and what they wrote to it.

    > assistant usage
    > assistant usage --by kind --days 7
    > assistant usage --by model --json
    """
    with open_home_stores(load_effective_settings(read_only=True)) as stores:
        report = load_usage(stores.ledger, by, days, utc_now())
    console, bars = make_console(), _Bars()
    with console.use_theme(_COLOURS):
        for line in usage_lines(report):
            console.print(bars(line), soft_wrap=True, markup=False)
    return report
