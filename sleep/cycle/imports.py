"""Extraction of imported conversations: a part each night, the earliest first, after everything else.

They are read over many nights with the same extractor, resuming at the stored position, and only with budget left over
from conversations held here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.core.records import SessionInfo
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation, ImportsPort, Journal
from sleep.cycle.extract import EXTRACT_PHASE
from sleep.cycle.phase import PhaseResult

IMPORTS_PHASE = "imports"
_MOST_COUNTED = 10_000

ReadOn = Callable[[SessionInfo, PhaseResult, datetime, int | None], Awaitable[bool]]
"""Extracts the next messages of a conversation; returns whether there were any."""


@dataclass(frozen=True, slots=True)
class ImportReading:
    """`limit`: messages per night."""

    conversation: Conversation
    imports: ImportsPort
    journal: Journal
    limit: int

    def has_unread(self) -> bool:
        return bool(self.limit and self.imports.list_unread(limit=1))

    async def read(
        self, read_on: ReadOn, is_exhausted: Callable[[], bool], cycle: int, outcome: PhaseResult, now: datetime
    ) -> None:
        """Run the phase. Raises `StoreError`."""
        left = self.limit
        passed_over: set[str] = set()
        while left > 0 and not is_exhausted():
            unread = self.imports.list_unread(limit=len(passed_over) + 1)
            info = next((info for info in unread if info.key not in passed_over), None)
            if info is None:
                break
            before = self._position(info)
            try:
                went_on = await read_on(info, outcome, now, cycle)
            except CorruptStore as error:
                # Only this conversation's files are damaged.
                outcome.errors.append(f"{session_name(info.key)}: {error}")
                passed_over.add(info.key)
                continue
            if not went_on and outcome.waiting_count:
                # The model is unavailable.
                break
            if not went_on:
                # A crash prevented marking it as read completely.
                self.conversation.mark_extracted(info.key, info.generation, info.messages)
                passed_over.add(info.key)
            left -= max(1, self._position(info) - before)
            await asyncio.sleep(0)
        if waiting := len(self.imports.list_unread(limit=_MOST_COUNTED)):
            outcome.details["waiting_conversations"] = waiting

    def _position(self, info: SessionInfo) -> int:
        return self.journal.read_position(EXTRACT_PHASE, info.key, info.generation)
