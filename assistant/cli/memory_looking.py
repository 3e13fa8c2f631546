"""`assistant memory search`, `list`, `show`, `why`, `as-of`, `stats`: read from the stores, daemon or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from assistant.cli.in_force import settings_in_force
from assistant.cli.memory import looked, of_session
from assistant.cli.plain import as_json, say, tell
from assistant.cli.stored import opened
from assistant.cli.tables import local, table
from assistant.cli.text import one_line, typed
from assistant.commands import memory_report as report
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.memories import MemoriesAsOf, MemoryCounts, MemoryHit, MemoryList, MemoryProvenance, MemoryState
from assistant.core.sessions import MAIN_SESSION
from assistant.memory.commands import MemoryCommands
from assistant.memory.exchange import memory_out
from assistant.memory.then import split_then
from assistant.settings.settings import Settings

_json_option = click.option("--json", "json_out", is_flag=True, help="Print JSON.")
_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.command()
@click.argument("text")
@click.option("--after", type=_DAY, metavar="DAY", help="What was said, or held, from this day on (YYYY-MM-DD).")
@click.option("--before", type=_DAY, metavar="DAY", help="Up to, and without, this day.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@of_session
@_json_option
def search(
    text: str, after: datetime | None, before: datetime | None, limit: int, session: str, json_out: bool
) -> None:
    """Find memories by words and meaning, best first; what no longer holds is marked with its end.

    \b
    Example:
      assistant memory search "where did I live" --before 2026-03-01
    """
    settings = settings_in_force(looks=True)
    wanted, zone = typed(text, "TEXT"), settings.zone

    async def look(memory: MemoryCommands, scope: str) -> list[MemoryHit]:
        return memory.search(wanted, scope, limit=limit, after=_midnight(after, zone), before=_midnight(before, zone))

    found = looked(settings, session, look)
    if json_out:
        as_json(report.found_json(found))
        return
    rows = [MemoryState(one.memory, one.memory.superseded_by[:8]) for one in found]
    _draw(rows, zone, "Nothing that is remembered has to do with that.")


@click.command(name="list")
@click.option("--former", is_flag=True, help="What no longer holds too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="How many.")
@of_session
@_json_option
def list_(former: bool, limit: int, session: str, json_out: bool) -> None:
    """List memories, and what was noted and is no memory yet, newest first.

    \b
    Example:
      assistant memory list --former --json
    """
    settings = settings_in_force(looks=True)

    async def look(memory: MemoryCommands, scope: str) -> MemoryList:
        return await memory.held(scope)

    held = looked(settings, session, look)
    found = [one for one in reversed(held.known) if former or one.memory.is_current]
    if json_out:
        as_json([memory_out(one) for one in found[:limit]])
    else:
        _draw(found[:limit], settings.zone, "Nothing is remembered yet.")
    if len(found) > limit:
        tell(report.left_out(len(found) - limit))
    if held.note:
        tell(held.note)


@click.command()
@click.argument("reference", metavar="ID")
@of_session
@_json_option
def show(reference: str, session: str, json_out: bool) -> None:
    """Show a memory whole.

    \b
    Example:
      assistant memory show 1a2b3c4d
      assistant memory show e12
    """
    settings = settings_in_force(looks=True)

    async def look(memory: MemoryCommands, scope: str) -> MemoryState:
        return await memory.show(typed(reference, "The ID"), scope)

    known = looked(settings, session, look)
    if json_out:
        as_json(memory_out(known))
    else:
        say("\n".join(report.known_lines(known, settings.zone)))


@click.command()
@click.argument("reference", metavar="ID")
@of_session
@_json_option
def why(reference: str, session: str, json_out: bool) -> None:
    """Show where a memory came from: its journal entries, and what was said, word for word, with its date.

    \b
    Example:
      assistant memory why 1a2b3c4d
    """
    settings = settings_in_force(looks=True)

    async def look(memory: MemoryCommands, scope: str) -> MemoryProvenance:
        return await memory.why(typed(reference, "The ID"), scope)

    chain = looked(settings, session, look)
    if json_out:
        as_json(report.chain_json(chain))
    else:
        say("\n".join(report.chain_lines(chain, settings.zone)))


@click.command(name="as-of")
@click.argument("words", nargs=-1, required=True, metavar="DATE [TEXT]")
@click.option("--former", is_flag=True, help="What no longer held then too.")
@click.option("--file", "page", is_flag=True, help="MEMORY.md as it stood then, and nothing else.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="How many.")
@of_session
@_json_option
def as_of(words: tuple[str, ...], former: bool, page: bool, limit: int, session: str, json_out: bool) -> None:
    """Show what was known at an earlier time, with the words it had then; with TEXT, what of it bears on that.

    A day means its end. What was forgotten since is not shown.

    \b
    Example:
      assistant memory as-of 2026-03-01
      assistant memory as-of "2026-03-01 14:00" "where do I live"
      assistant memory as-of last monday --file
    """
    settings = settings_in_force(looks=True)
    zone, now = settings.zone, utc_now()
    at, text = split_then(typed(" ".join(words), "DATE"), now, zone)
    if page:
        _page(settings, session, at, text, json_out)
        return

    async def look(memory: MemoryCommands, scope: str) -> MemoriesAsOf:
        return memory.then(text, scope, at, limit=limit, former=former)

    then = looked(settings, session, look)
    if json_out:
        as_json(report.then_json(then))
        return
    tell(report.then_head(then, zone))
    _draw(then.known, zone, report.then_empty(then, zone))
    if then.left_out:
        tell(report.left_out(then.left_out))


def _page(settings: Settings, session: str, at: datetime, text: str, json_out: bool) -> None:
    if text or session != MAIN_SESSION:
        raise UsageError("--file shows MEMORY.md, which is the owner's, whole: leave TEXT and --session out.")
    with opened(settings) as stores:
        page = stores.files.curated_then(at)
    if json_out:
        as_json({"as_of": at.isoformat(), "text": page.text, "sure": page.sure})
        return
    say(page.text.removesuffix("\n"))
    if not page.sure:
        tell("MEMORY.md was edited by hand around then, nobody noted when: shown is the nearest text that is known.")


@click.command()
@of_session
@_json_option
def stats(session: str, json_out: bool) -> None:
    """Tell how much is remembered, what waits for the next sleep, and where it lies.

    \b
    Example:
      assistant memory stats --json
    """
    settings = settings_in_force(looks=True)

    async def look(memory: MemoryCommands, scope: str) -> MemoryCounts:
        return await memory.stats(scope)

    counts = looked(settings, session, look)
    if json_out:
        as_json(report.counts_json(counts))
    else:
        say("\n".join(report.counts_lines(counts, settings.zone)))


def _draw(known: Sequence[MemoryState], zone: ZoneInfo, empty: str) -> None:
    table(
        ("id", "said", "until", "then", "kind", "text"),
        [
            (
                one.reference, local(one.memory.said_at, zone)[:10], local(one.memory.until, zone)[:10], one.by,
                one.memory.kind, one_line(one.memory.text, 300),
            )
            for one in known
        ],
        empty=empty,
    )  # fmt: skip


def _midnight(day: datetime | None, zone: ZoneInfo) -> datetime | None:
    return day.replace(tzinfo=zone).astimezone(UTC) if day else None
