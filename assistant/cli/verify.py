"""`assistant verify`: proof that the message log is complete and that everything else agrees with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.output import print_json, print_text
from assistant.core.calendar import utc_now
from assistant.core.records import IntegrityProblem, IntegrityReport
from assistant.core.text import pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings


@click.command()
@click.option("--repair", is_flag=True, help="Rebuild the message index from the log alone, then check.")
@click.option("--archives", is_flag=True, help="Also read archives that are not on this machine.")
@click.option("--json", "json_out", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def verify(context: click.Context, repair: bool, archives: bool, json_out: bool) -> None:
    """Prove that the message log is complete and unchanged, and everything else agrees.

    Checks the log, the index, compactions and archives. Exits with 0 when all is well, else with 1. For --repair, stop
    the assistant first.

    \b
    Example:
      assistant verify
      assistant verify --repair
    """
    settings = load_effective_settings()
    report = _repaired(settings, archives) if repair else _checked(settings, archives)
    if json_out:
        print_json(_as_json(report))
    else:
        print_text("\n".join(_lines(report)))
    context.exit(0 if report.ok else 1)


def _checked(settings: Settings, archives: bool) -> IntegrityReport:
    with open_home_stores(settings) as stores:
        return _with_archives(stores.verifier.verify(), stores.archive.verify_all(remote=archives))


def _repaired(settings: Settings, archives: bool) -> IntegrityReport:
    with home_lock(settings.home.path), open_home_stores(settings, reading=False) as stores:
        return _with_archives(stores.verifier.repair(utc_now()), stores.archive.verify_all(remote=archives))


def _with_archives(report: IntegrityReport, problems: Sequence[IntegrityProblem]) -> IntegrityReport:
    return replace(report, problems=(*report.problems, *problems))


def _as_json(report: IntegrityReport) -> dict[str, object]:
    return {
        "ok": report.ok,
        "sessions": report.sessions,
        "records": report.records,
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "problems": [asdict(problem) for problem in report.problems],
        "redactions": list(report.redactions),
    }


def _lines(report: IntegrityReport) -> list[str]:
    speed = f", {report.bytes / 1e6 / report.seconds:.0f} MB a second" if report.seconds > 0.01 else ""
    lines = [
        f"Read {pluralize(report.records, 'record')} of {pluralize(report.sessions, 'session')}, "
        f"{report.bytes / 1e6:,.1f} "
        f"MB, in {report.seconds:.2f} s{speed}."
    ]
    if report.redactions:
        forgotten = pluralize(len(report.redactions), "message")
        lines.append(f"Erased on request: {forgotten}; the log is proved without them.")
    lines += [f"! {p.where}: {p.text}{' (--repair can fix it)' if p.repairable else ''}" for p in report.problems]
    return [*lines, "All is well." if report.ok else f"{pluralize(len(report.problems), 'problem')}."]
