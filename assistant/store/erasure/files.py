"""Words removed from the files of a home: MEMORY.md and the daily notes, what was typed in the terminal, torn ends of
logs, archives that the index does not know. Copies of databases in `backups/` that have the words are removed.

What always holds: a file is replaced in one step or stays as it was, so a crash in between leaves one or the other, and
doing it again changes nothing. Only files of the scope are touched (I10); what people keep in the workspace and in
their own files is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.character.memory_files import DAILY_NOTES_FOLDER, MEMORY_FILE
from assistant.store.database import Database, column_names
from assistant.store.erasure.archives import redact_archived_log
from assistant.store.erasure.character_db import find_character_changes, find_memories_with_words
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.script_db import find_script_changes
from assistant.store.files import sync_directory
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
        data = read_plain_or_gzip(self.path)
        return self.change(data) != data

    def erase(self) -> None:
        """Raises `StoreError`; then the file is as it was."""
        rewrite_plain_or_gzip(self.path, self.change)


def list_erasable_files(
    home: Path, sessions: Sequence[str], plan: ErasurePlan, known: Collection[str] = frozenset()
) -> list[ErasableFile]:
    """The scope's own files, and those of its sessions; but for archives that the index knows (`known`, relative to the
    home), which are rewritten as such."""
    own = plan.scope == OWNER_SCOPE
    days = home / DAILY_NOTES_FOLDER if own else home / DAILY_NOTES_FOLDER / session_folder_name(plan.scope)
    texts = [*([home / MEMORY_FILE] if own else []), *sorted(days.glob("*.md"))]
    files = [ErasableFile("memory files", path, partial(_without, plan)) for path in texts]
    if own:
        files.append(ErasableFile("typed lines", home / CHAT_HISTORY_FILE, partial(_typed_without, plan)))
    for session in sessions:
        folder = session_folder_name(session)
        torn = sorted((home / "log" / folder).glob(f"{LOG_NAME}.torn-*"))
        files += [ErasableFile("torn ends of logs", path, plan.wording.blank_bytes) for path in torn]
        stray = [
            path
            for path in sorted((home / "archive" / folder).glob("*.jsonl*"))
            if path.relative_to(home).as_posix() not in known
        ]
        files += [ErasableFile("archives", path, partial(redact_archived_log, plan)) for path in stray]
    return files


def _without(plan: ErasurePlan, data: bytes) -> bytes:
    try:
        return plan.wording.remove_from_text(data.decode()).encode() if plan.wording.matches(data.decode()) else data
    except UnicodeDecodeError:
        return data


def _typed_without(plan: ErasurePlan, data: bytes) -> bytes:
    """Whole entries go: a time, then the lines that were typed, each after a plus."""

    def left(entry: re.Match[bytes]) -> bytes:
        typed = b"\n".join(line[1:] for line in entry[0].splitlines() if line.startswith(b"+"))
        return b"" if plan.wording.match_ends(typed) else entry[0]

    return _ENTRY.sub(left, data)


# ------------------------------------------------------------------------------------------------ copies of databases


def list_database_copies(home: Path) -> list[Path]:
    """The copies of databases that were made before a migration."""
    return sorted(path for path in (home / "backups").glob("*.db") if not path.is_symlink())


def database_copy_has_words(path: Path, plan: ErasurePlan) -> bool:
    """Whether a copy has what is to be erased. Raises `StoreError` where it cannot be read."""
    with closing(Database.open_unmigrated(path)) as db:
        if column_names(db, "conversation_history"):
            return any(True for _ in find_script_changes(db, plan, uncounted_message)) or _has_full_text(db, plan)
        if column_names(db, "memories"):
            return bool(find_memories_with_words(db, plan))
        return any(True for _ in find_character_changes(db, plan))


def remove_database_copy(path: Path) -> None:
    """Raises `StoreError`."""
    try:
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path} was not removed: {error.strerror}.") from error


def uncounted_message(message: Message) -> CountedMessage:
    """For changes that are looked for and never applied."""
    return CountedMessage(message, 0)


def _has_full_text(db: Database, plan: ErasurePlan) -> bool:
    """Whether the full text of an older version knows the words of records that are to be erased."""
    known = column_names(db, "messages_fts_docsize")
    return bool(known) and any(
        db.row("SELECT 1 FROM messages_fts_docsize WHERE id = ?", (message_id,)) for message_id in plan.ids
    )
