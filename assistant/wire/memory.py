"""Semantic memory, put together: part of the composition root (`assistant.wire.house`). Mem0 itself is in the child."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from assistant.recall.embedder import EmbedderSettings
from assistant.recall.local_memories import LocalMemories
from assistant.recall.worker import Mem0Memories, MemoryStoreSettings
from assistant.settings import Settings
from assistant.store.database import Database
from assistant.store.memory_batch import MemoryBatch
from assistant.store.memory_history import MemoryHistory
from assistant.store.memory_schema import memory
from assistant.store.memory_vectors import MemoryVectors

# -P: what lies in the directory the daemon was started in is not imported; -B: nothing is written beside the code.
CHILD = (sys.executable, "-P", "-B", "-m", "assistant.wire.mem0")


def store_settings(settings: Settings) -> MemoryStoreSettings:
    """What `[memory]` says. An OpenAI-compatible embedder without a key of its own takes the one of the model."""
    chosen = settings.values.memory
    own = chosen.embedder_key.get_secret_value()
    key = own or (settings.openai_key.get_secret_value() if chosen.embedder == "openai" else "")
    return MemoryStoreSettings(
        settings.home.path,
        chosen.store,
        chosen.store_url,
        EmbedderSettings(chosen.embedder, chosen.embedder_model, chosen.embedder_url, key),
        chosen.timeout_seconds,
    )


def open_memory_db(settings: MemoryStoreSettings, now: datetime, *, reading: bool = False) -> Database:
    """memory.db of the home, made and migrated as needed; `reading` opens one that is there. Raises `HomeError`,
    `NewerSchema`, `StoreError`."""
    path = settings.home / "memory.db"
    return Database.reader(path) if reading else Database.open(path, memory, now)


def memories(
    settings: MemoryStoreSettings, db: Database | None, command: Sequence[str] = CHILD, fault: str = ""
) -> Mem0Memories:
    """The port `Memories`; reads come from `db` where the store is "local", and `fault` says why it is None."""
    if db is None or settings.store != "local":
        return Mem0Memories(settings, command, None, fault if settings.store == "local" else "")
    batch = MemoryBatch(db)
    return Mem0Memories(settings, command, LocalMemories(MemoryVectors(batch), MemoryHistory(batch)))
