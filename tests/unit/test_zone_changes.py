"""The owner moves to another time zone: what repeats at a time of day comes at that time there, each date once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.scheduler import AgendaScheduler
from assistant.agenda.service import AgendaConfig, AgendaService
from assistant.agenda.zone_changes import follow_time_zone
from assistant.core.calendar import utc_to_local
from assistant.core.jobs import JobRequest
from assistant.core.notices import Notice
from tests.support.agenda_home import BERLIN, GUEST, MAIN, AgendaHome, open_agenda_home

NEW_YORK, TOKYO = ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")


@pytest.fixture
def home() -> Iterator[AgendaHome]:
    with open_agenda_home() as opened:
        yield opened


def move(home: AgendaHome, zone: ZoneInfo) -> list[Notice]:
    """A restart in another zone."""
    home.restart()
    lateness = LatenessPolicy(timedelta(minutes=1), None)
    home.alarm = AgendaScheduler(home.jobs, lateness, zone, lambda: None, lambda: home.now, longest_wait=30)
    config = AgendaConfig(zone, "once", 100, lateness)
    home.agenda = AgendaService(home.jobs, config, home.alarm.check_due)
    told: list[Notice] = []
    follow_time_zone(home.jobs, zone, told.append)
    return told


async def run_until(home: AgendaHome, end: datetime) -> None:
    while (at := home.jobs.next_due_at()) is not None and at < end:
        await home.fire_at(max(at, home.now))
    home.now = end


def came(home: AgendaHome, zone: ZoneInfo) -> list[str]:
    """When each came, as a clock there shows it."""
    ended = home.jobs.ended_slots("owner", limit=1000)[::-1]
    return [f"{utc_to_local(slot.ended_at, zone):%d %H:%M}" for slot in ended]


@pytest.mark.parametrize(
    ("zone", "moves_at", "expected"),
    [
        # 20 Nov, 14:00 in Berlin is 08:00 in New York: that of this date came in Berlin.
        (NEW_YORK, datetime(2026, 11, 20, 13, 0, tzinfo=UTC), ["20 03:15", "21 09:15", "22 09:15"]),
        # 20 Nov, 06:00 in Berlin is 14:00 in Tokyo: that of this date passed on the way, and comes once, late.
        (TOKYO, datetime(2026, 11, 20, 5, 0, tzinfo=UTC), ["20 14:00", "21 09:15", "22 09:15"]),
    ],
)
async def test_what_repeats_at_a_time_of_day_comes_at_that_time_by_the_clock_where_the_owner_is(
    home: AgendaHome, zone: ZoneInfo, moves_at: datetime, expected: list[str]
) -> None:
    home.now = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
    await home.remind("stretch", "", repeat="every day at 9:15")
    await run_until(home, moves_at)
    assert [notice.kind.name for notice in move(home, zone)] == ["TIME_ZONE_CHANGED"]
    assert move(home, zone) == []
    await run_until(home, datetime(2026, 11, 22, 23, 0, tzinfo=UTC))
    assert came(home, zone) == expected


async def test_a_journey_there_and_back_repeats_and_misses_nothing(home: AgendaHome) -> None:
    home.now = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
    await home.schedule("lunch", "What is on?", "", repeat="30 12 * * *")
    for day, zone in ((20, NEW_YORK), (22, BERLIN), (23, TOKYO), (25, BERLIN)):
        await run_until(home, datetime(2026, 11, day, 20, 0, tzinfo=UTC))
        assert len(move(home, zone)) == 1
    await run_until(home, datetime(2026, 11, 28, 0, 0, tzinfo=UTC))
    slots = home.jobs.ended_slots("owner", limit=100)[::-1]
    assert [slot.local_key for slot in slots] == [f"2026-11-{day}T12:30" for day in range(20, 28)]


async def test_a_moment_an_interval_and_what_others_set_stay_where_they_are(home: AgendaHome) -> None:
    await home.remind("call", "tomorrow at 9")
    await home.remind("drink", "", repeat="every 2 hours")
    await home.remind("theirs", "", repeat="every day at 8", place=GUEST)
    before = [
        (job.id, job.due) for scope in ("owner", GUEST.scope) for job in home.jobs.list_waiting(scope, "reminder")
    ]
    assert move(home, NEW_YORK) == []
    after = [(job.id, job.due) for scope in ("owner", GUEST.scope) for job in home.jobs.list_waiting(scope, "reminder")]
    assert before == after


async def test_a_reminder_that_is_changed_after_a_move_comes_when_the_clock_there_shows_it(home: AgendaHome) -> None:
    """It came at 15:00 of this date where it was set, and is to come at 15:00 of the same date, and of each day."""
    job = await home.remind("call", "today at 15:00")
    repeating = await home.remind("drink", "", repeat="every 2 hours")
    await run_until(home, datetime(2026, 11, 20, 15, 0, tzinfo=UTC))
    move(home, NEW_YORK)
    for changed, repeat in ((job, ""), (repeating, "every day at 15:00")):
        await home.agenda.change_reminder(
            changed.id, JobRequest(f"c{changed.id}", MAIN, "", "" if repeat else "today at 15:00", repeat), home.now
        )
    sent = len(home.pending_items())
    await run_until(home, datetime(2026, 11, 21, 23, 0, tzinfo=UTC))
    assert len(home.pending_items()) == sent + 3
    assert [job.zone for job in home.jobs.list_waiting("owner", "reminder")] == [NEW_YORK.key]
