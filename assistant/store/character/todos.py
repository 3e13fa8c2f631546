"""To-dos by scope, on named lists. Changes are idempotent by key: the first result is stored with the key in the same
transaction, and returned for repeated calls.

The default list is named "". Names ignore case and accents; the first spelling is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from assistant.core.errors import UsageError
from assistant.core.records import TodoItem
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import fold_text
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json, from_json

# For guests and rooms: they must not be able to fill the disk.
MAX_GUEST_TODOS = 200
MAX_GUEST_TODO_CHARACTERS = 1000

_read_todo = class_row(TodoItem, done=lambda row: row["state"] != "open")


class StoredTodos:
    """To-dos in character.db. Removed ones stay as hidden rows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def list_todos(self, scope: str, *, include_done: bool = False, list_name: str | None = None) -> list[TodoItem]:
        """Return to-dos of one list or all, grouped by list."""
        states = "IN ('open', 'done')" if include_done else "= 'open'"
        sql = f"SELECT * FROM todos WHERE scope = ? AND state {states} ORDER BY id"
        todos = _of_list(self._db.read_all(_read_todo, sql, (scope,)), list_name)
        return sorted(todos, key=lambda todo: fold_text(todo.list))

    def list_due(self, scope: str, until: str) -> list[TodoItem]:
        """Return open to-dos due on a local day or earlier, oldest first."""
        sql = "SELECT * FROM todos WHERE scope = ? AND state = 'open' AND due IS NOT NULL AND due < ? ORDER BY due, id"
        # "~" sorts after every time of day.
        return self._db.read_all(_read_todo, sql, (scope, f"{until}~"))

    def list_done(self, scope: str, since: datetime, *, limit: int, list_name: str | None = None) -> list[TodoItem]:
        """Return to-dos completed since a time, newest first, of one list or all."""
        sql = "SELECT * FROM todos WHERE scope = ? AND state = 'done' AND done_at >= ? ORDER BY done_at DESC LIMIT ?"
        return _of_list(self._db.read_all(_read_todo, sql, (scope, since, limit)), list_name)

    def add(
        self, scope: str, texts: Sequence[str], key: str, now: datetime, *, list_name: str = "", due: str | None = None
    ) -> list[TodoItem]:
        """Add a to-do for each text, once per key, and return them. Raises `UsageError` if the scope is not the owner's
        and has too many."""

        def insert() -> list[int]:
            if scope != OWNER_SCOPE:
                self._must_fit(scope, texts)
            name = self._spelling(scope, list_name)
            return [
                self._db.insert_row("todos", scope=scope, text=text, state="open", created_at=now, list=name, due=due)
                for text in texts
            ]

        return self._once(scope, key, now, insert)

    def _must_fit(self, scope: str, texts: Sequence[str]) -> None:
        if len(self.list_todos(scope)) + len(texts) > MAX_GUEST_TODOS or any(
            len(text) > MAX_GUEST_TODO_CHARACTERS for text in texts
        ):
            raise UsageError(
                f"A list has room for {MAX_GUEST_TODOS} to-dos, of {MAX_GUEST_TODO_CHARACTERS:,} characters each. "
                "Nothing was added."
            )

    def complete(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        """Return the changed ones. Raises `UsageError`, and changes none, if the scope lacks one of them."""
        return self._once(scope, key, now, lambda: self._set(scope, ids, state="done", done_at=now))

    def reopen(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        return self._once(scope, key, now, lambda: self._set(scope, ids, state="open", done_at=None))

    def remove(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        return self._once(scope, key, now, lambda: self._set(scope, ids, state="removed"))

    def edit(
        self,
        scope: str,
        ids: Sequence[int],
        key: str,
        now: datetime,
        *,
        texts: Sequence[str] = (),
        list_name: str | None = None,
        due: str | None = None,
    ) -> list[TodoItem]:
        """Change texts (in the order of `ids`), list, or due date ("" removes it). None: unchanged."""

        def change() -> list[int]:
            values: dict[str, str | None] = {} if list_name is None else {"list": self._spelling(scope, list_name)}
            if due is not None:
                values["due"] = due or None
            if texts and scope != OWNER_SCOPE:
                self._must_fit(scope, texts)
            self._must_exist(scope, ids)
            for todo_id, text in zip(ids, texts, strict=False):
                self._db.update_rows("todos", {"id": todo_id, "scope": scope}, text=text)
            return self._set(scope, ids, **values) if values else list(ids)

        return self._once(scope, key, now, change)

    def clear(self, scope: str, list_name: str, key: str, now: datetime) -> list[TodoItem]:
        """Remove everything on a list, open or done. Raises `UsageError` if the list does not exist."""

        def remove_all() -> list[int]:
            ids = [todo.id for todo in self.list_todos(scope, include_done=True, list_name=list_name)]
            if list_name and not ids:
                raise UsageError(f"There is no list {list_name!r}. Nothing was changed; `/todo` shows the lists.")
            return self._set(scope, ids, state="removed")

        return self._once(scope, key, now, remove_all)

    def _set(self, scope: str, ids: Sequence[int], **values: object) -> list[int]:
        self._must_exist(scope, ids)
        for todo_id in ids:
            self._db.update_rows("todos", {"id": todo_id, "scope": scope}, **values)
        return list(ids)

    def _must_exist(self, scope: str, ids: Sequence[int]) -> None:
        sql = "SELECT 1 FROM todos WHERE id = ? AND scope = ? AND state <> 'removed'"
        missing = [str(todo_id) for todo_id in ids if not self._db.value(sql, (todo_id, scope))]
        if missing:
            raise UsageError(f"There is no to-do {', '.join(missing)}. Nothing was changed; `/todo` lists them.")

    def _spelling(self, scope: str, list_name: str) -> str:
        """Return the existing spelling of a list's name, if any."""
        return next((todo.list for todo in self.list_todos(scope, list_name=list_name)), list_name)

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


def _of_list(todos: Sequence[TodoItem], list_name: str | None) -> list[TodoItem]:
    return [todo for todo in todos if list_name is None or fold_text(todo.list) == fold_text(list_name)]
