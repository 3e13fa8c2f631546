"""The `aihistory` command: what was compacted, and what it said; read-only, whether a daemon runs or not."""

from __future__ import annotations

import click

from assistant import __version__
from assistant.cli.compactions import compaction_json, draw
from assistant.cli.lazy import LazyGroup, start
from assistant.cli.plain import as_json
from assistant.cli.selection import selected, selecting
from assistant.cli.stored import opened

_COMMANDS = {
    "show": "assistant.cli.compactions:show",
    "recover": "assistant.cli.recover:recover",
    "diff": "assistant.cli.missing:diff",
    "search": "assistant.cli.search:search",
    "stats": "assistant.cli.stats:stats",
}


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="aihistory")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@selecting("Print one JSON array, newest first.")
@click.pass_context
def aihistory(context: click.Context, debug: bool) -> None:
    """List what was compacted, newest first.

    Nothing is lost by a compaction: the words stand in the master log (`aihistory recover`, `assistant log`). This
    only reads, beside a running assistant or without one.

    \b
    Example:
      aihistory
      aihistory --since 2026-11-01 --session main --json
      aihistory show 3
      aihistory search "booking number"
    """
    if context.invoked_subcommand is not None:
        return
    chosen = selected(context)
    with opened(chosen.settings) as stores:
        found = chosen.of(stores.conversation)
    if chosen.json_out:
        as_json([compaction_json(checkpoint) for checkpoint in found])
    else:
        draw(found, chosen.settings.zone)


def main() -> None:
    start(aihistory)
