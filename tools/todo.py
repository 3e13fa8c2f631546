"""The tool for the to-do lists of a scope.

Its results are protected and survive compaction. Every change has the call's key, so that a call repeated after a crash
changes nothing twice, and returns the resulting list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from assistant.agenda.day_phrases import parse_due
from assistant.core.errors import ToolError, UsageError
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import Tool, ToolContext, WordsOfCall
from assistant.core.quoting import format_todos, quote_text
from assistant.core.records import TodoItem, find_list_name
from assistant.store.character.todos import StoredTodos
from tools.argument_schema import Limits
from tools.declaration import StorableInt, tool

TodoText = Annotated[str, Limits(strip=True, min_length=1, max_length=500)]
ListName = Annotated[str, Limits(strip=True, max_length=60)]
DuePhrase = Annotated[str, Limits(strip=True, max_length=200)]

_NOT_DUE = frozenset({"none", "never", "no"})
_DONE_FOR = timedelta(days=1)
_DONE_SHOWN = 10


def manage_todo_list_tool(todos: StoredTodos, zone: ZoneInfo) -> Tool:
    """Each change is made once per key. Results survive compaction."""

    def effect(context: ToolContext, action: str, items: Sequence[str], ids: Sequence[int], list: str, due: str) -> str:
        texts = {todo.id: todo.text for todo in todos.list_todos(context.scope)}
        named = [f"{id} {quote_text(texts[id])}" if id in texts else str(id) for id in ids]
        parts = [f"on your to-do lists: {action}", ", ".join([*named, *map(quote_text, items)])]
        parts += [f"list {quote_text(list)}"] if list else []
        return ", ".join(part for part in [*parts, f"due {quote_text(due)}" if due else ""] if part)

    @tool(
        effects="keyed",
        protected=True,
        roles=ALL_ROLES,
        touches={"reads", "writes"},
        words=WordsOfCall(words=("items", "list"), times=("due",), fixed={"action": "add"}),
        harmless=lambda context, action, **_: action == "list",
        effect=effect,
    )
    async def manage_todo_list(
        context: ToolContext,
        action: Literal["list", "add", "complete", "reopen", "remove", "edit", "clear"],
        items: Annotated[list[TodoText], Limits(max_length=50)] = [],  # noqa: B006 - pydantic copies defaults
        ids: Annotated[list[StorableInt], Limits(max_length=100)] = [],  # noqa: B006
        list: ListName = "",
        due: DuePhrase = "",
    ) -> str:
        """The person's to-do lists; shows the list after every change. items: texts to add, or for edit the new texts
        of ids. list: a list's name ("shopping"), "to-do" for the ordinary one. due: as they said it ("friday",
        "tomorrow at 5"); "none" takes it away. clear empties the list named."""
        name = find_list_name(list)
        is_day = due and due.lower() not in _NOT_DUE
        try:
            day = await asyncio.to_thread(parse_due, due, zone, context.now) if is_day else ""
        except UsageError as error:
            raise ToolError(str(error)) from None
        if action == "clear" and not list:
            raise ToolError('clear needs the name of the list ("to-do" for the ordinary one). Nothing was changed.')
        change, changed = _change(todos, context, action, items, ids, name if list else None, day if due else None)
        shown, since = name if list else None, context.now - _DONE_FOR
        return format_todos(
            todos.list_todos(context.scope, list_name=shown),
            zone,
            list_name=name,
            change=change,
            changed=changed,
            done=todos.list_done(context.scope, since, limit=_DONE_SHOWN, list_name=shown) if action == "list" else (),
        )

    return manage_todo_list


def _change(
    todos: StoredTodos,
    context: ToolContext,
    action: str,
    items: Sequence[str],
    ids: Sequence[int],
    list_name: str | None,
    due: str | None,
) -> tuple[str, Sequence[TodoItem]]:
    """Make the change and return a verb and what it applies to. None: not given."""
    scope, key, now = context.scope, context.key, context.now
    match action:
        case "list":
            return "", []
        case "clear":
            return "Removed", todos.clear(scope, list_name or "", key, now)
        case "add":
            if not items:
                raise ToolError("add needs items, the texts of the new to-dos. Nothing was changed.")
            return "Added", todos.add(scope, items, key, now, list_name=list_name or "", due=due or None)
    if not ids:
        raise ToolError(f"{action} needs ids, as the list shows them. Nothing was changed.")
    if action == "edit":
        if len(items) not in (0, len(ids)) or (not items and list_name is None and due is None):
            raise ToolError("edit needs a text for each of ids, a list or a due day. Nothing was changed.")
        return "Changed", todos.edit(scope, ids, key, now, texts=items, list_name=list_name, due=due)
    done, change = _BY_ACTION[action]
    return done, change(todos, scope, ids, key, now)


_BY_ACTION: dict[str, tuple[str, Callable[..., Sequence[TodoItem]]]] = {
    "complete": ("Completed", StoredTodos.complete),
    "reopen": ("Reopened", StoredTodos.reopen),
    "remove": ("Removed", StoredTodos.remove),
}
