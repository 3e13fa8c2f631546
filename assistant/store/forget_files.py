"""Words taken out of the files of a home that are no database: MEMORY.md and the files of the days, what was typed in
the terminal, archives, torn ends of logs, backups.

What always holds: a file is replaced in one step or stays as it was, so that a crash in between leaves one or the
other, and doing it again changes nothing. Only files of the scope are touched (I10); what people keep in the workspace
and in their own files is theirs.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.cells import columns_of
from assistant.store.character_words import character_changes, forget_in_character
from assistant.store.database import Database
from assistant.store.files import sync_directory, sync_file
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LOG_NAME, session_folder_name
from assistant.store.log.redact import build_blank_line, is_blank_line, read_plain_or_gzip, rewrite_plain_or_gzip
from assistant.store.marked import Marked
from assistant.store.memory_files import CURATED, DAYS
from assistant.store.memory_words import forget_in_memory_copy, memories_with
from assistant.store.script.view import CountedMessage
from assistant.store.script_words import forget_in_script, script_changes

TYPED = "chat_history"
_ENTRY = re.compile(rb"(?m)^\n?# [^\n]*\n(?:\+[^\n]*\n?)*")


@dataclass(frozen=True, slots=True)
class WordFile:
    """A file that may have the words; `change` makes what it is to hold of what it holds."""

    place: str
    path: Path
    change: Callable[[bytes], bytes]

    def has_words(self) -> bool:
        """Raises `StoreError` where it cannot be read."""
        stood = read_plain_or_gzip(self.path)
        return self.change(stood) != stood

    def forget(self) -> None:
        """Raises `StoreError`; then the file is as it was."""
        rewrite_plain_or_gzip(self.path, self.change)


def word_files(
    home: Path, sessions: Sequence[str], marked: Marked, known: Collection[str] = frozenset()
) -> list[WordFile]:
    """The scope's own files, and those of its sessions; but for archives that the index knows (`known`, relative to the
    home), which are rewritten as such."""
    own = marked.scope == OWNER_SCOPE
    days = home / DAYS if own else home / DAYS / session_folder_name(marked.scope)
    texts = [*([home / CURATED] if own else []), *sorted(days.glob("*.md"))]
    found = [WordFile("memory files", path, partial(_without, marked)) for path in texts]
    if own:
        found.append(WordFile("typed lines", home / TYPED, partial(_typed_without, marked)))
    for session in sessions:
        folder = session_folder_name(session)
        torn = sorted((home / "log" / folder).glob(f"{LOG_NAME}.torn-*"))
        found += [WordFile("torn ends of logs", path, marked.wording.blanked) for path in torn]
        stray = [
            path
            for path in sorted((home / "archive" / folder).glob("*.jsonl*"))
            if path.relative_to(home).as_posix() not in known
        ]
        found += [WordFile("archives", path, partial(archived_without, marked)) for path in stray]
    return found


def _without(marked: Marked, data: bytes) -> bytes:
    try:
        return marked.wording.without(data.decode()).encode() if marked.wording.found(data.decode()) else data
    except UnicodeDecodeError:
        return data


def _typed_without(marked: Marked, data: bytes) -> bytes:
    """Whole entries go: a time, then the lines that were typed, each after a plus."""

    def left(entry: re.Match[bytes]) -> bytes:
        typed = b"\n".join(line[1:] for line in entry[0].splitlines() if line.startswith(b"+"))
        return b"" if marked.wording.ends_in(typed) else entry[0]

    return _ENTRY.sub(left, data)


def archived_without(marked: Marked, data: bytes) -> bytes:
    """The records of an archived log, the forgotten ones blank as in the log itself."""
    return b"".join(archived_line(line, marked) for line in data.splitlines(keepends=True))


def archived_line(line: bytes, marked: Marked) -> bytes:
    """A line of an archived log; what is no record has its words blanked where they stand."""
    at = line.find(SALT_KEY)
    if at < 0 or not line.endswith(b"\n"):
        return marked.wording.blanked(line)
    try:
        named = json.loads(line[:at] + b"}")["id"] in marked.ids
    except (ValueError, KeyError, TypeError):
        return marked.wording.blanked(line)
    words = marked.everywhere and marked.wording.ends_in(line[at:])
    return build_blank_line(line[:at], len(line)) if (named or words) and not is_blank_line(line) else line


# ------------------------------------------------------------------------------------------------------------ backups


def backups(home: Path) -> list[Path]:
    return sorted(path for path in (home / "backups").glob("*.db") if not path.is_symlink())


def in_backup(path: Path, marked: Marked, counted: Callable[[Message], CountedMessage]) -> bool:
    """Whether a backup has what is to be forgotten. Raises `StoreError` where it cannot be read."""
    db = Database.as_it_is(path)
    try:
        return _touched(db, marked, counted)
    finally:
        db.close()


def forget_in_backup(path: Path, marked: Marked, counted: Callable[[Message], CountedMessage]) -> None:
    """Rewrite a backup through a copy beside it. Raises `StoreError`; then the backup is as it was."""
    copy = path.with_name(f".{path.name}.forgetting")
    try:
        remove_copies(path)
        shutil.copyfile(path, copy)
        copy.chmod(0o600)
        _rewritten(copy, marked, counted)
        sync_file(copy)
        copy.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path} was not rewritten: {error.strerror}. It is as it was.") from error
    finally:
        remove_copies(path)


def remove_copies(path: Path) -> None:
    """What an attempt that was cut off left beside a backup."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f".{path.name}.forgetting{suffix}").unlink(missing_ok=True)


def _touched(db: Database, marked: Marked, counted: Callable[[Message], CountedMessage]) -> bool:
    if columns_of(db, "conversation_history"):
        return any(True for _ in script_changes(db, marked, counted)) or _has_full_text(db, marked)
    if columns_of(db, "memories"):
        return bool(memories_with(db, marked))
    return any(True for _ in character_changes(db, marked))


def _has_full_text(db: Database, marked: Marked) -> bool:
    """Whether the copy's full text knows the words of records that are forgotten."""
    known = columns_of(db, "messages_fts_docsize")
    return bool(known) and any(
        db.row("SELECT 1 FROM messages_fts_docsize WHERE id = ?", (message_id,)) for message_id in marked.ids
    )


def _rewritten(path: Path, marked: Marked, counted: Callable[[Message], CountedMessage]) -> None:
    db = Database.as_it_is(path)
    try:
        db.keep_nothing_deleted()
        if columns_of(db, "memories"):
            forget_in_memory_copy(db, [memory_id for memory_id, _ in memories_with(db, marked)])
        else:
            with db.write():
                _forget_in(db, marked, counted)
        db.rewrite()
    finally:
        db.close()


def _forget_in(db: Database, marked: Marked, counted: Callable[[Message], CountedMessage]) -> None:
    if not columns_of(db, "conversation_history"):
        forget_in_character(db, marked)
        return
    forget_in_script(db, marked, counted)
    if columns_of(db, "messages_fts"):
        # An older version's full text; what was said is found through search.db now.
        db.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
