"""`assistant archive`: ended generations of conversations, where they are kept, what was said in them, whether they are
whole, and bringing back what the home lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores, require_home, scope_of_session
from assistant.cli.log import print_record, record_json
from assistant.cli.output import print_json, print_text
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import clean_for_terminal, require_utf8, shorten_line
from assistant.core.archives import ArchiveEntry
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize
from assistant.service.home_lock import home_lock
from assistant.sessions.listing import (
    HITS_PER_RESULT,
    ArchiveHit,
    hits_in_log,
    search_archived_records,
    visible_records,
)
from assistant.settings.settings import Settings
from assistant.store.archive.archive import StoredArchive
from assistant.wire.stores import open_archive, restore_archived_session

_JSON = click.option("--json", "json_out", is_flag=True, help="Print a JSON array.")


@click.group()
def archive() -> None:
    """Conversations that ended: where each generation is kept, and what was said in it.

    A generation is named by its conversation and its number, as in `main 3`.

    \b
    Example:
      assistant archive list
      assistant archive show main 3
      assistant archive search "booking number"
      assistant archive verify
    """


@archive.command("list")
@click.option("--session", metavar="NAME", help="Only this conversation.")
@_JSON
def list_(session: str | None, json_out: bool) -> None:
    """List what is archived, by conversation, oldest first.

    \b
    Example:
      assistant archive list
      assistant archive list --session main --json
    """
    settings, store = _archive()
    found = [one for one in store.list_archives() if session in (None, one.session)]
    if json_out:
        print_json([_as_json(one) for one in found])
        return
    print_table(
        ("session", "generation", "from", "until", "records", "size", "where", "encrypted"),
        [
            (
                one.session,
                str(one.generation),
                format_local_time(one.from_ts, settings.zone),
                format_local_time(one.to_ts, settings.zone),
                f"{one.records:,}",
                _size(one.bytes),
                one.url,
                "yes" if one.encrypted else "no",
            )
            for one in found
        ],
        right=("generation", "records", "size"),
        empty="Nothing is archived yet. A conversation is archived when it is reset: `assistant reset`.",
    )


@archive.command()
@click.argument("session", metavar="SESSION")
@click.argument("generation", metavar="[GENERATION]", type=click.IntRange(min=1), required=False)
@click.option("--json", "json_out", is_flag=True, help="Print one JSON object a line.")
def show(session: str, generation: int | None, json_out: bool) -> None:
    """Print what was said in an archived generation, oldest first; the newest one without its number.

    \b
    Example:
      assistant archive show main
      assistant archive show main 3 --json
    """
    settings, store = _archive()
    number = generation or _newest(store, session)
    records = visible_records(store.read_records(session, number))
    if json_out:
        for record in records:
            print_json(record_json(record), indent=None)
        return
    notes = store.read_notes(session, number)
    for title, text in (("Handed over", notes.handover), ("Summary", notes.summary)):
        if text:
            print_text(f"{title}: {clean_for_terminal(text)}\n")
    for record in records:
        print_record(record, settings.zone)


@archive.command()
@click.argument("text")
@click.option("--session", metavar="NAME", help="In whose scope to look (the owner's).")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many messages.")
@_JSON
def search(text: str, session: str | None, limit: int, json_out: bool) -> None:
    """Find messages of archived generations by words; archives themselves are read where the home lost its log.

    \b
    Example:
      assistant archive search "booking number"
    """
    wanted = require_utf8(text, "TEXT").strip()
    if not wanted:
        raise UsageError("The text to look for is empty.")
    settings = load_effective_settings()
    with open_home_stores(settings) as stores:
        scope = scope_of_session(stores.conversation, session) if session else OWNER_SCOPE
        hits = stores.history.search(wanted, scope, limit=limit * HITS_PER_RESULT)
        found = hits_in_log(hits, stores.archive.list_archives(scope))
        for one in stores.archive.list_missing_from_log(scope):
            found += search_archived_records(stores.archive.read_records(one.session, one.generation), wanted)
    _print_found(found[:limit], settings, json_out)


@archive.command()
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


@archive.command()
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


# ------------------------------------------------------------------------------------------------------------- choosing


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


# ------------------------------------------------------------------------------------------------------------- printing


def _print_found(found: list[ArchiveHit], settings: Settings, json_out: bool) -> None:
    if json_out:
        print_json([{**asdict(one), "at": one.at.isoformat()} for one in found])
        return
    print_table(
        ("session", "generation", "when", "message", "text"),
        [
            (
                one.session,
                str(one.generation),
                format_local_time(one.at, settings.zone),
                f"{one.role} #{one.message_id}",
                shorten_line(one.text, 300),
            )
            for one in found
        ],
        right=("generation",),
        empty="No archived message has these words. `assistant log --grep` looks through what is not archived too.",
    )


def _verdict(checked: int, problems: int) -> str:
    if not checked:
        return "Nothing is archived yet."
    if not problems:
        return "All is well."
    return (
        f"{pluralize(problems, 'problem')}. Where the home's log is whole (`assistant verify`), "
        "`assistant archive verify --repair` archives it again; where it is not, keep what is left of both."
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _as_json(one: ArchiveEntry) -> dict[str, Any]:
    return {
        "session": one.session,
        "generation": one.generation,
        "scope": one.scope,
        "from": one.from_ts.isoformat() if one.from_ts else None,
        "until": one.to_ts.isoformat() if one.to_ts else None,
        "records": one.records,
        "first_id": one.first_id,
        "last_id": one.last_id,
        "bytes": one.bytes,
        "sha256": one.sha256,
        "where": one.url,
        "encrypted": one.encrypted,
        "archived_at": one.archived_at.isoformat(),
        "reason": one.reason,
    }
