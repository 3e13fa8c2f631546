"""A wall clock that jumps: wrong for a minute, it has no effect; what a wrong one did is planned again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.core.approvals import ProposedEffect
from assistant.core.jobs import DeliveryTarget, JobRequest
from assistant.service.clock import HOLD, SteadyClock
from tests.support.machine_clock import MachineClock
from tests.support.running_app import ANN, BridgePeople, LiveApp, run_app

START = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)
YEARS = timedelta(days=3 * 365)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Life:
    """A home on a machine, with a reminder of every day at nine and one of today at ten."""

    def __init__(self, machine: MachineClock, it: LiveApp) -> None:
        self.machine = machine
        self.it = it

    async def wake(self, after: timedelta = timedelta(0)) -> None:
        """The machine runs on, and the daemon looks at the clock."""
        self.machine.run(after)
        self.it.app.check_due()
        await self.it.app.agenda_scheduler.fire_due()
        await self.it.wait_idle()

    async def set_clock(self, by: timedelta, *, stays: bool = True) -> None:
        self.machine.set_clock(by)
        await self.wake()
        if stays:
            await self.wake(HOLD)

    def next_times(self) -> dict[str, str]:
        jobs = self.it.app.stores.jobs.list_waiting("owner", "reminder")
        return {job.text: job.due.key for job in jobs if job.due is not None}

    def told(self) -> list[str]:
        return [body for body in self.it.bridge.bodies if body != "ok"]

    def problems(self) -> list[str]:
        return [line for line in self.it.app.status()["problems"] if "clock" in line]


@asynccontextmanager
async def a_life(home: Path, machine: MachineClock) -> AsyncIterator[Life]:
    now = SteadyClock(machine.wall, machine.elapsed)
    async with run_app(home, *["ok"] * 20, now=now, ASSISTANT_HOME__TIMEZONE="UTC") as it:
        yield Life(machine, it)


@asynccontextmanager
async def a_new_life(home: Path) -> AsyncIterator[Life]:
    async with a_life(home, MachineClock(START)) as life:
        await life.it.say("hello")
        await life.it.wait_idle()
        place = DeliveryTarget("main", "owner", "kept", "main")
        for text, when, repeat in (("stretch", "", "every day at 9"), ("call mum", "today at 10", "")):
            await life.it.app.agenda.create_reminder(JobRequest(text, place, text, when, repeat), START)
        assert life.next_times() == {"stretch": "2026-03-11T09:00", "call mum": "2026-03-11T10:00"}
        yield life


async def test_three_years_ahead_for_a_minute_and_back_changes_nothing(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.set_clock(YEARS, stays=False)
        (problem,) = life.problems()
        assert "Saturday 2029-03-10 08:30" in problem and "Wednesday 2026-03-11 08:30" in problem
        await life.wake(MINUTE)
        await life.set_clock(-YEARS, stays=False)
        assert life.next_times() == {"stretch": "2026-03-11T09:00", "call mum": "2026-03-11T10:00"}
        assert life.problems() == []
        assert life.told() == [
            "The clock of this machine was wrong for a few minutes: it showed Saturday 2029-03-10 08:31 when it was "
            "Wednesday 2026-03-11 08:31. It is right again, and nothing was done by the wrong time."
        ]
        await life.wake(2 * HOUR)
        assert [text for text in life.told() if text.startswith("Reminder: ")] == [
            "Reminder: stretch\n(It was due Wednesday 2026-03-11 09:00, 1 hour ago.)",
            "Reminder: call mum\n(It was due Wednesday 2026-03-11 10:00, 31 minutes ago.)",
        ]


async def test_what_was_sent_and_moved_by_a_clock_that_was_ahead_comes_at_its_time_once_it_is_right(
    tmp_path: Path,
) -> None:
    async with a_new_life(tmp_path) as life:
        await life.set_clock(YEARS)
        assert life.next_times() == {"stretch": "2029-03-10T09:00"}
        assert any("call mum" in text for text in life.told())
        await life.set_clock(-YEARS)
        assert life.next_times() == {"stretch": "2026-03-11T09:00", "call mum": "2026-03-11T10:00"}
        assert "2 reminders and schedules" in life.told()[-1] and "set back by 1,095 days" in life.told()[-1]
        shown = len(life.told())
        await life.wake(20 * MINUTE)
        await life.wake(HOUR)
        assert life.told()[shown:] == ["Reminder: stretch", "Reminder: call mum"]
        assert life.next_times() == {"stretch": "2026-03-12T09:00"} and life.problems() == []


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("ahead", [timedelta(days=1), YEARS])
async def test_what_a_clock_that_was_ahead_sent_before_its_time_comes_late_if_the_clock_is_right_only_after_that(
    tmp_path: Path, ahead: timedelta, restarts: bool
) -> None:
    async with a_new_life(tmp_path) as life:
        machine = life.machine
        await life.wake(MINUTE)
        await life.set_clock(ahead)
        assert sum("stretch" in text for text in life.told()) == 1
        if not restarts:
            await life.wake(25 * MINUTE)
            await life.set_clock(-ahead)
            await _comes_late_and_goes_on(life)
    if restarts:
        machine.set_clock(-ahead)
        machine.run(30 * MINUTE)
        async with a_life(tmp_path, machine) as life:
            await life.wake()
            await _comes_late_and_goes_on(life)


async def _comes_late_and_goes_on(life: Life) -> None:
    """At six past nine; then it is ten."""
    await life.wake(54 * MINUTE)
    reminders = [text for text in life.told() if text.startswith("Reminder: ")]
    assert reminders[-2:] == [
        "Reminder: stretch\n(It was due Wednesday 2026-03-11 09:00, 6 minutes ago.)",
        "Reminder: call mum",
    ]
    assert life.next_times() == {"stretch": "2026-03-12T09:00"}


async def test_a_day_that_was_planned_anew_by_a_clock_that_was_ahead_stays_where_it_was_put(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.set_clock(YEARS)
        mum = next(job for job, _ in life.it.app.agenda.list_recent("owner", START, limit=9) if job.text == "call mum")
        request = JobRequest("later", mum.place, "", "2026-03-13 at 12:00")
        await life.it.app.agenda.change_reminder(mum.id, request, START)
        await life.wake(HOUR + 40 * MINUTE)
        await life.set_clock(-YEARS)
        assert life.next_times() == {"stretch": "2026-03-12T09:00", "call mum": "2026-03-13T12:00"}


async def test_a_clock_that_is_set_right_while_nothing_runs_is_noticed_at_the_start(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.set_clock(YEARS)
    async with a_life(tmp_path, MachineClock(START + 10 * MINUTE)) as life:
        assert life.next_times() == {"stretch": "2026-03-11T09:00", "call mum": "2026-03-11T10:00"}
        assert life.problems() == []
        await life.wake(2 * HOUR)
        assert sum("stretch" in text for text in life.told()) == sum("call mum" in text for text in life.told()) == 1


async def test_a_start_by_a_clock_that_is_ahead_is_planned_again_too(tmp_path: Path) -> None:
    async with a_new_life(tmp_path):
        """It is stopped."""
    async with a_life(tmp_path, MachineClock(START + YEARS)) as life:
        await life.wake()
        assert life.next_times() == {"stretch": "2029-03-10T09:00"}
        await life.set_clock(-YEARS)
        assert life.next_times() == {"stretch": "2026-03-11T09:00", "call mum": "2026-03-11T10:00"}


async def test_years_ahead_over_a_start_are_taken_back_after_hours_ahead_that_nobody_noticed(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        machine = life.machine
    for ahead in (13 * HOUR, YEARS):
        machine.set_clock(ahead)
        async with a_life(tmp_path, machine) as life:
            await life.wake(2 * MINUTE)
            if ahead == YEARS:
                assert life.next_times()["stretch"].startswith("2029")
                await life.set_clock(-ahead)
                assert life.next_times() == {"stretch": "2026-03-11T09:00"}
        if ahead != YEARS:
            machine.set_clock(-ahead)


async def test_a_start_by_a_clock_that_is_ahead_is_noticed_where_nothing_was_said_or_an_earlier_jump_was_set_back(
    tmp_path: Path,
) -> None:
    machine = MachineClock(START)
    async with a_life(tmp_path, machine) as life:
        place = DeliveryTarget("main", "owner", "kept", "main")
        await life.it.app.agenda.create_reminder(JobRequest("n", place, "stretch", "", "every day at 9"), START)
    for _ in range(2):
        machine.set_clock(YEARS)
        async with a_life(tmp_path, machine) as life:
            await life.wake(MINUTE)
            assert life.next_times()["stretch"].startswith("2029")
            await life.set_clock(-YEARS)
            assert life.next_times() == {"stretch": "2026-03-11T09:00"}


async def test_a_clock_of_1970_repeats_nothing_and_is_told_until_it_is_right(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.wake(2 * HOUR)
        assert life.next_times() == {"stretch": "2026-03-12T09:00"}
    machine = MachineClock(datetime(1970, 1, 1, 0, 5, tzinfo=UTC))
    async with a_life(tmp_path, machine) as life:
        await life.wake()
        (problem,) = life.problems()
        assert "Thursday 1970-01-01 00:05" in problem and "Wednesday 2026-03-11 10:30" in problem
        await life.set_clock(START + 3 * HOUR - machine.wall())
        assert life.problems() == [] and life.next_times() == {"stretch": "2026-03-12T09:00"}
        assert not any("Reminder" in text for text in life.told())


@pytest.mark.parametrize("end", [datetime.min, datetime.max])
async def test_a_year_at_an_end_of_the_calendar_is_told_and_nothing_is_planned_by_it(
    tmp_path: Path, end: datetime
) -> None:
    async with a_new_life(tmp_path) as life:
        life.machine.set_to(end.replace(tzinfo=UTC))
        await life.wake(HOLD)
        (problem,) = life.problems()
        assert "a year before 1970 or after 9799" in problem and "Wednesday 2026-03-11 08:35" in problem
        await life.wake(2 * HOUR)
        assert life.next_times() == {"stretch": "2026-03-12T09:00"}
    async with a_life(tmp_path, life.machine) as life:
        await life.it.say("are you there?")
        assert "9799" in life.problems()[0]
        assert "Nothing was changed" not in str(await life.it.app.commands.run("/agenda week", "main"))
        life.machine.set_to(START + 3 * HOUR)
        await life.wake()
        await life.wake(HOLD)
        assert life.problems() == [] and life.next_times() == {"stretch": "2026-03-12T09:00"}


async def test_a_year_in_which_nothing_ran_is_no_jump(tmp_path: Path) -> None:
    async with a_new_life(tmp_path):
        """It is stopped."""
    async with a_life(tmp_path, MachineClock(START + timedelta(days=365))) as life:
        await life.wake()
        await life.wake(HOUR)
        assert life.problems() == [] and not any("clock" in text for text in life.told())
        assert life.next_times() == {"stretch": "2027-03-12T09:00"}


async def test_a_conversation_goes_on_while_a_jump_is_not_believed(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.set_clock(YEARS, stays=False)
        await life.it.say("are you there?")
        await life.it.wait_idle()
        assert life.it.bridge.bodies[-1] == "ok"
        await life.set_clock(-YEARS, stays=False)
        (info,) = life.it.app.stores.conversation.list_sessions()
        assert info.last_at is not None and info.last_at.year == 2026


async def test_after_an_hour_in_which_the_process_stood_still_what_was_due_comes_once(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        await life.it.app.commands.run('/remind drink --every "minute"', "main", bridge="kept", target="main")
        before = len(life.told())
        for waited in (61.5 * MINUTE, MINUTE / 6, MINUTE / 6):
            await life.wake(waited)
        assert sorted(life.told()[before:]) == [
            "Reminder: drink",
            "Reminder: stretch\n(It was due Wednesday 2026-03-11 09:00, 31 minutes ago.)",
        ]
        assert life.next_times() == {"stretch": "2026-03-12T09:00", "call mum": "2026-03-11T10:00"} | {
            "drink": "2026-03-11T09:32"
        }
        assert life.problems() == []


@pytest.mark.parametrize("back", [MINUTE * 20, YEARS])
async def test_codes_and_approvals_do_not_outlast_a_clock_that_is_set_back(tmp_path: Path, back: timedelta) -> None:
    async with a_new_life(tmp_path) as life:
        it, stores = life.it, life.it.app.stores
        await BridgePeople(it).write("may I come in", ANN)
        link = (await it.app.commands.run("/people link kept", "main")).split()[1]
        what = (
            "main",
            1,
            "owner",
            "a turn",
            "c0",
            "ring_bell",
            {},
            "ring",
            "kept",
            "main",
            START,
            START + HOUR,
            "p",
            "a",
        )
        asked, allowed = (
            stores.approvals.propose(ProposedEffect(key, *what), "pending") for key in ("asked", "allowed")
        )
        stores.approvals.decide(allowed.id, "approved", "", START, allowed_until=START + HOUR)
        await life.wake(30 * MINUTE)
        await life.set_clock(-back)
        now = it.app.base.clock()
        # Where the clock shows a time before they were made they hold no more; else for what was left of the hour.
        holds = back < HOUR / 2
        assert len(stores.pairings.pending_pairings(now)) == (2 if holds else 0)
        assert len(stores.approvals.list_allowed(now)) == holds
        assert len(stores.approvals.list_pending()) == 1 and asked.waits_at(now) == holds
        await life.wake(26 * MINUTE)
        now = it.app.base.clock()
        assert stores.pairings.pending_pairings(now) == stores.approvals.list_allowed(now) == []
        assert stores.approvals.list_pending() == [] and "Not done, since you did not answer" in life.told()[-1]
        await BridgePeople(it).write(link, ANN)
        assert stores.people.list_people() == []


async def test_years_ahead_that_were_set_back_are_told_no_more_after_another_jump(tmp_path: Path) -> None:
    async with a_new_life(tmp_path) as life:
        for by in (YEARS, 13 * HOUR):
            await life.set_clock(by)
            if by == YEARS:
                await life.it.say("hello again")
                await life.wake()
            await life.set_clock(-by)
            assert life.problems() == []
