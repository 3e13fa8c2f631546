"""Homes that sleep, over real stores and a scripted model.

`JournalHome` has character.db beside the stores and reads conversations into the journal. `SleepHome` runs whole sleep
cycles and takes them back, over memories kept in a dictionary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import MemoryUnavailable, ModelError
from assistant.core.memories import JournalEntry, Memory, MemoryChange, MemoryVersion, SleepReport
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.script.index import UnreadMessages
from assistant.store.script.usage import CircuitBreakers
from sleep.compaction.budget import BudgetedModel, SleepBudget
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.curate import CurationPhase
from sleep.cycle.cycle import CompactedSession, SleepCycle, sync_journal
from sleep.cycle.extract import Extractor
from sleep.cycle.judge import EntryJudge, ScoringPhase
from sleep.cycle.notes import DayNotes
from sleep.cycle.phase import JsonLinesModel
from sleep.cycle.undo import SleepUndo
from tests.support.compactions import plan_compaction, summary_message
from tests.support.consolidation_home import zero_cost
from tests.support.imports import import_messages
from tests.support.scripted import ScriptedModel
from tests.support.store_home import NOW, StoreHome

MAX_FAILURES = 3
COOL_DOWN = timedelta(minutes=30)
LATER = NOW + timedelta(minutes=1)
FACTS = ("I live in Oslo.", "My cat is called Mio.", "I never eat meat.", "We moved in 2018.")
LEARNED_TEXTS = [f"Told: {fact}" for fact in FACTS]
NETWORK_ERROR = ModelError("no route to host", kind="network")
_TOLD = re.compile(r"^#(\d+) \S+ \S+ user: (.+)$", re.MULTILINE)


def memories_answer(*entries: tuple[str, int] | dict[str, Any]) -> str:
    """A model's answer: what it learned, from which message."""
    rows = [one if isinstance(one, dict) else {"content": one[0], "sources": [one[1]]} for one in entries]
    return "\n".join(["<memories>", *(json.dumps(row) for row in rows), "</memories>"])


def learn_every_line(request: ModelRequest) -> str:
    """A model that takes every line of the user for a fact."""
    return memories_answer(
        *((f"Told: {text}", int(number)) for number, text in _TOLD.findall(request.messages[0].content))
    )


async def no_compaction_due(session: str, trigger: str) -> CompactedSession | None:
    return None


@dataclass
class JournalHome(StoreHome):
    """`model` reads for the journal; `batch_tokens` is about what it reads at once."""

    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(learn_every_line))
    batch_tokens: int = 8_000

    def open(self) -> JournalHome:
        super().open()
        self.character_db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.journal = StoredJournal(self.character_db)
        self.breakers = CircuitBreakers(self.db)
        return self

    def close(self) -> None:
        self.character_db.close()
        super().close()

    def restart(self) -> JournalHome:
        self.close()
        return self.open()

    def cycle(
        self,
        *,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = no_compaction_due,
        conversation: Any = None,
        journal: Any = None,
        clock: Callable[[], datetime] = lambda: NOW,
    ) -> SleepCycle:
        """`conversation` and `journal` may stand before the home's own, to fail where a test wants it."""
        return SleepCycle(
            conversation or self.conversation,
            UnreadMessages(self.db, self.log),
            journal or self.journal,
            self.breakers,
            Extractor(lambda: self.model, "Write down what to keep.", batch_tokens=self.batch_tokens),
            compact,
            failures=MAX_FAILURES,
            cool_down=COOL_DOWN,
            clock=clock,
        )

    async def sleep(self, now: datetime = NOW, **options: Any) -> SleepReport:
        return await self.cycle(**options).run(now)

    # ------------------------------------------------------------------------------------------------------ looking

    def entries(self, scope: str = "owner") -> list[JournalEntry]:
        """Oldest first."""
        return sorted(self.journal.entries(scope, limit=10_000), key=lambda entry: entry.id or 0)

    def entry_texts(self, scope: str = "owner") -> list[str]:
        return [entry.content for entry in self.entries(scope)]

    def unread_count(self, session: str = "main") -> int:
        """Messages out of view that still wait to be read."""
        return next(info.unextracted for info in self.conversation.list_sessions() if info.key == session)


def say_facts(home: JournalHome, *facts: str, session: str = "main") -> None:
    """Whole turns of the owner's; other people's sessions are their own scopes."""
    for fact in facts or FACTS:
        if session == "main":
            home.say(fact, "Noted.")
        else:
            import_messages(
                home.conversation, session, session, [Message("user", fact), Message("assistant", "Noted.")], NOW
            )


class AllNearMemories:
    """`sleep_ports.Memories` in this process: every memory of a scope is near. `down`, when set, is all it says."""

    def __init__(self) -> None:
        self.by_id: dict[str, Memory] = {}
        self.unavailable = ""

    def _answers(self) -> None:
        if self.unavailable:
            raise MemoryUnavailable(self.unavailable)

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        self._answers()
        for change in changes:
            if change.action == "delete":
                self.by_id.pop(change.memory.id, None)
            elif change.action == "update" or change.memory.id not in self.by_id:
                self.by_id[change.memory.id] = change.memory

    async def get(self, memory_id: str) -> Memory | None:
        self._answers()
        return self.by_id.get(memory_id)

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        self._answers()
        return {memory_id: self.by_id[memory_id] for memory_id in memory_ids if memory_id in self.by_id}

    async def all(self, scope: str | None = None) -> list[Memory]:
        self._answers()
        found = [one for one in self.by_id.values() if scope in (None, one.scope)]
        return sorted(found, key=lambda one: (one.said_at, one.id))

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        near = [(one, 0.5) for one in await self.all(scope)]
        return [near[:limit] for _ in texts]

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        return []

    async def erase(self, memory_ids: Sequence[str]) -> None:
        for one in memory_ids:
            self.by_id.pop(one, None)

    async def reembed(self, limit: int = 500) -> int:
        self._answers()
        return 0

    async def aclose(self) -> None:
        return None


@dataclass
class SleepHome(JournalHome):
    """`memories` outlive a restart, as a server's would."""

    memories: AllNearMemories = field(default_factory=AllNearMemories)

    def open(self) -> SleepHome:
        super().open()
        self.consolidations = StoredConsolidations(self.character_db)
        self.profiles = StoredProfiles(self.character_db)
        self.files = StoredMemoryFiles(self.path, self.character_db, count_tokens=len, max_tokens=10_000)
        self.notes = DayNotes(self.journal, self.files, UTC)
        return self

    def restart(self) -> SleepHome:
        self.close()
        return self.open()

    async def run_sleep(
        self,
        day: int = 0,
        *,
        trigger: str = "sleep",
        phase: str = "",
        budget: SleepBudget | None = None,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = no_compaction_due,
    ) -> SleepReport:
        """A sleep so many days later."""
        cycle = self.full_cycle(budget=budget, compact=compact)
        return await cycle.run(NOW + timedelta(days=day), trigger=trigger, phase=phase)

    def full_cycle(
        self,
        *,
        budget: SleepBudget | None = None,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = no_compaction_due,
        clock: Callable[[], datetime] = lambda: NOW,
    ) -> SleepCycle:
        def writer() -> Any:
            return self.model if budget is None else BudgetedModel(self.model, budget)

        def asker(tag: str) -> JsonLinesModel:
            return JsonLinesModel(writer, f"Answer in <{tag}>.", tag, "scoring", zero_cost)

        between = (
            ("score", ScoringPhase(self.journal, self.consolidations, asker("scores")).run),
            ("consolidate", ConsolidationPhase(self.consolidations, self.memories, EntryJudge(asker("decisions"))).run),
            ("curate", CurationPhase(self.journal, self.profiles, self.files, UTC, len, 10_000).run),
        )
        return SleepCycle(
            self.conversation,
            UnreadMessages(self.db, self.log),
            self.journal,
            self.breakers,
            Extractor(writer, "Write down what to keep.", batch_tokens=self.batch_tokens),
            compact,
            failures=MAX_FAILURES,
            cool_down=COOL_DOWN,
            clock=clock,
            extra_phases=between,
            write_notes=self.notes.run,
            sleep_budget=budget,
        )

    def undo_service(self, **replacements: Any) -> SleepUndo:
        """Stores may have something standing before them."""

        async def undo(session: str, checkpoint_id: int) -> None:
            self.conversation.undo_compaction(self.conversation.plan_uncompact(session, checkpoint_id), session, NOW)

        parts: dict[str, Any] = {
            "journal": self.journal,
            "consolidations": self.consolidations,
            "memories": self.memories,
            "files": self.files,
            "conversation": self.conversation,
            "undo_compaction": undo,
        } | replacements
        return SleepUndo(**parts)

    async def compact_session(self, session: str, trigger: str) -> CompactedSession | None:
        """All but the last two messages leave the view."""
        made = self.compact_view(session)
        sync_journal(self.conversation, self.journal, NOW)
        return CompactedSession(made.messages_compressed, 100, 10, 0.0, "full", (made.id,))

    def compact_view(self, session: str = "main") -> Checkpoint:
        last = len([m for m in self.conversation.load_view(session).messages if m.id is not None]) - 3
        return self.conversation.commit_compaction(plan_compaction(self, 0, last, summary_message()), NOW)

    # ------------------------------------------------------------------------------------------------------ looking

    def snapshot(self) -> dict[str, Any]:
        """What a sleep changes and an undo brings back."""
        days = {path.name: path.read_text() for path in sorted((self.path / "memory").glob("**/*.md"))}
        return {
            "memories": sorted((one.text, one.until) for one in self.memories.by_id.values()),
            "entries": self.entry_texts(),
            "curated": self.files.read_memory_file(),
            "days": days,
            "profiles": [(one.name, one.attributes) for one in self.profiles.list_profiles("owner")],
            "view": self.view_contents(),
        }
