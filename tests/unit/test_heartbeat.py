"""The probe of the runtime's progress, and the pulse that feeds a watchdog only while there is some (F40)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.service.heartbeat import (
    TURN_GRACE_SECONDS,
    Heartbeat,
    RuntimeActivity,
    StallDetector,
    SystemdNotifier,
    beat_interval,
)

EVERY = 10.0
LONGEST = 300.0


def after(*beats: tuple[RuntimeActivity, float]) -> list[str]:
    progress = StallDetector(LONGEST)
    return [progress.check_progress(lanes, at, late=0, every=EVERY) for lanes, at in beats]


def test_a_runtime_that_passes_is_well() -> None:
    assert after(*((RuntimeActivity(n), n * EVERY) for n in range(100))) == [""] * 100


def test_f40_a_runtime_that_does_not_pass_is_found_at_the_second_beat_without_a_pass() -> None:
    found = after(
        (RuntimeActivity(5), 0),
        (RuntimeActivity(5), 10),
        (RuntimeActivity(5), 20),
        (RuntimeActivity(5), 30),
        (RuntimeActivity(6), 40),
    )
    assert found == ["", "", "The runtime has not passed for 20 s.", "The runtime has not passed for 30 s.", ""]


def test_f40_a_turn_that_cannot_be_ended_is_found() -> None:
    hung, other = {"t1": "main"}, {"t2": "main"}
    limit = LONGEST + TURN_GRACE_SECONDS
    found = after(
        (RuntimeActivity(1, hung), 0),
        (RuntimeActivity(2, hung), limit),
        (RuntimeActivity(3, hung), limit + 1),
        (RuntimeActivity(4, other), limit + 2),
    )
    assert found[:2] == ["", ""]
    assert found[2] == "A turn of main has not ended for 361 s, and cannot be ended."
    assert found[3] == ""


def test_f40_a_conversation_that_no_turn_takes_up_is_found() -> None:
    waits = frozenset({"room:matrix:1"})
    found = after(
        (RuntimeActivity(1, {}, waits), 0),
        (RuntimeActivity(2, {}, waits), 361),
        (RuntimeActivity(3), 362),
        (RuntimeActivity(4, {}, waits), 363),
    )
    assert found == ["", "Messages of room:matrix:1 have waited for 361 s, and no turn takes them.", "", ""]


def test_a_loop_that_stood_still_is_told_until_the_next_beat() -> None:
    progress = StallDetector(LONGEST)
    assert progress.check_progress(RuntimeActivity(1), 0, late=0, every=EVERY) == ""
    assert (
        progress.check_progress(RuntimeActivity(2), 22, late=12, every=EVERY)
        == "Nothing moved for 12 s, until just now."
    )
    assert progress.status() == {"stalled": "Nothing moved for 12 s, until just now.", "loop_lag_seconds": 12}
    assert progress.check_progress(RuntimeActivity(3), 32, late=0.1, every=EVERY) == ""


def test_four_beats_fit_into_the_time_of_the_watchdog() -> None:
    assert beat_interval(60, 30) == 15
    assert beat_interval(180, 30) == 30
    assert beat_interval(0, 30) == 30


class PulseSetup:
    """A runtime that passes when it is asked to, as long as `passes`, and the manager that hears of it."""

    def __init__(self, manager: socket.socket, address: str) -> None:
        self.manager = manager
        self.passes = True
        self.count = self.fed = 0
        self.serving = "Serves."
        self.pulse = Heartbeat(
            StallDetector(LONGEST),
            lambda: RuntimeActivity(self.count),
            self.wake,
            SystemdNotifier(address),
            lambda: self.serving,
            self.feed,
        )

    def feed(self) -> None:
        self.fed += 1

    def wake(self) -> None:
        self.count += self.passes

    def heard(self) -> list[bytes]:
        said = []
        while True:
            try:
                said += self.manager.recv(4096).splitlines()
            except BlockingIOError:
                return said


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[PulseSetup]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        yield PulseSetup(manager, str(tmp_path / "notify"))


def test_f40_the_watchdog_is_fed_while_the_runtime_passes_and_not_by_the_time_alone(watched: PulseSetup) -> None:
    for n in range(5):
        watched.pulse.beat(n * EVERY, n * EVERY, EVERY)
    assert watched.heard().count(b"WATCHDOG=1") == 5
    watched.passes = False
    for n in range(5, 20):
        watched.pulse.beat(n * EVERY, n * EVERY, EVERY)
    heard = watched.heard()
    # The pass that the fifth beat asked for, and one beat of patience.
    assert heard.count(b"WATCHDOG=1") == 2
    assert watched.fed == 7
    assert b"STATUS=The runtime has not passed for 20 s." in heard
    watched.passes = True
    watched.pulse.beat(200, 200, EVERY)
    watched.pulse.beat(210, 210, EVERY)
    assert watched.heard()[-2:] == [b"WATCHDOG=1", b"STATUS=Serves."]


def test_a_home_that_is_away_is_told_to_the_manager_and_feeds_the_watchdog_all_the_same(watched: PulseSetup) -> None:
    watched.serving = "script.db is not there any more."
    watched.pulse.beat(0, 0, EVERY)
    assert watched.heard() == [b"WATCHDOG=1", b"STATUS=script.db is not there any more."]


async def test_the_watchdog_stays_quiet_while_the_daemon_ends(watched: PulseSetup) -> None:
    over = asyncio.Event()
    holding = asyncio.create_task(watched.pulse.keep_alive_during(_until(over), 0.001))
    heard: list[bytes] = []
    while len(heard) < 3:
        await asyncio.sleep(0)
        heard += watched.heard()
    assert set(heard) == {b"WATCHDOG=1"}
    over.set()
    await holding


async def _until(event: asyncio.Event) -> None:
    await event.wait()
