"""The to-do lists, one a scope. A change carries a key and is applied once, however often it is called: the result of
the first call is stored with the key, in the same transaction, and returned again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from assistant.core.errors import ToolError
from assistant.core.records import TodoItem
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json, from_json

# Of anybody but the owner: what they write down must not fill the home.
MAX_GUEST_TODOS = 200
MAX_GUEST_TODO_CHARACTERS = 1000

_read_todo = class_row(TodoItem, done=lambda row: row["state"] != "open")


class StoredTodos:
    """The to-dos in character.db. What is removed stays as a row, out of sight."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def list_todos(self, scope: str, *, include_done: bool = False) -> list[TodoItem]:
        states = "('open', 'done')" if include_done else "('open')"
        return self._db.read_all(
            _read_todo, f"SELECT * FROM todos WHERE scope = ? AND state IN {states} ORDER BY id", (scope,)
        )

    def add(self, scope: str, texts: Sequence[str], key: str, now: datetime) -> list[TodoItem]:
        def insert() -> list[int]:
            if scope != OWNER_SCOPE:
                self._must_fit(scope, texts)
            return [
                self._db.insert_row("todos", scope=scope, text=text, state="open", created_at=now) for text in texts
            ]

        return self._once(scope, key, now, insert)

    def _must_fit(self, scope: str, texts: Sequence[str]) -> None:
        if len(self.list_todos(scope)) + len(texts) > MAX_GUEST_TODOS or any(
            len(text) > MAX_GUEST_TODO_CHARACTERS for text in texts
        ):
            raise ToolError(
                f"A list has room for {MAX_GUEST_TODOS} to-dos, of {MAX_GUEST_TODO_CHARACTERS:,} characters each. "
                "Nothing was added."
            )

    def complete(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        return self._once(scope, key, now, lambda: self._move(scope, ids, "done", now))

    def remove(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        return self._once(scope, key, now, lambda: self._move(scope, ids, "removed", now))

    def _move(self, scope: str, ids: Sequence[int], state: str, now: datetime) -> list[int]:
        existing = {todo.id for todo in self.list_todos(scope, include_done=True)}
        missing = [str(todo_id) for todo_id in ids if todo_id not in existing]
        if missing:
            raise ToolError(f"There is no to-do {', '.join(missing)}. Nothing was changed; `/todo` lists them.")
        for todo_id in ids:
            self._db.execute(
                "UPDATE todos SET state = ?, done_at = coalesce(done_at, ?) WHERE id = ? AND scope = ?",
                (state, now, todo_id, scope),
            )
        return list(ids)

    def _once(self, scope: str, key: str, now: datetime, change: Callable[[], list[int]]) -> list[TodoItem]:
        with self._db.write() as db:
            result = db.value("SELECT result FROM effects WHERE scope = ? AND key = ?", (scope, key))
            if result is not None:
                return from_json(list[TodoItem], result)
            changed = [self._get(todo_id) for todo_id in change()]
            db.insert_row("effects", scope=scope, key=key, result=dump_json(changed), at=now)
        return changed

    def _get(self, todo_id: int) -> TodoItem:
        return _read_todo(self._db.rows("SELECT * FROM todos WHERE id = ?", (todo_id,))[0])
