"""Memories by the hundred thousand, put into a home through its stores: journal entries, the plans that made memories
of them, and the memories themselves, without vectors (nothing here searches by meaning).
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from assistant.core.memories import ChangePlan, JournalEntry, MemoryChange
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.mem0.codec import memory_metadata
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import character_migrations, memory_migrations
from sleep.cycle.change_plan import memory_from_entry
from tests.bench.homes import START, YEARS
from tests.bench.prose import Prose

_BATCH = 1_000


def add_memories(path: Path, count: int, seed: int = 1) -> None:
    """To a home of `tests.bench.homes` that may be written to."""
    chance, prose = random.Random(seed), Prose(seed)
    now = START + YEARS
    character = Database.open(path / "character.db", character_migrations, now)
    memory_db = Database.open(path / "memory.db", memory_migrations, now)
    try:
        journal, consolidations = StoredJournal(character), StoredConsolidations(character)
        vectors = MemoryVectors(memory_db)
        for first in range(0, count, _BATCH):
            entries = [
                JournalEntry(
                    f"bench:{number}",
                    OWNER_SCOPE,
                    MAIN_SESSION,
                    1,
                    prose.message(chance, prose.topic(chance))[:160],
                    START + number * (YEARS / count),
                    "extraction",
                    tags=("fact",),
                    sources=(number + 1,),
                )
                for number in range(first, min(count, first + _BATCH))
            ]
            noted = journal.add(entries, now)
            memories = [memory_from_entry(entry) for entry in noted]
            changes = tuple(MemoryChange("add", memory) for memory in memories)
            plan = ChangePlan(f"bench:{first}", 1, OWNER_SCOPE, changes, tuple(entry.id or 0 for entry in noted))
            consolidations.save_plan(plan, now + timedelta(seconds=1))
            with vectors.writing():
                for memory in memories:
                    payload = {"user_id": memory.scope, "data": memory.text, **memory_metadata(memory)}
                    vectors.put(memory.id, payload, "", None)
            consolidations.mark_applied(plan.key, now + timedelta(seconds=2))
    finally:
        character.close()
        memory_db.close()
