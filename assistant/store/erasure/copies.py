"""Finds database copies, and memories of memory.db, that have text to erase. Changes nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from sqlite3 import Row

from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.erasure.character_rows import find_character_changes
from assistant.store.erasure.own_words import is_said_in_json
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.script_rows import find_script_changes
from assistant.store.files import find_files


def find_memories(db: Database, plan: ErasurePlan) -> dict[str, str]:
    """Return the texts, by id, of the scope's memories that have the text now or had it in an earlier version, or that
    are named."""
    if not db.column_names("memories"):
        return {}
    texts: dict[str, str] = {}
    for row in db.iterate("SELECT id, text, payload FROM memories WHERE scope = ?", (plan.scope,)):
        if row["id"] in plan.memories or _has_words(row, plan):
            texts[row["id"]] = row["text"]
    # The scope of a deleted memory is unknown: it is erased if it is named.
    rows = db.iterate(
        "SELECT h.memory_id, h.old_memory, h.new_memory, m.scope FROM history h"
        " LEFT JOIN memories m ON m.id = h.memory_id WHERE m.scope = ? OR m.scope IS NULL",
        (plan.scope,),
    )
    for row in rows:
        versions = [text for text in (row["old_memory"], row["new_memory"]) if text]
        owned = row["scope"] is not None or plan.scope == OWNER_SCOPE
        if row["memory_id"] in plan.memories or (owned and any(map(plan.wording.matches, versions))):
            texts.setdefault(row["memory_id"], versions[0] if versions else "")
    return texts


def _has_words(row: Row, plan: ErasurePlan) -> bool:
    return plan.wording.matches(row["text"]) or is_said_in_json(row["payload"], plan.wording)


def list_database_copies(home: Path) -> list[Path]:
    """Return the copies of databases that were made before a migration."""
    return [path for path in find_files(home / "backups", "*.db") if not path.is_symlink()]


def database_copy_has_words(path: Path, plan: ErasurePlan) -> bool:
    """Return whether a copy has text to erase. Raises `StoreError` if it cannot be read."""
    with closing(Database.open_unmigrated(path)) as db:
        if db.column_names("conversation_history"):
            return any(True for _ in find_script_changes(db, plan)) or _has_full_text(db, plan)
        if db.column_names("memories"):
            return bool(find_memories(db, plan))
        return any(True for _ in find_character_changes(db, plan))


def _has_full_text(db: Database, plan: ErasurePlan) -> bool:
    """Return whether the full-text index of an older version has words of records to erase."""
    return bool(db.column_names("messages_fts_docsize")) and any(
        db.row("SELECT 1 FROM messages_fts_docsize WHERE id = ?", (message_id,)) for message_id in plan.ids
    )
