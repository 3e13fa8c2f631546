"""Edits of memory files and profiles, each with the whole text before and after it (character.db).

What always holds: an edit is written in the transaction of the change that it records; its key is bound to its scope
and to what was changed, so that no one's key can stand for somebody else's change (I10).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.errors import UsageError
from assistant.core.memories import UndoableEdit
from assistant.store.database import Database
from assistant.store.encoding import clean_text, format_time, parse_time

FILE_TARGET = "file:"
PROFILE_TARGET = "profile:"


class EditStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, edit: UndoableEdit, key: str | None) -> UndoableEdit:
        """Inside `write()`: the edit with its id."""
        edit_id = self._db.insert(
            "INSERT INTO edits (key, scope, target, by, before, after, cycle, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                _stored_key(edit, key),
                edit.scope,
                edit.target,
                edit.by,
                clean_text(edit.before),
                clean_text(edit.after),
                edit.cycle,
                format_time(edit.at),
            ),
        )
        return replace(edit, id=edit_id)

    def find_by_key(self, key: str | None, scope: str, target: str) -> UndoableEdit | None:
        """The edit of a file, or of any profile, that was made under a key."""
        if key is None:
            return None
        row = self._db.row("SELECT * FROM edits WHERE key = ?", (_named(key, scope, target),))
        return None if row is None else _edit(row)

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        """Newest first."""
        rows = self._db.rows(
            "SELECT * FROM edits WHERE scope = ? AND target = coalesce(?, target) ORDER BY id DESC LIMIT ?",
            (scope, target, limit),
        )
        return [_edit(row) for row in rows]

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        """Of every scope, newest first, but for those that were taken back."""
        rows = self._db.rows("SELECT * FROM edits WHERE cycle = ? AND undone_at IS NULL ORDER BY id DESC", (cycle,))
        return [_edit(row) for row in rows]

    def require_undoable(self, edit_id: int, scope: str) -> UndoableEdit:
        """Raises `UsageError` where the scope has no such edit, or it was taken back."""
        row = self._db.row("SELECT * FROM edits WHERE id = ? AND scope = ?", (edit_id, scope))
        if row is None:
            raise UsageError(f"There is no change {edit_id} to take back. Nothing was changed.")
        edit = _edit(row)
        if edit.undone_at is not None:
            raise UsageError(f"Change {edit_id} was taken back already. Nothing was changed.")
        return edit

    def find_by_id(self, edit_id: int) -> UndoableEdit | None:
        row = self._db.row("SELECT * FROM edits WHERE id = ?", (edit_id,))
        return None if row is None else _edit(row)

    def mark_undone(self, edit: UndoableEdit, at: datetime | None) -> UndoableEdit:
        """Inside `write()`. None: it was not taken back after all."""
        self._db.execute("UPDATE edits SET undone_at = ? WHERE id = ?", (format_time(at) if at else None, edit.id))
        return replace(edit, undone_at=at)

    def delete(self, edit: UndoableEdit) -> None:
        """Inside `write()`: an edit that was not made after all."""
        self._db.execute("DELETE FROM edits WHERE id = ?", (edit.id,))

    def delete_all(self, scope: str, target: str) -> None:
        """Inside `write()`: everything that is kept of the target's earlier texts."""
        self._db.execute("DELETE FROM edits WHERE scope = ? AND target = ?", (scope, target))


def _stored_key(edit: UndoableEdit, key: str | None) -> str | None:
    return None if key is None else _named(key, edit.scope, edit.target)


def _named(key: str, scope: str, target: str) -> str:
    """A profile's id is not known before it is written: one key stands for one change among all the profiles."""
    return clean_text(f"{PROFILE_TARGET if target.startswith(PROFILE_TARGET) else target} {scope} {key}")


def _edit(row: Row) -> UndoableEdit:
    undone = parse_time(row["undone_at"]) if row["undone_at"] else None
    return UndoableEdit(
        row["target"],
        row["scope"],
        row["by"],
        row["before"],
        row["after"],
        parse_time(row["at"]),
        row["cycle"],
        undone,
        row["id"],
    )
