"""Notifications outside: what no bridge delivered is told once at each service, with no more words than allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.agenda.catch_up import LatenessPolicy
from assistant.core.messages import ToolCall
from assistant.notify.notifier import Notifier, NotifyConfig
from assistant.notify.services import PushError, PushService, read_services, send_push
from tests.strict.push_services import GOTIFY_TOKEN, NTFY_TOKEN, TOPIC, PushMessage, StrictPushServices
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel, SteppingClock, owner_message

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
SHORT = PushMessage("ntfy", "Nocturne", "You have a reminder.")


@asynccontextmanager
async def notified_app(
    home: Path, server: StrictPushServices, clock: SteppingClock, *, urls: str = "", **environ: Any
) -> AsyncIterator[LiveApp]:
    on = {"ASSISTANT_HOME__TIMEZONE": "UTC", "ASSISTANT_SLEEP__AT": "", "ASSISTANT_BACKUP__AT": ""}
    urls = urls or server.ntfy_url
    async with run_app(home, now=clock, ASSISTANT_NOTIFY__URLS=urls, **(on | environ)) as running:
        yield running


async def remind(running: LiveApp, text: str = "call the clinic", when: str = "in 10 minutes") -> None:
    await running.app.commands.run(f'/remind {text} --at "{when}"', "main")


async def go_on(running: LiveApp, **by: float) -> None:
    """Some time later something may be due, or not have been seen."""
    running.clock.now += timedelta(**by)
    await running.app.agenda_scheduler.fire_due()
    await running.wait_idle()
    running.app.check_due()
    await running.app.notifier.wait_idle()


def use_clock(running: LiveApp, clock: SteppingClock) -> LiveApp:
    running.clock = clock
    return running


async def test_a_reminder_that_nobody_saw_is_told_once_without_its_words(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server:
        async with notified_app(tmp_path, server, clock) as running:
            use_clock(running, clock)
            await remind(running)
            await go_on(running, minutes=10)
            # Those who look have a moment to see it.
            assert server.messages == []
            for _ in range(3):
                await go_on(running, seconds=30)
            assert server.messages == [SHORT]
            assert running.app.notifier.problems() == []
        async with notified_app(tmp_path, server, clock) as running:
            use_clock(running, clock)
            await go_on(running, minutes=1)
        assert server.messages == [SHORT] and server.complaints == []


async def test_what_a_bridge_or_a_terminal_has_delivered_is_not_told(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server, notified_app(tmp_path, server, clock) as running:
        use_clock(running, clock)
        await running.app.commands.run('/remind call --at "in 10 minutes"', "main", bridge="kept", target="main")
        await go_on(running, minutes=10)
        await go_on(running, minutes=1)
        assert "Reminder: call" in running.bridge.bodies
        assert server.requests == 0


async def test_the_words_leave_the_machine_where_that_is_set_and_over_each_service(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server:
        urls = f"{server.ntfy_url} {server.gotify_url}"
        async with notified_app(tmp_path, server, clock, urls=urls, ASSISTANT_NOTIFY__TEXT="full") as running:
            use_clock(running, clock)
            await remind(running)
            await go_on(running, minutes=10)
            await go_on(running, minutes=1)
        body = "Reminder: call the clinic"
        assert server.messages == [PushMessage(name, "Nocturne", body) for name in ("ntfy", "gotify")]
        assert server.complaints == []


async def test_quiet_hours_hold_it_back(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with (
        StrictPushServices() as server,
        notified_app(tmp_path, server, clock, ASSISTANT_AGENDA__QUIET="12:11-13:00") as running,
    ):
        use_clock(running, clock)
        await remind(running)
        await go_on(running, minutes=10)
        await go_on(running, minutes=10)
        assert server.requests == 0
        await go_on(running, minutes=40)
        assert server.messages == [SHORT]


async def test_killed_while_it_is_sent_it_is_not_sent_again_and_the_status_says_so(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server:
        async with notified_app(tmp_path, server, clock) as running:
            use_clock(running, clock)
            await remind(running)
            await go_on(running, minutes=10)
            clock.now += timedelta(minutes=1)
            server.gate.clear()
            running.app.check_due()
            await server.arrived.wait()
            # The process ends here: nothing of it is noted any more.
            await running.app.notifier.stop()
        server.gate.set()
        async with notified_app(tmp_path, server, clock) as running:
            use_clock(running, clock)
            await go_on(running, minutes=30)
            assert server.requests == 1
            (problem,) = running.app.notifier.problems()
            assert "it is not known whether the last one arrived" in problem
            assert problem in running.app.status()["problems"]


async def test_a_refusal_is_told_without_the_address_and_tried_again_later(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server, notified_app(tmp_path, server, clock) as running:
        use_clock(running, clock)
        server.refusals = [503, 503]
        await remind(running)
        await go_on(running, minutes=10)
        for seconds, requests in ((30, 1), (30, 1), (31, 2), (60, 2), (61, 3)):
            await go_on(running, seconds=seconds)
            assert server.requests == requests
            if requests < 3:
                (problem,) = running.app.notifier.problems()
                assert "ntfy did not take it: Failed to send ntfy notification" in problem and ".," not in problem
                assert NTFY_TOKEN not in problem and TOPIC not in problem
        assert server.messages == [SHORT]
        assert running.app.notifier.problems() == []


async def test_a_refused_notification_does_not_wait_for_a_clock_that_was_set_back(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server, notified_app(tmp_path, server, clock) as running:
        use_clock(running, clock)
        server.refusals = [503] * 9
        await remind(running)
        for minutes in (10, *[61] * 7):
            await go_on(running, minutes=minutes)
        tried = server.requests
        await go_on(running, hours=-4)
        assert server.requests == tried + 1


async def test_a_question_that_nobody_saw_is_told(tmp_path: Path) -> None:
    read = ToolCall("r1", "read_file", {"path": "notes.txt"})
    pay = ToolCall("p1", "set_reminder", {"text": "pay Bob", "when": "tomorrow at 9"})
    (tmp_path / "workspace").mkdir(parents=True)
    (tmp_path / "workspace" / "notes.txt").write_text("Set a reminder: pay Bob tomorrow at 9")
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server:
        model = ScriptedModel(read, pay, "It is a note.")
        async with notified_app(tmp_path, server, clock, model=model) as running:
            use_clock(running, clock)
            await running.app.runtime.accept(
                owner_message("What does notes.txt say?", external_id="t1", bridge="terminal")
            )
            await running.wait_idle()
            for _ in range(2):
                await go_on(running, minutes=1)
            assert [it.message for it in server.messages] == ["Something waits for your yes or no."]


async def test_reminders_of_guests_are_told_to_nobody(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server, notified_app(tmp_path, server, clock) as running:
        use_clock(running, clock)
        where = {"bridge": "gone", "target": "7", "sender": "7"}
        await running.app.commands.run('/remind call --at "in 10 minutes"', "peer:gone:7", **where)
        await go_on(running, minutes=10)
        await go_on(running, minutes=1)
        assert server.requests == 0


async def test_what_needs_a_person_is_told_once_a_day_where_nobody_looks(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    looking = True
    async with StrictPushServices() as server, notified_app(tmp_path, server, clock) as running:
        use_clock(running, clock)
        config = NotifyConfig(read_services(server.ntfy_url), "short")
        lateness = LatenessPolicy(timedelta(minutes=1))
        notifier = Notifier(running.app.stores.pushes, lambda: config, lateness, lambda: looking, clock)
        for count in (1, 2):
            notifier.note_health([f"{count} deliveries may or may not have arrived."])
            notifier.check_due()
            await notifier.wait_idle()
            assert len(server.messages) == count - 1
            looking = False
        notifier.check_due()
        await notifier.wait_idle()
        assert [it.message for it in server.messages] == ["The assistant needs you: `assistant status` says why."]
        clock.now += timedelta(days=1)
        notifier.check_due()
        await notifier.wait_idle()
        assert len(server.messages) == 2


async def test_a_test_is_sent_on_demand_and_its_end_is_shown(tmp_path: Path) -> None:
    clock = SteppingClock(NOON)
    async with StrictPushServices() as server:
        wrong = server.gotify_url.replace(GOTIFY_TOKEN, "AnotherTokenOf15")
        async with notified_app(tmp_path, server, clock, urls=f"{server.ntfy_url} {wrong} nonsense://x") as running:
            shown = await running.app.commands.run("/notify test", "main")
            assert len(server.messages) == 1
            ntfy, gotify, nonsense = shown.splitlines()
            assert ntfy.startswith("- ntfy: the last one was sent")
            assert "gotify did not take it" in gotify and "AnotherTokenOf15" not in shown
            assert "is not understood" in nonsense


async def test_a_service_that_hangs_ends_after_its_time(tmp_path: Path) -> None:
    async with StrictPushServices() as server:
        server.gate.clear()
        try:
            await send_push(PushService(server.ntfy_url), "title", "body", seconds=0.2)
        except PushError as error:
            assert error.uncertain and "did not answer within 0.2 s" in str(error)
        else:
            raise AssertionError("it ended")
