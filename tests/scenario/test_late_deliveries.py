"""A reminder that came due in time, and that its network gets hours later, says when it was due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.late_delivery import LateDelivery
from assistant.core.errors import BridgeError
from assistant.gateway.dispatcher import Dispatcher
from tests.support.agenda_home import BERLIN, GUEST, NOW, AgendaHome, open_agenda_home
from tests.support.dispatching import open_dispatcher
from tests.support.running_app import run_app
from tests.support.scripted import RecordingBridge

AWAY = "the network is away"
LATE = "Reminder: call mum\n(It was due Friday 2026-11-20 11:20.)"


@pytest.fixture
def home() -> Iterator[AgendaHome]:
    with open_agenda_home() as made:
        yield made


def start_process(home: AgendaHome, bridge: RecordingBridge) -> Dispatcher:
    late = LateDelivery(home.home.outbox, home.jobs, LatenessPolicy(timedelta(minutes=1)), BERLIN)
    return open_dispatcher(home.home.outbox, {"kept": bridge}, lambda: home.now, mark_late=late)


async def test_a_reminder_whose_network_was_away_says_when_it_was_due_also_after_a_restart(home: AgendaHome) -> None:
    await home.remind("call mum", "in 20 minutes", place=GUEST)
    await home.fire_after(minutes=20)
    away = RecordingBridge(send_errors=[BridgeError(AWAY)])
    await start_process(home, away).flush()
    assert (away.bodies, home.pending_bodies("kept")) == ([], ["Reminder: call mum"])
    home.now += timedelta(hours=5)
    # Once more in vain, and it says so only once.
    await start_process(home, RecordingBridge(send_errors=[BridgeError(AWAY)])).flush()
    home.restart()
    home.now += timedelta(hours=1)
    back = RecordingBridge()
    await start_process(home, back).flush()
    assert back.bodies == [LATE] and back.parts[0].text.startswith(LATE)


async def test_a_reminder_that_a_network_takes_in_time_or_that_says_it_is_late_has_no_second_word(
    home: AgendaHome,
) -> None:
    await home.remind("call mum", "in 20 minutes", place=GUEST)
    await home.remind("feed the cat", "in 2 hours", place=GUEST)
    bridge = RecordingBridge()
    process = start_process(home, bridge)
    await home.fire_after(minutes=20)
    home.now += timedelta(seconds=50)
    await process.flush()
    await home.fire_after(hours=8)
    home.now += timedelta(hours=3)
    await process.flush()
    assert bridge.bodies == [
        "Reminder: call mum",
        "Reminder: feed the cat\n(It was due Friday 2026-11-20 13:00, 6 hours ago.)",
    ]


async def test_i8_a_reminder_that_may_have_arrived_is_sent_again_as_it_was(home: AgendaHome) -> None:
    await home.remind("call mum", "in 20 minutes", place=GUEST)
    await home.fire_after(minutes=20)
    bridge = RecordingBridge(send_errors=[BridgeError(AWAY, ambiguous=True)])
    await start_process(home, bridge).flush()
    home.now += timedelta(hours=5)
    await start_process(home, bridge).flush()
    assert bridge.bodies == ["Reminder: call mum"]


async def test_in_the_whole_app_a_reminder_that_waits_for_its_network_says_when_it_was_due(tmp_path: Path) -> None:
    now = NOW
    async with run_app(tmp_path, "ok", now=lambda: now, ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        await it.app.commands.run('/remind call mum --at "in 20 minutes"', "main", bridge="kept", target="main")
        it.bridge.send_errors.append(BridgeError(AWAY))
        now += timedelta(minutes=20)
        await it.app.agenda_scheduler.fire_due()
        await it.wait_idle()
        assert it.bridge.bodies == []
        now += timedelta(hours=5)
        it.app.dispatcher.retry_held_back("kept")
        await it.app.dispatcher.flush("kept")
        assert it.bridge.bodies == [LATE]
