"""Archived conversations: list, read and search them. Only the scope of the person who asks is shown (I10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Annotated

import click
from pydantic import BeforeValidator, Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, words_argument
from assistant.core.archives import ArchiveEntry
from assistant.core.calendar import format_local_time
from assistant.core.errors import UsageError
from assistant.core.messages import ToolCall
from assistant.core.sessions import session_name
from assistant.core.text import format_bytes, pluralize, shorten_line
from assistant.sessions.listing import (
    HITS_PER_RESULT,
    ArchiveHit,
    hits_in_log,
    search_archived_records,
    visible_records,
)

# What is read in a conversation; a shell shows all.
_SHOWN_IN_CHAT = 10
_EXCERPT = 200


class ArchiveItem(Item):
    """One archived conversation."""

    session: str
    generation: int
    scope: str
    started_at: datetime | None = Field(validation_alias="from_ts")
    ended_at: datetime | None = Field(validation_alias="to_ts")
    records: int
    first_id: int
    last_id: int
    bytes: int
    sha256: str
    where: str = Field(validation_alias="url")
    encrypted: bool
    archived_at: datetime
    reason: str


ByteRange = Annotated[tuple[int, int], BeforeValidator(attrgetter("start", "end"))]


class MessageItem(Item):
    """One record of the message log."""

    id: int
    at: datetime = Field(validation_alias="ts")
    session: str
    generation: int
    kind: str  # "message", "edit", "undo", ...
    role: str
    name: str | None
    content: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    bridge: str | None
    sender: str | None
    model: str | None
    turn: str | None
    refs: tuple[int, ...]  # the records that it is about
    bytes: ByteRange = Field(validation_alias="span")  # where it is in the file of its session


@click.group(cls=CommandGroup)
def archive() -> None:
    """Conversations that ended: where each is archived, and what was said in it.

    An archived conversation is named by its session and its number, as in `main 3`.

    > assistant archive
    > assistant archive show main 3
    > assistant archive search "booking number"
    """


def _render_list(entries: Sequence[ArchiveEntry], zone: tzinfo) -> str:
    lines = [
        f"- `{session_name(entry.session)} {entry.generation}` — {_span(entry, zone)}, "
        f"{pluralize(entry.records, 'record')}, {format_bytes(entry.bytes)}, "
        f"{entry.url}{' (encrypted)' if entry.encrypted else ''}"
        for entry in entries
    ]
    return "\n".join(lines) or "Nothing is archived yet. A conversation is archived when it is reset: `/reset`."


def _span(entry: ArchiveEntry, zone: tzinfo) -> str:
    times = [format_local_time(moment, zone) for moment in (entry.from_ts, entry.to_ts) if moment is not None]
    return " to ".join(times)


@archive.command("list", result=list[ArchiveItem], render=_render_list, reads=True, with_session=False)
@click.argument("session", metavar="[SESSION]", required=False)
async def list_archives(context: CommandContext, session: str | None) -> list[ArchiveEntry]:
    """List what is archived, by session, oldest first.

    > assistant archive list
    > assistant archive list main
    """
    return [entry for entry in await _entries(context) if session in (None, entry.session)]


class ArchivedConversation(Item):
    """What was said in an archived conversation."""

    session: str
    generation: int
    handover: str  # the note for the next conversation
    summary: str
    messages: int  # in all
    records: list[MessageItem]


def _render_conversation(conversation: ArchivedConversation, zone: tzinfo) -> str:
    notes = (("Handed over", conversation.handover), ("Summary", conversation.summary))
    lines = [f"{title}: {text}\n" for title, text in notes if text]
    is_whole = len(conversation.records) == conversation.messages
    lines += [
        f"- {format_local_time(record.at, zone)} {record.name or record.role}: "
        + (record.content if is_whole else shorten_line(record.content, _EXCERPT))
        for record in conversation.records
    ]
    if not is_whole:
        name = f"{session_name(conversation.session)} {conversation.generation}"
        lines.append(f"`assistant archive show {name}` prints all {conversation.messages:,} messages.")
    return "\n".join(lines)


@archive.command("show", render=_render_conversation, reads=True, with_session=False)
@click.argument("session", metavar="SESSION")
@click.argument("number", metavar="[NUMBER]", type=click.IntRange(min=1), required=False)
async def show(context: CommandContext, session: str, number: int | None) -> ArchivedConversation:
    """Print what was said in an archived conversation. Without NUMBER, the newest one.

    > assistant archive show main
    > assistant archive show main 3 --json
    """
    entries = [entry for entry in await _entries(context) if entry.session == session]
    chosen = [entry for entry in entries if number in (None, entry.generation)]
    name = session_name(session)
    if not entries:
        raise UsageError(f"Nothing of {name!r} is archived. Nothing was changed; `/archive list` shows what is.")
    if not chosen:
        raise UsageError(f"{name} {number} is not archived. Nothing was changed; `/archive list` shows what is.")
    generation, store = max(entry.generation for entry in chosen), context.stores.archive
    records = visible_records(await asyncio.to_thread(store.read_records, session, generation))
    handover, summary, shown = "", "", records[-_SHOWN_IN_CHAT:]
    if context.surface == "shell":
        notes = await asyncio.to_thread(store.read_notes, session, generation)
        handover, summary, shown = notes.handover, notes.summary, records
    return ArchivedConversation(
        session=session,
        generation=generation,
        handover=handover,
        summary=summary,
        messages=len(records),
        records=[MessageItem.model_validate(record) for record in shown],
    )


def _render_hits(hits: Sequence[ArchiveHit], zone: tzinfo) -> str:
    lines = [
        f"- `{session_name(hit.session)} {hit.generation}` {format_local_time(hit.at, zone)} {hit.role}: "
        f"{shorten_line(hit.text, 300)}"
        for hit in hits
    ]
    return "\n".join(lines) or "No archived message has these words. `assistant log --grep` searches everything."


@archive.command("search", render=_render_hits, reads=True)
@words_argument("text")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many messages.")
async def search(context: CommandContext, text: str, limit: int) -> list[ArchiveHit]:
    """Find messages of archived conversations by their words.

    > assistant archive search "booking number"
    """
    store = context.stores.archive
    search_log = context.stores.history.search
    hits = await asyncio.to_thread(search_log, text, context.scope, limit=limit * HITS_PER_RESULT)
    found_hits = hits_in_log(hits, await asyncio.to_thread(store.list_archives, context.scope))
    # Archives themselves are read where the message log was lost.
    for entry in await asyncio.to_thread(store.list_missing_from_log, context.scope):
        records = await asyncio.to_thread(store.read_records, entry.session, entry.generation)
        found_hits += search_archived_records(records, text)
    return found_hits[:limit]


async def _entries(context: CommandContext) -> Sequence[ArchiveEntry]:
    """In a shell the owner sees where everybody's conversations are archived."""
    scope = None if context.surface == "shell" else context.scope
    return await asyncio.to_thread(context.stores.archive.list_archives, scope)
