"""What a worker of deliveries leaves to the disk for later is done before it has stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.bridge_api import BridgeCapabilities
from assistant.store.script.outbox import StoredOutbox
from tests.support.dispatching import open_dispatcher
from tests.support.inbound import open_outbox, outgoing_message
from tests.support.scripted import RecordingBridge, SteppingClock


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def outbox(tmp_path: Path, clock: SteppingClock) -> Iterator[StoredOutbox]:
    with open_outbox(tmp_path, clock) as opened:
        yield opened


class _SlowDisk:
    """Syncs of an outbox, each of which waits until it is let go; what became of them is noted in its order."""

    def __init__(self, outbox: StoredOutbox, monkeypatch: pytest.MonkeyPatch) -> None:
        self.noted: list[str] = []
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._sync = outbox.sync
        monkeypatch.setattr(outbox, "sync", self._slowly)

    def _slowly(self) -> None:
        self.begun.set()
        assert self.may_end.wait(60)
        self._sync()
        self.noted.append("synced")


def _terminal() -> RecordingBridge:
    return RecordingBridge(capabilities=BridgeCapabilities(shows_sessions=True, shows_key_once=True))


async def test_what_was_to_be_synced_later_is_synced_before_a_stop_ends(
    outbox: StoredOutbox, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may be closed then: also of what the stop itself still sent."""
    disk, bridge = _SlowDisk(outbox, monkeypatch), _terminal()
    disk.may_end.set()
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    outbox.push(outgoing_message("a"), clock())
    await delivery.flush()
    outbox.push(outgoing_message("b"), clock())
    await delivery.stop()
    disk.noted.append("closed")
    assert (bridge.bodies, disk.noted) == (["body of a", "body of b"], ["synced", "closed"])
    assert not [task for task in asyncio.all_tasks() if "to disk" in task.get_name()]


async def test_a_sync_under_way_ends_before_a_stop_does(
    outbox: StoredOutbox, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.gateway.outbox_worker._SYNC_DELAY", 0.0)
    disk = _SlowDisk(outbox, monkeypatch)
    delivery = open_dispatcher(outbox, {"kept": _terminal()}, clock)
    outbox.push(outgoing_message("a"), clock())
    await delivery.flush()
    assert await asyncio.to_thread(disk.begun.wait, 60)
    stopping = asyncio.create_task(delivery.stop())
    for _ in range(100):
        # All that a stop does beside it takes a few rounds.
        await asyncio.sleep(0)
    assert not stopping.done()
    disk.may_end.set()
    await stopping
    disk.noted.append("closed")
    assert disk.noted == ["synced", "closed"]


async def test_a_worker_that_starts_again_syncs_again(
    outbox: StoredOutbox, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a pause of its bridge."""
    disk, bridge = _SlowDisk(outbox, monkeypatch), _terminal()
    disk.may_end.set()
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    for key in ("a", "b"):
        outbox.push(outgoing_message(key), clock())
        await delivery.flush()
        await delivery.stop()
    assert disk.noted == ["synced", "synced"]
