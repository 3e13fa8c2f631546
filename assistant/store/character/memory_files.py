"""MEMORY.md and the daily notes. Implements `MemoryFilesPort` over the data folder and character.db.

- People may edit these files at any time and take precedence: a text is replaced only if it is still the one the change
  was based on; notes are appended to whatever is there.
- A change is an `UndoableEdit` in character.db and a pending file: the text is written to the pending file, the edit
  committed, then the file moved into place. After a crash, recovery (also run by the next change of the file) removes a
  pending file without an edit, or completes an edit whose file is pending.
- Idempotency keys are stored with edits, not in files: a note deleted by a person does not reappear, and prompts
  contain nothing but text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from datetime import time as clock
from pathlib import Path

from assistant.core.errors import StaleView, StoreError, UsageError
from assistant.core.memories import EditAuthor, FileSnapshot, UndoableEdit
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import lazy_regex, shorten
from assistant.store.character.edits import FILE_TARGET, PROFILE_TARGET, EditStore, file_text_as_of
from assistant.store.character.profiles import undo_profile
from assistant.store.database import Database
from assistant.store.files import MAX_TEXT_BYTES, TextFile, find_files
from assistant.store.log.reader import session_folder_name
from assistant.store.rows import clean_text

MEMORY_FILE = "MEMORY.md"
DAILY_NOTES_FOLDER = "memory"
MEMORY_FILE_TARGET = f"{FILE_TARGET}{MEMORY_FILE}"
_LONGEST_LINE = 2000
# Each edit stores the full text before and after.
_MAX_NOTE_BYTES = 64 * 1024
_TRIES = 5
_UNDOING = "-undo"
_MARK = lazy_regex(rf"(\d{{1,18}})({_UNDOING})?")


class StoredMemoryFiles:
    """Reads and changes memory files. `max_tokens` limits MEMORY.md, by `count_tokens`."""

    def __init__(self, home: Path, db: Database, *, count_tokens: Callable[[str], int], max_tokens: int) -> None:
        self._home = home
        self._db = db
        self._edits = EditStore(db)
        self._count_tokens = count_tokens
        self._max_tokens = max_tokens

    # ---------------------------------------------------------------------------------------------------------- reading

    def read_memory_file(self) -> str:
        """Return MEMORY.md. Raises `StoreError` if it is not a text file."""
        return self._file(MEMORY_FILE_TARGET).read()

    def find_problems(self) -> Iterator[str]:
        """Yield why MEMORY.md cannot be read; nothing if it can."""
        try:
            self.read_memory_file()
        except StoreError as error:
            yield str(error)

    def memory_file_as_of(self, at: datetime) -> FileSnapshot:
        """Return MEMORY.md as of a time, from its edits. Raises `StoreError` if it is not a text file."""
        file = self._file(MEMORY_FILE_TARGET)
        edits = self._edits.list_edits(OWNER_SCOPE, target=MEMORY_FILE_TARGET, limit=-1)
        return file_text_as_of(edits, at, file.read(), file.changed_at())

    def read_daily_note(self, scope: str, day: date) -> str:
        """Return a daily note. Raises `StoreError` if it is not a text file."""
        return self._file(_day_target(scope, day)).read()

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        return self._edits.list_edits(scope, target=target, limit=limit)

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        return self._edits.edits_of_cycle(cycle)

    # --------------------------------------------------------------------------------------------------------- changing

    def replace_memory_file(
        self, text: str, base: str, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> UndoableEdit:
        """Replace the file; see `MemoryFilesPort`. Without a change no edit is stored (no id). A text over the limit
        may still be shortened."""
        self._recover(MEMORY_FILE_TARGET)
        earlier = self._edits.find_by_key(key, OWNER_SCOPE, MEMORY_FILE_TARGET)
        if earlier is not None:
            return earlier
        edit = UndoableEdit(MEMORY_FILE_TARGET, OWNER_SCOPE, by, base, clean_text(text), now, cycle)
        self._check_still(MEMORY_FILE_TARGET, base)
        if edit.after == base:
            return edit
        self._check_size(edit.after, base)
        return self._replace(edit, key)

    def append_daily_note(
        self, scope: str, day: date, time: str, lines: Sequence[str], key: str, *, cycle: int | None = None
    ) -> bool:
        """Append lines, each truncated to 2,000 characters; lines noted that day before are skipped, even if a person
        removed them. The edit is dated by day only. Raises `UsageError` if the file is full, `StaleView` if it is
        edited repeatedly meanwhile."""
        target = _day_target(scope, day)
        self._recover(target)
        if self._edits.find_by_key(key, scope, target) is not None:
            return False
        noted = self._noted_lines(scope, target)
        cleaned = [line for line in map(_line, map(clean_text, lines)) if line.strip("- ") and line not in noted]
        if not cleaned:
            return False
        for _ in range(_TRIES):
            edit = replace(self._note_edit(target, scope, day, clean_text(time), cleaned), cycle=cycle)
            with suppress(StaleView):
                self._replace(edit, key)
                return True
        raise self._stale(target)

    def _noted_lines(self, scope: str, target: str) -> set[str]:
        edits = self._edits.list_edits(scope, target=target, limit=-1)
        return {line for edit in edits if edit.undone_at is None for line in edit.after.splitlines()}

    def _note_edit(self, target: str, scope: str, day: date, time: str, lines: Sequence[str]) -> UndoableEdit:
        current = self._file(target).read()
        text = _with_note(current, day, time, lines)
        if len(text.encode()) > _MAX_NOTE_BYTES:
            raise UsageError(
                f"{target.removeprefix(FILE_TARGET)} is full: {_MAX_NOTE_BYTES // 1024} KB fit. Nothing was written "
                "there; the journal has the entries."
            )
        return UndoableEdit(target, scope, "sleep", current, text, datetime.combine(day, clock.min, UTC))

    def accept_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """Mark an edit as confirmed by a person. Raises `UsageError` if the scope has no such edit or it was undone."""
        edit = self._edits.require_undoable(edit_id, scope)
        with self._db.write():
            self._edits.mark_accepted(edit_id, scope, now)
        return edit

    def undo_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """Undo an edit. A daily note that did not exist before is deleted; MEMORY.md becomes empty."""
        edit = self._edits.require_undoable(edit_id, scope)
        if edit.target.startswith(PROFILE_TARGET):
            return undo_profile(self._db, self._edits, edit, now)
        self._recover(edit.target)
        file = self._file(edit.target)
        try:
            pending = file.pending_file(f"{edit.id}{_UNDOING}")
            pending.write(edit.before)
            with self._db.write():
                undone = self._edits.mark_undone(edit, now)
            self._put_in_place(undone, pending, undoing=True)
        except StaleView:
            raise UsageError(
                f"{file.name} was changed after change {edit_id}. Nothing was changed; take the later change back"
                " first, or edit the file."
            ) from None
        if not edit.before and edit.target != MEMORY_FILE_TARGET:
            self._remove_empty(file)
        return undone

    def _remove_empty(self, file: TextFile) -> None:
        # An empty file is harmless, so failures are ignored.
        with suppress(StoreError):
            if not file.path.is_symlink() and not file.read():
                file.remove()

    # --------------------------------------------------------------------------------------------------------- settling

    def recover_after_crash(self) -> list[str]:
        """At start-up, complete or roll back interrupted changes; returns a line per failure. A MEMORY.md that is not
        text any more is set aside and restored from its last edit."""
        failed = self._put_back_damaged()
        for target in sorted({_target_of(self._home, path) for path in self._pending_files()}):
            try:
                self._recover(target)
            except StoreError as error:
                failed.append(str(error))
        return failed

    def _put_back_damaged(self) -> list[str]:
        file = self._file(MEMORY_FILE_TARGET)
        try:
            file.read()
            return []
        except StoreError as error:
            edits = self._edits.list_edits(OWNER_SCOPE, target=MEMORY_FILE_TARGET, limit=-1)
            last = next((edit for edit in edits if edit.undone_at is None), None)
            if last is None or not file.path.is_file() or file.path.is_symlink():
                return [str(error)]
        aside = TextFile(self._home, f"{MEMORY_FILE}.damaged")
        try:
            file.move_to(aside)
            file.write(last.after)
        except StoreError as error:
            return [str(error)]
        return [
            f"{file.path} was damaged; it is in {aside.path} now, and what was last written there by the assistant is "
            "back. Look whether something of yours is missing, then remove the damaged file."
        ]

    def _pending_files(self) -> Iterator[Path]:
        for place in (f".{MEMORY_FILE}.*", f"{DAILY_NOTES_FOLDER}/.*", f"{DAILY_NOTES_FOLDER}/*/.*"):
            yield from find_files(self._home, f"{place}.partial")

    def _recover(self, target: str) -> None:
        file = self._file(target)
        for mark in list(file.pending_marks()):
            pending = file.pending_file(mark)
            edit, undoing = self._find_edit(mark, target)
            if edit is None:
                pending.remove()
                continue
            before, after = (edit.after, edit.before) if undoing else (edit.before, edit.after)
            if file.read() == before and pending.read() == after:
                pending.move_to(file)
            else:
                self._give_up(edit, pending, undoing=undoing)

    def _find_edit(self, mark: str, target: str) -> tuple[UndoableEdit | None, bool]:
        """Return the committed edit that a pending file belongs to, and whether it is an undo."""
        match = _MARK.fullmatch(mark)
        edit = self._edits.find_by_id(int(match[1])) if match else None
        undoing = bool(match and match[2])
        if edit is None or edit.target != target or (edit.undone_at is None) == undoing:
            return None, undoing
        return edit, undoing

    def _give_up(self, edit: UndoableEdit, pending: TextFile, *, undoing: bool) -> None:
        """Roll back after a concurrent edit by a person; the change may be repeated with the same key."""
        with self._db.write():
            if undoing:
                self._edits.mark_undone(edit, None)
            else:
                self._edits.delete(edit)
        pending.remove()

    # -------------------------------------------------------------------------------------------------------- replacing

    def _replace(self, edit: UndoableEdit, key: str | None) -> UndoableEdit:
        with self._db.write():
            edit = self._edits.add(edit, key)
            pending = self._file(edit.target).pending_file(str(edit.id))
            pending.write(edit.after)
        self._put_in_place(edit, pending, undoing=False)
        return edit

    def _put_in_place(self, edit: UndoableEdit, pending: TextFile, *, undoing: bool) -> None:
        try:
            self._check_still(edit.target, edit.after if undoing else edit.before)
            pending.move_to(self._file(edit.target))
        except (StaleView, StoreError):
            if not pending.path.exists():
                # It is in place, but perhaps not durably; after a power cut, recovery finds it pending.
                return
            self._give_up(edit, pending, undoing=undoing)
            raise

    def _check_still(self, target: str, base: str) -> None:
        if self._file(target).read() != base:
            raise self._stale(target)

    def _stale(self, target: str) -> StaleView:
        name = target.removeprefix(FILE_TARGET)
        return StaleView(f"{name} was edited meanwhile. It stays as it is; read it again, then change it.")

    def _check_size(self, text: str, base: str) -> None:
        too_long = len(text.encode()) > MAX_TEXT_BYTES
        tokens = 0 if too_long else self._count_tokens(text)
        if too_long or (tokens > self._max_tokens and tokens >= self._count_tokens(base)):
            has = f"{len(text.encode()) // 1024} KB" if too_long else f"{tokens:,} tokens"
            raise UsageError(
                f"{MEMORY_FILE} would have {has}; {self._max_tokens:,} tokens fit (`[memory] file_max_tokens`). "
                "Nothing was changed; shorten it or take something out."
            )

    def _file(self, target: str) -> TextFile:
        return TextFile(self._home, target.removeprefix(FILE_TARGET))


def _day_target(scope: str, day: date) -> str:
    folder = DAILY_NOTES_FOLDER if scope == OWNER_SCOPE else f"{DAILY_NOTES_FOLDER}/{session_folder_name(scope)}"
    return f"{FILE_TARGET}{folder}/{day.isoformat()}.md"


def _target_of(home: Path, waiting: Path) -> str:
    """Return the target of a pending file named `.NAME.MARK.partial`."""
    name = waiting.name[1:].rsplit(".", 2)[0]
    return f"{FILE_TARGET}{waiting.with_name(name).relative_to(home).as_posix()}"


def _with_note(current: str, day: date, time: str, lines: Sequence[str]) -> str:
    end = "\r\n" if "\r\n" in current else "\n"
    text = current or f"# {day.isoformat()}{end}"
    text += "" if text.endswith("\n") else end
    note = [f"## {' '.join(time.split())}", "", *lines]
    return text + end + "".join(f"{line}{end}" for line in note)


def _line(line: str) -> str:
    flat = " ".join(line.split())
    listed = flat if flat.startswith("- ") else f"- {flat}"
    return shorten(listed, _LONGEST_LINE)
