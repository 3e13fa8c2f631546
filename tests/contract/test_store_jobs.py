"""The store of reminders and schedules: keyed, scoped, one end a slot, and the conversation told of it once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from assistant.agenda.catch_up import LatenessPolicy, build_firing, end_due_slots_of_jobs
from assistant.agenda.repeat_phrases import parse_schedule
from assistant.context.normalise import normalise
from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import Message, ToolCall
from tests.support.agenda_home import BERLIN, GUEST, NOW, AgendaHome, open_agenda_home

SOON = NOW + timedelta(minutes=20)


@pytest.fixture
def home() -> Iterator[AgendaHome]:
    with open_agenda_home() as made:
        yield made


async def test_the_same_call_sets_a_reminder_once(home: AgendaHome) -> None:
    first = await home.remind("call mum", "in 20 minutes", key="turn:1")
    home.now += timedelta(hours=5)
    assert await home.remind("call mum", "in 20 minutes", key="turn:1") == first
    assert [job.id for job in home.jobs.list_waiting("owner", "reminder")] == [first.id]


async def test_a_job_is_read_back_as_it_was_stored(home: AgendaHome) -> None:
    for when, repeat in (("in 20 minutes", ""), ("", "every day at 8"), ("", "30 8 * * 1-5")):
        job = await home.remind("call mum", when, repeat=repeat)
        assert job.spec == parse_schedule(when, repeat, BERLIN, NOW)[0]
        assert home.jobs.get_job(job.id, "owner", "reminder") == job


async def test_the_same_call_finds_its_reminder_when_the_time_is_past(home: AgendaHome) -> None:
    first = await home.remind("call mum", "2026-11-20 12:00", key="turn:1")
    await home.fire_after(hours=5)
    assert (await home.remind("call mum", "2026-11-20 12:00", key="turn:1")).id == first.id


async def test_the_same_call_cancels_once_and_another_is_told_that_none_waits(home: AgendaHome) -> None:
    job = await home.remind("call mum", "in 20 minutes")
    for _ in range(2):
        assert home.agenda.cancel_reminder(job.id, "owner", "turn:2", home.now).text == "call mum"
    with pytest.raises(UsageError, match="No reminder 1 is waiting"):
        home.agenda.cancel_reminder(job.id, "owner", "turn:3", home.now)
    assert await home.fire_after(hours=1) == 0
    assert home.jobs.list_waiting("owner", "reminder") == []


async def test_nobody_sees_or_cancels_what_is_anothers(home: AgendaHome) -> None:
    mine = await home.remind("mine", "in 20 minutes")
    theirs = await home.remind("theirs", "in 20 minutes", place=GUEST)
    assert [job.text for job in home.jobs.list_waiting("owner", "reminder")] == ["mine"]
    assert [job.text for job in home.jobs.list_waiting(GUEST.scope, "reminder")] == ["theirs"]
    assert home.jobs.get_job(theirs.id, "owner", "reminder") is None
    assert home.jobs.find_by_key("k0", GUEST.scope) is None
    with pytest.raises(UsageError):
        home.agenda.cancel_reminder(mine.id, GUEST.scope, "x", home.now)
    await home.fire_after(hours=1)
    assert [slot.text for slot in home.jobs.ended_slots("owner")] == ["mine"]
    assert [slot.text for slot in home.jobs.ended_slots(GUEST.scope)] == ["theirs"]
    assert home.pending_bodies("kept")[0].startswith("Reminder: theirs")


async def test_no_more_may_wait_than_the_settings_say() -> None:
    with open_agenda_home(most=2) as home:
        for text in ("one", "two"):
            await home.remind(text, "in 20 minutes")
        with pytest.raises(UsageError, match="Nothing was set"):
            await home.remind("three", "in 20 minutes")
        await home.remind("elsewhere", "in 20 minutes", place=GUEST)
        await home.fire_after(hours=1)
        assert (await home.remind("three", "in 20 minutes")).text == "three"


async def test_two_schedules_of_one_name_cannot_wait(home: AgendaHome) -> None:
    first = await home.schedule("news", "What is new?", "", repeat="every day at 8")
    with pytest.raises(UsageError, match="Nothing was set"):
        await home.schedule("news", "Again?", "", repeat="every day at 9")
    home.agenda.remove_schedule(first, "x", home.now)
    assert (await home.schedule("news", "Again?", "", repeat="every day at 9")).name == "news"


async def test_a_paused_schedule_is_not_due_and_goes_on_with_its_next_time(home: AgendaHome) -> None:
    job = await home.schedule("news", "What is new?", "", repeat="every day at 8")
    home.agenda.pause_schedule(job)
    assert await home.fire_after(days=3) == 0
    assert home.jobs.count_overdue(home.now) == 0
    resumed = home.agenda.resume_schedule(home.agenda.find_schedule("news", "owner"), home.now)
    assert resumed.due is not None
    assert resumed.due.key == "2026-11-24T08:00"
    assert await home.fire_after(hours=22) == 1
    assert home.slot_states() == ["late"]


async def test_the_conversation_knows_what_was_told_once(home: AgendaHome) -> None:
    home.home.say("remind me", "I will")
    await home.remind("call mum", "in 20 minutes")
    await home.fire_after(minutes=20)
    last = home.home.conversation.load_view("main").messages[-1]
    assert (last.role, last.metadata["type"]) == ("system", "reminder")
    assert last.content.endswith("Reminder: call mum")
    assert home.pending_items()[-1].outgoing.message_id == last.id
    before = len(home.home.add_message())
    home.restart()
    assert len(home.home.add_message()) == before
    assert home.home.verify().ok


async def test_f37_a_crash_before_the_log_knows_is_settled_at_start(home: AgendaHome) -> None:
    """Killed between the transaction and the log; and between the log and its transaction."""
    home.home.say("remind me", "I will")
    await home.remind("call mum", "in 20 minutes")
    home.now = SOON
    _fire_only(home)
    said = len(home.home.add_message())
    home.restart()
    assert len(home.home.add_message()) == said + 1
    await home.remind("feed the cat", "in 20 minutes")
    home.now += timedelta(minutes=20)
    _fire_only(home)
    _log_only(home)
    home.restart()
    assert sum("Reminder: feed the cat" in text for text in home.home.add_message()) == 1
    assert [text.rpartition("\n")[2] for text in home.home.view_contents()[-2:]] == [
        "Reminder: call mum",
        "Reminder: feed the cat",
    ]
    assert home.jobs.log_sent_reminders(home.now) == 0
    assert await home.alarm.fire_due() == 0
    assert home.home.verify().ok


async def test_f37_what_was_logged_before_the_disk_failed_is_not_logged_again_with_the_next(home: AgendaHome) -> None:
    home.home.say("remind me", "I will")
    await home.remind("call mum", "in 20 minutes")
    await home.remind("feed the cat", "in 30 minutes")
    home.now = SOON
    _fire_only(home)
    _log_only(home)
    with home.home.db.write() as db:
        db.execute("DROP TRIGGER temp.stop")
    home.now += timedelta(minutes=10)
    _fire_only(home)
    home.jobs.log_sent_reminders(home.now)
    assert [text.rpartition("\n")[2] for text in home.home.add_message()[2:]] == [
        "Reminder: call mum",
        "Reminder: feed the cat",
    ]
    assert home.home.verify().ok


def _fire_only(home: AgendaHome) -> None:
    """What `Alarm.fire` commits, and then nothing more."""
    due = home.jobs.list_due(None, home.now, limit=100)
    ended = end_due_slots_of_jobs(due, home.now, LatenessPolicy(timedelta(minutes=1)), 100)
    home.jobs.apply_firing(build_firing(ended, BERLIN, home.now), home.now)


def _log_only(home: AgendaHome) -> None:
    """The log takes the record, and the transaction after it fails."""
    db = home.home.db
    with db.write():
        db.execute("CREATE TEMP TRIGGER stop BEFORE UPDATE ON slots BEGIN SELECT RAISE(ABORT, 'killed'); END")
    with pytest.raises(StoreError):
        home.jobs.log_sent_reminders(home.now)


async def test_a_reminder_within_a_tool_loop_leaves_the_turn_as_it_is(home: AgendaHome) -> None:
    await home.remind("call mum", "in 20 minutes")
    store = home.home.conversation
    turn = home.home.begin_turn("look it up")
    store.record_messages(turn, [Message("assistant", "", tool_calls=(ToolCall("c1", "look", {}),))], home.now)
    await home.fire_at(SOON)
    store.record_messages(turn, [Message("tool", "found", tool_call_id="c1", name="look")], home.now)
    assert [message.role for message in store.turn_messages(turn)] == ["user", "assistant", "tool"]
    sent = normalise(store.load_view("main").messages)
    assert [message.role for message in sent] == ["user", "assistant", "tool", "user"]
    assert "Reminder: call mum" in sent[-1].content
    assert sent[-1].metadata["note"]


async def test_what_was_missed_or_late_is_counted_until_somebody_looks(home: AgendaHome) -> None:
    await home.remind("stretch", "", repeat="every day at 8")
    await home.fire_after(days=4)
    assert home.jobs.count_unseen() == {"owner": 4}
    home.jobs.mark_seen(home.now)
    assert home.jobs.count_unseen() == {}
    assert all(slot.seen_at for slot in home.jobs.ended_slots("owner") if slot.state != "ran")


async def test_times_are_kept_in_utc(home: AgendaHome) -> None:
    job = await home.remind("call mum", "2026-11-21 09:00")
    assert job.due is not None
    assert job.due.at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert home.jobs.next_due_at() == job.due.at
