"""`memory`: what is remembered: look at it, see where it came from, correct it, make it again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Annotated

import click
from pydantic import BeforeValidator

from assistant.commands.connections import connections
from assistant.commands.context import CommandContext
from assistant.commands.erasure import forget
from assistant.commands.file_argument import MAX_FILE_BYTES, file_argument
from assistant.commands.items import Item
from assistant.commands.memory_text import (
    NOTHING_REMEMBERED,
    AsOfItem,
    CorrectionItem,
    MemoryCountsItem,
    MemoryHitItem,
    MemoryImportItem,
    MemoryItem,
    MemorySearchItem,
    ProvenanceItem,
    left_out_note,
    render_addition,
    render_as_of,
    render_correction,
    render_import,
    render_memories,
    render_memory,
    render_memory_counts,
    render_memory_search,
    render_provenance,
    render_rebuild,
)
from assistant.commands.sleep_results import accept_change, changes, profiles, undo_change
from assistant.commands.table import CommandGroup, words_argument
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.memories import (
    CorrectionResult,
    ImportResult,
    MemoriesAsOf,
    MemoryCounts,
    MemoryHit,
    MemoryListPage,
    MemoryProvenance,
    MemorySearchExplanation,
    MemoryState,
    RebuildResult,
)
from assistant.core.quoting import MEMORY_MARK, RECORD_TAG
from assistant.core.sessions import MAIN_SESSION
from assistant.core.text import lazy_regex
from assistant.memory.as_of import split_as_of

# Every conversation may be read again, and every memory embedded.
_MOST_SECONDS = 12 * 3600.0
_REFERENCE_AND_TEXT = lazy_regex(r"((?:entry|memory)[ :]+#?\w+|\S+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_RECALLED = lazy_regex(r"^- \[([0-9a-f]{8}|entry \d+)\] ", re.MULTILINE)
_DAY = click.DateTime(formats=["%Y-%m-%d"])
_FREE_TEXT = {"ignore_unknown_options": True}
_limit = click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="How many.")


def _is_search(words: Sequence[str]) -> bool:
    """Whether words that begin like a command are looked for: "list of guests"."""
    return words[0] in ("list", "stats") and len(words) > 1 and not words[1].startswith("-")


@click.group(cls=CommandGroup, default="search", is_free_text=_is_search)
def memory() -> None:
    """Show what is remembered, and where it came from; correct it, forget it, export it.

    A memory is named by the first digits of its id, four or more; what was noted and is no memory yet as e12, the
    number of its journal entry. `search` may be left out.

    > assistant memory search "where does Anna work"
    > assistant memory why 1a2b3c4d
    > assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """


# -------------------------------------------------------------------------------------------------------------- looking


@memory.command(
    "search",
    result=list[MemoryHitItem] | MemorySearchItem,
    render=render_memory_search,
    reads=True,
    context_settings=_FREE_TEXT,
)
@words_argument("text")
@click.option("--after", type=_DAY, metavar="DAY", help="What was said, or was true, from this day on (YYYY-MM-DD).")
@click.option("--before", type=_DAY, metavar="DAY", help="Up to, and without, this day.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@click.option("--explain", is_flag=True, help="Also how they were found, and what each score is made of.")
async def search(
    context: CommandContext, text: str, after: datetime | None, before: datetime | None, limit: int, explain: bool
) -> list[MemoryHit] | MemorySearchExplanation:
    """Find memories by words and meaning, best first. Former ones show their end.

    > assistant memory search "where did I live" --before 2026-03-01
    > assistant memory search "where does Anna work" --explain
    """
    since, until = _midnight(after, context.zone), _midnight(before, context.zone)
    memories = context.stores.memory
    find: Callable[..., list[MemoryHit] | MemorySearchExplanation] = memories.explain if explain else memories.search
    return await asyncio.to_thread(find, text, context.scope, limit=limit, after=since, before=until)


@memory.command(
    "list",
    result=Annotated[list[MemoryItem], BeforeValidator(attrgetter("memories"))],
    render=lambda page, zone: render_memories(page.memories, zone) or NOTHING_REMEMBERED,
    remark=lambda page: "\n".join(filter(None, [_more_note(page), page.note])),
    reads=True,
)
@click.option("--former", is_flag=True, help="Also those that are no longer current.")
@click.option("--before", default="", metavar="ID", help="Only what was said before this one.")
@_limit
async def list_memories(context: CommandContext, former: bool, before: str, limit: int) -> MemoryListPage:
    """List memories, newest first. Also what was noted and is no memory yet.

    > assistant memory list --former --json
    > assistant memory list --before 1a2b3c4d
    """
    return await context.stores.memory.list_page(
        context.scope, limit=limit, include_former=former, before_reference=before
    )


def _more_note(page: MemoryListPage) -> str:
    return f"There are older ones: `--before {page.memories[-1].reference}` lists them." if page.more else ""


@memory.command("show", result=MemoryItem, render=render_memory, reads=True)
@words_argument("reference", metavar="ID")
async def show(context: CommandContext, reference: str) -> MemoryState:
    """Show one memory, with all of its text.

    > assistant memory show 1a2b3c4d
    > assistant memory show e12
    """
    return await context.stores.memory.show(reference, context.scope)


@dataclass(frozen=True, slots=True)
class WhyReport:
    """Where memories came from: one that was named, or those that came to mind for the last answer."""

    chains: Sequence[MemoryProvenance]
    problems: Sequence[str]
    named: bool


def _render_why(report: WhyReport, zone: tzinfo) -> str:
    return "\n\n".join([*(render_provenance(chain, zone) for chain in report.chains), *report.problems])


_WHY_JSON = Annotated[
    ProvenanceItem | list[ProvenanceItem],
    BeforeValidator(lambda report: report.chains[0] if report.named else report.chains),
]


@memory.command("why", result=_WHY_JSON, render=_render_why, reads=True)
@words_argument("reference", metavar="ID", required=False)
async def why(context: CommandContext, reference: str) -> WhyReport:
    """Show the words that a memory came from, with their date.

    Without an ID: the sources of what was recalled for the last answer.

    > assistant memory why 1a2b3c4d
    """
    service = context.stores.memory
    if reference:
        return WhyReport([await service.why(reference, context.scope)], [], True)
    chains, problems = [], []
    for recalled in _recalled_references(context.stores.conversation.last_volatile(context.session)):
        try:
            chains.append(await service.why(recalled, context.scope))
        except UsageError as error:
            problems.append(str(error))
    if not chains and not problems:
        raise NothingYet("Nothing was recalled for the last answer. Name a memory: `/why ID`.")
    return WhyReport(chains, problems, False)


def _recalled_references(volatile: str) -> list[str]:
    """References of what was brought to a turn unasked, from its volatile block."""
    _, _, memories = volatile.partition(f"<{RECORD_TAG}>\n{MEMORY_MARK}")
    return list(dict.fromkeys(_RECALLED.findall(memories.partition(f"</{RECORD_TAG}>")[0])))


class MemoryFileAsOf(Item):
    """MEMORY.md as it was."""

    as_of: datetime
    text: str
    sure: bool  # false where it was edited around then, and it is not known when


def _render_as_of(then: MemoriesAsOf | MemoryFileAsOf, zone: tzinfo) -> str:
    return then.text if isinstance(then, MemoryFileAsOf) else render_as_of(then, zone)


def _as_of_remark(then: MemoriesAsOf | MemoryFileAsOf) -> str:
    if isinstance(then, MemoriesAsOf):
        return left_out_note(then.left_out)
    edited = "MEMORY.md was edited around then, and it is not known when. This is the nearest text that is known."
    return "" if then.sure else edited


@memory.command("as-of", result=AsOfItem | MemoryFileAsOf, render=_render_as_of, remark=_as_of_remark, reads=True)
@words_argument("words", metavar="DATE [TEXT]")
@click.option("--former", is_flag=True, help="Also those that were no longer current then.")
@click.option("--file", "page", is_flag=True, help="MEMORY.md as it was then, and nothing else.")
@_limit
async def as_of(
    context: CommandContext, words: str, former: bool, page: bool, limit: int
) -> MemoriesAsOf | MemoryFileAsOf:
    """Show what was known at an earlier time. With TEXT, only what matches it.

    A day means its end. What was forgotten since is not shown.

    > assistant memory as-of 2026-03-01
    > assistant memory as-of "2026-03-01 14:00" "where do I live"
    > assistant memory as-of last monday --file
    """
    at, text = split_as_of(words, context.now, context.zone)
    memories = context.stores.memory
    if text and not page:
        return await memories.search_as_of(text, context.scope, at, limit=limit)
    if not page:
        return memories.list_as_of(context.scope, at, limit=limit, include_former=former)
    if text or context.session != MAIN_SESSION:
        raise UsageError("--file shows MEMORY.md, which is the owner's, whole; leave out TEXT and --session.")
    snapshot = context.stores.files.memory_file_as_of(at)
    return MemoryFileAsOf(as_of=at, text=snapshot.text, sure=snapshot.is_certain)


@memory.command("stats", result=MemoryCountsItem, render=render_memory_counts, reads=True)
async def stats(context: CommandContext) -> MemoryCounts:
    """Show how much is remembered, and where it is stored. Also what waits for the next sleep.

    > assistant memory stats --json
    """
    return await context.stores.memory.stats(context.scope)


# ------------------------------------------------------------------------------------------------------------- changing


@memory.command(
    "edit",
    result=CorrectionItem,
    render=lambda result, _: render_correction(result),
    context_settings=_FREE_TEXT,
)
@words_argument("words", metavar="ID TEXT")
async def edit(context: CommandContext, words: str) -> CorrectionResult:
    """Correct a memory. What it said before is kept, with its dates.

    > assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """
    match = _REFERENCE_AND_TEXT.fullmatch(words)
    if match is None or not match[2].strip():
        raise UsageError("Give an ID and a text: `/memory edit ID TEXT`. Nothing was changed.")
    return await context.stores.memory.correct(match[1], match[2], context.scope, context.session, context.now)


@memory.command(
    "add",
    result=MemoryImportItem,
    render=lambda result, _: render_addition(result),
    creates_home=True,
    context_settings=_FREE_TEXT,
)
@words_argument("words", metavar="TEXT")
async def add(context: CommandContext, words: str) -> ImportResult:
    """Note TEXT. Noting the same again changes nothing.

    > assistant memory add "Anna works at the harbour"
    """
    return await context.stores.memory.import_text(json.dumps([words]), context.scope, context.session, context.now)


@memory.command("import", result=MemoryImportItem, render=lambda result, _: render_import(result), creates_home=True)
@file_argument("file", "content")
async def import_memories(context: CommandContext, file: str, content: str | None) -> ImportResult:
    """Note what FILE says. It is an export (JSON or JSON lines), a JSON list of texts, or a text a line.

    Importing it twice changes nothing. If anything in a file is malformed, nothing of it is imported. Typed on a
    network, FILE is one of the workspace folder.

    > assistant memory import notes.txt
    """
    text = await context.read_file(file, MAX_FILE_BYTES) if content is None else content
    return await context.stores.memory.import_text(text, context.scope, context.session, context.now)


@memory.command(
    "rebuild",
    render=lambda result, _: render_rebuild(result),
    max_seconds=_MOST_SECONDS,
    with_session=False,
)
@click.option("--from-log", is_flag=True, help="First read every message again, for what the journal lacks.")
async def rebuild(context: CommandContext, from_log: bool) -> RebuildResult:
    """Make the memories again from the journal, which has everything.

    Run again, it changes nothing. With --from-log the configured model reads the whole message log once more, which
    costs money; whatever the journal has stays as it is.

    > assistant memory rebuild
    """
    return await context.stores.memory.rebuild(context.now, from_log=from_log)


for _command in (forget, profiles, connections, changes, undo_change, accept_change):
    memory.add_command(_command)


def _midnight(day: datetime | None, zone: tzinfo) -> datetime | None:
    return day.replace(tzinfo=zone).astimezone(UTC) if day else None
