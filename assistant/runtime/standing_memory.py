"""The memory that stands in the prompt of a session.

Invariants:
- Standing memory consists of MEMORY.md (owner sessions only) and the notes of today and yesterday of the session's
  scope. It changes only when the day changes, a sleep cycle ends or the session is compacted, regardless of file
  changes, to keep the provider's cache valid.
- An unreadable memory file is skipped and logged; the message is still answered.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, tzinfo
from functools import partial

from assistant.context.memory_block import memory_block, today_and_yesterday
from assistant.core.errors import AssistantError
from assistant.core.logger import get_logger
from assistant.core.records import ContextView
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation, Journal
from assistant.store.character.memory_files import StoredMemoryFiles

log = get_logger()


class StandingMemory:
    """The memory blocks of all sessions, each made once for its day, view and last sleep."""

    def __init__(
        self,
        conversation: Conversation,
        journal: Journal,
        files: StoredMemoryFiles,
        zone: tzinfo,
        clock: Callable[[], datetime],
        count: Callable[[str], int],
        *,
        file_max_tokens: int,
        day_max_tokens: int,
    ) -> None:
        """`file_max_tokens` and `day_max_tokens` are measured by `count`."""
        self._conversation = conversation
        self._journal = journal
        self._files = files
        self._zone = zone
        self._clock = clock
        self._count = count
        self._file_max_tokens = file_max_tokens
        self._day_max_tokens = day_max_tokens
        # By session: the cache key (day, view revision, last sleep cycle) and the block.
        self._blocks: dict[str, tuple[tuple[date, int, int], str]] = {}

    def prompt_block(self, session: str, view: ContextView | None = None) -> str:
        """Return the memory block of a session, or ""; `view` is its current view, if that is at hand. Raises
        `StoreError`."""
        view = view or self._conversation.load_view(session)
        days = today_and_yesterday(self._clock(), self._zone)
        made_for = (days[0], view.prefix_rev, self._journal.last_finished_cycle())
        frozen_for, block = self._blocks.get(session, (None, ""))
        if frozen_for != made_for:
            role = session_role(session)
            block = memory_block(
                self._read(self._files.read_memory_file) if role == "owner" else "",
                [(day, self._read(partial(self._files.read_daily_note, view.scope, day))) for day in days],
                role=role,
                count=self._count,
                file_max_tokens=self._file_max_tokens,
                day_max_tokens=self._day_max_tokens,
            )
            self._blocks[session] = made_for, block
        return block

    def _read(self, file: Callable[[], str]) -> str:
        try:
            return file()
        except AssistantError as error:
            log.error("a memory file is left out of the prompt", error=str(error))
            return ""
