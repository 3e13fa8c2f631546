"""Words removed from the files of a home: MEMORY.md and the daily notes, what was typed in the terminal, torn ends of
logs, archives that the index does not know, copies of databases in `backups/`.

What always holds: a file is replaced in one step or stays as it was, so a crash in between leaves one or the other, and
doing it again changes nothing. Only files of the scope are touched (I10); what people keep in the workspace and in
their own files is theirs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.character.memory_files import DAILY_NOTES_FOLDER, MEMORY_FILE
from assistant.store.database import Database, column_names
from assistant.store.erasure.archives import redact_archived_log
from assistant.store.erasure.character_db import (
    erase_in_character_db,
    erase_in_memory_db_copy,
    find_character_changes,
    find_memories_with_words,
)
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.script_db import erase_in_script_db, find_script_changes
from assistant.store.files import sync_directory, sync_file
from assistant.store.log.reader import LOG_NAME, session_folder_name
from assistant.store.log.redact import read_plain_or_gzip, rewrite_plain_or_gzip
from assistant.store.script.view import CountedMessage

CHAT_HISTORY_FILE = "chat_history"
_ENTRY = re.compile(rb"(?m)^\n?# [^\n]*\n(?:\+[^\n]*\n?)*")


@dataclass(frozen=True, slots=True)
class ErasableFile:
    """A file that may have the words; `change` makes what it is to hold of what it holds."""

    place: str
    path: Path
    change: Callable[[bytes], bytes]

    def has_words(self) -> bool:
        """Raises `StoreError` where it cannot be read."""
        stood = read_plain_or_gzip(self.path)
        return self.change(stood) != stood

    def erase(self) -> None:
        """Raises `StoreError`; then the file is as it was."""
        rewrite_plain_or_gzip(self.path, self.change)


def list_erasable_files(
    home: Path, sessions: Sequence[str], marked: ErasurePlan, known: Collection[str] = frozenset()
) -> list[ErasableFile]:
    """The scope's own files, and those of its sessions; but for archives that the index knows (`known`, relative to the
    home), which are rewritten as such."""
    own = marked.scope == OWNER_SCOPE
    days = home / DAILY_NOTES_FOLDER if own else home / DAILY_NOTES_FOLDER / session_folder_name(marked.scope)
    texts = [*([home / MEMORY_FILE] if own else []), *sorted(days.glob("*.md"))]
    found = [ErasableFile("memory files", path, partial(_without, marked)) for path in texts]
    if own:
        found.append(ErasableFile("typed lines", home / CHAT_HISTORY_FILE, partial(_typed_without, marked)))
    for session in sessions:
        folder = session_folder_name(session)
        torn = sorted((home / "log" / folder).glob(f"{LOG_NAME}.torn-*"))
        found += [ErasableFile("torn ends of logs", path, marked.wording.blank_bytes) for path in torn]
        stray = [
            path
            for path in sorted((home / "archive" / folder).glob("*.jsonl*"))
            if path.relative_to(home).as_posix() not in known
        ]
        found += [ErasableFile("archives", path, partial(redact_archived_log, marked)) for path in stray]
    return found


def _without(marked: ErasurePlan, data: bytes) -> bytes:
    try:
        return (
            marked.wording.remove_from_text(data.decode()).encode() if marked.wording.matches(data.decode()) else data
        )
    except UnicodeDecodeError:
        return data


def _typed_without(marked: ErasurePlan, data: bytes) -> bytes:
    """Whole entries go: a time, then the lines that were typed, each after a plus."""

    def left(entry: re.Match[bytes]) -> bytes:
        typed = b"\n".join(line[1:] for line in entry[0].splitlines() if line.startswith(b"+"))
        return b"" if marked.wording.match_ends(typed) else entry[0]

    return _ENTRY.sub(left, data)


# ------------------------------------------------------------------------------------------------------------ backups


def list_database_copies(home: Path) -> list[Path]:
    return sorted(path for path in (home / "backups").glob("*.db") if not path.is_symlink())


def database_copy_has_words(path: Path, marked: ErasurePlan, counted: Callable[[Message], CountedMessage]) -> bool:
    """Whether a backup has what is to be forgotten. Raises `StoreError` where it cannot be read."""
    db = Database.open_unmigrated(path)
    try:
        return _touched(db, marked, counted)
    finally:
        db.close()


def erase_in_database_copy(path: Path, marked: ErasurePlan, counted: Callable[[Message], CountedMessage]) -> None:
    """Rewrite a backup through a copy beside it. Raises `StoreError`; then the backup is as it was."""
    copy = path.with_name(f".{path.name}.forgetting")
    try:
        remove_temporary_copies(path)
        shutil.copyfile(path, copy)
        copy.chmod(0o600)
        _rewritten(copy, marked, counted)
        sync_file(copy)
        copy.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path} was not rewritten: {error.strerror}. It is as it was.") from error
    finally:
        remove_temporary_copies(path)


def remove_temporary_copies(path: Path) -> None:
    """What an attempt that was cut off left beside a backup."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f".{path.name}.forgetting{suffix}").unlink(missing_ok=True)


def _touched(db: Database, marked: ErasurePlan, counted: Callable[[Message], CountedMessage]) -> bool:
    if column_names(db, "conversation_history"):
        return any(True for _ in find_script_changes(db, marked, counted)) or _has_full_text(db, marked)
    if column_names(db, "memories"):
        return bool(find_memories_with_words(db, marked))
    return any(True for _ in find_character_changes(db, marked))


def _has_full_text(db: Database, marked: ErasurePlan) -> bool:
    """Whether the copy's full text knows the words of records that are forgotten."""
    known = column_names(db, "messages_fts_docsize")
    return bool(known) and any(
        db.row("SELECT 1 FROM messages_fts_docsize WHERE id = ?", (message_id,)) for message_id in marked.ids
    )


def _rewritten(path: Path, marked: ErasurePlan, counted: Callable[[Message], CountedMessage]) -> None:
    db = Database.open_unmigrated(path)
    try:
        db.overwrite_deleted()
        if column_names(db, "memories"):
            erase_in_memory_db_copy(db, [memory_id for memory_id, _ in find_memories_with_words(db, marked)])
        else:
            with db.write():
                _forget_in(db, marked, counted)
        db.vacuum()
    finally:
        db.close()


def _forget_in(db: Database, marked: ErasurePlan, counted: Callable[[Message], CountedMessage]) -> None:
    if not column_names(db, "conversation_history"):
        erase_in_character_db(db, marked)
        return
    erase_in_script_db(db, marked, counted)
    if column_names(db, "messages_fts"):
        # An older version's full text; what was said is found through search.db now.
        db.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
