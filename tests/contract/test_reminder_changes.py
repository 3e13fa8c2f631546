"""A reminder is moved, snoozed, named anew, made to repeat and to come once: each change once, and in its scope."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from assistant.agenda.recurrence import describe_recurrence, first_due, next_due
from assistant.core.errors import UsageError
from assistant.core.jobs import Job, JobRequest
from tests.support.agenda_home import GUEST, MAIN, AgendaHome, open_agenda_home


@pytest.fixture
def home() -> Iterator[AgendaHome]:
    with open_agenda_home() as home:
        yield home


async def change(
    home: AgendaHome,
    job: Job,
    *,
    text: str = "",
    when: str = "",
    repeat: str = "",
    key: str = "c",
    place: object = MAIN,
) -> str:
    """What is known of the reminder afterwards."""
    request = JobRequest(key, MAIN if place is MAIN else GUEST, text, when, repeat)
    changed = await home.agenda.change_reminder(job.id, request, home.now)
    return f"{changed.id} {changed.text}: {home.agenda.describe_due(changed)}"


async def test_a_reminder_is_moved_and_comes_at_its_new_time_alone(home: AgendaHome) -> None:
    job = await home.remind("call mum", "tomorrow at 9")
    assert await change(home, job, when="tomorrow at 15:00") == ("1 call mum: Saturday 2026-11-21 15:00")
    assert await home.fire_after(hours=24) == 0
    assert await home.fire_after(hours=4) == 1
    assert home.pending_bodies() == ["Reminder: call mum"]


async def test_a_reminder_that_came_is_snoozed(home: AgendaHome) -> None:
    job = await home.remind("tea", "in 5 minutes")
    await home.fire_after(minutes=5)
    ((recent, came_at),) = home.agenda.list_recent("owner", home.now - timedelta(hours=1), limit=5)
    assert (recent.id, came_at) == (job.id, home.now)
    assert await change(home, job, when="in 10 minutes") == "1 tea: Friday 2026-11-20 11:15"
    assert await home.fire_after(minutes=10) == 1
    assert home.pending_bodies() == ["Reminder: tea"] * 2


async def test_the_same_key_changes_it_once(home: AgendaHome) -> None:
    job = await home.remind("tea", "in 5 minutes")
    first = await change(home, job, when="in 10 minutes")
    home.now += timedelta(minutes=1)
    assert await change(home, job, when="in 10 minutes") == first
    assert await change(home, job, when="in 10 minutes", key="d") != first


async def test_the_text_alone_is_changed(home: AgendaHome) -> None:
    job = await home.remind("tea", "tomorrow", repeat="every day")
    assert (await change(home, job, text="green tea")).startswith("1 green tea: every day: Saturday 2026-11-21 09:00")


async def test_it_repeats_from_the_time_that_it_has_and_comes_once_again(home: AgendaHome) -> None:
    job = await home.remind("bins", "today at 18:00")
    assert (await change(home, job, repeat="every week")).startswith("1 bins: every week: Friday 2026-11-20 18:00")
    assert (await change(home, job, repeat="every day at 7:00", key="d")).startswith(
        "1 bins: every day: Saturday 2026-11-21 07:00"
    )
    assert await change(home, job, repeat="once", key="e") == "1 bins: Saturday 2026-11-21 07:00"


async def test_another_hour_of_one_that_repeats_holds_from_then_on(home: AgendaHome) -> None:
    job = await home.remind("stretch", "", repeat="every weekday at 9")
    assert (await change(home, job, when="at 10:30")).startswith("1 stretch: every weekday: Monday 2026-11-23 10:30")


MOVED = [
    ("every thursday at 7", "friday at 8", "every Friday: Friday 2026-11-27 08:00"),
    ("every thursday at 7", "Freitag um 8 Uhr", "every Friday: Friday 2026-11-27 08:00"),
    ("every thursday at 7", "2026-11-24T08:00", "every Tuesday: Tuesday 2026-11-24 08:00"),
    ("every thursday at 7", "at 8", "every Thursday: Thursday 2026-11-26 08:00"),
    ("every thursday at 7", "18:30", "every Thursday: Thursday 2026-11-26 18:30"),
    ("every weekday at 9", "tuesday at 10", "every weekday: Tuesday 2026-11-24 10:00"),
    ("every month on the 28th", "on the 3rd at 9", "every month on the 3rd: Thursday 2026-12-03 09:00"),
    ("every day at 9", "tuesday at 10", "every day: Tuesday 2026-11-24 10:00"),
]


@pytest.mark.parametrize(("often", "when", "expected"), MOVED)
async def test_one_that_repeats_is_moved_to_another_day(home: AgendaHome, often: str, when: str, expected: str) -> None:
    job = await home.remind("bins", "", repeat=often)
    assert (await change(home, job, when=when)).startswith(f"1 bins: {expected}")


async def test_one_of_several_days_is_not_moved_to_a_day_that_its_rule_has_not(home: AgendaHome) -> None:
    job = await home.remind("choir", "", repeat="every monday and thursday at 19:00")
    with pytest.raises(UsageError, match="every Monday and Thursday: say how often it repeats now"):
        await change(home, job, when="friday at 19:00")
    assert home.jobs.get_job(job.id, "owner", "reminder") == job


async def test_one_that_repeats_is_snoozed_by_another_that_comes_once(home: AgendaHome) -> None:
    job = await home.remind("stretch", "", repeat="every day at 9")
    assert await change(home, job, when="in 20 minutes") == "2 stretch: Friday 2026-11-20 11:20"
    assert [waiting.id for waiting in home.agenda.list_reminders("owner")] == [2, 1]


@pytest.mark.parametrize("wrong", [{}, {"when": "yesterday"}, {"repeat": "sometimes"}, {"text": "x" * 1001}])
async def test_what_cannot_be_understood_changes_nothing(home: AgendaHome, wrong: dict[str, str]) -> None:
    job = await home.remind("tea", "tomorrow at 9")
    with pytest.raises(UsageError, match=r"Nothing was (set|changed)"):
        await change(home, job, **wrong)
    assert home.agenda.list_reminders("owner") == [job]


async def test_nobody_changes_what_is_of_somebody_else_or_cancelled(home: AgendaHome) -> None:
    job = await home.remind("tea", "tomorrow at 9")
    with pytest.raises(UsageError, match="No reminder 1 is waiting"):
        await change(home, job, when="in 5 minutes", place=GUEST)
    home.agenda.cancel_reminder(job.id, "owner", "x", home.now)
    with pytest.raises(UsageError, match="No reminder 1 is waiting"):
        await change(home, job, when="in 5 minutes")


@pytest.mark.parametrize(
    ("when", "repeat", "then"),
    [
        ("today at 19:00", "every 2 weeks", "2026-12-04 19:00 2026-12-18 19:00"),
        ("2026-12-07 9:00", "FREQ=MONTHLY;BYDAY=1MO", "2027-01-04 09:00 2027-02-01 09:00"),
        ("2026-12-31 9:00", "FREQ=MONTHLY;INTERVAL=3", "2027-03-31 09:00 2027-12-31 09:00"),
        ("2026-12-24 9:00", "every year", "2027-12-24 09:00 2028-12-24 09:00"),
        ("2026-11-26 9:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", "2026-12-07 09:00 2026-12-10 09:00"),
        ("2026-11-23 9:00", "30 8 * * 1", "2026-11-30 08:30 2026-12-07 08:30"),
        ("tomorrow at 9", "FREQ=DAILY;COUNT=3", "2026-11-22 09:00 2026-11-23 09:00"),
        ("today at 18:00", "every 3 days", "2026-11-23 18:00 2026-11-26 18:00"),
    ],
)
async def test_what_repeats_is_skipped_once_and_goes_on_in_its_own_rhythm(
    when: str, repeat: str, then: str, home: AgendaHome
) -> None:
    job = await home.remind("choir", when, repeat=repeat)
    changed = await home.agenda.change_reminder(job.id, JobRequest("k", MAIN, "", "skip", ""), home.now)
    assert changed.due is not None and describe_recurrence(changed.spec) == describe_recurrence(job.spec)
    after = next_due(changed.spec, home.agenda.zone, changed.due)
    assert after is not None
    assert f"{changed.due.key} {after.key}".replace("T", " ") == then
    replanned = first_due(changed.spec, home.agenda.zone, home.now)
    assert replanned == changed.due or "COUNT" in repeat or repeat[0].isdigit()


async def test_what_comes_no_more_after_its_next_time_is_not_skipped(home: AgendaHome) -> None:
    once = await home.remind("tea", "in 5 minutes")
    with pytest.raises(UsageError, match=r"It comes no more after its next time.*Nothing was changed"):
        await change(home, once, when="skip")
    assert home.agenda.list_reminders("owner")[0].due == once.due
