"""What goes wrong inside a bridge is an error of that bridge, whatever its library raised."""

from __future__ import annotations

import asyncio

import pytest

from assistant.core.bridge_api import InboundPort
from assistant.core.errors import BridgeError, StoreError
from assistant.gateway.supervisor import BridgeSupervisor, as_bridge_error
from tests.support.scripted import RecordingBridge, SteppingClock


def test_f39_a_bridges_own_error_is_told_as_it_is() -> None:
    known = BridgeError("the token is wrong", retry_after=5.0)
    with pytest.raises(BridgeError) as told, as_bridge_error("kept", "It failed"):
        raise known
    assert told.value is known


def test_f39_a_fault_of_a_library_is_told_by_its_type_and_without_its_words() -> None:
    with pytest.raises(BridgeError) as told, as_bridge_error("kept", "Sending failed", ambiguous=True):
        raise RuntimeError("could not send 'the boiler code is 4711'")
    assert str(told.value) == "Sending failed by a fault of its own (RuntimeError); the log has the details."
    assert told.value.ambiguous and told.value.__suppress_context__


async def test_f39_a_cancelled_task_ends_as_cancelled() -> None:
    async def work() -> None:
        with as_bridge_error("kept", "It failed"):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class RaisingBridge(RecordingBridge):
    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self.fault = fault

    async def run(self, door: InboundPort) -> None:
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (RuntimeError("loop"), "It failed by a fault of its own (RuntimeError); the log has the details."),
        (
            StoreError("The disk is full."),
            "A message could not be stored; it is requested from the network again. The disk is full.",
        ),
        (BridgeError("the token is wrong"), "the token is wrong"),
    ],
)
async def test_f39_a_bridge_that_fails_is_run_again_after_a_pause_and_says_why(fault: Exception, error: str) -> None:
    clock = SteppingClock()
    connection = BridgeSupervisor(RaisingBridge(fault), clock)
    door: InboundPort = None  # type: ignore[assignment] # it brings nothing
    connection.start(door)
    await asyncio.sleep(0)
    assert (connection.state, connection.error) == ("failing", error)
    assert connection.retry_at is not None and connection.retry_at > connection.since
    await connection.stop()
    assert (connection.state, connection.error) == ("paused", "")
