"""Who may read and write what sleep works on: one sleep at a time, or work that must not meet a sleep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress

from assistant.core.errors import UsageError
from assistant.core.memories import SleepReport

SleepTask = asyncio.Task[SleepReport | None]


class SleepLock:
    """Made before all that asks whether somebody sleeps."""

    def __init__(self, use_models: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """`use_models` keeps models that are replaced meanwhile open until the sleep, or the other work, has ended."""
        self._use_models = use_models
        self._alone = asyncio.Lock()
        self._sleeps: set[SleepTask] = set()

    @property
    def is_asleep(self) -> bool:
        """Whether a sleep is under way, or waits for another one."""
        return any(not task.done() for task in self._sleeps)

    @property
    def is_taken(self) -> bool:
        """Whether a sleep, or work that keeps it away, is under way."""
        return self.is_asleep or self._alone.locked()

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
