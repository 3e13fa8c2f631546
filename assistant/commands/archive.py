"""Archived conversations: list, read and search them. Only the scope of whoever asks is shown (I10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, words_argument
from assistant.core.archives import ArchiveEntry
from assistant.core.calendar import format_local_time
from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
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


@dataclass(frozen=True, slots=True)
class ArchiveItem:
    """One archived conversation."""

    session: str
    generation: int
    scope: str
    started_at: datetime | None
    ended_at: datetime | None
    records: int
    first_id: int
    last_id: int
    bytes: int
    sha256: str
    where: str
    encrypted: bool
    archived_at: datetime
    reason: str


def _item(entry: ArchiveEntry) -> ArchiveItem:
    return ArchiveItem(
        entry.session,
        entry.generation,
        entry.scope,
        entry.from_ts,
        entry.to_ts,
        entry.records,
        entry.first_id,
        entry.last_id,
        entry.bytes,
        entry.sha256,
        entry.url,
        entry.encrypted,
        entry.archived_at,
        entry.reason,
    )


@dataclass(frozen=True, slots=True)
class MessageItem:
    """One record of the message log."""

    id: int
    at: datetime
    session: str
    generation: int
    kind: str  # "message", "edit", "undo", ...
    role: str
    name: str | None
    content: str
    tool_calls: list[dict[str, Any]]  # id, name, arguments
    tool_call_id: str | None
    bridge: str | None
    sender: str | None
    model: str | None
    turn: str | None
    refs: tuple[int, ...]  # the records that it is about
    bytes: tuple[int, int]  # where it is in the file of its session


def message_item(record: LogRecord) -> MessageItem:
    calls = [{"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in record.tool_calls]
    return MessageItem(
        record.id,
        record.ts,
        record.session,
        record.generation,
        record.kind,
        record.role,
        record.name,
        record.content,
        calls,
        record.tool_call_id,
        record.bridge,
        record.sender,
        record.model,
        record.turn,
        record.refs,
        (record.span.start, record.span.end),
    )


@click.group(cls=CommandGroup)
def archive() -> None:
    """Conversations that ended: where each is archived, and what was said in it.

    An archived conversation is named by its session and its number, as in `main 3`.

    \b
    Example:
      assistant archive
      assistant archive show main 3
      assistant archive search "booking number"
    """


def _render_list(items: Sequence[ArchiveItem], zone: tzinfo) -> str:
    lines = [
        f"- `{item.session} {item.generation}` — {_span(item, zone)}, {pluralize(item.records, 'record')}, "
        f"{format_bytes(item.bytes)}, {item.where}{' (encrypted)' if item.encrypted else ''}"
        for item in items
    ]
    return "\n".join(lines) or "Nothing is archived yet. A conversation is archived when it is reset: `/reset`."


def _span(item: ArchiveItem, zone: tzinfo) -> str:
    times = [format_local_time(moment, zone) for moment in (item.started_at, item.ended_at) if moment is not None]
    return " to ".join(times)


@archive.command("list", result=list[ArchiveItem], render=_render_list, reads=True, with_session=False)
@click.argument("session", metavar="[SESSION]", required=False)
async def list_archives(context: CommandContext, session: str | None) -> list[ArchiveItem]:
    """List what is archived, by session, oldest first.

    \b
    Example:
      assistant archive list
      assistant archive list main
    """
    return [_item(entry) for entry in await _entries(context) if session in (None, entry.session)]


@dataclass(frozen=True, slots=True)
class ArchivedConversation:
    """What was said in an archived conversation."""

    session: str
    generation: int
    handover: str  # the note for the next conversation
    summary: str
    messages: int  # in all
    records: list[MessageItem]


def _render_conversation(found: ArchivedConversation, zone: tzinfo) -> str:
    lines = [
        f"{title}: {text}\n" for title, text in (("Handed over", found.handover), ("Summary", found.summary)) if text
    ]
    lines += [
        f"- {format_local_time(record.at, zone)} {record.name or record.role} #{record.id}: {_words(found, record)}"
        for record in found.records
    ]
    if found.messages > len(found.records):
        lines.append(
            f"`assistant archive show {found.session} {found.generation}` prints all {found.messages:,} messages."
        )
    return "\n".join(lines)


def _words(found: ArchivedConversation, record: MessageItem) -> str:
    return record.content if len(found.records) == found.messages else shorten_line(record.content, _EXCERPT)


@archive.command("show", result=ArchivedConversation, render=_render_conversation, reads=True, with_session=False)
@click.argument("session", metavar="SESSION")
@click.argument("number", metavar="[NUMBER]", type=click.IntRange(min=1), required=False)
async def show(context: CommandContext, session: str, number: int | None) -> ArchivedConversation:
    """Print what was said in an archived conversation, the newest one without its number.

    \b
    Example:
      assistant archive show main
      assistant archive show main 3 --json
    """
    entries = [entry for entry in await _entries(context) if entry.session == session]
    chosen = [entry for entry in entries if number in (None, entry.generation)]
    if not entries:
        raise UsageError(f"Nothing of {session!r} is archived. Nothing was changed; `/archive list` shows what is.")
    if not chosen:
        raise UsageError(f"{session} {number} is not archived. Nothing was changed; `/archive list` shows what is.")
    entry = max(chosen, key=lambda entry: entry.generation)
    store = context.stores.archive
    records = visible_records(await asyncio.to_thread(store.read_records, entry.session, entry.generation))
    shown = [message_item(record) for record in (records[-_SHOWN_IN_CHAT:] if context.surface == "chat" else records)]
    if context.surface == "chat":
        return ArchivedConversation(session, entry.generation, "", "", len(records), shown)
    notes = await asyncio.to_thread(store.read_notes, entry.session, entry.generation)
    return ArchivedConversation(session, entry.generation, notes.handover, notes.summary, len(records), shown)


def _render_hits(hits: Sequence[ArchiveHit], zone: tzinfo) -> str:
    lines = [
        f"- `{hit.session} {hit.generation}` {format_local_time(hit.at, zone)} {hit.role} #{hit.message_id}: "
        f"{shorten_line(hit.text, 300)}"
        for hit in hits
    ]
    return "\n".join(lines) or "No archived message has these words. `assistant log --grep` searches everything."


@archive.command("search", result=list[ArchiveHit], render=_render_hits, reads=True)
@words_argument("text")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many messages.")
async def search(context: CommandContext, text: str, limit: int) -> list[ArchiveHit]:
    """Find messages of archived conversations by their words.

    \b
    Example:
      assistant archive search "booking number"
    """
    store = context.stores.archive
    hits = context.stores.history.search(text, context.scope, limit=limit * HITS_PER_RESULT)
    found = hits_in_log(hits, await asyncio.to_thread(store.list_archives, context.scope))
    # Archives themselves are read where the message log was lost.
    for entry in await asyncio.to_thread(store.list_missing_from_log, context.scope):
        records = await asyncio.to_thread(store.read_records, entry.session, entry.generation)
        found += search_archived_records(records, text)
    return found[:limit]


async def _entries(context: CommandContext) -> Sequence[ArchiveEntry]:
    """In a shell the owner sees where everybody's conversations are archived."""
    scope = None if context.surface == "shell" else context.scope
    return await asyncio.to_thread(context.stores.archive.list_archives, scope)
