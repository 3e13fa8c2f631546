"""`assistant status` and `doctor`: how the assistant is, from the daemon when one runs, else from the stores; and a
check of every part.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import click

from assistant.cli.daemon_link import open_daemon_link
from assistant.cli.home_stores import load_readable_settings, open_home_stores
from assistant.cli.link import LinkLost
from assistant.cli.logging_setup import log_to_file
from assistant.cli.open_link import run_with_signals
from assistant.cli.output import json_result, print_text
from assistant.cli.service.install import (
    DEFAULT_SERVICE_NAME,
    define_service,
    read_service_file,
)
from assistant.cli.silence import DaemonSilent, describe_silence, is_stopped
from assistant.commands.argv import rewrite_for_shell
from assistant.commands.general import StatusReport
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError, StoreError
from assistant.core.text import pluralize
from assistant.health.doctor import DoctorOptions, run_doctor
from assistant.health.doctor_checks import DaemonState, Finding, run_check
from assistant.health.status import report_verdict
from assistant.health.status_text import render_facts, render_good, render_lines
from assistant.service.home_lock import is_home_served, is_listening, lock_holder
from assistant.service.presence import detect_service_manager
from assistant.service.unit_files import was_edited_by_hand
from assistant.settings.home import Home, home_from_environment
from assistant.settings.settings import load_settings
from assistant.store.home.guard import HomeGuard
from assistant.wire.checks import build_doctor_deps
from assistant.wire.stores import stored_status

# A daemon that gets on answers at once, whatever it is at.
_ANSWERS_WITHIN = 15.0
_FROM_FILES = (
    "What follows is read from its files. A service manager restarts it; otherwise `assistant stop`, then start it."
)
_WIDEST, _NARROWEST, _WIDTH_OF_A_FILE = 110, 40, 240
# Names of sessions may be long; they do not push everything else to the right.
_LONGEST_SUBJECT = 24
# Addresses and commands are read whole.
_WRAPPED: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


@click.command()
@json_result(StatusReport, "Print JSON; `ok` is false when anything needs you.", ok=itemgetter("ok"))
def status() -> dict[str, Any]:
    """Show how the assistant is. Exits with 1 when something needs you, else with 0.

    `assistant doctor` checks more, also what is around it.

    > assistant status
    > assistant status --json
    """
    report = read_status_report(home_from_environment())
    report["problems"] = [rewrite_for_shell(problem) for problem in report["problems"]]
    columns = shutil.get_terminal_size().columns
    print_text("\n".join(wrap_status_report(report, columns) if sys.stdout.isatty() else render_lines(report)))
    return report


def wrap_status_report(report: Mapping[str, Any], columns: int) -> Iterator[str]:
    """The report for a terminal so wide: what needs a person, then subjects and what there is to say, aligned."""
    width = max(_NARROWEST, min(columns, _WIDEST))
    problems, facts = report["problems"], render_facts(report)
    yield f"Red: {pluralize(len(problems), 'thing needs', 'things need')} you." if problems else render_good(report)
    for problem in problems:
        yield from textwrap.wrap(problem, width, initial_indent="  ! ", subsequent_indent="    ", **_WRAPPED)
    yield ""
    indent = min(max(len(name) for name, _ in facts), _LONGEST_SUBJECT) + 2
    for name, text in facts:
        head = f"{name:<{indent - 2}}  "
        yield from textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * indent, **_WRAPPED)


def read_status_report(home: Home, within: float = _ANSWERS_WITHIN) -> dict[str, Any]:
    """How a home is, from the daemon that serves it, if that answers within so many seconds; else from the stores."""
    problems = []
    if is_listening(home.socket):
        try:
            if is_stopped(lock_holder(home.path)):
                raise DaemonSilent()
            # It runs on settings that were understood, whatever config.toml says by now.
            return {"running": True, **run_with_signals(_ask_daemon(home, within))}
        except (LinkLost, TimeoutError):
            if is_home_served(home.path):
                problems.append(f"{describe_silence(home.path, within)} {_FROM_FILES}")
    try:
        settings = load_settings(home)
    except SettingsError as error:
        settings, notice = load_readable_settings(home, error)
        problems.append(notice)
    with open_home_stores(settings) as stores:
        if not home.path.exists():
            # The disk that it will be on.
            settings = replace(settings, home=Home(next(it for it in home.path.parents if it.exists())))
        report = stored_status(settings, stores, utc_now()) | {"home": str(home.path)}
    served = is_home_served(home.path)
    if home.path.exists():
        try:
            HomeGuard(home.path, ()).require_writable()
        except StoreError as error:
            problems.append(str(error))
    if not served and report["waiting"]:
        # That nothing runs is a problem only where somebody waits for an answer.
        where = pluralize(report["waiting"], "conversation")
        problems.append(
            f"The assistant is not running, and in {where} a message waits for an answer. Start `assistant run`."
        )
    return {"running": served, **report, **report_verdict([*problems, *report["problems"]])}


async def _ask_daemon(home: Home, within: float) -> Mapping[str, Any]:
    async with asyncio.timeout(within), open_daemon_link(home) as link:
        return await link.status()


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What `assistant doctor` found."""

    ok: bool
    findings: list[Finding]


@click.command()
@click.option("--fix", is_flag=True, help="Repair what is safe: permissions, a stale socket; download a vocabulary.")
@click.option("--call", is_flag=True, help="Also ask the model something; it costs a little.")
@click.option("--verbose", is_flag=True, help="Also say how it works inside, where there is more to say.")
@json_result(DoctorReport, "Print JSON; `ok` is false when anything needs you.", ok=attrgetter("ok"))
def doctor(fix: bool, call: bool, verbose: bool) -> DoctorReport:
    """Check every part: settings, files, disk, clock, provider, bridges, service.

    It says what to do about each problem, and exits with 1 if there is one. It works whether the assistant runs or
    not, and with a damaged data folder. Bridges are checked over their networks.

    > assistant doctor
    > assistant doctor --fix
    > assistant doctor --call --json
    """
    home = home_from_environment()
    log_to_file(home.program_log)
    findings: list[Finding] = []
    width = min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    for finding in _findings(home, DoctorOptions(fix, call)):
        findings.append(finding)
        print_text("\n".join(wrap_finding(finding, width, verbose=verbose)))
    problems = sum(finding.verdict == "problem" for finding in findings)
    print_text(f"\n{pluralize(problems, 'problem')}." if problems else "\nAll is well.")
    return DoctorReport(not problems, findings)


def wrap_finding(finding: Finding, width: int, *, verbose: bool = False) -> Iterator[str]:
    """A finding in lines so wide: its verdict, its subject, how it is, what was done, what to do."""
    head = f"{finding.verdict:<9}{finding.subject:<14} "
    detail = finding.detail if verbose else ""
    parts = list(filter(None, (finding.text, finding.fixed, finding.to_do, detail)))
    text = " ".join(f"{part.removesuffix('.')}." for part in parts) if len(parts) > 1 else finding.text
    return iter(textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head), **_WRAPPED))


def _findings(home: Home, options: DoctorOptions) -> Iterator[Finding]:
    served = is_home_served(home.path)
    holder = lock_holder(home.path) if served else None
    serving = DaemonState(served, holder, is_listening(home.socket), home.socket.exists(), home.socket.unlink)
    problems: list[Finding] = []
    for finding in run_doctor(home, serving, options, build_doctor_deps(utc_now, served=served), utc_now()):
        problems += [finding] * (finding.verdict == "problem")
        yield finding
    if (home.path / "script.db").is_file():
        look = "`assistant status` shows how everything is."
        yield from run_check("status", partial(_check_status, home, problems), look)
    yield Finding("program log", "ok", f"in {home.program_log} where you talk; `assistant run` logs on standard error")
    yield from run_check(
        "service", lambda: [_check_service(home)], "`assistant service print` shows what it should be."
    )


def _check_status(home: Home, known: Sequence[Finding]) -> Iterator[Finding]:
    """What turns `assistant status` red and was not found yet, so that the two never disagree."""
    texts, subjects = {finding.text for finding in known}, {finding.subject.casefold() for finding in known}
    try:
        report = read_status_report(home)
    except StoreError as error:
        if str(error) not in texts:
            raise
        return
    for problem in report["problems"]:
        if problem not in texts and problem.partition(":")[0].casefold() not in subjects:
            yield Finding("status", "problem", rewrite_for_shell(problem))


def _check_service(home: Home) -> Finding:
    """Whether a service manager would start what this is, with the settings that are."""
    kind = detect_service_manager()
    if not kind:
        return Finding("service", "note", "neither systemd nor launchd runs this machine", "`assistant run` runs it.")
    try:
        settings = load_settings(home)
    except SettingsError:
        return Finding("service", "note", "not checked, because the settings have mistakes")
    for system in (False, True) if kind == "systemd" else (False,):
        wanted = define_service(kind, DEFAULT_SERVICE_NAME, settings, system=system)
        written = read_service_file(wanted.file) or ""
        if str(home.path) in written:
            return check_service_file(wanted.file, written, wanted.text)
    return Finding("service", "note", "not installed", "`assistant service install` runs it in the background.")


def check_service_file(file: Path, written: str, wanted: str) -> Finding:
    """The file of a service as it is, with what it would be."""
    if written == wanted:
        return Finding("service", "ok", f"{file} is up to date")
    if was_edited_by_hand(written):
        return Finding(
            "service", "note", f"{file} was changed manually", "`assistant service install` shows the difference."
        )
    return Finding(
        "service",
        "problem",
        f"{file} does not match this version and the settings.",
        "`assistant service install` updates it; then `assistant service restart`.",
    )
