"""The scheduler of the agenda: ends every slot that is due, and waits until the next one.

Whether something is due is read from the wall clock each time. The timer only says when to check, so that a suspended
laptop, or a changed clock, makes nothing early or twice; the loop that watches the clock calls `check_due` too. Many
due slots are ended in batches, with pauses for turns in between.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LatenessPolicy, build_firing, end_due_slots_of_jobs
from assistant.core.errors import StoreError
from assistant.core.logger import get_logger
from assistant.store.script.jobs import Jobs

log = get_logger()

# A batch becomes one message, and blocks the event loop for some 10 ms.
BATCH_SIZE = 125
# Pause after each batch: otherwise a request, which takes several loop steps, would wait for a batch at each.
_PAUSE_SECONDS = 0.01
_SHORTEST_WAIT = 0.001
_RETRY_SECONDS = 5.0


class AgendaScheduler:
    def __init__(
        self,
        jobs: Jobs,
        lateness: LatenessPolicy,
        zone: ZoneInfo,
        fired: Callable[[], None],
        clock: Callable[[], datetime],
        *,
        longest_wait: float,
    ) -> None:
        """`fired` is called when there is something to deliver or answer; `longest_wait` in seconds."""
        self._jobs = jobs
        self._lateness = lateness
        self._zone = zone
        self._fired = fired
        self._clock = clock
        self._longest_wait = longest_wait
        self._ring = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last_error = ""

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up, log reminders that were sent before a crash. Raises `StoreError`."""
        self._jobs.log_sent_reminders(now)

    def start(self) -> None:
        """Start checking."""
        self._task = asyncio.create_task(self._run(), name="agenda")

    def check_due(self) -> None:
        """Something may be due, or the next time may have changed. Does nothing before `start`."""
        self._ring.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            self._ring.clear()
            try:
                await self.fire_due()
                seconds = self._seconds_to_wait()
                self.last_error = ""
            except StoreError as error:
                if self.last_error != str(error):
                    log.error("the agenda cannot go on", error=str(error))
                self.last_error = str(error)
                seconds = _RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ring.wait(), seconds)

    async def fire_due(self) -> int:
        """End every due slot; return how many ended. Raises `StoreError`."""
        count = 0
        # Log what could not be written the last time.
        self._jobs.log_sent_reminders(self._clock())
        while True:
            now = self._clock()
            after, until = self._lateness.due_window(now)
            jobs = self._jobs.list_due(after, until, limit=BATCH_SIZE)
            ended = [job for job in end_due_slots_of_jobs(jobs, now, self._lateness, BATCH_SIZE) if job[1]]
            if not ended:
                return count
            self._jobs.apply_firing(build_firing(ended, self._zone, now), now)
            self._jobs.log_sent_reminders(now)
            count += sum(len(slots) for _, slots, _ in ended)
            self._fired()
            await asyncio.sleep(_PAUSE_SECONDS)

    def _seconds_to_wait(self) -> float:
        now = self._clock()
        wake_at = self._lateness.wake_at(self._jobs.next_due_at(), now)
        if wake_at is None:
            return self._longest_wait
        return min(max((wake_at - now).total_seconds(), _SHORTEST_WAIT), self._longest_wait)
