"""Learning from what was imported: some of it in each night, the earliest first, after everything else.

What always holds: years of talk are read over many nights, by the extraction that reads everything, at the position
where the last one stopped; they take no call from what was said here, and none beyond the budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.core.records import SessionInfo
from assistant.core.store_ports import Conversation, ImportsPort, Journal
from sleep.cycle.extract import EXTRACT_PHASE
from sleep.cycle.phase import PhaseResult

IMPORTS_PHASE = "imports"
_MOST_COUNTED = 10_000

ReadOn = Callable[[SessionInfo, PhaseResult, datetime, int | None], Awaitable[bool]]
"""Reads the next messages of a conversation: whether there were any."""


@dataclass(frozen=True, slots=True)
class ImportReading:
    """`limit`: so many messages a night."""

    conversation: Conversation
    imports: ImportsPort
    journal: Journal
    limit: int

    def has_unread(self) -> bool:
        return bool(self.limit and self.imports.list_unread(limit=1))

    async def read(
        self, read_on: ReadOn, is_exhausted: Callable[[], bool], cycle: int, outcome: PhaseResult, now: datetime
    ) -> None:
        """The phase of a sleep. Raises `StoreError`."""
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
                # The files of one conversation; the others can be read.
                outcome.errors.append(f"{info.key}: {error}")
                passed_over.add(info.key)
                continue
            if not went_on and outcome.waiting_count:
                # The model cannot be had now.
                break
            if not went_on:
                # A crash kept it from being noted that it was read to its end.
                self.conversation.mark_extracted(info.key, info.generation, info.messages)
                passed_over.add(info.key)
            left -= max(1, self._position(info) - before)
            await asyncio.sleep(0)
        if waiting := len(self.imports.list_unread(limit=_MOST_COUNTED)):
            outcome.details["waiting_conversations"] = waiting

    def _position(self, info: SessionInfo) -> int:
        return self.journal.read_position(EXTRACT_PHASE, info.key, info.generation)
