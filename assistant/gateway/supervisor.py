"""Keeps a bridge running: restarts it after failures, with increasing pauses, until it is stopped.

Any exception of a bridge, including bugs in its library, ends up as an error in its status and nowhere else (F39). A
bridge that recovers clears its error. Exceptions are logged completely; the `BridgeError` names only the type, since a
library's message may quote someone. A cancelled task ends as cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.bridge_api import Bridge, InboundPort
from assistant.core.errors import BridgeError, StoreError
from assistant.core.logger import get_logger

log = get_logger()


@contextmanager
def as_bridge_error(bridge: str, summary: str, *, ambiguous: bool = False) -> Iterator[None]:
    """Convert any exception to `BridgeError`, beginning with `summary` (e.g. "It failed"); a `BridgeError` passes
    unchanged."""
    try:
        yield
    except BridgeError:
        raise
    # A library may raise anything, and no bridge may affect another one or the daemon.
    except Exception as error:
        log.exception("bridge fault", bridge=bridge)
        fault = f"a fault of its own ({type(error).__name__}); the log has the details"
        raise BridgeError(f"{summary} by {fault}.", ambiguous=ambiguous) from None


ConnectionState = Literal["connecting", "connected", "paused", "failing"]

_MIN_PAUSE = timedelta(seconds=1)
_MAX_PAUSE = timedelta(minutes=5)
# After a connection of this duration, backoff starts over.
_STABLE_AFTER = timedelta(minutes=1)


class BridgeSupervisor:
    """Runs one bridge. `error` is why it is not running ("" if it is), `since` is when `state` began."""

    def __init__(self, bridge: Bridge, clock: Callable[[], datetime]) -> None:
        self.bridge = bridge
        self._clock = clock
        self.state: ConnectionState = "paused"
        self.error = ""
        self.since = clock()
        self.retry_at: datetime | None = None
        self._failures = 0
        self._retry_event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, inbound: InboundPort) -> None:
        """Start the bridge unless it is running."""
        if self._task is None or self._task.done():
            self._set_state("connecting")
            self._task = asyncio.create_task(self._keep_running(inbound), name=f"bridge {self.bridge.name}")

    def mark_connected(self) -> None:
        """Record that the network answers."""
        self.retry_at = None
        if self.state != "paused":
            self._set_state("connected")

    def retry_now(self) -> None:
        """End the current pause."""
        self._retry_event.set()

    async def stop(self) -> None:
        """Stop receiving and close resources. Raises only `BridgeError`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self._set_state("paused")
        self.retry_at = None
        with as_bridge_error(self.bridge.name, "It could not be closed"):
            await self.bridge.aclose()

    # ----------------------------------------------------------------------------------------------------------- within

    async def _keep_running(self, inbound: InboundPort) -> None:
        while True:
            error = await self._run(inbound)
            if self.state == "connected" and self._clock() - self.since >= _STABLE_AFTER:
                self._failures = 0
            pause = self._pause(error)
            self._failures += 1
            self.retry_at = self._clock() + pause
            self._set_state("failing", str(error))
            log.error("bridge failed", bridge=self.bridge.name, error=self.error, again_in=pause.total_seconds())
            self._retry_event.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause.total_seconds()):
                    await self._retry_event.wait()

    async def _run(self, inbound: InboundPort) -> BridgeError:
        """Run until failure and return the error."""
        try:
            with as_bridge_error(self.bridge.name, "It failed"):
                await self._receive(inbound)
        except BridgeError as error:
            return error
        return BridgeError("It ended unexpectedly.")

    async def _receive(self, inbound: InboundPort) -> None:
        try:
            await self.bridge.run(inbound)
        except StoreError as error:
            raise BridgeError(
                f"A message could not be stored; it is requested from the network again. {error}"
            ) from error

    def _pause(self, error: BridgeError) -> timedelta:
        if error.retry_after:
            return timedelta(seconds=error.retry_after)
        doublings: int = 2 ** min(self._failures, 10)
        return min(_MAX_PAUSE, _MIN_PAUSE * doublings)

    def _set_state(self, state: ConnectionState, error: str = "") -> None:
        if (state, error) != (self.state, self.error):
            self.state, self.error, self.since = state, error, self._clock()
