"""Shutdown time limits per step, shared by the daemon and the service manager configuration.

Every step and the whole shutdown have a limit, and the service manager is configured to wait longer, so that it never
has to kill (F38). A step that exceeds its limit is abandoned: everything accepted is in the stores, and the next start
continues.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

from assistant.core.dataclass import dataclass
from assistant.core.logger import get_logger

log = get_logger()
T = TypeVar("T")

# From the end of the last step until the process has exited.
EXIT_SECONDS = 3.0
# Additional time that a service manager waits.
_MARGIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ShutdownTimeouts:
    """Time limit of each shutdown step in seconds, in order; bridges stop concurrently."""

    sleep: float = 3.0
    commands: float = 1.0
    # Running turns get `daemon.drain_seconds` here.
    abort: float = 3.0
    flush: float = 2.0
    bridge: float = 3.0
    runtime: float = 1.0
    model: float = 2.0
    serving: float = 3.0


SHUTDOWN_TIMEOUTS = ShutdownTimeouts()


def shutdown_seconds(drain_seconds: float, timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS) -> float:
    """Return the maximum total duration of all steps."""
    # A bridge may need the flush limit twice: for the delivery in progress and for queued ones.
    after = timeouts.abort + 2 * timeouts.flush + timeouts.bridge + timeouts.runtime + timeouts.model + timeouts.serving
    return timeouts.sleep + timeouts.commands + drain_seconds + after


def service_manager_timeout(drain_seconds: float) -> int:
    """Return the stop timeout for a service manager, in whole seconds."""
    return math.ceil(shutdown_seconds(drain_seconds) + EXIT_SECONDS + _MARGIN_SECONDS)


async def finish_within(seconds: float, step: Awaitable[object], what: str) -> bool:
    """Await `step` and return whether it ended in time; otherwise cancel it without waiting, and log that.

    Raises what the step raises.
    """
    task = asyncio.ensure_future(step)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if done:
        await task
        return True
    task.cancel()
    task.add_done_callback(_ignore_result)
    log.warning("did not end in time and is left for the next start", what=what, seconds=seconds)
    return False


def _ignore_result(task: asyncio.Future[object]) -> None:
    """Retrieve the result, so that asyncio does not report an unretrieved exception."""
    if not task.cancelled():
        task.exception()


class _LoadingThreads(Executor):
    """Runs each call in a thread that the end of the process does not wait for."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        loaded: Future[T] = Future()
        loaded.set_running_or_notify_cancel()
        threading.Thread(target=_load_into, args=(partial(fn, *args, **kwargs), loaded), daemon=True).start()
        return loaded


_LOADING = _LoadingThreads()


async def load_in_thread(load: Callable[[], T]) -> T:
    """Import or compile in a thread that the end of the process does not wait for, as it does for `asyncio.to_thread`:
    an import cannot be cut off, and on a slow machine it takes longer than an end may."""
    return await asyncio.get_running_loop().run_in_executor(_LOADING, load)


def _load_into(load: Callable[[], T], loaded: Future[T]) -> None:
    try:
        loaded.set_result(load())
    except BaseException as error:  # noqa: BLE001 -- raised where it is awaited
        loaded.set_exception(error)
