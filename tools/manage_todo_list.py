"""The to-do list of a scope. Protected: its results survive compaction, since they are what is still to be done.

What always holds: every change carries the call's key, so that a call repeated after a crash changes nothing twice;
and every change answers with the list as it is afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from assistant.core.errors import ToolError
from assistant.core.ports import TodosPort, Tool, ToolContext
from assistant.core.records import TodoItem
from assistant.core.tool_results import format_todos
from tools.declaration import EVERYONE, Count, tool

Item = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


def manage_todo_list_tool(todos: TodosPort) -> Tool:
    @tool(effects="keyed", protected=True, roles=EVERYONE)
    def manage_todo_list(
        context: ToolContext,
        action: Literal["list", "add", "complete", "remove"],
        items: Annotated[list[Item], Field(max_length=50)] = [],  # noqa: B006 - pydantic copies defaults
        ids: Annotated[list[Count], Field(max_length=100)] = [],  # noqa: B006
    ) -> str:
        """The person's to-do list; shows it after every change. items: texts to add. ids: to complete or remove."""
        change, changed = _change(todos, context, action, items, ids)
        return format_todos(todos.all(context.scope), change=change, changed=changed)

    return manage_todo_list


def _change(
    todos: TodosPort, context: ToolContext, action: str, items: Sequence[str], ids: Sequence[int]
) -> tuple[str, list[TodoItem]]:
    scope, key, now = context.scope, context.key, context.now
    if action == "list":
        return "", []
    if action == "add":
        if not items:
            raise ToolError("add needs items, the texts of the new to-dos. Nothing was changed.")
        return "Added", todos.add(scope, items, key, now)
    if not ids:
        raise ToolError(f"{action} needs ids, as the list shows them. Nothing was changed.")
    if action == "complete":
        return "Completed", todos.complete(scope, ids, key, now)
    return "Removed", todos.remove(scope, ids, key, now)
