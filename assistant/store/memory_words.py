"""Words in memory.db: which memories have them, and how a copy of memory.db (a backup) loses them.

The live memory.db belongs to the memory layer, which erases memories by its own port.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.store.cells import columns_of
from assistant.store.database import Database
from assistant.store.marked import Marked
from assistant.store.memory_batch import MemoryBatch
from assistant.store.memory_vectors import MemoryVectors


def memories_with(db: Database, marked: Marked) -> list[tuple[str, str]]:
    """Ids and words of memories of the scope that have the words now, or had them before, or are named."""
    if not columns_of(db, "memories"):
        return []
    found: dict[str, str] = {}
    for row in db.each("SELECT id, text, payload FROM memories WHERE scope = ?", (marked.scope,)):
        if row["id"] in marked.memories or marked.wording.found(row["text"]) or marked.wording.found(row["payload"]):
            found[row["id"]] = row["text"]
    # Of a memory that is gone, nobody knows whose it was: it goes with whoever names it.
    rows = db.each(
        "SELECT h.memory_id, h.old_memory, h.new_memory, m.scope FROM history h"
        " LEFT JOIN memories m ON m.id = h.memory_id WHERE m.scope = ? OR m.scope IS NULL",
        (marked.scope,),
    )
    for row in rows:
        said = [text for text in (row["old_memory"], row["new_memory"]) if text]
        owned = row["scope"] is not None or marked.scope == "owner"
        if row["memory_id"] in marked.memories or (owned and any(map(marked.wording.found, said))):
            found.setdefault(row["memory_id"], said[0] if said else "")
    return list(found.items())


def forget_in_memory_copy(db: Database, memory_ids: Sequence[str]) -> None:
    """In a copy of memory.db that nobody else has open."""
    MemoryVectors(MemoryBatch(db)).erase(memory_ids)
