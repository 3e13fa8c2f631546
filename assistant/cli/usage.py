"""`assistant usage`: what models have cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import click

from assistant import daemon
from assistant import settings as settings_module
from assistant.cli.plain import as_json
from assistant.cli.stored import opened
from assistant.cli.tables import table
from assistant.requests import Spent

Key = Literal["day", "model", "kind", "session"]


@click.command()
@click.option(
    "--by",
    default="day",
    show_default=True,
    type=click.Choice(["day", "model", "kind", "session"]),
    help="One row for each.",
)
@click.option("--days", default=31, show_default=True, type=click.IntRange(1, 36500), help="How far back to look.")
@click.option("--json", "json_out", is_flag=True, help="Print a JSON array.")
def usage(by: Key, days: int, json_out: bool) -> None:
    """Show what models have cost: calls, tokens, US dollars.

    Calls that are under way count at the most they may cost.

    \b
    Example:
      assistant usage
      assistant usage --by model --days 7 --json
    """
    since = daemon.utc_now() - timedelta(days=days)
    with opened(settings_module.load()) as stores:
        rows = stores.ledger.by(by, since)
    if json_out:
        as_json([_as_json(by, name, spent) for name, spent in rows])
        return
    table(
        (by, "calls", "input", "cached", "output", "tokens", "US$", "without a price"),
        [_row(name, spent) for name, spent in rows],
        right=("calls", "input", "cached", "output", "tokens", "US$", "without a price"),
        empty=f"No model was called in the last {days} days.",
    )


def _row(name: str, spent: Spent) -> tuple[str, ...]:
    used = spent.usage
    return (
        name, f"{spent.calls:,}", f"{used.prompt:,}", f"{used.cache_read:,}", f"{used.output:,}", f"{spent.tokens:,}",
        f"{spent.usd:.4f}", f"{spent.unpriced_tokens:,}",
    )  # fmt: skip


def _as_json(by: str, name: str, spent: Spent) -> dict[str, Any]:
    used = spent.usage
    return {
        by: name, "calls": spent.calls, "input": used.input, "output": used.output, "cache_read": used.cache_read,
        "cache_write": used.cache_write, "tokens": spent.tokens, "usd": round(spent.usd, 6),
        "unpriced_tokens": spent.unpriced_tokens,
    }  # fmt: skip
