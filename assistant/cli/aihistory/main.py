"""The `aihistory` command: what was compacted, and what it said; read-only, whether a daemon runs or not."""

from __future__ import annotations

import click

from assistant import __version__
from assistant.cli.aihistory.compactions import compaction_json, filter_options, print_compactions, read_filter
from assistant.cli.home_stores import open_home_stores
from assistant.cli.lazy import LazyGroup, run_and_exit
from assistant.cli.output import print_json

_COMMANDS = {
    "show": "assistant.cli.aihistory.compactions:show",
    "recover": "assistant.cli.aihistory.recover:recover",
    "diff": "assistant.cli.aihistory.diff:diff",
    "search": "assistant.cli.aihistory.search:search",
    "stats": "assistant.cli.aihistory.stats:stats",
}


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="aihistory")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@filter_options("Print one JSON array, newest first.")
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
    chosen = read_filter(context)
    with open_home_stores(chosen.settings) as stores:
        found = chosen.select_checkpoints(stores.conversation)
    if chosen.json_out:
        print_json([compaction_json(checkpoint) for checkpoint in found])
    else:
        print_compactions(found, chosen.settings.zone)


def main() -> None:
    run_and_exit(aihistory)
