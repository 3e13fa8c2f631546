"""Reminders and schedules that never pass in silence (F37): an alarm over real stores, and the whole app."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.agenda import scheduler
from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.scheduler import AgendaScheduler
from assistant.core.errors import UsageError
from assistant.core.messages import ToolCall
from assistant.models.offline.model import OfflineModel
from tests.support.agenda_home import BERLIN, GUEST, NOW, AgendaHome, open_agenda_home
from tests.support.running_app import LiveApp, run_app


@pytest.fixture
def home() -> Iterator[AgendaHome]:
    with open_agenda_home() as made:
        yield made


# ------------------------------------------------------------------------------------------------------------ the alarm


async def test_f37_two_due_in_the_same_second_are_told_each(home: AgendaHome) -> None:
    await home.remind("call mum", "in 20 minutes")
    await home.remind("feed the cat", "in 20 minutes")
    assert await home.fire_after(minutes=20) == 2
    assert home.pending_bodies() == ["Reminder: call mum", "Reminder: feed the cat"]
    assert home.slot_states() == ["ran", "ran"]
    assert await home.fire_after(minutes=1) == 0


async def test_f37_a_clock_that_is_set_back_tells_nothing_early_and_nothing_twice(home: AgendaHome) -> None:
    await home.remind("stretch", "", repeat="every hour")
    await home.remind("call mum", "in 90 minutes")
    assert await home.fire_after(hours=1) == 1
    assert await home.fire_after(hours=-3) == 0
    assert await home.fire_after(hours=3, minutes=20) == 0
    assert await home.fire_after(minutes=10) == 1
    assert home.pending_bodies() == ["Reminder: stretch", "Reminder: call mum"]


async def test_f37_a_laptop_that_slept_tells_late_what_was_due(home: AgendaHome) -> None:
    """The monotonic clock stood still meanwhile: only the wall clock says that it is due."""
    await home.remind("call mum", "in 20 minutes")
    await home.fire_after(hours=8)
    (slot,) = home.jobs.ended_slots("owner")
    assert (slot.state, slot.note) == ("late", "7 hours late")
    assert home.pending_bodies() == ["Reminder: call mum\n(It was due Friday 2026-11-20 11:20, 7 hours ago.)"]


@pytest.mark.parametrize(
    ("policy", "ends", "told"),
    [("once", ["missed"] * 6 + ["late"], 1), ("all", ["late"] * 7, 1), ("skip", ["missed"] * 7, 0)],
)
async def test_f37_a_week_off_ends_every_slot_by_its_policy(policy: str, ends: list[str], told: int) -> None:
    with open_agenda_home(catch_up=policy) as home:  # type: ignore[arg-type]
        await home.remind("stretch", "", repeat="every day at 8")
        await home.schedule("news", "What is new?", "", repeat="every day at 8")
        await home.fire_after(days=7)
        assert home.slot_states(kind="reminder") == ends
        assert home.slot_states(kind="schedule") == ends
        assert len(home.pending_items()) == told
        waiting = home.home.conversation.list_accepted("main")
        assert len(waiting) == ends.count("late")
        assert home.jobs.count_unseen() == {"owner": 2 * len(ends)}


async def test_f37_a_thousand_due_at_once_after_a_week_off(home: AgendaHome) -> None:
    home.home.say("remind me of everything", "I will")
    for number in range(1000):
        await home.remind(f"thing {number}", f"2026-11-21 {number % 24:02}:{number % 60:02}", key=f"n{number}")
    said = len(home.home.add_message())
    assert await home.fire_after(days=7) == 1000
    assert home.slot_states() == ["late"] * 1000
    # Eight batches, so that none keeps the loop for long.
    told = [body for body in home.pending_bodies() if body != "I will"]
    assert [text.partition(":")[0] for text in told] == ["125 reminders came due while they could not be sent"] * 8
    assert len(home.home.add_message()) == said + 8
    assert home.fired_count == 8
    assert home.home.verify().ok


async def test_whoever_asks_while_thousands_are_due_waits_for_one_batch(
    home: AgendaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "BATCH_SIZE", 10)
    for number in range(100):
        await home.remind(f"thing {number}", "2026-11-21 12:00", key=f"n{number}")
    home.now += timedelta(days=7)
    firing = asyncio.create_task(home.alarm.fire_due())
    # A request takes some steps of the loop.
    for _ in range(8):
        await asyncio.sleep(0)
    assert home.fired_count == 1 and not firing.done()
    assert await firing == 100


async def test_quiet_hours_hold_back_and_say_so() -> None:
    with open_agenda_home(quiet="22:00-07:00") as home:
        job = await home.remind("call mum", "2026-11-20 23:00")
        assert "sent Saturday 2026-11-21 07:00, after quiet hours (22:00-07:00)" in home.agenda.describe_due(job)
        assert await home.fire_at(datetime(2026, 11, 20, 22, 30, tzinfo=UTC)) == 0
        assert home.pending_items() == []
        assert await home.fire_at(datetime(2026, 11, 21, 6, 0, tzinfo=UTC)) == 1
        (slot,) = home.jobs.ended_slots("owner")
        assert (slot.state, slot.note) == ("late", "waited for quiet hours")


async def test_the_timer_wakes_for_the_next_one_within_a_second(home: AgendaHome) -> None:
    began = time.monotonic()

    def clock() -> datetime:
        return NOW + timedelta(seconds=time.monotonic() - began)

    told = asyncio.Event()
    alarm = AgendaScheduler(home.jobs, LatenessPolicy(timedelta(minutes=1)), BERLIN, told.set, clock, longest_wait=30)
    home.agenda = type(home.agenda)(home.jobs, home.agenda._config, alarm.check_due)
    alarm.start()
    try:
        await asyncio.sleep(0)
        await home.remind("call mum", (NOW + timedelta(seconds=0.3)).isoformat())
        async with asyncio.timeout(10):
            await told.wait()
        (slot,) = home.jobs.ended_slots("owner")
        assert slot.due_at <= slot.ended_at <= slot.due_at + timedelta(seconds=1)
    finally:
        await alarm.stop()


# --------------------------------------------------------------------------------------------------------------- app


async def due(it: LiveApp, **by: float) -> None:
    """So much later, the app looks, and what comes of it is answered and sent."""
    it.clock.now += timedelta(**by)
    await it.app.agenda_scheduler.fire_due()
    await it.app.runtime.tick(it.clock())
    await it.wait_idle()


async def test_a_reminder_comes_to_where_it_was_asked_and_the_model_knows(tmp_path: Path) -> None:
    call = ToolCall("c1", "set_reminder", {"text": "call mum", "when": "in 20 minutes"})
    async with run_app(tmp_path, call, "I will.", "Well done.") as it:
        await it.say("remind me to call mum in 20 minutes")
        await it.wait_idle()
        result = it.model.requests[1].messages[-1].content
        assert result.startswith('Reminder 1 is set: "call mum", Sunday 2026-03-01 09:20 (')
        await due(it, minutes=20)
        await due(it, minutes=5)
        assert it.bridge.bodies == ["I will.", "Reminder: call mum"]
        (sent,) = it.bridge.sent[1:]
        assert (sent.outgoing.bridge, sent.outgoing.target, sent.outgoing.session) == ("kept", "main", "main")
        await it.say("done, thanks")
        await it.wait_idle()
        assert "Reminder: call mum" in it.model.requests[-1].messages[-1].content


async def test_a_scheduled_prompt_is_asked_for_the_owner_once_and_answered_where_it_was_made(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nothing new.") as it:
        await it.app.commands.run(
            '/schedule add news "What is new?" --every "day at 10"', "main", bridge="kept", target="room 5"
        )
        await due(it, hours=1)
        await due(it, hours=1)
        assert it.bridge.bodies == ["Scheduled: news\n\nNothing new."]
        assert it.bridge.sent[0].outgoing.target == "room 5"
        asked = it.view_contents()[0][1]
        assert asked == "[Scheduled prompt 'news', due Sunday 2026-03-01 10:00]\nWhat is new?"
        (record,) = [one for one in it.app.stores.history.recent("owner") if one.role == "user"]
        assert (record.sender, record.trust) == ("schedule news", "owner")


async def test_the_offline_model_answers_a_scheduled_prompt_and_nothing_is_learned_of_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        run = it.app.commands.run
        await run('/schedule add list "What is on my list?" --every "day at 10"', "main", bridge="kept")
        await run('/schedule add home "My sister Ines lives in Bergen." --every "day at 10"', "main", bridge="kept")
        await due(it, hours=1)
        assert it.bridge.bodies[0].startswith("Scheduled: list\n\nYour to-do list is empty.")
        await it.app.sleep.scheduler.run_now("manual")
        assert it.app.stores.journal.entries("owner") == []


async def test_a_schedule_that_is_run_by_hand_stands_in_its_history_and_keeps_its_times(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nothing new.") as it:
        run = it.app.commands.run
        await run('/schedule add news "What is new?" --every "day at 10"', "main", bridge="kept")
        for _ in range(2):
            await run("/schedule run news", "main")
            await it.wait_idle()
        assert it.bridge.bodies == ["Scheduled: news\n\nNothing new."] * 2
        assert it.view_contents()[0][1] == "[Scheduled prompt 'news', run manually]\nWhat is new?"
        assert (await run("/schedule history news", "main")).count("schedule 1, news: ran (manually)") == 2
        (job,) = it.app.stores.jobs.list_waiting("owner", "schedule")
        assert job.due is not None and job.due.key == "2026-03-01T10:00"
        await run("/schedule pause news", "main")
        await run("/schedule run news", "main")
        await it.wait_idle()
        (job,) = it.app.stores.jobs.list_waiting("owner", "schedule")
        assert (job.state, len(it.bridge.bodies)) == ("paused", 3)


async def test_f18_what_a_schedule_asks_is_over_with_its_answer(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Written.") as it:
        await it.app.commands.run('/schedule add brief "Write a brief." --every "day at 10"', "main", bridge="kept")
        await due(it, hours=1)
        await due(it, days=1)
        assert it.bridge.bodies == ["Scheduled: brief\n\nWritten."] * 2
        assert it.app.stores.requests.list_open("main") == []


async def test_f18_a_request_for_a_reminder_alone_is_done_once_that_is_set(tmp_path: Path) -> None:
    call = ToolCall("c1", "set_reminder", {"text": "call mum", "when": "in 20 minutes"})
    async with run_app(tmp_path, call, "I will.", "For when?", "Which table?") as it:
        for text in ("Remind me to call mum in 20 minutes.", "Remind me to call dad.", "Book a table for two."):
            await it.say(text)
            await it.wait_idle()
        assert [one.text for one in it.app.stores.requests.list_open("main")] == [
            "Book a table for two.",
            "Remind me to call dad.",
        ]
        assert "Open tasks" not in it.model.requests[2].messages[-1].content


async def test_a_model_is_told_how_a_time_was_understood_that_is_past(tmp_path: Path) -> None:
    calls = [
        ToolCall(f"c{n}", "set_reminder", {"text": "x", "when": when}) for n, when in enumerate(["yesterday", "?"])
    ]
    async with run_app(tmp_path, calls, "Sorry.") as it:
        await it.say("remind me")
        await it.wait_idle()
        results = [m.content for m in it.model.requests[1].messages if m.role == "tool"]
        assert "'yesterday' was understood as Saturday 2026-02-28 09:00, which is past" in results[0]
        assert "not a time that I understand" in results[1]


async def test_status_is_red_for_what_was_missed_until_somebody_looks(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", ASSISTANT_AGENDA__CATCH_UP="skip") as it:
        await it.say("hello")
        await it.wait_idle()
        await it.app.commands.run("/remind stretch --every day at 8", "main")
        it.clock.now += timedelta(days=3)
        problems = it.app.status()["problems"]
        assert any("is due and was not sent" in one for one in problems)
        await it.app.agenda_scheduler.fire_due()
        assert any("3 times of reminders" in one for one in it.app.status()["problems"])
        shown = await it.app.commands.run("/schedule history", "main")
        assert shown.count(": missed") == 3
        assert not any("times of" in one or "not sent" in one for one in it.app.status()["problems"])


async def test_a_guest_reminds_themselves_and_sees_nothing_else(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        run = it.app.commands.run
        await run("/remind owner's secret --at tomorrow", "main")
        await run("/remind buy tea --at tomorrow", GUEST.session, bridge="kept", target="7")
        listed = await run("/remind", GUEST.session)
        assert "buy tea" in listed
        assert "secret" not in listed
        assert "tea" not in await run("/remind list --json", "main")
        with pytest.raises(UsageError, match="No reminder 1 is waiting"):
            await run("/remind cancel 1", GUEST.session)
        with pytest.raises(UsageError, match="cannot be used here"):
            await run("/schedule list", GUEST.session)


async def test_the_offline_model_sets_lists_and_cancels(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        for text in ("remind me to call mum tomorrow at 9", "what reminders do I have?", "cancel reminder 1"):
            await it.say(text)
            await it.wait_idle()
        first, second, third = it.bridge.bodies
        assert first.startswith('Reminder 1 is set: "call mum", Monday 2026-03-02 09:00')
        assert "- 1: call mum, Monday 2026-03-02 09:00" in second
        assert third == 'Reminder 1 is cancelled: "call mum".'


async def test_what_was_done_before_it_came_does_not_come_and_what_repeats_does(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        run = it.app.commands.run
        await run("/remind call mum tomorrow at 9", "main")
        await run("/remind stretch --every day at 8", "main")
        assert await run("/remind done 1", "main") == "Done: call mum"
        assert (await run("/remind done 2", "main")).startswith("Done: stretch\nIt comes again: ")
        assert "call mum" not in await run("/remind list", "main")


async def test_to_dos_and_reminders_are_named_by_words_of_one(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        run = it.app.commands.run
        for line in ("/todo flea drops", "/todo flea powder", "/todo Müsli", "/remind call mum --at tomorrow at 9"):
            await run(line, "main")
        with pytest.raises(UsageError, match=r"2 to-dos have these words: 1 .flea drops., 2 .flea powder.\. "):
            await run("/todo done flea", "main")
        with pytest.raises(UsageError, match="No to-do has the words 'bread'"):
            await run("/todo remove bread", "main")
        assert '- [x] 2: "flea powder"' in await run("/todo done powder FLEA", "main")
        assert "flea powder" in await run("/todo reopen powder", "main")
        assert await run("/todo remove musli", "main") == '- [ ] 1: "flea drops"\n- [ ] 2: "flea powder"'
        assert await run("/remind cancel mum", "main") == "Cancelled: 1, call mum"


async def test_a_to_do_that_ends_with_a_day_is_due_then(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.app.commands.run("/todo call Ann by friday", "main")
        await it.app.commands.run("/todo read 1984", "main")
        listed = [(todo.text, todo.due) for todo in it.app.stores.todos.list_todos("owner")]
        assert listed == [("call Ann", "2026-03-06"), ("read 1984", None)]


@pytest.mark.parametrize(
    ("text", "reminder"),
    [
        ("/remind done with the taxes? --at tomorrow", "done with the taxes?"),
        ("/remind list the guests tomorrow at 9", "list the guests"),
        ("/remind again call mum --every day at 8", "again call mum"),
        ("/remind it's “time” \u2014at tomorrow at 9", "it's “time”"),
        ('/remind pay -5 to "Ann"  and Ivo --at tomorrow', 'pay -5 to "Ann" and Ivo'),
    ],
)
async def test_what_begins_like_a_command_or_has_marks_in_it_is_a_reminder(
    text: str, reminder: str, tmp_path: Path
) -> None:
    async with run_app(tmp_path, "ok") as it:
        assert (await it.app.commands.run(text, "main")).startswith("Set:")
        assert [job.text for job in it.app.stores.jobs.list_waiting("owner", "reminder")] == [reminder]


@pytest.mark.parametrize(
    "text",
    [
        "/remind cancel x",
        "/remind call mum",
        "/remind --at tomorrow",
        "/remind x --at yesterday",
        "/schedule add news",
        "/schedule add news hello",
        "/schedule add news hello --every day --cron '* * * * *'",
        "/schedule add n hello --at tomorrow --catch-up never",
        "/schedule list --at x",
        "/schedule 'x",
        "/schedule what",
    ],
)
async def test_a_command_that_is_not_understood_changes_nothing_and_says_so(text: str, tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        with pytest.raises(UsageError, match=r"Nothing was (?:set|changed)"):
            await it.app.commands.run(text, "main")
        assert it.app.stores.jobs.list_waiting("owner", "reminder") == []
        assert it.app.stores.jobs.list_waiting("owner", "schedule") == []


async def test_schedules_are_shown_paused_resumed_run_and_removed(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nothing new.") as it:
        run = it.app.commands.run
        await run(
            "/schedule add 'the news' 'What is new?' --rrule FREQ=WEEKLY;BYDAY=MO --at 9:00", "main", bridge="kept"
        )
        assert "Monday 2026-03-02 09:00" in await run("/schedule", "main")
        await run("/schedule pause 'the news'", "main")
        assert ", paused" in await run("/schedule list", "main")
        await due(it, days=30)
        assert it.bridge.bodies == []
        assert "Resumed" in await run("/schedule resume the news", "main")
        await run("/schedule run 'the news'", "main")
        await it.wait_idle()
        assert it.bridge.bodies == ["Scheduled: the news\n\nNothing new."]
        assert "What is new?" in await run("/schedule show 'the news'", "main")
        await run("/schedule remove 'the news'", "main")
        assert "Nothing is scheduled" in await run("/schedule list", "main")
