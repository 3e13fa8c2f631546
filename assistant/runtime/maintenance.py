"""Small, regular work on the stores, beside everything else: what a crash left in files, upkeep, the search index."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import structlog

from assistant.core.errors import MemoryUnavailable, StoreError, UsageError
from assistant.runtime.file_indexer import FileIndexer
from assistant.runtime.running_turns import RunningTurns
from assistant.search.finder import SourceFinder
from assistant.service.malloc import trim_heap
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.derived import FILES_DB, MEMORY_DB, SEARCH_DB, is_set_aside, remake_problems, remove_set_aside
from assistant.store.home.guard import HomeGuard
from assistant.store.script.conversation import StoredConversation

log = structlog.get_logger()


class Maintenance:
    def __init__(
        self,
        conversation: StoredConversation,
        files: StoredMemoryFiles,
        indexes: Mapping[str, SourceFinder],
        home_guard: HomeGuard,
        running: RunningTurns,
        rebuild_memories: Callable[[], Awaitable[object]],
        home: Path,
        record_stores: Callable[[], None],
        tell: Callable[[str], None],
        file_indexer: FileIndexer,
    ) -> None:
        """`indexes` by what is in them ("Message"). `rebuild_memories` makes memory.db of the journal. `record_stores`
        writes down what the stores hold; `tell` sends the owner a line on damage, once for each."""
        self._conversation = conversation
        self._files = files
        self._indexes = indexes
        self._home_guard = home_guard
        self._running = running
        self._rebuild_memories = rebuild_memories
        self._home = home
        self._record_stores = record_stores
        self._tell = tell
        self._file_indexer = file_indexer
        self.file_problems: tuple[str, ...] = ()  # memory files that a crash left half written, a line each
        self.passed_over: tuple[str, ...] = ()  # what is found in part or not at all by a search, a line each

    def recover_files(self) -> None:
        """Finish or take back changes of memory files that a crash cut off; `status` reports what cannot be."""
        self.file_problems = tuple(self._files.recover_after_crash())
        for problem in self.file_problems:
            log.warning("a memory file could not be recovered", problem=problem)

    def run(self) -> None:
        """Upkeep; left for later while a turn runs, or when the disk refuses."""
        if not self._running.any_running:
            with contextlib.suppress(StoreError):
                self._conversation.run_maintenance()
                self._record_stores()
            if self.file_problems:
                self.recover_files()
        self.tell_damage()

    def tell_damage(self) -> None:
        """Send what is being made again to the owner; left for later where that cannot be stored."""
        with contextlib.suppress(StoreError):
            for problem in (*remake_problems(self._home), *self.file_problems):
                self._tell(problem)

    async def index_new_messages(self) -> None:
        """Index what is new, a little at a time, in a worker thread."""
        try:
            self._home_guard.require_present()
            await self._follow_sources()
            # What was said goes first: files may be many.
            await self._file_indexer.update()
            await self._follow_sources()
            self.passed_over = await asyncio.to_thread(lambda: tuple(self._find_passed_over()))
            for name in (SEARCH_DB, FILES_DB):
                remove_set_aside(self._home / name)
            await asyncio.to_thread(trim_heap)
        except StoreError as error:
            log.error("what was said last, or a file, is not indexed yet", error=str(error))

    async def _follow_sources(self) -> None:
        for index in self._indexes.values():
            while await asyncio.to_thread(index.index_next_batch):
                pass

    def _find_passed_over(self) -> Iterator[str]:
        for kind, index in self._indexes.items():
            for source, reason in index.passed_over().items():
                yield f"{kind} {source} is kept whole, but {reason}."
        yield from self._file_indexer.problems

    async def remake_memories(self) -> None:
        """Make memory.db again where one was set aside; what keeps it from that now is left for the next upkeep."""
        if not is_set_aside(self._home / MEMORY_DB):
            return
        try:
            await self._rebuild_memories()
            remove_set_aside(self._home / MEMORY_DB)
        except (UsageError, StoreError, MemoryUnavailable) as error:
            log.warning("memory.db is not made again yet", error=str(error))
