"""How long a shutdown may take, step by step: one place for the daemon that ends and for the service manager that
waits.

Every step has a limit, the whole has one, and a service manager is told to wait longer than that, so that it never
has to kill (F38). What does not end within its limit is left where it is: everything that was accepted is in the
stores, and the next start continues with it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable

from assistant.core.dataclass import dataclass
from assistant.core.imports import hidden_modules

# For tracebacks in colours, which are written nowhere.
with hidden_modules("rich"):
    import structlog

log = structlog.get_logger()

# From the end of the last step until the process is gone.
EXIT_SECONDS = 3.0
# How much longer than all of that a service manager waits.
_MARGIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ShutdownTimeouts:
    """Seconds that each step of the end may take, in their order; those of several bridges run side by side."""

    sleep: float = 3.0
    commands: float = 1.0
    # Here running turns get `daemon.drain_seconds`.
    abort: float = 3.0
    flush: float = 2.0
    bridge: float = 3.0
    runtime: float = 1.0
    model: float = 2.0
    serving: float = 3.0


SHUTDOWN_TIMEOUTS = ShutdownTimeouts()


def shutdown_seconds(drain_seconds: float, timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS) -> float:
    """The longest that the steps of the end take together."""
    # A bridge may need the time of a flush twice: for what is being sent, and for what waits.
    after = timeouts.abort + 2 * timeouts.flush + timeouts.bridge + timeouts.runtime + timeouts.model + timeouts.serving
    return timeouts.sleep + timeouts.commands + drain_seconds + after


def service_manager_timeout(drain_seconds: float) -> int:
    """How long a service manager waits for the end before it kills, in whole seconds."""
    return math.ceil(shutdown_seconds(drain_seconds) + EXIT_SECONDS + _MARGIN_SECONDS)


async def finish_within(seconds: float, step: Awaitable[object], what: str) -> bool:
    """Whether `step` ended in time; one that did not is cancelled, told of, and not waited for any longer.

    Raises what the step raises."""
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
    """Whatever it still says, nobody waits for it."""
    if not task.cancelled():
        task.exception()
