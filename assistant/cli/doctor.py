"""`assistant doctor`: checks of everything in the data folder and around it, closer than `status`."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_json, print_text
from assistant.cli.service.install import (
    DEFAULT_SERVICE_NAME,
    ServiceDefinition,
    define_launchd_agent,
    define_systemd_system_unit,
    define_systemd_user_unit,
    read_service_file,
)
from assistant.cli.service.managers import detect_service_manager
from assistant.core.calendar import utc_now
from assistant.core.errors import SettingsError
from assistant.core.text import pluralize
from assistant.health.doctor import DaemonState, Finding, note_finding, ok_finding, problem_finding, run_check
from assistant.health.doctor_run import DoctorOptions, run_doctor
from assistant.service.home_lock import is_home_served, is_listening, lock_holder
from assistant.service.unit_files import was_edited_by_hand
from assistant.settings.home import Home, home_from_environment
from assistant.settings.settings import load_settings
from assistant.wire.checks import doctor_deps

_WIDEST, _OF_A_FILE = 110, 240
_VERDICT, _SUBJECT = 9, 14
_WRAPPED: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


@click.command()
@click.option("--fix", is_flag=True, help="Repair what is safe: permissions, a stale socket.")
@click.option("--call", is_flag=True, help="Also ask the model something; it costs a little.")
@click.option("--json", "json_out", is_flag=True, help="Print JSON; `ok` is false when anything needs you.")
@click.pass_context
def doctor(context: click.Context, fix: bool, call: bool, json_out: bool) -> None:
    """Check every part: settings, files, disk, clock, provider, bridges, service.

    It says what to do about each problem, and exits with 1 if there is one. It works whether the assistant runs or
    not, and with a damaged data folder. Bridges are checked over their networks.

    \b
    Example:
      assistant doctor
      assistant doctor --fix
      assistant doctor --call --json
    """
    configure_logging("error")
    home = home_from_environment()
    findings: list[Finding] = []
    width = min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _OF_A_FILE
    for finding in _findings(home, DoctorOptions(fix, call)):
        findings.append(finding)
        if not json_out:
            print_text("\n".join(wrap_finding(finding, width)))
    problems = sum(finding.verdict == "problem" for finding in findings)
    if json_out:
        print_json({"ok": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        print_text(f"\n{pluralize(problems, 'problem')}." if problems else "\nAll is well.")
    context.exit(1 if problems else 0)


def wrap_finding(finding: Finding, width: int) -> Iterator[str]:
    """A finding in lines so wide: its verdict, its subject, how it is, what was done, what to do."""
    head = f"{finding.verdict:<{_VERDICT}}{finding.subject:<{_SUBJECT}} "
    parts = [
        part if part.endswith(".") else f"{part}." for part in (finding.text, finding.mended, finding.to_do) if part
    ]
    text = " ".join(parts) if len(parts) > 1 else finding.text
    return iter(textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head), **_WRAPPED))


def _findings(home: Home, options: DoctorOptions) -> Iterator[Finding]:
    serving = _serving(home)
    yield from run_doctor(home, serving, options, doctor_deps(utc_now, served=serving.served), utc_now())
    yield from run_check("service", lambda: _service(home), "`assistant service print` shows what it should be.")


def _serving(home: Home) -> DaemonState:
    served = is_home_served(home)
    holder = lock_holder(home) if served else None
    return DaemonState(served, holder, is_listening(home.socket), home.socket.exists(), home.socket.unlink)


def _service(home: Home) -> Iterator[Finding]:
    """Whether a service manager would start what this is, with the settings that are."""
    kind = detect_service_manager()
    if not kind:
        yield note_finding("service", "neither systemd nor launchd runs this machine", "`assistant run` runs it.")
        return
    try:
        placed = _installed(kind, home)
    except SettingsError:
        yield note_finding("service", "not checked, because the settings have mistakes")
        return
    if placed is None:
        yield note_finding("service", "not installed", "`assistant service install` runs it in the background.")
        return
    yield check_service_file(placed.file, read_service_file(placed.file) or "", placed.text)


def check_service_file(file: Path, written: str, wanted: str) -> Finding:
    """The file of a service as it is, with what it would be."""
    if written == wanted:
        return ok_finding("service", f"{file} is up to date")
    if was_edited_by_hand(written):
        return note_finding(
            "service", f"{file} was changed manually", "`assistant service install` shows the difference."
        )
    return problem_finding(
        "service",
        f"{file} does not match this version and the settings.",
        "`assistant service install` updates it; then `assistant service restart`.",
    )


def _installed(kind: str, home: Home) -> ServiceDefinition | None:
    """The service that is installed for this home; None where there is none. Raises `SettingsError`."""
    settings = load_settings(home)
    if kind == "launchd":
        possible = [define_launchd_agent(DEFAULT_SERVICE_NAME, settings)]
    else:
        possible = [
            define_systemd_user_unit(DEFAULT_SERVICE_NAME, settings),
            define_systemd_system_unit(DEFAULT_SERVICE_NAME, settings),
        ]
    return next((it for it in possible if str(home.path) in (read_service_file(it.file) or "")), None)
