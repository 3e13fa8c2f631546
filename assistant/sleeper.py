"""When the assistant sleeps: at night, in naps, by hand; never in the way of a message.

One sleep runs at a time, as a task beside the turns. A message that arrives meanwhile is answered from the view as it
is; what sleep commits replaces only what it planned on. A sleep that is cut off goes on where it was the next time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from assistant.errors import AssistantError
from assistant.remembered import CycleReport

log = structlog.get_logger()

Tick = Callable[[str, datetime], Awaitable[CycleReport]]
"""One sleep cycle for a trigger ("sleep", "nap", "manual"), begun now."""


class Sleeper:
    """Runs sleep cycles; `nap_due` says whether any session wants one now."""

    def __init__(self, tick: Tick, nap_due: Callable[[datetime], bool], clock: Callable[[], datetime]) -> None:
        self._tick = tick
        self._nap_due = nap_due
        self._clock = clock
        self._task: asyncio.Task[CycleReport | None] | None = None
        self.trouble = ""

    @property
    def asleep(self) -> bool:
        return self._task is not None and not self._task.done()

    def look(self) -> None:
        """Called at every wake-up: nap where one is due."""
        if not self.asleep and self._nap_due(self._clock()):
            self.begin("nap")

    def begin(self, trigger: str) -> asyncio.Task[CycleReport | None]:
        """Sleep now; the sleep that runs already, if one does."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(trigger), name=f"sleep ({trigger})")
        return self._task

    async def stop(self) -> None:
        """Wake up: what was not committed is given up."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, trigger: str) -> CycleReport | None:
        try:
            report = await self._tick(trigger, self._clock())
        except AssistantError as error:
            self.trouble = f"The last sleep failed: {error}"
            log.error("sleep failed", error=str(error))
            return None
        self.trouble = "" if report.state == "done" else f"The last sleep ended as {report.state}."
        return report
