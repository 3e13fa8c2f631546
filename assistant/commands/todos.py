"""`todo`: your to-do list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, numbers_argument, words_argument
from assistant.core.people import ALL_ROLES
from assistant.core.records import TodoItem


@click.group(cls=CommandGroup)
def todo() -> None:
    """Show your to-do list, and change it.

    \b
    Example:
      assistant todo
      assistant todo add buy lamp oil
      assistant todo done 2 3
    """


def _render(items: Sequence[TodoItem], _: tzinfo) -> str:
    return "\n".join(f"- [{'x' if item.done else ' '}] #{item.id} {item.text}" for item in items) or (
        "Nothing on the list."
    )


@todo.command("list", result=list[TodoItem], render=_render, roles=ALL_ROLES, reads=True)
def list_todos(context: CommandContext) -> list[TodoItem]:
    """List what is to be done.

    \b
    Example:
      assistant todo list --json
    """
    return context.stores.todos.list_todos(context.scope)


@todo.command(
    "add",
    result=list[TodoItem],
    render=_render,
    roles=ALL_ROLES,
    creates_home=True,
    context_settings={"ignore_unknown_options": True},
)
@words_argument("text")
def add(context: CommandContext, text: str) -> list[TodoItem]:
    """Add something to the list.

    \b
    Example:
      assistant todo add buy lamp oil
    """
    context.stores.todos.add(context.scope, [text], _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


@todo.command("done", result=list[TodoItem], render=_render, roles=ALL_ROLES)
@numbers_argument("ids")
def done(context: CommandContext, ids: Sequence[int]) -> list[TodoItem]:
    """Mark items as done, by their numbers.

    \b
    Example:
      assistant todo done 2 3
    """
    context.stores.todos.complete(context.scope, ids, _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


@todo.command("remove", result=list[TodoItem], render=_render, roles=ALL_ROLES)
@numbers_argument("ids")
def remove(context: CommandContext, ids: Sequence[int]) -> list[TodoItem]:
    """Remove items that are not wanted any more.

    \b
    Example:
      assistant todo remove 2
    """
    context.stores.todos.remove(context.scope, ids, _key(context), context.now)
    return context.stores.todos.list_todos(context.scope)


def _key(context: CommandContext) -> str:
    return f"command:{context.now.isoformat()}"
