"""A home that is lived in: said, noted, put right, slept over and taken back, an hour apart; what was held when."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from assistant.core.errors import UsageError
from assistant.core.memories import JournalEntry, Memory, MemoryList, MemoryStorageInfo
from assistant.core.messages import Message
from assistant.memory.service import MemoryDeps, MemoryService
from assistant.store.search.history import StoredHistory
from assistant.wire.search import open_history, open_memory_search
from tests.nights_home import NightsHome
from tests.store_home import NOW

QUESTIONS = ("Where do I live, Oslo, Bergen or Tromsø?", "What does my sister Anna do?", "tea or coffee?")
Picture = tuple[list[tuple[object, ...]], list[set[tuple[object, ...]]], str]


@contextmanager
def lived(path: Path) -> Iterator[Life]:
    home = NightsHome(path).open()
    home.model.provider = "offline"
    history, _ = open_history(path, patient=True)
    life = Life(home, history)
    try:
        yield life
    finally:
        life.search.close()
        history.close()
        home.close()


@dataclass
class Life:
    """Each act comes an hour after the one before."""

    home: NightsHome
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
        return {one: self.home.memories.held[one] for one in memory_ids if one in self.home.memories.held}

    @property
    def now(self) -> datetime:
        return NOW + timedelta(hours=self.hours)

    # ------------------------------------------------------------------------------------------------------ acting

    def say(self, text: str) -> datetime:
        self.hours += 1
        said = [Message("user", text), Message("assistant", "Noted.")]
        self.home.conversation.ingest("main", "owner", said, self.now)
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

    async def sleep(self, *, in_vain: bool = False) -> datetime:
        """`in_vain`: semantic memory does not answer."""
        self.hours += 1
        self.home.memories.down = "no answer" if in_vain else ""
        await self.home.whole_cycle().run_sleep_tick(self.now, trigger="sleep")
        self.home.memories.down = ""
        return self.now

    async def correct(self, text: str, which: int = 0) -> datetime:
        """One of what holds is put right, where there is any. It is refused where a plan that could not be carried out
        says that another holds."""
        self.hours += 1
        held = [one for one in (await self.memory.held("owner")).known if one.memory.is_current]
        if held:
            with contextlib.suppress(UsageError):
                await self.memory.correct(held[which % len(held)].reference, text, "owner", "main", self.now)
        return self.now

    async def undo(self) -> datetime:
        """The newest sleep is taken back, where that can be."""
        self.hours += 1
        with contextlib.suppress(UsageError):
            await self.home.undoing().take_back(self.now)
        return self.now

    def write(self, line: str) -> datetime:
        self.hours += 1
        stands = self.home.files.curated()
        self.home.files.curate(f"{stands}{line}\n", stands, "user", self.now)
        return self.now

    # ----------------------------------------------------------------------------------------------------- looking

    async def by_now(self) -> Picture:
        found = [self.search.search(question, "owner", limit=100) for question in QUESTIONS]
        held = await self.memory.held("owner")
        return _held(held), [{_row(one.memory) for one in some} for some in found], self.home.files.curated()

    def texts(self, at: datetime, scope: str = "owner") -> list[str]:
        """What held then, oldest first."""
        return [one.memory.text for one in self.memory.then("", scope, at).known[::-1]]

    def then(self, at: datetime) -> Picture:
        found = [self.search.search(question, "owner", limit=100, as_of=at) for question in QUESTIONS]
        held = MemoryList(self.memory.then("", "owner", at, limit=1000, former=True).known[::-1])
        return (
            _held(held),
            [{_row(one.memory) for one in some} for some in found],
            self.home.files.curated_then(at).text,
        )


def _held(held: MemoryList) -> list[tuple[object, ...]]:
    return [(*_row(one.memory), one.by) for one in held.known]


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
