"""`memory`: what is remembered: look at it, see where it came from, correct it, make it again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import PlainSerializer

from assistant.commands.context import CommandContext
from assistant.commands.erasure import forget
from assistant.commands.memory_text import (
    as_of_json,
    correction_json,
    import_json,
    left_out_note,
    memory_counts_json,
    memory_hits_json,
    provenance_json,
    rebuild_json,
    recalled_references,
    render_as_of,
    render_correction,
    render_import,
    render_memories,
    render_memory,
    render_memory_counts,
    render_memory_hits,
    render_provenance,
    render_rebuild,
)
from assistant.commands.table import CommandGroup, words_argument
from assistant.core.errors import UsageError
from assistant.core.memories import (
    CorrectionResult,
    ImportResult,
    MemoriesAsOf,
    MemoryCounts,
    MemoryHit,
    MemoryProvenance,
    MemoryState,
    RebuildResult,
)
from assistant.core.sessions import MAIN_SESSION
from assistant.core.text import lazy_regex
from assistant.memory.as_of import split_as_of
from assistant.memory.exchange import export_memory

MAX_IMPORT_BYTES = 64 * 1024 * 1024
# Every conversation may be read again, and every memory embedded.
_MOST_SECONDS = 12 * 3600.0
_REFERENCE_AND_TEXT = lazy_regex(r"((?:entry|memory)[ :]+#?\w+|\S+)\s*(.*)", re.IGNORECASE | re.DOTALL)
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

    \b
    Example:
      assistant memory search "where does Anna work"
      assistant memory why 1a2b3c4d
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """


# -------------------------------------------------------------------------------------------------------------- looking


def _render_hits(hits: Sequence[MemoryHit], zone: tzinfo) -> str:
    return "\n".join(render_memory_hits(hits, zone))


@memory.command(
    "search",
    result=Annotated[Any, PlainSerializer(memory_hits_json)],
    render=_render_hits,
    reads=True,
    context_settings=_FREE_TEXT,
)
@words_argument("text")
@click.option("--after", type=_DAY, metavar="DAY", help="What was said, or was true, from this day on (YYYY-MM-DD).")
@click.option("--before", type=_DAY, metavar="DAY", help="Up to, and without, this day.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many.")
def search(
    context: CommandContext, text: str, after: datetime | None, before: datetime | None, limit: int
) -> Sequence[MemoryHit]:
    """Find memories by words and meaning, best first. Former ones show their end.

    \b
    Example:
      assistant memory search "where did I live" --before 2026-03-01
    """
    since, until = _midnight(after, context.zone), _midnight(before, context.zone)
    return context.stores.memory.search(text, context.scope, limit=limit, after=since, before=until)


@dataclass(frozen=True, slots=True)
class MemoryListing:
    """Memories, newest first."""

    memories: Sequence[MemoryState]
    left_out: int
    note: str  # about what could not be read, "" where all is well


def _listing_json(listing: MemoryListing) -> list[dict[str, Any]]:
    return [export_memory(state) for state in listing.memories]


def _render_listing(listing: MemoryListing, zone: tzinfo) -> str:
    return "\n".join(render_memories(listing.memories, zone))


def _listing_remark(listing: MemoryListing) -> str:
    return "\n".join(filter(None, [left_out_note(listing.left_out) if listing.left_out else "", listing.note]))


@memory.command(
    "list",
    result=Annotated[Any, PlainSerializer(_listing_json)],
    render=_render_listing,
    remark=_listing_remark,
    reads=True,
)
@click.option("--former", is_flag=True, help="Also those that are no longer current.")
@_limit
async def list_memories(context: CommandContext, former: bool, limit: int) -> MemoryListing:
    """List memories, and what was noted and is no memory yet, newest first.

    \b
    Example:
      assistant memory list --former --json
    """
    everything = await context.stores.memory.list_all(context.scope)
    memories = [state for state in reversed(everything.memories) if former or state.memory.is_current]
    return MemoryListing(memories[:limit], max(0, len(memories) - limit), everything.note)


def _render_memory(state: MemoryState, zone: tzinfo) -> str:
    return "\n".join(render_memory(state, zone))


@memory.command("show", result=Annotated[Any, PlainSerializer(export_memory)], render=_render_memory, reads=True)
@words_argument("reference", metavar="ID")
async def show(context: CommandContext, reference: str) -> MemoryState:
    """Show one memory, with all of its text.

    \b
    Example:
      assistant memory show 1a2b3c4d
      assistant memory show e12
    """
    return await context.stores.memory.show(reference, context.scope)


@dataclass(frozen=True, slots=True)
class WhyReport:
    """Where memories came from: one that was named, or those that came to mind for the last answer."""

    chains: Sequence[MemoryProvenance]
    problems: Sequence[str]
    named: bool


def _why_json(report: WhyReport) -> dict[str, Any] | list[dict[str, Any]]:
    chains = [provenance_json(chain) for chain in report.chains]
    return chains[0] if report.named else chains


def _render_why(report: WhyReport, zone: tzinfo) -> str:
    return "\n\n".join(["\n".join(render_provenance(chain, zone)) for chain in report.chains] + [*report.problems])


@memory.command("why", result=Annotated[Any, PlainSerializer(_why_json)], render=_render_why, reads=True)
@words_argument("reference", metavar="ID", required=False)
async def why(context: CommandContext, reference: str) -> WhyReport:
    """Show where a memory came from: what was said, word for word, with its date.

    Without an ID: where that came from which came to mind for the last answer.

    \b
    Example:
      assistant memory why 1a2b3c4d
    """
    service = context.stores.memory
    if reference:
        return WhyReport([await service.why(reference, context.scope)], [], True)
    chains, problems = [], []
    for recalled in recalled_references(context.stores.conversation.last_volatile(context.session)):
        try:
            chains.append(await service.why(recalled, context.scope))
        except UsageError as error:
            problems.append(str(error))
    if not chains and not problems:
        raise UsageError("Nothing was recalled for the last answer. Name a memory: `/why ID`. Nothing was changed.")
    return WhyReport(chains, problems, False)


@dataclass(frozen=True, slots=True)
class MemoryFileAsOf:
    """MEMORY.md as it was."""

    at: datetime
    text: str
    is_certain: bool


def _as_of_json(then: MemoriesAsOf | MemoryFileAsOf) -> dict[str, Any]:
    if isinstance(then, MemoryFileAsOf):
        return {"as_of": then.at.isoformat(), "text": then.text, "sure": then.is_certain}
    return as_of_json(then)


def _render_as_of(then: MemoriesAsOf | MemoryFileAsOf, zone: tzinfo) -> str:
    return then.text if isinstance(then, MemoryFileAsOf) else "\n".join(render_as_of(then, zone))


def _as_of_remark(then: MemoriesAsOf | MemoryFileAsOf) -> str:
    if isinstance(then, MemoriesAsOf):
        return left_out_note(then.left_out) if then.left_out else ""
    edited = "MEMORY.md was edited around then, and it is not known when. This is the nearest text that is known."
    return "" if then.is_certain else edited


@memory.command(
    "as-of",
    result=Annotated[Any, PlainSerializer(_as_of_json)],
    render=_render_as_of,
    remark=_as_of_remark,
    reads=True,
)
@words_argument("words", metavar="DATE [TEXT]")
@click.option("--former", is_flag=True, help="Also those that were no longer current then.")
@click.option("--file", "page", is_flag=True, help="MEMORY.md as it was then, and nothing else.")
@_limit
def as_of(context: CommandContext, words: str, former: bool, page: bool, limit: int) -> MemoriesAsOf | MemoryFileAsOf:
    """Show what was known at an earlier time; with TEXT, what of it has to do with that.

    A day means its end. What was forgotten since is not shown.

    \b
    Example:
      assistant memory as-of 2026-03-01
      assistant memory as-of "2026-03-01 14:00" "where do I live"
      assistant memory as-of last monday --file
    """
    at, text = split_as_of(words, context.now, context.zone)
    if not page:
        return context.stores.memory.list_as_of(text, context.scope, at, limit=limit, include_former=former)
    if text or context.session != MAIN_SESSION:
        raise UsageError("--file shows MEMORY.md, which is the owner's, whole: leave TEXT and --session out.")
    snapshot = context.stores.files.memory_file_as_of(at)
    return MemoryFileAsOf(at, snapshot.text, snapshot.is_certain)


def _render_counts(counts: MemoryCounts, zone: tzinfo) -> str:
    return "\n".join(render_memory_counts(counts, zone))


@memory.command("stats", result=Annotated[Any, PlainSerializer(memory_counts_json)], render=_render_counts, reads=True)
async def stats(context: CommandContext) -> MemoryCounts:
    """Show how much is remembered, what waits for the next sleep, and where it is stored.

    \b
    Example:
      assistant memory stats --json
    """
    return await context.stores.memory.stats(context.scope)


# ------------------------------------------------------------------------------------------------------------- changing


def _render_correction(result: CorrectionResult, _: tzinfo) -> str:
    return "\n".join(render_correction(result))


@memory.command(
    "edit",
    result=Annotated[Any, PlainSerializer(correction_json)],
    render=_render_correction,
    context_settings=_FREE_TEXT,
)
@words_argument("words", metavar="ID TEXT")
async def edit(context: CommandContext, words: str) -> CorrectionResult:
    """Correct a memory. What it said before is kept, with its dates.

    \b
    Example:
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """
    match = _REFERENCE_AND_TEXT.fullmatch(words)
    if match is None or not match[2].strip():
        raise UsageError("Give an ID and a text: `/memory edit ID TEXT`. Nothing was changed.")
    return await context.stores.memory.correct(match[1], match[2], context.scope, context.session, context.now)


def _render_import(result: ImportResult, _: tzinfo) -> str:
    return render_import(result)


@memory.command("import", result=Annotated[Any, PlainSerializer(import_json)], render=_render_import, creates_home=True)
@click.argument("file", type=click.Path(path_type=Path))
def import_memories(context: CommandContext, file: Path) -> ImportResult:
    """Note what FILE says: an export (JSON or JSON lines), a JSON list of texts, or a text a line.

    Importing it twice changes nothing. If anything in a file is malformed, nothing of it is imported.

    \b
    Example:
      assistant memory import notes.txt
    """
    return context.stores.memory.import_text(_read_file(file), context.scope, context.session, context.now)


@dataclass(frozen=True, slots=True)
class RebuildReport:
    result: RebuildResult
    from_log: bool


def _rebuild_report_json(report: RebuildReport) -> dict[str, Any]:
    return rebuild_json(report.result)


def _render_rebuild(report: RebuildReport, _: tzinfo) -> str:
    return "\n".join(render_rebuild(report.result, from_log=report.from_log))


@memory.command(
    "rebuild",
    result=Annotated[Any, PlainSerializer(_rebuild_report_json)],
    render=_render_rebuild,
    max_seconds=_MOST_SECONDS,
    with_session=False,
)
@click.option("--from-log", is_flag=True, help="First read every message again, for what the journal lacks.")
async def rebuild(context: CommandContext, from_log: bool) -> RebuildReport:
    """Make the memories again from the journal, which has everything.

    Run again, it changes nothing. With --from-log the configured model reads the whole message log once more, which
    costs money; whatever the journal has stays as it is.

    \b
    Example:
      assistant memory rebuild
    """
    return RebuildReport(await context.stores.memory.rebuild(context.now, from_log=from_log), from_log)


memory.add_command(forget)


def _read_file(path: Path) -> str:
    """Raises `UsageError`."""
    try:
        if path.stat().st_size > MAX_IMPORT_BYTES:
            raise UsageError(
                f"{path.name} has more than {MAX_IMPORT_BYTES // 2**20} MB. Nothing was imported; split it."
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name} is not UTF-8 (line {line}). Nothing was imported.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}. Nothing was imported.") from None


def _midnight(day: datetime | None, zone: tzinfo) -> datetime | None:
    return day.replace(tzinfo=zone).astimezone(UTC) if day else None
