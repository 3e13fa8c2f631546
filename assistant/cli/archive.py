"""`assistant archive verify` and `restore`: whether archives are whole, and bringing back what the home lost."""

from __future__ import annotations

from dataclasses import asdict

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import require_home
from assistant.cli.output import print_json, print_text
from assistant.cli.shell import with_commands
from assistant.commands import archive as archive_commands
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.text import pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings
from assistant.store.archive.archive import StoredArchive
from assistant.wire.stores import open_archive, restore_archived_session

_JSON = click.option("--json", "json_out", is_flag=True, help="Print a JSON array.")


@click.command()
@click.argument("session", metavar="[SESSION]", required=False)
@click.argument("generation", metavar="[GENERATION]", type=click.IntRange(min=1), required=False)
@click.option("--repair", is_flag=True, help="Archive again, from the log, what is not whole.")
@_JSON
@click.pass_context
def verify(context: click.Context, session: str | None, generation: int | None, repair: bool, json_out: bool) -> None:
    """Read archives where they are kept, and check bytes, count, chain, and the commitment of every record.

    Exits with 0 when all are whole and 1 when one is not. --repair needs the home for itself: stop the daemon first.

    \b
    Example:
      assistant archive verify
      assistant archive verify main 3 --repair
    """
    settings, store = _archive()
    chosen = _chosen(store, session, generation)
    if repair:
        with home_lock(settings.home):
            for one in chosen:
                if store.verify(*one):
                    store.rebuild(*one, utc_now())
    checked = [(one, list(store.verify(*one))) for one in chosen]
    problems = [problem for _, found in checked for problem in found]
    if json_out:
        print_json([asdict(problem) for problem in problems])
    else:
        for (key, number), found in checked:
            print_text(f"{key} {number}: {'not whole' if found else 'whole'}")
            for problem in found:
                print_text(f"! {problem.where}: {problem.text}")
        print_text(_verdict(len(checked), len(problems)))
    context.exit(1 if problems else 0)


@click.command()
@click.argument("session", metavar="SESSION")
@click.argument("generation", metavar="GENERATION", type=click.IntRange(min=1))
def restore(session: str, generation: int) -> None:
    """Bring records of an archived generation back into the home's log, where the log lost them.

    Records that are there are never changed or doubled, and what was forgotten stays so. It needs the home for itself:
    stop the daemon first.

    \b
    Example:
      assistant archive restore main 3
    """
    settings, _ = _archive()
    with home_lock(settings.home):
        done = restore_archived_session(settings, session, generation)
    if not done.restored:
        print_text(
            f"Nothing is missing: the log has all {pluralize(done.already_present, 'record')} of {session} "
            f"{generation}."
        )
        return
    print_text(
        f"Brought back {pluralize(done.restored, 'record')} of {session} {generation}; already there: "
        f"{done.already_present:,}. "
        "`assistant verify` checks the home; the assistant takes them up when it starts."
    )


archive = with_commands(archive_commands.archive, verify, restore)


def _archive() -> tuple[Settings, StoredArchive]:
    settings = load_effective_settings()
    require_home(settings)
    return settings, open_archive(settings)


def _newest(store: StoredArchive, session: str) -> int:
    numbers = [one.generation for one in store.list_archives() if one.session == session]
    if not numbers:
        raise UsageError(f"Nothing of {session!r} is archived. `assistant archive list` shows what is.")
    return max(numbers)


def _chosen(store: StoredArchive, session: str | None, generation: int | None) -> list[tuple[str, int]]:
    if session and generation:
        return [(session, generation)]
    if session:
        _newest(store, session)
    return [(one.session, one.generation) for one in store.list_archives() if session in (None, one.session)]


def _verdict(checked: int, problems: int) -> str:
    if not checked:
        return "Nothing is archived yet."
    if not problems:
        return "All is well."
    return (
        f"{pluralize(problems, 'problem')}. Where the home's log is whole (`assistant verify`), "
        "`assistant archive verify --repair` archives it again; where it is not, keep what is left of both."
    )
