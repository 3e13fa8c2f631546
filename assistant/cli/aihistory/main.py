"""The `aihistory` command: what was compacted, and what it said; read-only, whether the assistant runs or not."""

from __future__ import annotations

import click

from assistant import __version__
from assistant.cli.aihistory.compactions import list_compactions, show
from assistant.cli.aihistory.originals import diff, recover
from assistant.cli.aihistory.search import search
from assistant.cli.aihistory.stats import stats
from assistant.cli.lazy import run_and_exit
from assistant.cli.shell import run_in_shell
from assistant.commands.table import CommandGroup


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="aihistory")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@click.pass_context
def aihistory(context: click.Context, debug: bool) -> None:
    """Look at what was compacted. Without a command it lists the compactions, newest first.

    A compaction loses nothing: the words stay in the message log (`aihistory recover`, `assistant log`). These
    commands only read, beside a running assistant or without one.

    \b
    Example:
      aihistory
      aihistory --since 2026-11-01 --session main --json
      aihistory show 3
      aihistory search "booking number"
    """
    context.obj = run_in_shell


for command in (list_compactions, show, recover, diff, search, stats):
    aihistory.add_command(command)


def main() -> None:
    run_and_exit(aihistory)
