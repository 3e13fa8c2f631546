"""Schedules sleep cycles: nightly, as naps, and on command, without delaying messages.

One cycle runs at a time, concurrently with turns; others queue. Messages are answered meanwhile from the current view;
a cycle's commits replace only what they were planned on. An interrupted cycle resumes the next time. A quiet session
naps once per last message (F01, F32). Each night is run once, by local time of the home's zone, and late if the daemon
was not running when it was due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial

from assistant.core.calendar import SleepSchedule, find_first_message_time, is_late_start, is_nap_due
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.logger import get_logger
from assistant.core.memories import FULL_CYCLE_TRIGGERS, SleepReport
from assistant.core.store_ports import Conversation, Journal
from sleep.cycle.cycle import SleepCycle

log = get_logger()

# Attempts per night and process, so that a persistent failure is not retried all day.
_MAX_TRIES = 3


SleepTask = asyncio.Task[SleepReport | None]


class SleepLock:
    """Mutual exclusion of sleep cycles and other work. Created before everything that checks for a running cycle."""

    def __init__(self, use_models: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """`use_models` keeps replaced models open until the cycle or other work has ended."""
        self._use_models = use_models
        self._alone = asyncio.Lock()
        self._sleeps: set[SleepTask] = set()

    def is_asleep(self) -> bool:
        """Return whether a cycle is running or queued."""
        return any(not task.done() for task in self._sleeps)

    @property
    def is_taken(self) -> bool:
        """Whether a cycle, or work that excludes one, is running."""
        return self.is_asleep() or self._alone.locked()

    def start_sleep(self, sleep: Callable[[], Awaitable[SleepReport | None]], name: str) -> SleepTask:
        """Start a cycle as a task, after the current one has ended."""
        task = asyncio.create_task(self._sleep(sleep), name=name)
        self._sleeps.add(task)
        task.add_done_callback(self._sleeps.discard)
        return task

    async def _sleep(self, sleep: Callable[[], Awaitable[SleepReport | None]]) -> SleepReport | None:
        async with self._alone:
            with self._use_models():
                return await sleep()

    @asynccontextmanager
    async def keep_awake(self) -> AsyncIterator[None]:
        """Exclude sleep cycles within the context. Raises `UsageError` while one is running."""
        if self.is_taken:
            raise UsageError("A sleep is under way. Nothing was changed; try again when it has ended.")
        async with self._alone:
            with self._use_models():
                yield

    async def stop_sleeps(self) -> None:
        """Cancel all cycles; uncommitted work is discarded."""
        tasks = list(self._sleeps)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


@dataclass(frozen=True, slots=True)
class SleepRequest:
    """A requested sleep cycle."""

    trigger: str  # as in `SleepReport`
    sessions: Sequence[str] | None = None  # None: all
    phase: str = ""  # with the trigger "phase", the one phase


RunSleepCycle = Callable[[SleepRequest, datetime], Awaitable[SleepReport]]
"""Runs one sleep cycle, starting now."""


async def run_cycle(cycle: SleepCycle, request: SleepRequest, now: datetime) -> SleepReport:
    return await cycle.run(now, trigger=request.trigger, sessions=request.sessions, phase=request.phase)


class NapTrigger:
    """Finds sessions due for a nap."""

    def __init__(
        self,
        conversation: Conversation,
        minutes: float,
        needs_sleep_compaction: Callable[[str], bool],
        is_running: Callable[[str], bool],
    ) -> None:
        """`minutes`: silence after which a session is quiet, 0: never; `needs_sleep_compaction` checks how full it
        is."""
        self._conversation = conversation
        self._minutes = minutes
        self._needs_sleep_compaction = needs_sleep_compaction
        self._is_running = is_running
        self._last_message_seen: dict[str, datetime | None] = {}

    def find_quiet(self, now: datetime) -> list[str]:
        """Return quiet sessions that are full enough, each once per last message."""
        quiet = [
            info
            for info in self._conversation.list_sessions()
            if is_nap_due(info.last_at, self._minutes, self._is_running(info.key), now)
            and self._last_message_seen.get(info.key) != info.last_at
        ]
        self._last_message_seen.update((info.key, info.last_at) for info in quiet)
        return [info.key for info in quiet if self._needs_sleep_compaction(info.key)]

    def find_next(self, now: datetime) -> datetime | None:
        """Return when the first session that is full enough will have been quiet for long enough; None for none."""
        length = timedelta(minutes=self._minutes)
        waiting = [
            (info.last_at + length, info.key)
            for info in self._conversation.list_sessions()
            if info.last_at is not None and now < info.last_at + length
        ]
        return min((due for due, key in waiting if self._needs_sleep_compaction(key)), default=None)


class NightTrigger:
    """Finds the due night."""

    def __init__(self, nights: SleepSchedule, conversation: Conversation, journal: Journal) -> None:
        self._schedule = nights
        self._conversation = conversation
        self._journal = journal
        self._tried: tuple[datetime | None, int] = (None, 0)

    def find_due(self, now: datetime) -> datetime | None:
        """Return the due night that was not slept, or None."""
        return self._schedule.find_due_night(
            self._journal.last_sleep_at(), find_first_message_time(self._conversation.list_sessions()), now
        )

    def find_trigger(self, now: datetime) -> str | None:
        """Return the trigger to start now, or None; each night is attempted a limited number of times."""
        slot = self.find_due(now)
        if slot is None:
            return None
        night, tries = self._tried
        tries = tries + 1 if night == slot else 1
        self._tried = (slot, tries)
        if tries > _MAX_TRIES:
            return None
        return "late" if is_late_start(slot, now) else "sleep"


class SleepScheduler:
    """Runs sleep cycles, one at a time."""

    def __init__(
        self,
        run_cycle: RunSleepCycle,
        nap_trigger: NapTrigger,
        night_trigger: NightTrigger,
        clock: Callable[[], datetime],
        lock: SleepLock,
    ) -> None:
        self._run_cycle = run_cycle
        self._nap_trigger = nap_trigger
        self._night_trigger = night_trigger
        self._clock = clock
        self._lock = lock
        self._last: tuple[SleepRequest, SleepTask] | None = None
        self._begun: SleepRequest | None = None  # the last one that began

    def is_asleep(self) -> bool:
        return self._lock.is_asleep()

    def is_night_due(self, now: datetime) -> bool:
        """Return whether a cycle is running or a night is due. Raises `StoreError`."""
        return self.is_asleep() or self._night_trigger.find_due(now) is not None

    def find_next_nap(self, now: datetime) -> datetime | None:
        """Return when the next nap is due if nobody says anything. Raises `StoreError`."""
        return self._nap_trigger.find_next(now)

    def check_due(self) -> None:
        """Called at every wake-up: start a due night or nap."""
        if self._lock.is_taken:
            return
        now = self._clock()
        try:
            trigger = self._night_trigger.find_trigger(now)
            if trigger is not None:
                self.start(trigger)
            elif sessions := self._nap_trigger.find_quiet(now):
                self.start("nap", sessions)
        except AssistantError as error:
            log.error("nobody can tell whether a sleep is due", error=str(error))

    def start(self, trigger: str, sessions: Sequence[str] | None = None, phase: str = "") -> SleepTask:
        """Start a cycle now, or queue it behind the current one. If the current one covers the request, return that."""
        request = SleepRequest(trigger, sessions, phase)
        if self._last is not None and not self._last[1].done() and _covers(self._last[0], request):
            return self._last[1]
        return self._queue(request)

    def start_extraction(self, session: str) -> SleepTask:
        """Start extracting one session's new messages, in the background; behind a running cycle, even one for the same
        session, which may have read on to its end before."""
        request = SleepRequest("phase", [session], "extract")
        if self._last is not None and not self._last[1].done():
            last, task = self._last
            if last == request and last is not self._begun:
                return task
        return self._queue(request)

    def _queue(self, request: SleepRequest) -> SleepTask:
        task = self._lock.start_sleep(partial(self._run, request), name=f"sleep ({request.trigger})")
        self._last = (request, task)
        return task

    async def run_now(self, trigger: str, phase: str = "") -> SleepReport | None:
        """Run a cycle (or one phase) and return its report, None if it failed. Cancelling the caller does not cancel
        it."""
        return await asyncio.shield(self.start(trigger, phase=phase))

    async def stop(self) -> None:
        """Cancel all cycles; uncommitted work is discarded."""
        await self._lock.stop_sleeps()

    async def _run(self, request: SleepRequest) -> SleepReport | None:
        self._begun = request
        try:
            return await self._run_cycle(request, self._clock())
        except AssistantError as error:
            log.error("sleep failed", error=str(error))
            return None


def _covers(running: SleepRequest, request: SleepRequest) -> bool:
    """Return whether the running cycle covers the request."""
    whole = running.trigger in FULL_CYCLE_TRIGGERS and request.trigger in FULL_CYCLE_TRIGGERS
    return whole or running == request
