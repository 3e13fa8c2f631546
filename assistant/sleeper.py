"""When the assistant sleeps: at night, in naps, by hand; never in the way of a message.

One sleep runs at a time, as a task beside the turns. A message that arrives meanwhile is answered from the view as it
is; what sleep commits replaces only what it planned on. A sleep that is cut off goes on where it was the next time. A
conversation that is quiet naps once, and again only after something was said (F01, F32).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from assistant.errors import AssistantError
from assistant.ports import Conversation
from assistant.remembered import CycleReport
from sleep.naps import nap_due

log = structlog.get_logger()

Tick = Callable[[str, Sequence[str] | None, datetime], Awaitable[CycleReport]]
"""One sleep cycle for a trigger ("sleep", "nap", "manual") over some sessions, or all, begun now."""


class Naps:
    """Which conversations nap now."""

    def __init__(
        self,
        conversation: Conversation,
        minutes: float,
        wants_sleep: Callable[[str], bool],
        is_running: Callable[[str], bool],
    ) -> None:
        """`minutes` without a message make a conversation quiet, 0: never; `wants_sleep` looks at how full it is."""
        self._conversation = conversation
        self._minutes = minutes
        self._wants_sleep = wants_sleep
        self._is_running = is_running
        self._looked_at: dict[str, datetime | None] = {}

    def due(self, now: datetime) -> list[str]:
        """Quiet conversations that are full enough, each once for its last message."""
        quiet = [
            info
            for info in self._conversation.sessions()
            if nap_due(info.last_at, self._minutes, self._is_running(info.key), now)
            and self._looked_at.get(info.key) != info.last_at
        ]
        self._looked_at.update((info.key, info.last_at) for info in quiet)
        return [info.key for info in quiet if self._wants_sleep(info.key)]


class Sleeper:
    """Runs sleep cycles, one at a time."""

    def __init__(self, tick: Tick, naps: Naps, clock: Callable[[], datetime]) -> None:
        self._tick = tick
        self._naps = naps
        self._clock = clock
        self._task: asyncio.Task[CycleReport | None] | None = None

    @property
    def asleep(self) -> bool:
        return self._task is not None and not self._task.done()

    def look(self) -> None:
        """Called at every wake-up: nap where one is due."""
        if not self.asleep and (sessions := self._naps.due(self._clock())):
            self.begin("nap", sessions)

    def begin(self, trigger: str, sessions: Sequence[str] | None = None) -> asyncio.Task[CycleReport | None]:
        """Sleep now; the sleep that runs already, if one does."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(trigger, sessions), name=f"sleep ({trigger})")
        return self._task

    async def stop(self) -> None:
        """Wake up: what was not committed is given up."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, trigger: str, sessions: Sequence[str] | None) -> CycleReport | None:
        try:
            return await self._tick(trigger, sessions, self._clock())
        except AssistantError as error:
            log.error("sleep failed", error=str(error))
            return None
