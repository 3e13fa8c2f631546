"""A home that sleeps with all its phases: real stores, cycle and undoing over memories kept in a dictionary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import Memory, MemoryChange, MemoryVersion, SleepReport
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.script.unread import UnreadMessages
from sleep.compaction.budget import BudgetedModel, SleepBudget
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.curate import CurationPhase
from sleep.cycle.cycle import CompactedSession, SleepCycle
from sleep.cycle.extract import Extractor
from sleep.cycle.journal_sync import sync_journal
from sleep.cycle.judge import EntryJudge
from sleep.cycle.llm_json import JsonLinesModel
from sleep.cycle.score import ScoringPhase
from sleep.cycle.undo import SleepUndo
from tests.compacting import plan, summary
from tests.consolidating import free
from tests.journal_home import COOL_DOWN, FAILURES, JournalHome, nothing_due
from tests.store_home import NOW


class KeptMemories:
    """`sleep_ports.Memories` in this process: every memory of a scope is near. `down`, when set, is all it says."""

    def __init__(self) -> None:
        self.held: dict[str, Memory] = {}
        self.down = ""

    def _answers(self) -> None:
        if self.down:
            raise MemoryUnavailable(self.down)

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        self._answers()
        for change in changes:
            if change.action == "delete":
                self.held.pop(change.memory.id, None)
            elif change.action == "update" or change.memory.id not in self.held:
                self.held[change.memory.id] = change.memory

    async def get(self, memory_id: str) -> Memory | None:
        self._answers()
        return self.held.get(memory_id)

    async def all(self, scope: str | None = None) -> list[Memory]:
        self._answers()
        found = [one for one in self.held.values() if scope in (None, one.scope)]
        return sorted(found, key=lambda one: (one.said_at, one.id))

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        near = [(one, 0.5) for one in await self.all(scope)]
        return [near[:limit] for _ in texts]

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        return []

    async def erase(self, memory_ids: Sequence[str]) -> None:
        for one in memory_ids:
            self.held.pop(one, None)

    async def reembed(self, limit: int = 500) -> int:
        self._answers()
        return 0

    async def aclose(self) -> None:
        return None


@dataclass
class NightsHome(JournalHome):
    """`memories` outlive a restart, as a server's would."""

    memories: KeptMemories = field(default_factory=KeptMemories)

    def open(self) -> NightsHome:
        super().open()
        self.consolidations = StoredConsolidations(self.people)
        self.profiles = StoredProfiles(self.people)
        self.files = StoredMemoryFiles(self.path, self.people, count=len, most=10_000)
        return self

    def restart(self) -> NightsHome:
        self.close()
        return self.open()

    async def night(
        self,
        day: int = 0,
        *,
        trigger: str = "sleep",
        phase: str = "",
        purse: SleepBudget | None = None,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = nothing_due,
    ) -> SleepReport:
        """A sleep so many days later."""
        cycle = self.whole_cycle(purse=purse, compact=compact)
        return await cycle.run_sleep_tick(NOW + timedelta(days=day), trigger=trigger, phase=phase)

    def whole_cycle(
        self,
        *,
        purse: SleepBudget | None = None,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = nothing_due,
        clock: Callable[[], datetime] = lambda: NOW,
    ) -> SleepCycle:
        def writer() -> Any:
            return self.model if purse is None else BudgetedModel(self.model, purse)

        def asker(tag: str) -> JsonLinesModel:
            return JsonLinesModel(writer, f"Answer in <{tag}>.", tag, "scoring", free)

        between = (
            ("score", ScoringPhase(self.journal, self.consolidations, asker("scores")).run),
            ("consolidate", ConsolidationPhase(self.consolidations, self.memories, EntryJudge(asker("decisions"))).run),
            ("curate", CurationPhase(self.journal, self.profiles, self.files, UTC, len, 10_000).run),
        )
        return SleepCycle(
            self.conversation, UnreadMessages(self.db, self.log), self.journal, self.breakers,
            Extractor(writer, "Write down what to keep.", batch_tokens=self.batch_tokens), compact,
            failures=FAILURES, cool_down=COOL_DOWN, clock=clock, between=between, purse=purse,
        )  # fmt: skip

    def undoing(self, **instead: Any) -> SleepUndo:
        """Stores may have something standing before them."""

        async def undo(session: str, checkpoint_id: int) -> None:
            self.conversation.uncompact(self.conversation.restorable(session, checkpoint_id), session, NOW)

        parts: dict[str, Any] = {
            "journal": self.journal, "consolidations": self.consolidations, "memories": self.memories,
            "files": self.files, "conversation": self.conversation, "undo_compaction": undo,
        } | instead  # fmt: skip
        return SleepUndo(**parts)

    async def compacted(self, session: str, trigger: str) -> CompactedSession | None:
        """All but the last two messages leave the view."""
        made = self.compact_now(session)
        sync_journal(self.conversation, self.journal, NOW)
        return CompactedSession(made.messages_compressed, 100, 10, 0.0, "full", (made.id,))

    def compact_now(self, session: str = "main") -> Checkpoint:
        last = len([m for m in self.conversation.view(session).messages if m.id is not None]) - 3
        return self.conversation.compact(plan(self, 0, last, summary()), NOW)

    # ------------------------------------------------------------------------------------------------------ looking

    def picture(self) -> dict[str, Any]:
        """What a sleep changes and an undo brings back."""
        days = {path.name: path.read_text() for path in sorted((self.path / "memory").glob("**/*.md"))}
        return {
            "memories": sorted((one.text, one.until) for one in self.memories.held.values()),
            "entries": self.remembered(),
            "curated": self.files.curated(),
            "days": days,
            "profiles": [(one.name, one.attributes) for one in self.profiles.all("owner")],
            "view": self.shown(),
        }
