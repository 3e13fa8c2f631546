"""Edits of memory files and profiles, each with the whole text before and after it (character.db).

What always holds: an edit is written in the transaction of the change that it records; its key is bound to its scope
and to what was changed, so that no one's key can stand for somebody else's change (I10).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from assistant.core.errors import UsageError
from assistant.core.memories import UndoableEdit
from assistant.store.database import Database
from assistant.store.rows import class_row, clean_text, to_row

FILE_TARGET = "file:"
PROFILE_TARGET = "profile:"

_read_edit = class_row(UndoableEdit)


class EditStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, edit: UndoableEdit, key: str | None) -> UndoableEdit:
        """Inside `write()`: the edit with its id."""
        edit_id = self._db.insert_row("edits", **{**to_row(edit), "key": _key(key, edit.scope, edit.target)})
        return replace(edit, id=edit_id)

    def find_by_key(self, key: str | None, scope: str, target: str) -> UndoableEdit | None:
        """The edit of a file, or of any profile, that was made under a key."""
        return self._db.read_one(_read_edit, "SELECT * FROM edits WHERE key = ?", (_key(key, scope, target),))

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        """Newest first."""
        return self._db.read_all(
            _read_edit,
            "SELECT * FROM edits WHERE scope = ? AND target = coalesce(?, target) ORDER BY id DESC LIMIT ?",
            (scope, target, limit),
        )

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        """Of every scope, newest first, but for those that were taken back."""
        return self._db.read_all(
            _read_edit, "SELECT * FROM edits WHERE cycle = ? AND undone_at IS NULL ORDER BY id DESC", (cycle,)
        )

    def require_undoable(self, edit_id: int, scope: str) -> UndoableEdit:
        """Raises `UsageError` where the scope has no such edit, or it was taken back."""
        row = self._db.row("SELECT * FROM edits WHERE id = ? AND scope = ?", (edit_id, scope))
        if row is None:
            raise UsageError(f"There is no change {edit_id} to undo. Nothing was changed.")
        edit = _read_edit(row)
        if edit.undone_at is not None:
            raise UsageError(f"Change {edit_id} was undone already. Nothing was changed.")
        return edit

    def find_by_id(self, edit_id: int) -> UndoableEdit | None:
        return self._db.read_one(_read_edit, "SELECT * FROM edits WHERE id = ?", (edit_id,))

    def mark_undone(self, edit: UndoableEdit, at: datetime | None) -> UndoableEdit:
        """Inside `write()`. None: it was not taken back after all."""
        self._db.execute("UPDATE edits SET undone_at = ? WHERE id = ?", (at, edit.id))
        return replace(edit, undone_at=at)

    def delete(self, edit: UndoableEdit) -> None:
        """Inside `write()`: an edit that was not made after all."""
        self._db.execute("DELETE FROM edits WHERE id = ?", (edit.id,))

    def delete_all(self, scope: str, target: str) -> None:
        """Inside `write()`: everything that is kept of the target's earlier texts."""
        self._db.execute("DELETE FROM edits WHERE scope = ? AND target = ?", (scope, target))


def _key(key: str | None, scope: str, target: str) -> str | None:
    """A profile's id is not known before it is written: one key stands for one change among all the profiles."""
    changed = PROFILE_TARGET if target.startswith(PROFILE_TARGET) else target
    return None if key is None else clean_text(f"{changed} {scope} {key}")
