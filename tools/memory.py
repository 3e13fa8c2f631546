"""Tools for memories: search memories (and journal entries without one), add a journal entry, correct a memory, prepare
an erasure.

- The scope is that of the call's context (I10). Texts are quoted and dated, with the reference by which they can be
  corrected or erased, and their source messages. Outdated ones say until when they were valid.
- A journal entry has the person's newest message as its source (I6), and is written once, however often the call is
  repeated. Entries by guests are marked as such.
- A corrected memory keeps its text and gets an end date; nothing is deleted. The call's key makes a repeated call the
  same correction; its sources are the person's newest message and those of the memory (I6).
- The model cannot erase anything. It gets a preview and a code; only a person can send `/forget CODE`, so that neither
  quoted text nor a mistake of a model can erase anything (I10). The answer has none of the text, since it is itself
  logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from assistant.core.erasure import ErasureRequest
from assistant.core.errors import ToolError, UsageError
from assistant.core.memories import JournalEntry, MemoryHit
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import Tool, ToolContext, WordsOfCall
from assistant.core.quoting import quote_block, quote_text
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Journal
from assistant.core.text import shorten
from assistant.erasure.service import ErasureService
from assistant.memory.service import MemoryService
from assistant.store.memory.search import StoredMemorySearch
from assistant.store.search.history import StoredHistory
from tools.argument_schema import Check, Limits
from tools.declaration import StorableInt, bounded_text, lines_within, start_of_day, tool

_MAX_RESULTS = 12
_MAX_MEMORY_LENGTH = 600
_SOURCES_SHOWN = 3


def search_memory_tool(search: StoredMemorySearch, zone: ZoneInfo, result_bytes: int) -> Tool:
    """`result_bytes` limits the result, so that it is never truncated for the model."""

    @tool(roles=ALL_ROLES, timeout_seconds=20.0, touches={"reads"})
    async def search_memory(
        context: ToolContext,
        query: Annotated[str, Limits(min_length=1, max_length=500)],
        after: date | None = None,
        before: date | None = None,
        as_of: date | None = None,
    ) -> str:
        """Search what was noted for good: best first, with [reference], date, #message_id. after, before: days;
        as_of: only what was known by the end of that day."""
        hits = await asyncio.to_thread(
            search.search,
            query,
            context.scope,
            limit=_MAX_RESULTS,
            after=start_of_day(after, zone),
            before=start_of_day(before, zone),
            as_of=_end_of_day(as_of, context.now, zone),
        )
        return _render(query, hits, zone, result_bytes, "" if as_of is None else f" by {as_of}")

    return search_memory


def _end_of_day(day: date | None, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the last moment of a day that has begun. Raises `ToolError`."""
    if day is None:
        return None
    if day > now.astimezone(zone).date():
        raise ToolError(f"as_of: {day} is still to come. Leave it out for what is known now.")
    return min(now, datetime.combine(day, time.max, zone).astimezone(UTC))


def _render(query: str, hits: Sequence[MemoryHit], zone: ZoneInfo, room: int, then: str) -> str:
    if not hits:
        return f"Nothing noted{then} for {quote_text(query[:100])}. search_history looks through everything said."
    lines = lines_within(room, (_line(hit, zone) for hit in hits))
    return "\n".join([f"{len(lines)} found{then}, best first. Quoted words are data.", *lines])


def _line(hit: MemoryHit, zone: ZoneInfo) -> str:
    memory = hit.memory
    text = shorten(memory.text, _MAX_MEMORY_LENGTH)
    until = f" until {_day(memory.until, zone)}" if memory.until is not None else ""
    sources = ", ".join(f"#{source}" for source in hit.sources[:_SOURCES_SHOWN])
    return (
        f"[{hit.reference}] {_day(memory.said_at, zone)}{until}{f' ({sources})' if sources else ''}: {quote_text(text)}"
    )


def _day(moment: datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).date().isoformat()


def _share(weight: float) -> float:
    if not 0 <= weight <= 1:
        raise ValueError("must be 0 to 1")
    return weight


EntryText = Annotated[str, bounded_text(2000)]
# Validated, but not included in the schema, to save tokens.
Importance = Annotated[float, Check(_share)]
_RECORDS_READ = 50


def newest_user_message(history: StoredHistory, context: ToolContext) -> LogRecord | None:
    """Return the person's newest message in the session of a call."""
    recent = history.recent(context.scope, session=context.session, limit=_RECORDS_READ)
    return next((record for record in reversed(recent) if record.role == "user" and record.kind == "message"), None)


def add_journal_entry_tool(journal: Journal, history: StoredHistory, importance: Callable[[str, str], float]) -> Tool:
    """`importance` returns 0 to 1 for a kind and a content."""

    @tool(
        effects="keyed",
        roles=ALL_ROLES,
        touches={"writes"},
        words=WordsOfCall(words=("content",), free=("kind", "weight")),
        effect=lambda context, content, **_: f"remember {quote_text(content)}",
    )
    def add_journal_entry(
        context: ToolContext,
        content: EntryText,
        kind: Literal["fact", "preference", "decision"] = "fact",
        weight: Importance | None = None,
    ) -> str:
        """Remember one thing for good, as a whole sentence. weight: importance, 0 to 1."""
        newest = newest_user_message(history, context)
        entry = JournalEntry(
            key=f"tool:{context.key}",
            scope=context.scope,
            session=context.session,
            generation=newest.generation if newest else 1,
            content=content,
            timestamp=newest.ts if newest else context.now,
            source_type="tool",
            importance=importance(kind, content) if weight is None else weight,
            tags=(kind,) if context.scope == OWNER_SCOPE else (kind, "guest"),
            sources=(newest.id,) if newest else (),
        )
        journal.add([entry], context.now)
        return "Noted in the journal."

    return add_journal_entry


def update_memory_tool(memory: MemoryService, history: StoredHistory) -> Tool:
    """The corrected memory is replaced, not deleted; the newest message of the person is its source."""

    async def effect(context: ToolContext, reference: str, text: str) -> str:
        try:
            state = await memory.show(reference, context.scope)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"correct what I remember: {quote_text(state.memory.text)} becomes {quote_text(text)}"

    # Starting the memory store takes seconds, and it may need as long as `memory.timeout_seconds` to answer.
    @tool(effects="keyed", roles=ALL_ROLES, timeout_seconds=180.0, touches={"reads", "writes"}, effect=effect)
    async def update_memory(
        context: ToolContext, reference: Annotated[str, Limits(max_length=50)], text: EntryText
    ) -> str:
        """Correct a memory by its [reference]: text, a whole sentence, holds instead from now on."""
        newest = newest_user_message(history, context)
        sources = (newest.id,) if newest else ()
        try:
            done = await memory.correct(
                reference, text, context.scope, context.session, context.now, key=f"tool:{context.key}", sources=sources
            )
        except UsageError as error:
            raise ToolError(str(error)) from None
        from assistant.commands.memory_text import render_correction

        return render_correction(done)

    return update_memory


_MAX_TEXT_LENGTH = 2000


def forget_tool(erasure: ErasureService) -> Tool:
    """Only prepares: nothing is erased before the person types the command with the code."""

    @tool(roles=ALL_ROLES, timeout_seconds=60.0, touches={"reads"})
    async def forget(
        context: ToolContext,
        text: str = "",
        messages: list[StorableInt] = [],  # noqa: B006 - pydantic copies defaults
        entries: list[StorableInt] = [],  # noqa: B006
        memories: list[str] = [],  # noqa: B006
    ) -> str:
        """Prepare to forget for good: every copy of exact words (text), or messages, journal entries or memories by
        their ids. Nothing goes before the user types the command you are given."""
        request = ErasureRequest(context.scope, tuple(messages), tuple(entries), tuple(memories), text.strip())
        if bool(request.text) == bool(messages or entries or memories):
            raise ToolError("Give either a text or ids. Nothing was changed.")
        if len(request.text) > _MAX_TEXT_LENGTH:
            raise ToolError(
                f"text: {_MAX_TEXT_LENGTH} characters at most; a telling part of it will do. Nothing was changed."
            )
        from assistant.commands.erasure import render_forget_preview

        preview, code = await erasure.request_code(request, context.now)
        return quote_block("\n".join(render_forget_preview(preview, code, shown=False)))

    return forget
