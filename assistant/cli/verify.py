"""`assistant verify`, `assistant archive verify` and `restore`: whether the message log, all that agrees with it, and
the archives are complete; and restoring what the log lost.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from operator import attrgetter, not_
from typing import Annotated

import click
from pydantic import BeforeValidator

from assistant.cli.home_stores import is_new_home, load_effective_settings, open_home_stores, require_home
from assistant.cli.logging_setup import log_to_file
from assistant.cli.output import json_result, print_text
from assistant.cli.shell import with_commands
from assistant.commands import archive as archive_commands
from assistant.commands.items import Item
from assistant.core.archives import LogRestoreResult
from assistant.core.calendar import utc_now
from assistant.core.errors import StoreLost, UsageError
from assistant.core.records import IntegrityProblem, IntegrityReport
from assistant.core.sessions import session_name
from assistant.core.text import format_bytes, pluralize
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.settings import Settings
from assistant.store.archive.archive import StoredArchive
from assistant.store.home.inventory import check_stores
from assistant.wire.checks import build_repairer
from assistant.wire.stores import open_archive, restore_archived_session


class IntegrityItem(Item):
    """What `assistant verify` read, and the problems."""

    ok: bool
    sessions: int
    records: int
    bytes: int
    problems: tuple[IntegrityProblem, ...]
    redactions: tuple[int, ...]  # ids of messages that were forgotten
    repaired: tuple[str, ...]  # what --repair did
    seconds: Annotated[float, BeforeValidator(lambda seconds: round(seconds, 3))]


@click.command()
@click.option("--repair", is_flag=True, help="Repair from the log, what is left and the newest backup; then check.")
@click.option("--archives", is_flag=True, help="Also read archives that are not on this machine.")
@json_result(IntegrityItem, "Print the report as JSON.", ok=attrgetter("ok"))
def verify(repair: bool, archives: bool) -> IntegrityReport:
    """Prove that the message log is complete and unchanged, and everything else agrees.

    Checks the log, the index, compactions, databases and archives. Exits with 0 when all is well, else with 1.

    For --repair, stop the assistant first. It keeps what is newer than the backup, keeps the damaged files in a folder
    before-repair-*, and names what is gone.

    > assistant verify
    > assistant verify --repair
    """
    settings = load_effective_settings()
    with home_lock(settings.home.path) if repair else nullcontext():
        repaired = _repair(settings) if repair else None
        remarks = () if is_home_served(settings.home.path) else check_stores(settings.home.path).remarks
        with open_home_stores(settings) as stores:
            report = repaired or stores.verifier.verify(is_served=partial(is_home_served, settings.home.path))
            archive_problems = stores.archive.verify_all(remote=archives)
    changed = [IntegrityProblem("store", settings.home.path.name, remark) for remark in remarks]
    report = replace(report, problems=(*changed, *report.problems, *archive_problems))
    print_text("\n".join(_report_lines(report)))
    return report


def _repair(settings: Settings) -> IntegrityReport:
    try:
        require_home(settings)
    except StoreLost:
        # Just what it is to be repaired for.
        pass
    log_to_file(settings.home.program_log)
    return build_repairer(settings).repair(utc_now())


_LEAST_BYTES_FOR_RATE = 10_000_000


def _report_lines(report: IntegrityReport) -> list[str]:
    # The rate of a small log would tell how long reading takes to begin.
    rate = report.bytes / report.seconds if report.bytes >= _LEAST_BYTES_FOR_RATE else 0
    speed = f", {format_bytes(round(rate))} a second" if rate else ""
    what = f"{pluralize(report.records, 'record')} of {pluralize(report.sessions, 'session')}"
    lines = [f"Read {what} ({format_bytes(report.bytes)}) in {report.seconds:.2f} s{speed}."]
    if report.redactions:
        forgotten = pluralize(len(report.redactions), "message")
        lines.append(f"Erased on request: {forgotten}; the log is proved without them.")
    lines += report.repaired
    lines += [f"! {p.where}: {p.text}{' (--repair can fix it)' if p.repairable else ''}" for p in report.problems]
    return [*lines, "All is well." if report.ok else f"{pluralize(len(report.problems), 'problem')}."]


_NO_ARCHIVES = "Nothing is archived yet."


@click.command("verify")
@click.argument("session", metavar="[SESSION]", required=False)
@click.argument("generation", metavar="[GENERATION]", type=click.IntRange(min=1), required=False)
@click.option("--repair", is_flag=True, help="Archive again from the log what is damaged.")
@json_result(list[IntegrityProblem], "Print a JSON array of problems.", ok=not_)
def verify_archives(session: str | None, generation: int | None, repair: bool) -> list[IntegrityProblem]:
    """Read archives where they are stored. Every record of them is checked.

    Exits with 0 when all are complete and unchanged, else with 1. For --repair, stop the assistant first.

    > assistant archive verify
    > assistant archive verify main 3 --repair
    """
    settings = load_effective_settings()
    if is_new_home(settings.home) and not (repair or session):
        print_text(_NO_ARCHIVES)
        return []
    settings, store = _open_archive()
    chosen = _chosen(store, session, generation)
    if repair:
        with home_lock(settings.home.path):
            for key, number in chosen:
                if store.verify(key, number):
                    store.rebuild(key, number, utc_now())
    checked = [(key, number, list(store.verify(key, number))) for key, number in chosen]
    every_problem = [problem for *_, problems in checked for problem in problems]
    for key, number, problems in checked:
        print_text(f"{session_name(key)} {number}: {'damaged' if problems else 'complete'}")
        for problem in problems:
            print_text(f"! {problem.where}: {problem.text}")
    if every_problem:
        print_text(
            f"{pluralize(len(every_problem), 'problem')}. Where the message log is complete (`assistant verify`), "
            "`assistant archive verify --repair` archives it again; where it is not, keep what is left of both."
        )
    else:
        print_text("All is well." if checked else _NO_ARCHIVES)
    return every_problem


@click.command()
@click.argument("session", metavar="SESSION")
@click.argument("generation", metavar="GENERATION", type=click.IntRange(min=1))
@json_result(LogRestoreResult)
def restore(session: str, generation: int) -> LogRestoreResult:
    """Restore archived records that the message log has lost.

    Existing records are never changed or doubled, and what was erased stays erased. Stop the assistant first.

    > assistant archive restore main 3
    """
    settings, _ = _open_archive()
    with home_lock(settings.home.path):
        result = restore_archived_session(settings, session, generation)
    name = f"{session} {generation}"
    if result.restored:
        print_text(
            f"Restored {pluralize(result.restored, 'record')} of {name}; already there: {result.already_present:,}. "
            "`assistant verify` checks the result; the assistant uses it from its next start."
        )
    else:
        print_text(f"Nothing is missing: the log has all {pluralize(result.already_present, 'record')} of {name}.")
    return result


archive = with_commands(archive_commands.archive, verify_archives, restore)


def _open_archive() -> tuple[Settings, StoredArchive]:
    settings = load_effective_settings()
    require_home(settings)
    return settings, open_archive(settings)


def _chosen(store: StoredArchive, session: str | None, generation: int | None) -> list[tuple[str, int]]:
    if session and generation:
        return [(session, generation)]
    chosen = [(it.session, it.generation) for it in store.list_archives() if session in (None, it.session)]
    if session and not chosen:
        raise UsageError(f"Nothing of {session_name(session)!r} is archived. `assistant archive list` shows what is.")
    return chosen
