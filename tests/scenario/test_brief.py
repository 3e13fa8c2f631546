"""The morning brief and the evening's check-in: what is in them, each once a day, to the owner alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.brief_scheduler import BriefTimes
from assistant.agenda.catch_up import LatenessPolicy, parse_quiet_hours
from assistant.core.messages import ToolCall
from assistant.core.notices import NoticeKind
from assistant.core.records import IncomingMessage
from assistant.models.offline.model import OfflineModel
from assistant.wire.services import build_briefs
from tests.support.command_line import run_in_process
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel, SteppingClock

BERLIN = ZoneInfo("Europe/Berlin")
MORNING = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
ON = {
    "ASSISTANT_BRIEF__MORNING": "7:30",
    "ASSISTANT_BRIEF__EVENING": "20:00",
    "ASSISTANT_HOME__TIMEZONE": "UTC",
    "ASSISTANT_SLEEP__AT": "",
}
READ = ToolCall("r1", "read_file", {"path": "notes.txt"})
PAY = ToolCall("p1", "set_reminder", {"text": "pay Bob", "when": "tomorrow at 9"})


async def look(running: LiveApp) -> None:
    running.app.check_due()
    await running.app.briefs.wait_idle()
    await running.wait_idle()


def sent(running: LiveApp, kind: str) -> list[str]:
    """The bodies of a kind in the outbox, wherever they went."""
    rows = running.app.stores.conversation.appender._db.rows(
        "SELECT body FROM outbox WHERE key GLOB ? ORDER BY id", (f"{kind}:*",)
    )
    return [row["body"] for row in rows]


def briefs(running: LiveApp) -> list[str]:
    return sent(running, "morning_brief")


async def add_todo(running: LiveApp, words: str) -> None:
    await running.app.commands.run(f"/todo add {words}", "main")


async def test_the_brief_names_what_is_on_overdue_promised_and_waiting(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir(parents=True)
    (tmp_path / "workspace" / "notes.txt").write_text("Set a reminder: pay Bob tomorrow at 9")
    clock = SteppingClock(MORNING - timedelta(days=1))
    model = ScriptedModel("I will.", READ, PAY, "It is a note.")
    async with run_app(tmp_path, model=model, now=clock, **ON) as running:
        await running.say("Write the letter to the landlord, please.")
        await running.wait_idle()
        await running.say("What does notes.txt say?")
        await running.wait_idle()
        await add_todo(running, "pay the rent --due 2026-11-23")
        await add_todo(running, "buy milk --due 2026-11-24")
        await running.app.commands.run('/remind dentist --at "2026-11-24 15:00"', "main")
        clock.now = MORNING
        await look(running)
        (text,) = briefs(running)
        assert running.bridge.bodies[-1] == text
    hello, today, overdue, waiting, promised = text.split("\n\n")
    assert hello == "Good morning. This is your day."
    assert today.splitlines() == [
        "Tuesday 2026-11-24:",
        '- "buy milk" (to-do 2)',
        '- 15:00 "dentist" (reminder 1)',
    ]
    assert overdue.splitlines() == ["Overdue:", '- "pay the rent" (to-do 1, overdue since Monday 2026-11-23)']
    assert "`/approvals yes 1` does it" in waiting and "pay Bob" in waiting
    assert promised.splitlines()[1:] == ['- 2026-11-23: "Write the letter to the landlord, please."']


async def test_an_order_that_the_offline_mode_carried_out_is_not_named_as_open(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING - timedelta(days=1))
    async with run_app(tmp_path, model=OfflineModel(), now=clock, **ON) as running:
        for order in ("Book a table for Friday, please.", "What is on my list?", "add milk and eggs to my list"):
            await running.say(order)
            await running.wait_idle()
        states = {it.text: it.state for it in running.app.stores.requests.list_requests("owner")}
        undone = [await running.app.commands.run("/undo", "main") for _ in range(2)]
        clock.now = MORNING
        await look(running)
        (text,) = briefs(running)
    assert states == {
        "Book a table for Friday, please.": "open",
        "What is on my list?": "done",
        "add milk and eggs to my list": "done",
    }
    assert "milk" not in text
    assert "You asked for this, and it is not marked as done" in text and "Book a table" in text
    assert "#" not in text, "numbers of messages are shown where they are asked for"
    # What only read is no effect, and what changed something is named as a person says it.
    assert "- manage todo list: action add, items milk, eggs" in undone[0]
    assert "todo" not in undone[1]


async def test_it_comes_once_a_day_through_restarts_and_clocks_that_jump(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING - timedelta(hours=1))
    async with run_app(tmp_path, "fine", now=clock, **ON) as running:
        await running.say("hello")
        await running.wait_idle()
        await add_todo(running, "pay the rent --due 2026-11-24")
        await look(running)
        assert briefs(running) == []
        for _ in range(3):
            clock.now = max(clock.now, MORNING)
            await look(running)
        clock.now -= timedelta(hours=2)
        await look(running)
        assert len(briefs(running)) == 1
    for hours in (0, 1, 3):
        clock.now = MORNING + timedelta(hours=hours)
        async with run_app(tmp_path, now=clock, **ON) as running:
            await look(running)
            assert len(briefs(running)) == 1
    # Five days off, and then one message.
    clock.now = MORNING + timedelta(days=6)
    async with run_app(tmp_path, now=clock, **ON) as running:
        for _ in range(3):
            await look(running)
        assert len(briefs(running)) == 2


async def test_a_day_that_a_wrong_clock_had_is_told_when_it_comes(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING)
    async with run_app(tmp_path, "fine", now=clock, **ON) as running:
        await add_todo(running, "pay the rent --due 2026-11-24")
        for at in (MORNING, MORNING + timedelta(days=40), MORNING + timedelta(days=1), MORNING + timedelta(days=40)):
            clock.now = at
            await look(running)
        assert len(briefs(running)) == 4


async def test_nothing_is_sent_where_there_is_nothing_to_say_or_nobody_wants_it(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING)
    async with run_app(tmp_path, now=clock, **ON) as running:
        await look(running)
        clock.now = MORNING.replace(hour=20)
        await look(running)
        # What comes up later that day is not told late.
        await add_todo(running, "pay the rent --due 2026-11-24")
        await look(running)
        assert briefs(running) == [] and sent(running, "evening_check_in") == []
        assert running.model.requests == []
    async with run_app(tmp_path, now=SteppingClock(MORNING), ASSISTANT_HOME__TIMEZONE="UTC") as running:
        await look(running)
        assert briefs(running) == []


async def test_the_evening_names_what_is_still_open_today(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING)
    async with run_app(tmp_path, now=clock, **ON) as running:
        await add_todo(running, "pay the rent --due 2026-11-24")
        await add_todo(running, "buy milk --due 2026-11-24")
        await add_todo(running, "fly --due 2026-11-30")
        await running.app.commands.run("/todo done 2", "main")
        clock.now = MORNING.replace(hour=20)
        for _ in range(2):
            await look(running)
        assert sent(running, "evening_check_in") == ['This is still open today.\n\nTo do:\n- "pay the rent" (to-do 1)']


async def test_guests_are_told_nothing_of_the_day(tmp_path: Path) -> None:
    """The last one to write was a guest, who has a to-do as well."""
    clock = SteppingClock(MORNING)
    async with run_app(tmp_path, "fine", "fine", now=clock, **ON) as running:
        await running.say("hello")
        await running.wait_idle()
        guest = IncomingMessage("kept", "g1", "peer:kept:7", "peer:kept:7", "7", "guest", "hi", target="7")
        await running.app.runtime.accept(guest)
        await running.wait_idle()
        await running.app.commands.run("/todo add secret of the guest --due 2026-11-24", "peer:kept:7")
        await add_todo(running, "pay the rent --due 2026-11-24")
        await look(running)
        (item,) = [item for item in running.bridge.sent if item.outgoing.body in briefs(running)]
        assert (item.outgoing.session, item.outgoing.target) == ("main", "main")
        assert "guest" not in item.outgoing.body


async def test_it_waits_for_the_sleep_of_the_night(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING - timedelta(days=1))
    night = {**ON, "ASSISTANT_SLEEP__AT": "03:30"}
    async with run_app(tmp_path, "fine", now=clock, **night) as running:
        await running.say("hello")
        await running.wait_idle()
        await add_todo(running, "pay the rent --due 2026-11-24")
        clock.now = MORNING
        # The night is due, and begins with this look.
        await look(running)
        assert running.app.sleep.scheduler.is_asleep() and briefs(running) == []
        await running.app.sleep.scheduler.run_now("sleep")
        await look(running)
        assert len(briefs(running)) == 1


async def test_a_night_that_does_not_end_holds_it_up_for_half_an_hour(tmp_path: Path) -> None:
    clock = SteppingClock(MORNING)
    async with run_app(tmp_path, now=clock, **ON) as running:
        await add_todo(running, "pay the rent --due 2026-11-24")
        waiting = build_briefs(running.app.base, lambda now: True, lambda: running.app.settings)
        for minutes, count in ((0, 0), (29, 0), (31, 1), (40, 1)):
            clock.now = MORNING + timedelta(minutes=minutes)
            waiting.check_due()
            await waiting.wait_idle()
            assert len(briefs(running)) == count


@pytest.mark.parametrize(
    ("at", "quiet", "now", "day"),
    [
        # The hour that does not exist, and the one that comes twice.
        ("02:30", "", "2026-03-29T01:59", None),
        ("02:30", "", "2026-03-29T03:00", "2026-03-29"),
        ("02:30", "", "2026-10-25T02:30", "2026-10-25"),
        # Quiet hours hold it until they end.
        ("06:00", "22:00-07:00", "2026-11-24T06:30", None),
        ("06:00", "22:00-07:00", "2026-11-24T07:00", "2026-11-24"),
        ("07:30", "", "2026-11-24T07:29", None),
        ("07:30", "", "2026-11-24T15:29", "2026-11-24"),
        # Of no use any more.
        ("07:30", "", "2026-11-24T15:30", None),
        ("", "", "2026-11-24T07:30", None),
    ],
)
def test_the_hour_is_by_the_clock_of_the_home(at: str, quiet: str, now: str, day: str | None) -> None:
    times = BriefTimes(at, "", BERLIN, LatenessPolicy(timedelta(minutes=1), parse_quiet_hours(quiet, BERLIN)))
    due = times.find_due(NoticeKind.MORNING_BRIEF, datetime.fromisoformat(now).replace(tzinfo=BERLIN).astimezone(UTC))
    assert (due and due.isoformat()) == day


async def test_a_shell_and_a_conversation_show_it_at_any_time(tmp_path: Path) -> None:
    environ = {"ASSISTANT_HOME__TIMEZONE": "UTC"}
    async with run_app(tmp_path, now=SteppingClock(datetime.now(UTC)), **environ) as running:
        assert (await running.app.commands.run("/brief", "main")).startswith("Nothing is planned for ")
        await add_todo(running, "pay the rent --due today")
        assert "pay the rent" in await running.app.commands.run("/brief", "main")
    shown = await asyncio.to_thread(run_in_process, tmp_path, "brief", "--json", **environ)
    assert '"pay the rent"' in shown.out and '"overdue": []' in shown.out
