"""How a bridge that fails is run again: later each time, never too late, and soon again once it had held (F39)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from assistant.core.bridge_api import InboundPort
from assistant.core.errors import BridgeError
from assistant.gateway.supervisor import BridgeSupervisor
from tests.support.scripted import RecordingBridge


@dataclass
class FailingBridge(RecordingBridge):
    """Fails each time that it runs, with what `trouble` says."""

    trouble: Callable[[], Exception] = lambda: BridgeError("gone")
    before: list[Callable[[], Any]] = field(default_factory=list)

    async def run(self, door: InboundPort) -> None:
        if self.before:
            self.before.pop()()
        raise self.trouble()


@dataclass
class ConnectionAttempts:
    """A connection whose clock stands still unless it is moved."""

    bridge: FailingBridge = field(default_factory=FailingBridge)
    now: datetime = datetime(2026, 11, 20, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.connection = BridgeSupervisor(self.bridge, lambda: self.now)

    async def pauses(self, times: int) -> list[float]:
        """In seconds, after so many failures more."""
        found: list[float] = []
        for _ in range(times):
            self.connection.start(cast(InboundPort, None))
            self.connection.retry_now()
            for _ in range(8):
                await asyncio.sleep(0)
            assert self.connection.retry_at is not None
            found.append((self.connection.retry_at - self.now).total_seconds())
        return found


async def test_f39_each_failure_is_followed_by_a_longer_pause_up_to_a_limit() -> None:
    tried = ConnectionAttempts()
    assert await tried.pauses(12) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    await tried.connection.stop()


async def test_f39_a_connection_that_held_begins_with_the_shortest_pause_again() -> None:
    tried = ConnectionAttempts()
    await tried.pauses(5)

    def holds(seconds: float) -> Callable[[], None]:
        def held() -> None:
            tried.connection.mark_connected()
            tried.now += timedelta(seconds=seconds)

        return held

    tried.bridge.before.append(holds(1))
    assert await tried.pauses(1) == [32]
    tried.bridge.before.append(holds(61))
    assert await tried.pauses(1) == [1]
    await tried.connection.stop()


async def test_f39_the_pause_that_a_network_asked_for_is_kept() -> None:
    tried = ConnectionAttempts(FailingBridge(trouble=lambda: BridgeError("patience", retry_after=40)))
    assert await tried.pauses(2) == [40, 40]
    await tried.connection.stop()


async def test_f39_a_fault_of_a_bridge_is_told_by_its_type_alone_and_it_is_run_again() -> None:
    """What a library says of it may quote somebody."""
    tried = ConnectionAttempts(FailingBridge(trouble=lambda: KeyError("what somebody said")))
    assert await tried.pauses(2) == [1, 2]
    assert (tried.connection.state, "KeyError" in tried.connection.error) == ("failing", True)
    assert "somebody" not in tried.connection.error
    await tried.connection.stop()
