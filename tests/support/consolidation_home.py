"""A home whose journal becomes semantic memory: character.db, memory.db with Mem0 in its child process over it, and
nights of consolidation with a scripted model or none."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assistant.core.memories import JournalEntry, Memory
from assistant.core.messages import Usage
from assistant.mem0.client import MemoryStoreSettings
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.wire.memories import MEMORY_WORKER_COMMAND, open_mem0_client, open_memory_db
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.judge import EntryJudge, ScoringPhase
from sleep.cycle.phase import JsonLinesModel, PhaseResult
from sleep.rules.classifier import score_importance
from tests.support.scripted import ScriptedModel
from tests.support.warm_memory_child import warm_child_command

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
JANUARY, MARCH, JUNE = (datetime(2026, month, 10, tzinfo=UTC) for month in (1, 3, 6))


def zero_cost(provider: str, model: str, usage: Usage) -> float | None:
    return 0.0


def decisions_answer(*rows: tuple[str, str, list[str]] | dict[str, Any]) -> str:
    """A model's answer."""
    items = [one if isinstance(one, dict) else dict(zip(("entry", "decision", "of"), one, strict=True)) for one in rows]
    return "\n".join(["<decisions>", *map(json.dumps, items), "</decisions>"])


def scores_answer(*rows: tuple[str, Any]) -> str:
    lines = [json.dumps({"entry": label, "importance": weight}) for label, weight in rows]
    return "\n".join(["<scores>", *lines, "</scores>"])


@dataclass
class ConsolidationHome:
    """One home. `model` judges and weighs; it is the built-in one unless a test says otherwise. With `cold`, memory's
    process is the one that is started, and none is while the store is `down`."""

    path: Path
    real_child: bool = False
    model: ScriptedModel = field(default_factory=ScriptedModel)
    entries_per_call: int = 20

    def __post_init__(self) -> None:
        self.model.provider = "offline"
        self.cycle = 0

    def open(self) -> ConsolidationHome:
        self.db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.journal = StoredJournal(self.db)
        self.consolidations = StoredConsolidations(self.db)
        settings = MemoryStoreSettings(self.path)
        self.memory_db = open_memory_db(settings, NOW)
        # A killed process is noticed when asked or before, and started again where it was before: only one that can't
        # start is down for sure.
        falls = ("sh", "-c", 'test ! -e "$0" && exec "$@"', str(self._down), *MEMORY_WORKER_COMMAND)
        self.memories = open_mem0_client(settings, self.memory_db, falls if self.real_child else warm_child_command())
        return self

    @property
    def _down(self) -> Path:
        return self.path / "store.down"

    async def stop_memory(self) -> None:
        """Semantic memory's process, which has answered, is killed, and no other one starts until it is `up`."""
        await self.memories.nearest(["warm"], "owner")
        self._down.touch()
        os.kill(self.memories.child.pid or 0, signal.SIGKILL)

    def allow_memory(self) -> None:
        self._down.unlink()

    async def close(self) -> None:
        await self.memories.aclose()
        self.memory_db.close()
        self.db.close()

    async def restart(self) -> ConsolidationHome:
        await self.close()
        return self.open()

    # ------------------------------------------------------------------------------------------------------ acting

    def add_entries(self, *said: str | tuple[str, datetime], scope: str = "owner", **more: Any) -> list[JournalEntry]:
        """Journal entries, said in January unless a date stands beside them."""
        known = len(self.journal.entries(scope, limit=100_000))
        entries = []
        for number, one in enumerate(said, known + 1):
            text, at = one if isinstance(one, tuple) else (one, JANUARY)
            fields: dict[str, Any] = {
                "source_type": "extraction",
                "importance": score_importance("fact", text),
                "tags": ("fact",),
                "sources": (1,),
            } | more
            entries.append(JournalEntry(f"{scope}:{number}", scope, "main", 1, text, at, **fields))
        return self.journal.add(entries, NOW)

    async def consolidate(self, *, consolidations: Any = None, memories: Any = None) -> PhaseResult:
        """One consolidation; the stores may have something standing before them."""
        self.cycle += 1
        outcome = PhaseResult()
        await self.consolidation(consolidations, memories).run(self.cycle, outcome, NOW)
        return outcome

    def consolidation(self, consolidations: Any = None, memories: Any = None) -> ConsolidationPhase:
        asker = JsonLinesModel(lambda: self.model, "Decide. <decisions>", "decisions", "scoring", zero_cost)
        judge = EntryJudge(asker, entries_per_call=self.entries_per_call)
        return ConsolidationPhase(consolidations or self.consolidations, memories or self.memories, judge)

    async def score(self) -> PhaseResult:
        outcome = PhaseResult()
        asker = JsonLinesModel(lambda: self.model, "Weigh. <scores>", "scores", "scoring", zero_cost)
        await ScoringPhase(self.journal, self.consolidations, asker).run(1, outcome, NOW)
        return outcome

    # ----------------------------------------------------------------------------------------------------- looking

    async def memory_texts(self, scope: str | None = "owner") -> dict[str, Memory]:
        """Memories by their texts."""
        return {memory.text: memory for memory in await self.memories.all(scope)}

    async def current_texts(self, scope: str | None = "owner") -> set[str]:
        return {memory.text for memory in await self.memories.all(scope) if memory.is_current}


@asynccontextmanager
async def open_consolidation_home(path: Path, *script: Any, cold: bool = False) -> AsyncIterator[ConsolidationHome]:
    home = ConsolidationHome(path, cold).open()
    if script:
        home.model.provider = "scripted"
        home.model.script = list(script)
    try:
        yield home
    finally:
        await home.close()


def texts_current_at(month: datetime, held: Sequence[Memory]) -> list[str]:
    """What held at a time, by the dates alone."""
    return [one.text for one in held if one.said_at <= month and (one.until is None or month < one.until)]
