"""`assistant sleep`: sleep now, in part or whole; what that would do, what the last sleep did, or taking it back."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator

import click
from rich.console import Console
from rich.status import Status

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import require_home
from assistant.cli.link import open_link, run_with_signals
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_json, print_markdown, print_remark, print_text
from assistant.cli.remote import open_home_locally, print_slash_command
from assistant.cli.slash import rewrite_for_shell
from assistant.cli.text import clean_for_terminal
from assistant.commands.sleep import parse_phase, render_sleep_progress, render_sleep_report, sleep_report_json
from assistant.core.calendar import utc_now
from assistant.core.errors import StoreError, UsageError
from assistant.core.memories import SleepReport
from assistant.core.sessions import MAIN_SESSION
from assistant.core.store_ports import Journal
from assistant.service.home_lock import is_home_served
from assistant.settings.settings import Settings
from assistant.wire.stores import open_journal_for_reading

_LOOK_EVERY = 0.2


@click.command()
@click.option("--dry-run", is_flag=True, help="Only tell what a sleep would do now, and about what it would cost.")
@click.option("--phase", metavar="NAME", help="This phase alone: extract, score, consolidate, curate or compact.")
@click.option("--last", is_flag=True, help="Tell what the last sleep did, or does.")
@click.option("--undo", is_flag=True, help="Take the last sleep back that changed something; again: the one before it.")
@click.option("--json", "json_out", is_flag=True, help="Print JSON: a report, a forecast, or what was taken back.")
def sleep(dry_run: bool, phase: str | None, last: bool, undo: bool, json_out: bool) -> None:
    """Sleep now: read what was said for the journal, remember it, write files and profiles, compact what is full.

    The assistant does this by itself every night. A message never waits for it. Whatever a sleep changed can be taken
    back; the messages themselves are never touched.

    \b
    Example:
      assistant sleep --dry-run
      assistant sleep
      assistant sleep --last
      assistant sleep --undo
    """
    if dry_run + (phase is not None) + last + undo > 1:
        raise UsageError("Give one of --dry-run, --phase, --last and --undo. Nothing was changed.")
    settings = load_effective_settings()
    if last:
        _tell_of_last(settings, json_out)
        return
    words = ["/sleep", *(["--json"] if json_out else [])]
    if dry_run or undo:
        print_slash_command(settings, " ".join([*words, "--dry-run" if dry_run else "--undo"]), MAIN_SESSION)
        return
    words += ["--phase", parse_phase(phase)] if phase is not None else []
    told = _slept(settings, " ".join(words))
    (print_text if json_out else print_markdown)(told)
    with _journal(settings) as journal:
        report = next(iter(journal.list_cycles(limit=1, other_process_may_sleep=is_home_served(settings.home))), None)
    if report is None or report.state in ("failed", "interrupted"):
        # What went wrong is said already.
        click.get_current_context().exit(1)


def _tell_of_last(settings: Settings, json_out: bool) -> None:
    with _journal(settings) as journal:
        report = next(iter(journal.list_cycles(limit=1, other_process_may_sleep=is_home_served(settings.home))), None)
    if json_out:
        print_json(sleep_report_json(report))
    else:
        print_text(render_sleep_report(report, settings.zone, utc_now()))


@contextlib.contextmanager
def _journal(settings: Settings) -> Iterator[Journal]:
    require_home(settings)
    with open_journal_for_reading(settings.home.path) as journal:
        yield journal


def _slept(settings: Settings, text: str) -> str:
    """What `/sleep` answers, with what goes on told to a terminal meanwhile."""
    require_home(settings)
    configure_logging("error")
    try:
        return rewrite_for_shell(run_with_signals(_sleeping(settings, text)))
    except KeyboardInterrupt:
        if is_home_served(settings.home):
            print_remark("The sleep goes on in the assistant that runs; `assistant sleep --last` tells what it does.")
        else:
            print_remark("The sleep was cut off. What was done is kept, and the next one goes on where it was.")
        raise


async def _sleeping(settings: Settings, text: str) -> str:
    async with open_link(settings, open_home_locally) as link:
        asked = asyncio.create_task(link.run_command(text, MAIN_SESSION))
        try:
            if sys.stderr.isatty():
                await _followed(settings, asked)
            return await asked
        finally:
            asked.cancel()


async def _followed(settings: Settings, asked: asyncio.Task[str]) -> None:
    """Show how far the sleep is until there is an answer. The home of whoever serves it is read beside them."""
    with Status("Falling asleep", console=Console(stderr=True)) as shown, _journal(settings) as journal:
        while not asked.done():
            await asyncio.wait([asked], timeout=_LOOK_EVERY)
            with contextlib.suppress(StoreError):
                shown.update(_now(next(iter(journal.list_cycles(limit=1, other_process_may_sleep=True)), None)))


def _now(report: SleepReport | None) -> str:
    if report is None or report.state != "running":
        return "Falling asleep"
    return clean_for_terminal(render_sleep_progress(report, utc_now()))
