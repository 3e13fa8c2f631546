"""`assistant status`: how the assistant is, from the daemon when one runs, else from the stores."""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from assistant.cli.link import LinkLost, open_daemon_link, run_with_signals
from assistant.cli.output import print_json, print_text
from assistant.commands.argv import rewrite_for_shell
from assistant.core.calendar import utc_now
from assistant.core.errors import SettingsError
from assistant.core.text import pluralize
from assistant.health.status import report_verdict
from assistant.health.status_text import ALL_GOOD, render_facts, render_lines
from assistant.service.home_lock import is_home_served, is_listening, lock_holder
from assistant.settings.home import Home, home_from_environment
from assistant.settings.settings import Settings, load_settings

# A daemon that gets on answers at once, whatever it is at.
_ANSWERS_WITHIN = 15.0
_SILENT = (
    "Process {process} runs the assistant and did not answer for {seconds:g} s. A service manager restarts "
    "it; otherwise `assistant stop`, then start it."
)
_WIDEST, _NARROWEST = 110, 40
# Names of sessions may be long; they do not push everything else to the right.
_SUBJECT_MOST = 24


@click.command()
@click.option("--json", "json_out", is_flag=True, help="Print JSON; `ok` is false when anything needs you.")
@click.pass_context
def status(context: click.Context, json_out: bool) -> None:
    """Show how the assistant is. Exits with 1 when something needs you, else with 0.

    `assistant doctor` checks more, also what is around it.

    \b
    Example:
      assistant status
      assistant status --json
    """
    report = read_status_report(home_from_environment())
    report["problems"] = [rewrite_for_shell(problem) for problem in report["problems"]]
    if json_out:
        print_json(report)
    elif sys.stdout.isatty():
        print_text("\n".join(wrap_status_report(report, shutil.get_terminal_size().columns)))
    else:
        print_text("\n".join(render_lines(report)))
    context.exit(0 if report["ok"] else 1)


def wrap_status_report(report: Mapping[str, Any], columns: int) -> Iterator[str]:
    """The report for a terminal so wide: what needs a person, then subjects and what there is to say, aligned."""
    width = max(_NARROWEST, min(columns, _WIDEST))
    problems, facts = report["problems"], render_facts(report)
    yield f"Red: {pluralize(len(problems), 'thing needs', 'things need')} you." if problems else ALL_GOOD
    for problem in problems:
        yield from textwrap.wrap(problem, width, initial_indent="  ! ", subsequent_indent="    ", **_WRAPPED)
    yield ""
    subject = min(max(len(name) for name, _ in facts), _SUBJECT_MOST)
    for name, text in facts:
        head = f"{name:<{subject}}  "
        yield from textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * (subject + 2), **_WRAPPED)


# Addresses and commands are read whole.
_WRAPPED: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


def read_status_report(home: Home, within: float = _ANSWERS_WITHIN) -> dict[str, Any]:
    """How a home is, from the daemon that serves it, if that answers within so many seconds; else from the stores."""
    silent = []
    if is_listening(home.socket):
        try:
            # It runs on settings that were understood, whatever config.toml says by now.
            return {"running": True, **run_with_signals(_of_the_daemon(home, within))}
        except (LinkLost, TimeoutError):
            if is_home_served(home):
                silent = [_SILENT.format(process=lock_holder(home) or "?", seconds=within)]
    settings, refused = _settings(home)
    from assistant.cli.home_stores import open_home_stores

    with open_home_stores(settings) as stores:
        from assistant.wire.stores import stored_status

        found = stored_status(settings, stores, utc_now())
    served = is_home_served(home)
    unanswered = [] if served else _unanswered(found["waiting"])
    return {"running": served, **found, **report_verdict([*silent, *refused, *unanswered, *found["problems"]])}


def _settings(home: Home) -> tuple[Settings, list[str]]:
    """Those that can be read, and what of them cannot."""
    try:
        return load_settings(home), []
    except SettingsError as error:
        from assistant.cli.effective_settings import load_readable_settings

        found, told = load_readable_settings(home, error)
        return found, [told]


def _unanswered(sessions: int) -> list[str]:
    """That nothing runs is a problem only where somebody waits for an answer."""
    if not sessions:
        return []
    where = pluralize(sessions, "conversation")
    return [f"The assistant is not running, and in {where} a message waits for an answer. Start `assistant run`."]


async def _of_the_daemon(home: Home, within: float) -> Mapping[str, Any]:
    async with asyncio.timeout(within), open_daemon_link(home) as link:
        return await link.status()
