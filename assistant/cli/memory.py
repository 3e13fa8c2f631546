"""`assistant memory`: what is remembered and where it came from. `search`, `list`, `show`, `why`, `as-of` and `stats`
read the stores, whether a daemon runs or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from zoneinfo import ZoneInfo

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores, scope_of_session
from assistant.cli.lazy import LazyGroup
from assistant.cli.output import print_json, print_remark, print_text
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import require_utf8, shorten_line
from assistant.commands.memory import (
    as_of_empty_note,
    as_of_heading,
    as_of_json,
    left_out_note,
    memory_counts_json,
    memory_hits_json,
    provenance_json,
    render_memory,
    render_memory_counts,
    render_provenance,
)
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.memories import MemoriesAsOf, MemoryCounts, MemoryHit, MemoryList, MemoryProvenance, MemoryState
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.memory.as_of import split_as_of
from assistant.memory.exchange import export_memory
from assistant.memory.service import MemoryService
from assistant.settings.settings import Settings
from assistant.wire.stores import memory_deps, memory_storage_info

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., object])

_NAMES = ("search", "list", "show", "why", "as-of", "stats", "edit", "forget", "export", "import", "rebuild")


def _load(name: str) -> click.Command:
    from assistant.cli import memory, memory_changes

    here = {
        "search": memory.search,
        "list": memory.list_,
        "show": memory.show,
        "why": memory.why,
        "as-of": memory.as_of,
        "stats": memory.stats,
        "edit": memory_changes.edit,
        "forget": memory_changes.forget,
        "export": memory_changes.export,
        "import": memory_changes.import_,
        "rebuild": memory_changes.rebuild,
    }
    return here[name]


@click.group(cls=LazyGroup, names=_NAMES, load=_load)
def memory() -> None:
    """What is remembered: look at it, see where it came from, put it right, forget it, take it along.

    A memory is named by the first digits of its id, four or more; what was noted and is no memory yet as e12, the
    number of its journal entry.

    \b
    Example:
      assistant memory search "where does Anna work"
      assistant memory why 1a2b3c4d
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """


def session_option(function: Function) -> Function:
    """The option that says whose memories are meant."""
    option = click.option(
        "--session",
        default=MAIN_SESSION,
        show_default=True,
        metavar="NAME",
        help="The conversation whose memories are meant.",
    )
    return option(function)


def query_memories(settings: Settings, session: str, look: Callable[[MemoryService, str], Awaitable[T]]) -> T:
    """What `look` finds in the memories of a session, by its scope, beside whoever serves the home. Raises
    `UsageError`, `HomeError`, `StoreError`."""
    with open_home_stores(settings) as stores:
        scope = OWNER_SCOPE if session == MAIN_SESSION else scope_of_session(stores.conversation, session)
        commands = MemoryService(memory_deps(stores), partial(memory_storage_info, settings))

        async def ended() -> T:
            try:
                return await look(commands, scope)
            finally:
                await stores.memories.aclose()

        return asyncio.run(ended())


_json_option = click.option("--json", "json_out", is_flag=True, help="Print JSON.")
_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.command()
@click.argument("text")
@click.option("--after", type=_DAY, metavar="DAY", help="What was said, or held, from this day on (YYYY-MM-DD).")
@click.option("--before", type=_DAY, metavar="DAY", help="Up to, and without, this day.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@session_option
@_json_option
def search(
    text: str, after: datetime | None, before: datetime | None, limit: int, session: str, json_out: bool
) -> None:
    """Find memories by words and meaning, best first; what no longer holds is marked with its end.

    \b
    Example:
      assistant memory search "where did I live" --before 2026-03-01
    """
    settings = load_effective_settings(read_only=True)
    wanted, zone = require_utf8(text, "TEXT"), settings.zone

    async def look(memory: MemoryService, scope: str) -> list[MemoryHit]:
        return memory.search(wanted, scope, limit=limit, after=_midnight(after, zone), before=_midnight(before, zone))

    found = query_memories(settings, session, look)
    if json_out:
        print_json(memory_hits_json(found))
        return
    rows = [MemoryState(one.memory, one.memory.superseded_by[:8]) for one in found]
    _draw(rows, zone, "Nothing that is remembered has to do with that.")


@click.command(name="list")
@click.option("--former", is_flag=True, help="What no longer holds too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="How many.")
@session_option
@_json_option
def list_(former: bool, limit: int, session: str, json_out: bool) -> None:
    """List memories, and what was noted and is no memory yet, newest first.

    \b
    Example:
      assistant memory list --former --json
    """
    settings = load_effective_settings(read_only=True)

    async def look(memory: MemoryService, scope: str) -> MemoryList:
        return await memory.list_all(scope)

    held = query_memories(settings, session, look)
    found = [one for one in reversed(held.memories) if former or one.memory.is_current]
    if json_out:
        print_json([export_memory(one) for one in found[:limit]])
    else:
        _draw(found[:limit], settings.zone, "Nothing is remembered yet.")
    if len(found) > limit:
        print_remark(left_out_note(len(found) - limit))
    if held.note:
        print_remark(held.note)


@click.command()
@click.argument("reference", metavar="ID")
@session_option
@_json_option
def show(reference: str, session: str, json_out: bool) -> None:
    """Show a memory whole.

    \b
    Example:
      assistant memory show 1a2b3c4d
      assistant memory show e12
    """
    settings = load_effective_settings(read_only=True)

    async def look(memory: MemoryService, scope: str) -> MemoryState:
        return await memory.show(require_utf8(reference, "The ID"), scope)

    known = query_memories(settings, session, look)
    if json_out:
        print_json(export_memory(known))
    else:
        print_text("\n".join(render_memory(known, settings.zone)))


@click.command()
@click.argument("reference", metavar="ID")
@session_option
@_json_option
def why(reference: str, session: str, json_out: bool) -> None:
    """Show where a memory came from: its journal entries, and what was said, word for word, with its date.

    \b
    Example:
      assistant memory why 1a2b3c4d
    """
    settings = load_effective_settings(read_only=True)

    async def look(memory: MemoryService, scope: str) -> MemoryProvenance:
        return await memory.why(require_utf8(reference, "The ID"), scope)

    chain = query_memories(settings, session, look)
    if json_out:
        print_json(provenance_json(chain))
    else:
        print_text("\n".join(render_provenance(chain, settings.zone)))


@click.command(name="as-of")
@click.argument("words", nargs=-1, required=True, metavar="DATE [TEXT]")
@click.option("--former", is_flag=True, help="What no longer held then too.")
@click.option("--file", "page", is_flag=True, help="MEMORY.md as it stood then, and nothing else.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="How many.")
@session_option
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
    settings = load_effective_settings(read_only=True)
    zone, now = settings.zone, utc_now()
    at, text = split_as_of(require_utf8(" ".join(words), "DATE"), now, zone)
    if page:
        _page(settings, session, at, text, json_out)
        return

    async def look(memory: MemoryService, scope: str) -> MemoriesAsOf:
        return memory.list_as_of(text, scope, at, limit=limit, include_former=former)

    then = query_memories(settings, session, look)
    if json_out:
        print_json(as_of_json(then))
        return
    print_remark(as_of_heading(then, zone))
    _draw(then.memories, zone, as_of_empty_note(then, zone))
    if then.left_out:
        print_remark(left_out_note(then.left_out))


def _page(settings: Settings, session: str, at: datetime, text: str, json_out: bool) -> None:
    if text or session != MAIN_SESSION:
        raise UsageError("--file shows MEMORY.md, which is the owner's, whole: leave TEXT and --session out.")
    with open_home_stores(settings) as stores:
        page = stores.files.memory_file_as_of(at)
    if json_out:
        print_json({"as_of": at.isoformat(), "text": page.text, "sure": page.is_certain})
        return
    print_text(page.text.removesuffix("\n"))
    if not page.is_certain:
        print_remark(
            "MEMORY.md was edited by hand around then, nobody noted when: shown is the nearest text that is known."
        )


@click.command()
@session_option
@_json_option
def stats(session: str, json_out: bool) -> None:
    """Tell how much is remembered, what waits for the next sleep, and where it lies.

    \b
    Example:
      assistant memory stats --json
    """
    settings = load_effective_settings(read_only=True)

    async def look(memory: MemoryService, scope: str) -> MemoryCounts:
        return await memory.stats(scope)

    counts = query_memories(settings, session, look)
    if json_out:
        print_json(memory_counts_json(counts))
    else:
        print_text("\n".join(render_memory_counts(counts, settings.zone)))


def _draw(known: Sequence[MemoryState], zone: ZoneInfo, empty: str) -> None:
    print_table(
        ("id", "said", "until", "then", "kind", "text"),
        [
            (
                one.reference,
                format_local_time(one.memory.said_at, zone)[:10],
                format_local_time(one.memory.until, zone)[:10],
                one.replaced_by,
                one.memory.kind,
                shorten_line(one.memory.text, 300),
            )
            for one in known
        ],
        empty=empty,
    )


def _midnight(day: datetime | None, zone: ZoneInfo) -> datetime | None:
    return day.replace(tzinfo=zone).astimezone(UTC) if day else None
