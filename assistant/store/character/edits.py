"""Edits of memory files and profiles with their full texts before and after (character.db), from which earlier file
contents are derived.

- An edit is written in the transaction of its change; its key is bound to scope and target, so that keys cannot collide
  across scopes (I10).
- Manual edits of files are not recorded, but visible: the next edit starts from a different text than the last one
  left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.errors import UsageError
from assistant.core.memories import FileSnapshot, UndoableEdit
from assistant.store.database import Database
from assistant.store.rows import class_row, clean_text, to_row

FILE_TARGET = "file:"
PROFILE_TARGET = "profile:"

_read_edit = class_row(UndoableEdit)


class EditStore:
    """Edits of profiles and memory files, each with what undoes it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, edit: UndoableEdit, key: str | None) -> UndoableEdit:
        """Insert an edit, within `write()`; returns it with its id."""
        edit_id = self._db.insert_row("edits", **{**to_row(edit), "key": _key(key, edit.scope, edit.target)})
        return replace(edit, id=edit_id)

    def find_by_key(self, key: str | None, scope: str, target: str) -> UndoableEdit | None:
        """Return the edit of a file, or of any profile, with this key."""
        return self._db.read_one(_read_edit, "SELECT * FROM edits WHERE key = ?", (_key(key, scope, target),))

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        """Return edits, newest first."""
        return self._db.read_all(
            _read_edit,
            "SELECT * FROM edits WHERE scope = ? AND target = coalesce(?, target) ORDER BY id DESC LIMIT ?",
            (scope, target, limit),
        )

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        """Return a cycle's edits in all scopes, newest first, without undone ones."""
        return self._db.read_all(
            _read_edit, "SELECT * FROM edits WHERE cycle = ? AND undone_at IS NULL ORDER BY id DESC", (cycle,)
        )

    def require_undoable(self, edit_id: int, scope: str) -> UndoableEdit:
        """Return the edit. Raises `UsageError` if the scope has none with this id, or it was undone."""
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
        """Set or clear (None) the undo time, within `write()`."""
        self._db.execute("UPDATE edits SET undone_at = ? WHERE id = ?", (at, edit.id))
        return replace(edit, undone_at=at)

    def mark_accepted(self, edit_id: int, scope: str, at: datetime) -> None:
        """Mark an edit confirmed, within `write()`."""
        self._db.execute("UPDATE edits SET accepted_at = ? WHERE id = ? AND scope = ?", (at, edit_id, scope))

    def delete(self, edit: UndoableEdit) -> None:
        """Delete an edit whose change failed, within `write()`."""
        self._db.execute("DELETE FROM edits WHERE id = ?", (edit.id,))

    def delete_all(self, scope: str, target: str) -> None:
        """Delete all edits of a target, within `write()`."""
        self._db.execute("DELETE FROM edits WHERE scope = ? AND target = ?", (scope, target))


def _key(key: str | None, scope: str, target: str) -> str | None:
    """Bind a key to scope and target. A new profile's id is unknown in advance, so all profiles of a scope share one
    namespace."""
    changed = PROFILE_TARGET if target.startswith(PROFILE_TARGET) else target
    return None if key is None else clean_text(f"{changed} {scope} {key}")


_Step = tuple[datetime, int, str, str]


def file_text_as_of(
    edits: Sequence[UndoableEdit], at: datetime, current_text: str, changed_at: datetime | None
) -> FileSnapshot:
    """Derive a file's content at a time from its `edits` (in any order) and `current_text`, last changed at
    `changed_at`."""
    steps = sorted(_steps(edits))
    before = [step for step in steps if step[0] <= at]
    after = [step for step in steps if step[0] > at]
    last_text = before[-1][3] if before else None
    if after:
        next_text = after[0][2]
        return FileSnapshot(next_text if last_text is None else last_text, next_text == (last_text or ""))
    if last_text == current_text or (changed_at is not None and changed_at <= at):
        return FileSnapshot(current_text)
    return FileSnapshot("" if last_text is None else last_text, is_certain=False)


def _steps(edits: Sequence[UndoableEdit]) -> Iterator[_Step]:
    """Yield (time, order, text before, text after) of edits and undos."""
    for edit in edits:
        yield edit.at, 2 * (edit.id or 0), edit.before, edit.after
        if edit.undone_at is not None:
            yield edit.undone_at, 2 * (edit.id or 0) + 1, edit.after, edit.before
