"""Regular background work on the stores: crash recovery of files, upkeep, search indexing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from assistant.core.errors import MemoryUnavailable, StoreError, UsageError
from assistant.core.logger import get_logger
from assistant.runtime.file_indexer import FileIndexer
from assistant.runtime.running_turns import RunningTurns
from assistant.search.finder import SourceFinder
from assistant.service.malloc import trim_heap
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.derived import FILES_DB, MEMORY_DB, SEARCH_DB, is_set_aside, remake_problems, remove_set_aside
from assistant.store.home.guard import HomeGuard
from assistant.store.script.conversation import StoredConversation

log = get_logger()


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
        keep_dates: Callable[[], Awaitable[None]],
        wait_until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        """`indexes`: by content ("Message"). `rebuild_memories` rebuilds memory.db from the journal. `record_stores`
        records the state of the stores; `tell` notifies the owner of damage, once per text. `keep_dates` parses the
        days that new messages mention. `wait_until_quiet` lets requests go first, for a moment."""
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
        self._keep_dates = keep_dates
        self._wait_until_quiet = wait_until_quiet
        self.file_problems: tuple[str, ...] = ()  # memory files that a crash left inconsistent, one line each
        self._passed_over: tuple[str, ...] = ()  # texts
        self._behind = ""  # the content of which much is not indexed yet; "" for none

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Return what search covers partly or not at all, one line each; of files as of their last scan."""
        later = f"{self._behind}: the index is being made, and a search may not find everything until it is done."
        return (*([later] if self._behind else []), *self._passed_over, *self._file_indexer.problems)

    def recover_files(self) -> None:
        """Complete or roll back interrupted changes of memory files; `status` reports failures."""
        self.file_problems = tuple(self._files.recover_after_crash())
        for problem in self.file_problems:
            log.warning("a memory file could not be recovered", problem=problem)

    def run(self) -> None:
        """Run upkeep; skipped while a turn is running or if the disk fails."""
        if not self._running.any_running:
            with contextlib.suppress(StoreError):
                self._conversation.run_maintenance()
                self._record_stores()
            if self.file_problems:
                self.recover_files()
        self.tell_damage()

    def tell_damage(self) -> None:
        """Notify the owner of what is being rebuilt; retried later if that cannot be stored."""
        with contextlib.suppress(StoreError):
            for problem in (*remake_problems(self._home), *self.file_problems):
                self._tell(problem)

    async def index_new_messages(self) -> None:
        """Index new messages and files in small batches, in a worker thread."""
        try:
            self._home_guard.require_present()
            await self._follow_sources()
            await self._keep_dates()
            # Messages first: there may be many files.
            await self._file_indexer.update()
            await self._follow_sources()
            self._passed_over = await asyncio.to_thread(lambda: tuple(self._find_passed_over()))
            for name in (SEARCH_DB, FILES_DB):
                remove_set_aside(self._home / name)
            await asyncio.to_thread(trim_heap)
        except StoreError as error:
            log.error("what was said last, or a file, is not indexed yet", error=str(error))

    async def _follow_sources(self) -> None:
        try:
            for name, index in self._indexes.items():
                batches = 0
                while await asyncio.to_thread(index.index_next_batch):
                    batches += 1
                    # What was just said is one batch.
                    self._behind = name if batches > 1 else self._behind
                    await self._wait_until_quiet()
                    # A turn may shorten its context, for which a thread has the interpreter for seconds.
                    await self._running.wait_until_quiet()
        finally:
            self._behind = ""

    def _find_passed_over(self) -> Iterator[str]:
        for kind, index in self._indexes.items():
            for source, reason in index.passed_over().items():
                yield f"{kind} {source} is kept whole, but {reason}."

    async def remake_memories(self) -> None:
        """Rebuild memory.db if a damaged one was set aside; retried at the next upkeep on failure."""
        if not is_set_aside(self._home / MEMORY_DB):
            return
        try:
            await self._rebuild_memories()
            remove_set_aside(self._home / MEMORY_DB)
        except (UsageError, StoreError, MemoryUnavailable) as error:
            log.warning("memory.db is not made again yet", error=str(error))
