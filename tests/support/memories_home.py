"""Homes with memories over real stores; semantic memory itself is a dictionary that answers at once and can be down.

`MemoriesHome` adds messages, journal entries and memories one by one. `Timeline` says, notes, corrects, sleeps and
undoes, an hour apart, and tells what was known at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import (
    JournalEntry,
    Memory,
    MemoryChange,
    MemoryHit,
    MemoryList,
    MemoryState,
    MemoryStorageInfo,
    MemoryVersion,
)
from assistant.core.messages import Message
from assistant.memory.service import MemoryDeps, MemoryService
from assistant.search.query import query_words
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.search.history import StoredHistory
from assistant.wire.search import open_history, open_memory_search
from sleep.cycle.change_plan import ChangePlanDraft
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.phase import PhaseResult
from sleep.cycle.rebuild import ReextractionResult
from sleep.rules.classifier import score_importance
from sleep.rules.supersede import EntryDecision
from tests.support.imports import import_messages
from tests.support.sleep_home import SleepHome
from tests.support.store_home import NOW, StoreHome

GUEST = "peer:telegram:7"
LATER = NOW + timedelta(hours=1)


@dataclass
class InMemoryMemories:
    """The port `Memories` over a dictionary. `down`: it does not answer; `only_reads`: it does not take changes."""

    by_id: dict[str, Memory] = field(default_factory=dict)
    versions: dict[str, list[MemoryVersion]] = field(default_factory=dict)
    unavailable: bool = False
    read_only: bool = False
    applied: list[MemoryChange] = field(default_factory=list)

    def _answer(self, *, changes: bool = False) -> None:
        if self.unavailable or (changes and self.read_only):
            raise MemoryUnavailable("The memory store is away. The journal keeps everything.")

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        self._answer(changes=True)
        for one in changes:
            self.applied.append(one)
            before = self.by_id.get(one.memory.id)
            if one.action == "delete":
                self.by_id.pop(one.memory.id, None)
            elif one.action == "update" or before is None:
                self.by_id[one.memory.id] = one.memory
                version = MemoryVersion(NOW, one.action, before.text if before else "", one.memory.text)
                self.versions.setdefault(one.memory.id, []).append(version)

    async def get(self, memory_id: str) -> Memory | None:
        self._answer()
        return self.by_id.get(memory_id)

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        self._answer()
        return {memory_id: self.by_id[memory_id] for memory_id in memory_ids if memory_id in self.by_id}

    async def all(self, scope: str | None = None) -> list[Memory]:
        self._answer()
        found = [one for one in self.by_id.values() if scope in (None, one.scope)]
        return sorted(found, key=lambda one: one.said_at)

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        return [[(one, 0.9) for one in await self.all(scope)][:limit] for _ in texts]

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        self._answer()
        return self.versions.get(memory_id, [])

    async def erase(self, memory_ids: Sequence[str]) -> None:
        for one in memory_ids:
            self.by_id.pop(one, None)

    async def reembed(self, limit: int = 500) -> int:
        self._answer()
        return 0

    async def aclose(self) -> None: ...


@dataclass
class JournalWordSearch:
    """The port `MemorySearch`: what has a word of the question, over the journal."""

    journal: StoredJournal

    def search(self, question: str, scope: str, *, limit: int = 8, **times: Any) -> list[MemoryHit]:
        words = [word.text.rstrip("s") for word in query_words(question)]
        entries = self.journal.entries(scope, limit=1000)
        ranked = sorted(entries, key=lambda entry: -sum(word in entry.content.lower() for word in words))
        hits = [entry for entry in ranked if any(word in entry.content.lower() for word in words)]
        return [MemoryHit(_alone(entry), 1.0, True, entry.sources) for entry in hits[:limit]]

    def search_by_time(self, scope: str, after: datetime, before: datetime, *, limit: int = 8) -> list[MemoryHit]:
        return []


def _alone(entry: JournalEntry) -> Memory:
    return Memory("", entry.scope, entry.content, entry.timestamp, "fact", entry.importance, (entry.id or 0,))


@dataclass
class MemoriesHome(StoreHome):
    """`asleep`: somebody sleeps."""

    memories: InMemoryMemories = field(default_factory=InMemoryMemories)
    sleep_running: bool = False
    numbers: int = 0

    def open(self) -> MemoriesHome:
        super().open()
        self.character_db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.journal, self.consolidations = StoredJournal(self.character_db), StoredConsolidations(self.character_db)
        self.history, self.finder = open_history(self.path, patient=True)
        self.search = JournalWordSearch(self.journal)
        stores = MemoryDeps(self.memories, self.consolidations, self.journal, self.search, self.history)
        self.commands = MemoryService(
            stores,
            lambda: MemoryStorageInfo("local", "letters", 4096),
            is_asleep=lambda: self.sleep_running,
            reextract=self._read_again,
        )
        return self

    def close(self) -> None:
        self.history.close()
        self.character_db.close()
        super().close()

    async def _read_again(self, now: datetime) -> ReextractionResult:
        return ReextractionResult(3, 1, ("room:x: cannot be read",))

    # ------------------------------------------------------------------------------------------------------ acting

    def add_message(self, text: str, scope: str = "owner") -> int:
        """A message; its id."""
        session = "main" if scope == "owner" else scope
        return import_messages(self.conversation, session, scope, [Message("user", text)], NOW)[0].id or 0

    def add_entry(self, text: str, *sources: int, scope: str = "owner", **more: Any) -> JournalEntry:
        """A journal entry that waits."""
        self.numbers += 1
        session = "main" if scope == "owner" else scope
        fields: dict[str, Any] = {
            "source_type": "extraction",
            "tags": ("fact",),
            "importance": score_importance("fact", text),
        } | more
        at = fields.pop("timestamp", NOW - timedelta(days=30) + timedelta(minutes=self.numbers))
        entry = JournalEntry(f"k{self.numbers}", scope, session, 1, text, at, sources=tuple(sources), **fields)
        return self.journal.add([entry], NOW)[0]

    def add_memory(self, text: str, *sources: int, scope: str = "owner", **more: Any) -> Memory:
        """A memory with its journal entry."""
        entry = self.add_entry(text, *sources, scope=scope, **more)
        draft = ChangePlanDraft([])
        made = draft.memory(draft.apply_decision(entry, EntryDecision()))
        plan = draft.build_plan([entry], 1)
        self.consolidations.save_plan(plan, NOW)
        self.consolidations.mark_applied(plan.key, NOW)
        self.memories.by_id[made.id] = made
        return made

    def change_memory_id(self, memory: Memory, memory_id: str) -> Memory:
        """The memory under another id."""
        with self.character_db.write() as db:
            db.execute("UPDATE consolidated_entry_ids SET memory_id = ? WHERE memory_id = ?", (memory_id, memory.id))
        del self.memories.by_id[memory.id]
        self.memories.by_id[memory_id] = replace(memory, id=memory_id)
        return self.memories.by_id[memory_id]

    async def consolidate(self) -> PhaseResult:
        outcome = PhaseResult()
        await ConsolidationPhase(self.consolidations, self.memories).run(1, outcome, NOW)
        return outcome

    def snapshot(self) -> dict[str, Any]:
        """What the stores have, for comparing."""
        tables = ("journal", "consolidated_entry_ids", "change_plans")
        rows = {one: [tuple(row) for row in self.character_db.rows(f"SELECT * FROM {one}")] for one in tables}
        return {**rows, "memories": dict(self.memories.by_id)}


QUESTIONS = ("Where do I live, Oslo, Bergen or Tromsø?", "What does my sister Anna do?", "tea or coffee?")
Snapshot = tuple[list[tuple[object, ...]], list[set[tuple[object, ...]]], str]


@contextmanager
def open_timeline(path: Path) -> Iterator[Timeline]:
    home = SleepHome(path).open()
    home.model.provider = "offline"
    history, _ = open_history(path, patient=True)
    life = Timeline(home, history)
    try:
        yield life
    finally:
        life.search.close()
        history.close()
        home.close()


@dataclass
class Timeline:
    """Each act comes an hour after the one before."""

    home: SleepHome
    history: StoredHistory
    hours: int = 0

    def __post_init__(self) -> None:
        self._open()

    def restart(self) -> None:
        self.search.close()
        self.home.restart()
        self._open()

    def _open(self) -> None:
        self.search, _ = open_memory_search(self.home.path, self._at_hand)
        stores = MemoryDeps(self.home.memories, self.home.consolidations, self.home.journal, self.search, self.history)
        self.memory = MemoryService(stores, lambda: MemoryStorageInfo("local", "letters"))

    def _at_hand(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        return {one: self.home.memories.by_id[one] for one in memory_ids if one in self.home.memories.by_id}

    @property
    def now(self) -> datetime:
        return NOW + timedelta(hours=self.hours)

    # ------------------------------------------------------------------------------------------------------ acting

    def say(self, text: str) -> datetime:
        self.hours += 1
        said = [Message("user", text), Message("assistant", "Noted.")]
        import_messages(self.home.conversation, "main", "owner", said, self.now)
        return self.now

    def note(self, *texts: str, scope: str = "owner") -> datetime:
        """Noted by a tool; each takes the place of the one before."""
        self.hours += 1
        entries = [
            JournalEntry(f"{scope}:{self.hours}:{text}", scope, "main", 1, text, self.now, "tool", tags=("fact",))
            for text in texts
        ]
        # Nothing without words is ever written in the place of something: a correction of that kind is refused.
        replaced = {one.key: by.key for one, by in pairwise(entries) if any(map(str.isalnum, by.content))}
        self.home.journal.add(entries, self.now, replaced=replaced)
        return self.now

    async def sleep(self, *, memory_unavailable: bool = False) -> datetime:
        """`in_vain`: semantic memory does not answer."""
        self.hours += 1
        self.home.memories.unavailable = "no answer" if memory_unavailable else ""
        await self.home.full_cycle().run(self.now, trigger="sleep")
        self.home.memories.unavailable = ""
        return self.now

    async def correct(self, text: str, which: int = 0) -> datetime:
        """One of what holds is put right, where there is any. It is refused where a plan that could not be carried out
        says that another holds."""
        self.hours += 1
        held = [one for one in (await self.memory.list_all("owner")).memories if one.memory.is_current]
        if held:
            with contextlib.suppress(UsageError):
                await self.memory.correct(held[which % len(held)].reference, text, "owner", "main", self.now)
        return self.now

    async def undo(self) -> datetime:
        """The newest sleep is taken back, where that can be."""
        self.hours += 1
        with contextlib.suppress(UsageError):
            await self.home.undo_service().undo_last_sleep(self.now)
        return self.now

    def write_memory_file(self, line: str) -> datetime:
        self.hours += 1
        stands = self.home.files.read_memory_file()
        self.home.files.replace_memory_file(f"{stands}{line}\n", stands, "user", self.now)
        return self.now

    # ----------------------------------------------------------------------------------------------------- looking

    async def current_snapshot(self) -> Snapshot:
        found = [self.search.search(question, "owner", limit=100) for question in QUESTIONS]
        held = await self.memory.list_all("owner")
        assert await self.pages(former=True) == list(held.memories)[::-1]
        assert await self.pages(former=False) == [it for it in held.memories if it.memory.is_current][::-1]
        return _held(held), [{_row(one.memory) for one in some} for some in found], self.home.files.read_memory_file()

    async def pages(self, *, former: bool) -> list[MemoryState]:
        """All that is listed, two at a time."""
        listed: list[MemoryState] = []
        while True:
            before = listed[-1].memory.id or listed[-1].reference if listed else ""
            page = await self.memory.list_page("owner", limit=2, include_former=former, before_reference=before)
            listed += page.memories
            if not page.more:
                return listed

    def texts_at(self, at: datetime, scope: str = "owner") -> list[str]:
        """What held then, oldest first."""
        return [one.memory.text for one in self.memory.list_as_of(scope, at).memories[::-1]]

    def snapshot_at(self, at: datetime) -> Snapshot:
        found = [self.search.search(question, "owner", limit=100, as_of=at) for question in QUESTIONS]
        held = MemoryList(self.memory.list_as_of("owner", at, limit=1000, include_former=True).memories[::-1])
        return (
            _held(held),
            [{_row(one.memory) for one in some} for some in found],
            self.home.files.memory_file_as_of(at).text,
        )


def _held(held: MemoryList) -> list[tuple[object, ...]]:
    return [(*_row(one.memory), one.replaced_by) for one in held.memories]


def _row(memory: Memory) -> tuple[object, ...]:
    """All but how much it matters, of which nobody keeps what it was."""
    return (
        memory.reference,
        memory.text,
        memory.kind,
        memory.said_at,
        memory.until,
        memory.superseded_by,
        memory.entries,
    )
