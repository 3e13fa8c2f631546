"""The `aihistory` command: what was compacted, and what it said; read-only, whether a daemon runs or not."""

from __future__ import annotations

import click

from assistant import __version__
from assistant.cli.aihistory.compactions import compaction_json, filter_options, print_compactions, read_filter
from assistant.cli.home_stores import open_home_stores
from assistant.cli.lazy import LazyGroup, run_and_exit
from assistant.cli.output import print_json

_NAMES = ("show", "recover", "diff", "search", "stats")


def _load(name: str) -> click.Command:
    match name:
        case "show":
            from assistant.cli.aihistory.compactions import show as command
        case "recover":
            from assistant.cli.aihistory.recover import recover as command
        case "diff":
            from assistant.cli.aihistory.diff import diff as command
        case "search":
            from assistant.cli.aihistory.search import search as command
        case "stats":
            from assistant.cli.aihistory.stats import stats as command
        case _:
            raise LookupError(name)
    return command


@click.group(
    cls=LazyGroup,
    names=_NAMES,
    load=_load,
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
