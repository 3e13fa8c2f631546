"""That nothing will run when something is due, and that nothing ran: said before and after, and how to change it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.agenda.attendance import AgendaWatch, find_agenda_problems
from assistant.agenda.catch_up import LatenessPolicy
from assistant.core.calendar import utc_now
from assistant.core.jobs import DeliveryTarget, JobRequest
from assistant.service.presence import advise_to_stay
from assistant.service.unit_files import quote_unit_word
from assistant.settings.settings import load_settings
from assistant.wire.services import build_agenda
from assistant.wire.stores import Stores, stored_status
from tests.support.agenda_home import BERLIN, GUEST, AgendaHome, open_agenda_home
from tests.support.command_line import run_assistant, run_daemon, run_in_process
from tests.support.running_app import LiveApp, run_app

WILL_NOT_COME = "Reminders come only while the assistant runs"
WILL_NOT_RUN = "Schedules run only while the assistant runs"
WAITS = f"and nothing will run the assistant then. {advise_to_stay()}"


def enable_service(config: Path, home: Path) -> None:
    """As `assistant service install` and systemd leave it."""
    unit = config / "systemd" / "user" / "default.target.wants" / "nocturne-assistant.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(f"[Service]\nEnvironment={quote_unit_word(f'ASSISTANT_HOME={home}')}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "will_not"),
    [
        (("remind", "call mum", "--at", "tomorrow at 9"), WILL_NOT_COME),
        (("schedule", "add", "news", "What is new?", "--every", "day at 9"), WILL_NOT_RUN),
    ],
)
def test_who_sets_something_that_nothing_will_run_for_is_told_so(
    tmp_path: Path, words: tuple[str, ...], will_not: str
) -> None:
    done = run_in_process(tmp_path / "home", *words)
    assert done.returncode == 0
    assert done.err.startswith(will_not) and advise_to_stay() in done.err
    assert run_in_process(tmp_path / "home", "remind", "x", "--at", "tomorrow", "--json").out.count(WILL_NOT_COME) == 1


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd has its agents elsewhere")
def test_where_a_service_is_enabled_there_is_no_remark(tmp_path: Path) -> None:
    home, config = tmp_path / "home", tmp_path / "config"
    enable_service(config, tmp_path / "another home")
    done = run_in_process(home, "remind", "a", "--at", "tomorrow", XDG_CONFIG_HOME=str(config))
    assert WILL_NOT_COME in done.err
    enable_service(tmp_path / "config2", home)
    done = run_in_process(home, "remind", "b", "--at", "tomorrow", XDG_CONFIG_HOME=str(tmp_path / "config2"))
    assert done.err == ""
    report = run_in_process(home, "status", "--json", XDG_CONFIG_HOME=str(tmp_path / "config2"))
    assert json.loads(report.out)["unattended"] == ""


def test_where_a_daemon_runs_there_is_no_remark_and_it_says_to_stay_open(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert "Keep this terminal open: reminders come while it runs." in running.hint
        done = run_assistant(home, "remind", "call mum", "--at", "tomorrow")
        asked = run_assistant(home, "chat", "-m", "remind me to eat tomorrow at 9")
        assert (done.err, asked.err) == ("", "")
        assert WILL_NOT_COME not in asked.out
    assert json.loads(run_in_process(home, "status", "--json").out)["unattended"].startswith("2 reminders")


def test_who_sets_something_in_a_chat_is_told_once_that_nothing_will_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = b"remind me to eat tomorrow at 9\nremind me to drink tomorrow at 10\n"
    done = run_assistant(home, "chat", said=lines)
    # The answer said it, so that it is not said again at the end.
    assert done.out.count(WILL_NOT_COME) == 1 and done.err == ""
    asked = run_assistant(home, "chat", "-m", "remind me to sleep tomorrow at 11")
    assert asked.out.count(WILL_NOT_COME) == 1 and asked.err == ""
    # Whoever asks one thing after that has been told.
    assert run_assistant(home, "chat", "-m", "hello").err == ""
    assert WAITS in run_in_process(home, "status").out


def test_a_service_is_advised_only_where_something_manages_services() -> None:
    assert "service install" in advise_to_stay("systemd")
    without = advise_to_stay("")
    assert "service install" not in without and "`assistant run`" in without


async def test_a_conversation_is_told_once_however_much_is_set(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        it.app.agenda.stays = lambda: False
        run = it.app.commands.run
        # A paragraph of its own, so that it is no part of the list of what was set.
        assert f"\n\n{WILL_NOT_COME}" in await run("/remind a --at tomorrow", "main")
        assert WILL_NOT_COME not in await run("/remind b --at tomorrow", "main")
        theirs = await run("/remind c --at tomorrow", GUEST.session)
        assert "only if the assistant is running" in theirs and "install" not in theirs


def agenda_problems(it: LiveApp) -> list[str]:
    return [problem for problem in it.app.status()["problems"] if "reminder" in problem]


async def test_status_names_what_came_late_and_what_never_came_until_somebody_looks(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        await it.app.commands.run("/remind call mum --at tomorrow at 9", "main")
        it.clock.now += timedelta(days=2)
        (problem,) = agenda_problems(it)
        assert '1 reminder or schedule is due and was not sent: "call mum" (' in problem
        assert problem.endswith(f"They come as soon as the assistant runs. {advise_to_stay()}")
        await it.app.agenda_scheduler.fire_due()
        (problem,) = agenda_problems(it)
        assert (
            '1 reminder or schedule came late or not at all, because the assistant was not running then: "call mum" ('
            in problem
        )
        assert " 09:00, late). `assistant schedule history` shows why" in problem
        assert not it.app.status()["ok"]
        await it.app.commands.run("/schedule history", "main")
        assert agenda_problems(it) == []


async def test_what_is_due_while_nothing_runs_is_red_at_once_and_is_not_said_to_come_then(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        await it.app.commands.run("/remind call mum --at tomorrow at 9", "main")
        settings, stores = it.app.settings, it.app.stores
        due_at = stores.jobs.next_due_at()
        assert due_at is not None
        before = stored_status(settings, stores, due_at - timedelta(seconds=1))
        assert before["ok"] and before["unattended"].endswith(WAITS)
        after = stored_status(settings, stores, due_at + timedelta(seconds=1))
        (problem,) = after["problems"]
        assert '1 reminder or schedule is due and was not sent: "call mum" (' in problem
        assert "1 reminder waits, since " in after["unattended"]
        assert after["unattended"].endswith(f"09:00, and nothing runs the assistant. {advise_to_stay()}")
        # A process that serves is given a moment.
        it.clock.now = due_at + timedelta(seconds=1)
        assert agenda_problems(it) == []


async def problems(home: AgendaHome) -> list[str]:
    watch = AgendaWatch(LatenessPolicy(timedelta(minutes=1)), 30, BERLIN, is_served=True)
    return list(find_agenda_problems(home.jobs, watch, home.now))


async def test_what_waited_for_quiet_hours_needs_nobody() -> None:
    with open_agenda_home(quiet="10:00-14:00") as home:
        await home.remind("call mum", "today at 11:30")
        await home.fire_after(hours=3)
        assert home.slot_states() == ["late"]
        assert await problems(home) == []


async def test_words_of_others_are_counted_and_not_shown_and_many_are_not_all_named() -> None:
    with open_agenda_home() as home:
        await home.remind("their secret", "in 5 minutes", place=GUEST)
        for number in range(5):
            await home.remind(f"mine {number}", "in 6 minutes")
        home.now += timedelta(hours=2)
        for text in (*await problems(home), await home.fire_after(hours=1) and "", *await problems(home)):
            assert "secret" not in str(text)
        (problem,) = await problems(home)
        assert problem.startswith("6 times of reminders and schedules came late") and problem.count("mine") == 3
        assert "; 3 more. " in problem


def set_yesterday(home: Path) -> None:
    """A reminder that came due while nothing ran."""
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    then = utc_now() - timedelta(days=1)
    with closing(Stores(settings, then)) as stores:
        agenda, _ = build_agenda(settings, stores, lambda: None, lambda: then)
        place = DeliveryTarget("main", "owner", "terminal", "main")
        asyncio.run(agenda.create_reminder(JobRequest("k", place, "call mum", "in 1 hour"), then))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_question_asked_after_something_came_due_sends_and_shows_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    set_yesterday(home)
    red = run_in_process(home, "status")
    assert red.returncode == 1 and 'not sent: "call mum" (' in red.out
    asked = run_assistant(home, "chat", "-m", "hello", *options)
    assert asked.returncode == 0
    assert "Reminder: call mum" in asked.err + asked.out and "Hello" in asked.out
    red = run_in_process(home, "status")
    assert red.returncode == 1 and "came late or not at all" in red.out and '"call mum"' in red.out
    assert "late at" in run_in_process(home, "schedule", "history").out
    assert run_in_process(home, "status").returncode == 0
    assert "Reminder" not in run_assistant(home, "chat", "-m", "hello").err
