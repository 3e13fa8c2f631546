"""When the assistant sleeps: at night, in naps, by hand; never in the way of a message.

One sleep runs at a time, as a task beside the turns; another waits for it. A message that arrives meanwhile is answered
from the view as it is; what sleep commits replaces only what it planned on. A sleep that is cut off continues where it
was the next time. A conversation that is quiet naps once, and again only after something was said (F01, F32). A night
is slept once, by the wall clock of the home's zone, and late where nobody was up when it was due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial

import structlog

from assistant.core.calendar import SleepSchedule, find_first_message_time, is_late_start, is_nap_due
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.memories import FULL_CYCLE_TRIGGERS, SleepReport
from assistant.core.store_ports import Conversation, Journal
from sleep.cycle.cycle import SleepCycle

log = structlog.get_logger()

# Tries at one night in one process: what ends a sleep again and again is not tried all day.
_MAX_TRIES = 3


SleepTask = asyncio.Task[SleepReport | None]


class SleepLock:
    """Made before all that asks whether somebody sleeps."""

    def __init__(self, use_models: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """`use_models` keeps models that are replaced meanwhile open until the sleep, or the other work, has ended."""
        self._use_models = use_models
        self._alone = asyncio.Lock()
        self._sleeps: set[SleepTask] = set()

    def is_asleep(self) -> bool:
        """Whether a sleep is under way, or waits for another one."""
        return any(not task.done() for task in self._sleeps)

    @property
    def is_taken(self) -> bool:
        """Whether a sleep, or work that keeps it away, is under way."""
        return self.is_asleep() or self._alone.locked()

    def start_sleep(self, sleep: Callable[[], Awaitable[SleepReport | None]], name: str) -> SleepTask:
        """Sleep as a task, once what is under way has ended."""
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
        """Nobody sleeps while this lasts. Raises `UsageError` while somebody does."""
        if self.is_taken:
            raise UsageError("A sleep is under way. Nothing was changed; try again when it has ended.")
        async with self._alone:
            with self._use_models():
                yield

    async def stop_sleeps(self) -> None:
        """Wake up: what was not committed is given up."""
        tasks = list(self._sleeps)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


@dataclass(frozen=True, slots=True)
class SleepRequest:
    """One sleep that is wanted."""

    trigger: str  # as in `SleepReport`
    sessions: Sequence[str] | None = None  # None: all
    phase: str = ""  # with the trigger "phase", the one phase


RunSleepCycle = Callable[[SleepRequest, datetime], Awaitable[SleepReport]]
"""One sleep cycle, begun now."""


async def run_cycle(cycle: SleepCycle, request: SleepRequest, now: datetime) -> SleepReport:
    return await cycle.run(now, trigger=request.trigger, sessions=request.sessions, phase=request.phase)


class NapTrigger:
    """Which conversations nap now."""

    def __init__(
        self,
        conversation: Conversation,
        minutes: float,
        needs_sleep_compaction: Callable[[str], bool],
        is_running: Callable[[str], bool],
    ) -> None:
        """`minutes` without a message make a conversation quiet, 0: never; `needs_sleep_compaction` tells how full it
        is."""
        self._conversation = conversation
        self._minutes = minutes
        self._needs_sleep_compaction = needs_sleep_compaction
        self._is_running = is_running
        self._last_message_seen: dict[str, datetime | None] = {}

    def find_quiet(self, now: datetime) -> list[str]:
        """Quiet conversations that are full enough, each once for its last message."""
        quiet = [
            info
            for info in self._conversation.list_sessions()
            if is_nap_due(info.last_at, self._minutes, self._is_running(info.key), now)
            and self._last_message_seen.get(info.key) != info.last_at
        ]
        self._last_message_seen.update((info.key, info.last_at) for info in quiet)
        return [info.key for info in quiet if self._needs_sleep_compaction(info.key)]


class NightTrigger:
    """Which night is due now."""

    def __init__(self, nights: SleepSchedule, conversation: Conversation, journal: Journal) -> None:
        self._schedule = nights
        self._conversation = conversation
        self._journal = journal
        self._tried: tuple[datetime | None, int] = (None, 0)

    def find_due(self, now: datetime) -> datetime | None:
        """The night that is due and was not slept."""
        return self._schedule.find_due_night(
            self._journal.last_sleep_at(), find_first_message_time(self._conversation.list_sessions()), now
        )

    def find_trigger(self, now: datetime) -> str | None:
        """The trigger of the night that is to be slept now; each night is tried some times at most."""
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

    def is_asleep(self) -> bool:
        return self._lock.is_asleep()

    def is_night_due(self, now: datetime) -> bool:
        """Whether it sleeps, or a night is due that was not slept. Raises `StoreError`."""
        return self.is_asleep() or self._night_trigger.find_due(now) is not None

    def check_due(self) -> None:
        """Called at every wake-up: sleep where a night is due, nap where a nap is."""
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
        """Sleep now, or once the nap or the phase that is under way has ended; where a whole sleep is wanted and one is
        under way, that one."""
        request = SleepRequest(trigger, sessions, phase)
        if self._last is not None and not self._last[1].done() and _covers(self._last[0], request):
            return self._last[1]
        task = self._lock.start_sleep(partial(self._run, request), name=f"sleep ({trigger})")
        self._last = (request, task)
        return task

    def start_extraction(self, session: str) -> SleepTask:
        """Read what is new in one session for the journal and its notes, beside everything else."""
        return self.start("phase", [session], "extract")

    async def run_now(self, trigger: str, phase: str = "") -> SleepReport | None:
        """Sleep now, in one phase alone where one is named; what it did, None where it failed. A caller that waits for
        it may go away."""
        return await asyncio.shield(self.start(trigger, phase=phase))

    async def stop(self) -> None:
        """Wake up: what was not committed is given up."""
        await self._lock.stop_sleeps()

    async def _run(self, request: SleepRequest) -> SleepReport | None:
        try:
            return await self._run_cycle(request, self._clock())
        except AssistantError as error:
            log.error("sleep failed", error=str(error))
            return None


def _covers(running: SleepRequest, request: SleepRequest) -> bool:
    """Whether the sleep that is under way is the one that is wanted."""
    whole = running.trigger in FULL_CYCLE_TRIGGERS and request.trigger in FULL_CYCLE_TRIGGERS
    return whole or running == request
