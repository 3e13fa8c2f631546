"""`todo`: the to-do lists, which anybody has of their own; `agenda`: what is on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta, tzinfo

import click

from assistant.agenda.brief import Brief, BriefReader, format_brief
from assistant.agenda.day import DayAgenda, format_agenda
from assistant.agenda.day_phrases import DayRange, parse_days, parse_due
from assistant.commands.context import CommandContext
from assistant.commands.named_items import NamedItems, items_argument
from assistant.commands.table import (
    CommandGroup,
    TableCommand,
    number_argument,
    phrase_option,
    words_argument,
)
from assistant.core.errors import UsageError
from assistant.core.permissions import ALL_ROLES
from assistant.core.quoting import format_todo
from assistant.core.records import TodoItem, find_list_name

_DONE_SHOWN = 50
_DONE_FOR = timedelta(days=30)


def _render_todos(items: Sequence[TodoItem], zone: tzinfo) -> str:
    return "\n".join(format_todo(item, zone) for item in items) or "Nothing is on the list."


@click.group(cls=CommandGroup, default="add")
def todo() -> None:
    """Show your to-do lists, and change them.

    There is one ordinary list, and as many others as you name. `add` may be left out.

    > assistant todo
    > assistant todo buy lamp oil
    > assistant todo add batteries --list shopping --due friday
    > assistant todo done 2 3
    > assistant todo done lamp oil
    """


@todo.command("list", render=_render_todos, roles=ALL_ROLES, reads=True)
@words_argument("name", required=False, metavar="NAME")
@click.option("--done", "with_done", is_flag=True, help="Also what was done in the last 30 days.")
def list_todos(context: CommandContext, name: str, with_done: bool) -> list[TodoItem]:
    """List what is to be done: all of it, or one list.

    > assistant todo list
    > assistant todo list shopping --done
    """
    todos, list_name = context.stores.todos, find_list_name(name) if name else None
    listed = todos.list_todos(context.scope, list_name=list_name)
    done = todos.list_done(context.scope, context.now - _DONE_FOR, limit=_DONE_SHOWN, list_name=list_name)
    if name and not listed and not done:
        raise UsageError(f"There is nothing on a list {name!r}. `/todo` shows all lists.")
    return [*listed, *(done if with_done else [])]


@todo.command(
    "add",
    render=_render_todos,
    roles=ALL_ROLES,
    creates_home=True,
    context_settings={"ignore_unknown_options": True},
)
@words_argument("text")
@phrase_option("--due", "due", metavar="WHEN", help='By when: "friday", "tomorrow at 17:00", "2026-12-24".')
@phrase_option("--list", "name", metavar="NAME", help="Its list; a new name begins a new list.")
async def add_todo(context: CommandContext, text: str, due: str | None, name: str | None) -> list[TodoItem]:
    """Add something to a list. Without --due, TEXT may end with a day.

    > assistant todo add buy lamp oil
    > assistant todo add call the bank by friday
    > assistant todo add file the taxes --due "31 March"
    """
    from assistant.core.time_split import split_due  # its vocabulary is compiled where it is imported

    if due is None:
        text, due = split_due(text)
    day = await _parse_due(context, due or None)
    list_name = find_list_name(name or "")
    todos = context.stores.todos
    todos.add(context.scope, [text], _key(context), context.now, list_name=list_name, due=day or None)
    return todos.list_todos(context.scope, list_name=list_name)


@todo.command("done", render=_render_todos, roles=ALL_ROLES)
@items_argument("items")
def finish_todos(context: CommandContext, items: NamedItems) -> list[TodoItem]:
    """Mark items as done, by their numbers, or one by words of it. It prints what is left, and these.

    > assistant todo done 2 3
    > assistant todo done lamp oil
    """
    ids = items.find("to-do", _open_texts(context))
    todos = context.stores.todos
    todos.complete(context.scope, ids, _key(context), context.now)
    done = todos.list_done(context.scope, context.now - _DONE_FOR, limit=_DONE_SHOWN)
    return [*todos.list_todos(context.scope), *(item for item in done if item.id in ids)]


@todo.command("reopen", render=_render_todos, roles=ALL_ROLES)
@items_argument("items")
def reopen_todos(context: CommandContext, items: NamedItems) -> list[TodoItem]:
    """Put items that were done back on their list.

    `todo list --done` shows them.

    > assistant todo reopen 2
    """
    done = context.stores.todos.list_done(context.scope, context.now - _DONE_FOR, limit=_DONE_SHOWN)
    ids = items.find("to-do", ((item.id, item.text) for item in done))
    context.stores.todos.reopen(context.scope, ids, _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


@todo.command("edit", render=_render_todos, roles=ALL_ROLES)
@number_argument("todo_id")
@words_argument("text", required=False)
@phrase_option("--due", "due", metavar="WHEN", help='By when; "none" for no day.')
@phrase_option("--list", "name", metavar="NAME", help='The list it moves to; "to-do" is the ordinary one.')
async def edit_todo(
    context: CommandContext, todo_id: int, text: str, due: str | None, name: str | None
) -> list[TodoItem]:
    """Give an item another text, day or list.

    > assistant todo edit 2 buy two bottles of lamp oil
    > assistant todo edit 2 --due friday
    """
    if not (text or due or name):
        raise UsageError("Say what to change: the text, --due or --list. Nothing was changed.")
    day, todos = await _parse_due(context, due), context.stores.todos
    list_name = None if name is None else find_list_name(name)
    texts = [text] if text else []
    todos.edit(context.scope, [todo_id], _key(context), context.now, texts=texts, list_name=list_name, due=day)
    return todos.list_todos(context.scope)


@todo.command("remove", render=_render_todos, roles=ALL_ROLES)
@items_argument("items")
def remove_todos(context: CommandContext, items: NamedItems) -> list[TodoItem]:
    """Remove items that are not wanted any more.

    > assistant todo remove 2
    > assistant todo remove lamp oil
    """
    ids = items.find("to-do", _open_texts(context))
    context.stores.todos.remove(context.scope, ids, _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


@todo.command("clear", render=_render_todos, roles=ALL_ROLES)
@words_argument("name", metavar="NAME")
def clear_list(context: CommandContext, name: str) -> list[TodoItem]:
    """Remove everything from a list; "to-do" is the ordinary one.

    > assistant todo clear shopping
    """
    context.stores.todos.clear(context.scope, find_list_name(name), _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


def _open_texts(context: CommandContext) -> list[tuple[int, str]]:
    return [(item.id, item.text) for item in context.stores.todos.list_todos(context.scope)]


async def _parse_due(context: CommandContext, due: str | None) -> str | None:
    """ "" for "none"; None where nothing was said."""
    if due is None or due.strip().lower() == "none":
        return None if due is None else ""
    return await asyncio.to_thread(parse_due, due, context.stores.days.zone, context.now)


def _key(context: CommandContext) -> str:
    return f"command:{context.now.isoformat()}"


# --------------------------------------------------------------------------------------------------------------- agenda


@click.command(cls=TableCommand, render=lambda brief, _: format_brief(brief), reads=True)
async def brief(context: CommandContext) -> Brief:
    """Show the brief of today: what is on, what is overdue, what is open, what waits for your yes or no.

    It comes every morning with `assistant config set brief.morning 07:30`.

    > assistant brief
    """
    stores = context.stores
    return await BriefReader(stores.days, stores.requests, stores.approvals, stores.journal).read(context.now)


@click.command(cls=TableCommand, render=lambda agenda, _: format_agenda(agenda), roles=ALL_ROLES, reads=True)
@words_argument("day", required=False, metavar="DAY")
@click.option("--week", is_flag=True, help="The seven days from today on, or from DAY on.")
async def agenda(context: CommandContext, day: str, week: bool) -> DayAgenda:
    """Show what is on: calendars, birthdays, reminders, schedules, to-dos with a day, and dates that you told.

    Without DAY it is today. A day is "tomorrow", "tuesday", "24 December", "next week", "2026-12-24"; as in the last,
    one that is over, too.

    > assistant agenda
    > assistant agenda tomorrow
    > assistant agenda --week
    """
    try:
        days = DayRange(date.fromisoformat(day), date.fromisoformat(day))  # also one that is over
    except ValueError:
        days = await asyncio.to_thread(parse_days, day or "today", context.stores.days.zone, context.now)
    if week:
        days = DayRange(days.first, days.first + timedelta(days=6))
    return await context.stores.days.read(context.scope, days, context.now)
