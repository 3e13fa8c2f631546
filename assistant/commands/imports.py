"""What was brought along from other programs: list the imports, take one back. A shell also reads the files
(`assistant/cli/imports.py`) and hands in what it found, some messages at a time, so that the process that serves the
data folder is the only one that writes it, and answers messages between any two of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, Confirmation, number_argument
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.erasure import ErasureRequest
from assistant.core.errors import UsageError
from assistant.core.import_records import SOURCE_NAMES, ImportCounts, ImportRun, batch_from_json
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize

MAX_PIECE = 90_000
"""How long one word of `add` may be: what the control socket takes."""

_MOST_SECONDS = 3600.0
_TITLES = 1  # first line of an imported conversation, not a message of anybody


@click.group("import", cls=CommandGroup, default="file")
def imports() -> None:
    """Conversations that you bring along from other programs.

    Each becomes an archived conversation with its own dates. You find it at once; what it teaches is learned in the
    next sleeps, some of it each night.

    > assistant import chatgpt-export.zip
    > assistant import list
    > assistant import undo 3
    """


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One import."""

    id: int
    source: str
    name: str  # of the file
    state: str  # "running", "done" or "undone"
    begun_at: datetime
    ended_at: datetime | None
    conversations: int
    messages: int
    rejected: int  # records of the file that could not be read


def _item(run: ImportRun) -> ImportItem:
    return ImportItem(**asdict(run))


_STATES = {"running": "not finished: the same command continues it", "undone": "undone"}


def _render_list(items: Sequence[ImportItem], zone: tzinfo) -> str:
    lines = [
        f"- {item.id}: {item.name} ({SOURCE_NAMES.get(item.source, item.source)}), "
        f"{format_local_time(item.begun_at, zone)} — {pluralize(item.conversations, 'conversation')}, "
        f"{pluralize(item.messages, 'message')}{', ' if item.state in _STATES else ''}{_STATES.get(item.state, '')}"
        for item in items
    ]
    return "\n".join(lines) or "Nothing was imported yet."


@imports.command("list", render=_render_list, reads=True, with_session=False)
def list_(context: CommandContext) -> list[ImportItem]:
    """List the imports, oldest first.

    > assistant import list
    """
    return [_item(run) for run in context.stores.imports.list_runs()]


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation that an import brought, or added to."""

    session: str
    title: str
    started_at: datetime
    ended_at: datetime | None
    messages: int


def _render_show(items: Sequence[ImportedConversation], zone: tzinfo) -> str:
    lines = [
        f"- `{item.session}` — {item.title}, {format_local_time(item.started_at, zone)}, "
        f"{pluralize(item.messages, 'message')}"
        for item in items
    ]
    return "\n".join(lines) or "It brought nothing, or was undone."


@imports.command("show", render=_render_show, reads=True, with_session=False)
@number_argument("number", metavar="N")
def show(context: CommandContext, number: int) -> list[ImportedConversation]:
    """List the conversations of an import, the earliest first.

    > assistant import show 3
    > assistant sessions export import:17
    """
    _require(context, number)
    imports = context.stores.imports
    sessions = list(imports.messages_of(number))
    titles = imports.titles(sessions)
    rows = [row for key in sessions for row in context.stores.sessions.generations.list_generations(key)]
    return [
        ImportedConversation(
            row.session, titles.get(row.session, ""), row.started_at, row.ended_at, max(row.messages - _TITLES, 0)
        )
        for row in sorted(rows, key=lambda row: row.started_at)
    ]


@dataclass(frozen=True, slots=True)
class UndoneImport:
    """An import that was undone, or would be."""

    id: int
    undone: bool
    conversations: int
    messages: int
    learned: int  # journal entries that came of it


def _ask(undone: UndoneImport) -> Confirmation | None:
    return None if undone.undone else Confirmation("Undo it?", ("import", "undo", str(undone.id), "--yes"))


def _render_undone(undone: UndoneImport, _: tzinfo) -> str:
    counts = f"{pluralize(undone.messages, 'message')} of {pluralize(undone.conversations, 'conversation')}"
    learned = f" and {pluralize(undone.learned, 'thing')} learned from them" if undone.learned else ""
    if undone.undone:
        return f"Import {undone.id} is undone: {counts}{learned} are not shown, found or used any more."
    return (
        f"This undoes the import of {counts}{learned}. The message log keeps the words; `/forget` erases them for good."
    )


@imports.command("undo", render=_render_undone, confirm=_ask, max_seconds=_MOST_SECONDS, with_session=False)
@number_argument("number", metavar="N")
@click.option("--yes", is_flag=True, help="Do it without asking.")
async def undo(context: CommandContext, number: int, yes: bool) -> UndoneImport:
    """Undo an import, with what was learned from it.

    Its messages stay in the message log and are not shown, found or used any more. The same file may be imported again.

    > assistant import undo 3
    """
    stores = context.stores
    run = _require(context, number)
    if run.state == "undone":
        raise UsageError(f"Import {number} is undone already. Nothing was changed.")
    by_session = stores.imports.messages_of(number)
    learned = stores.journal.entries_from(frozenset(by_session), OWNER_SCOPE)
    counts = len(by_session), run.messages, len(learned)
    if not yes:
        return UndoneImport(number, False, *counts)
    if learned:
        request = ErasureRequest(OWNER_SCOPE, entries=tuple(learned), keep_backups=True, keep_messages=True)
        await context.services.erasure.erase(request, context.now)
    for session, message_ids in by_session.items():
        stores.conversation.hide_messages(session, message_ids, context.now)
        context.services.show_changed(session)
        await asyncio.sleep(0)
    stores.imports.mark_undone(number, context.now)
    return UndoneImport(number, True, *counts)


# ----------------------------------------------------------------------------------------------- handing in, by a shell


@dataclass(frozen=True, slots=True)
class BegunImport:
    """An import to add to."""

    id: int


@imports.command("begin", render=lambda begun, _: str(begun.id), hidden=True, creates_home=True, with_session=False)
@click.argument("source")
@click.argument("name")
def begin(context: CommandContext, source: str, name: str) -> BegunImport:
    """Begin an import, or continue one that was cut off."""
    _require_shell(context)
    return BegunImport(context.stores.imports.begin(source, name, context.now))


@dataclass(frozen=True, slots=True)
class AddedMessages:
    """What came of messages that were handed in."""

    conversations: int
    messages: int
    known: int


@imports.command(
    "add", render=lambda added, _: str(added.messages), hidden=True, max_seconds=_MOST_SECONDS, with_session=False
)
@number_argument("number")
@click.argument("pieces", nargs=-1, type=click.UNPROCESSED)
async def add(context: CommandContext, number: int, pieces: Sequence[str]) -> AddedMessages:
    """Add messages to an import; those that are there already are passed over."""
    _require_shell(context)
    if _require(context, number).state != "running":
        raise UsageError(f"Import {number} has ended. Nothing was changed.")
    try:
        batches = [batch_from_json(raw) for raw in json.loads("".join(pieces))]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError("That is no list of imported messages. Nothing was changed.") from None
    given = sum(len(batch.messages) for batch in batches)
    batches = [context.stores.imports.without_own(batch) for batch in batches]
    own = given - sum(len(batch.messages) for batch in batches)
    counts = ImportCounts(conversations=context.stores.imports.open_conversations(batches, context.now), known=own)
    for batch in batches:
        if context.services.erasure.is_running():
            # What is being forgotten must not come back meanwhile.
            raise UsageError("Something is being forgotten just now. What was imported is kept; try again after that.")
        counts += context.stores.imports.add(number, batch, context.now)
        await asyncio.sleep(0)
    return AddedMessages(counts.conversations, counts.messages, counts.known)


@imports.command("finish", render=lambda begun, _: str(begun.id), hidden=True, with_session=False)
@number_argument("number")
@click.argument("rejected", type=int)
def finish(context: CommandContext, number: int, rejected: int) -> BegunImport:
    """End an import."""
    _require_shell(context)
    _require(context, number)
    context.stores.imports.finish(number, rejected, context.now)
    return BegunImport(number)


def _require_shell(context: CommandContext) -> None:
    if context.surface != "shell":
        raise UsageError("Files are imported by `assistant import` in a shell. Nothing was changed.")


def _require(context: CommandContext, number: int) -> ImportRun:
    run = context.stores.imports.find(number)
    if run is None:
        raise UsageError(f"There is no import {number}; `/import list` lists them. Nothing was changed.")
    return run
