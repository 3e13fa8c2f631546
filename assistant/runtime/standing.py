"""What stands in every prompt of a session of what is remembered: MEMORY.md in the owner's, the notes of today and
yesterday of its scope.

What always holds: it is frozen until the day ends, a sleep was slept, or the session was compacted, whatever is written
to the files meanwhile, so that the provider's cache lives; a file that cannot be read is left out, and told of in the
log, rather than keep a message from being answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import partial

import structlog

from assistant.context.memory_block import days_of, memory_block
from assistant.core.errors import AssistantError
from assistant.core.memory_api import MemoryFilesPort
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation, Journal

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Kept:
    day: date
    prefix_rev: int
    cycle: int
    text: str


class StandingMemory:
    def __init__(
        self,
        conversation: Conversation,
        journal: Journal,
        files: MemoryFilesPort,
        zone: tzinfo,
        clock: Callable[[], datetime],
        count: Callable[[str], int],
        *,
        file_most: int,
        day_most: int,
    ) -> None:
        """`file_most` and `day_most` in tokens, counted by `count`."""
        self._conversation = conversation
        self._journal = journal
        self._files = files
        self._zone = zone
        self._clock = clock
        self._count = count
        self._file_most = file_most
        self._day_most = day_most
        self._kept: dict[str, _Kept] = {}

    def of(self, session: str) -> str:
        """The block of a session; "" where nothing is remembered. Raises `StoreError` where the home cannot be read."""
        view = self._conversation.view(session)
        days = days_of(self._clock(), self._zone)
        cycle = self._journal.last_cycle()
        known = self._kept.get(session)
        if known is None or (known.day, known.prefix_rev, known.cycle) != (days[0], view.prefix_rev, cycle):
            text = memory_block(
                self._read(self._files.curated) if session_role(session) == "owner" else "",
                [(day, self._read(partial(self._files.day, view.scope, day))) for day in days],
                role=session_role(session), count=self._count, file_most=self._file_most, day_most=self._day_most,
            )  # fmt: skip
            known = self._kept[session] = _Kept(days[0], view.prefix_rev, cycle, text)
        return known.text

    def _read(self, file: Callable[[], str]) -> str:
        try:
            return file()
        except AssistantError as error:
            log.error("a memory file is left out of the prompt", error=str(error))
            return ""
