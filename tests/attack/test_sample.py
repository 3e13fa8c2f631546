"""A few cases of each attack, small enough for every change; `make attack` runs all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from assistant.core.sessions import MAIN_SESSION
from tests.attack import clock, command_lines, disk, hostile_files, hostile_text, kill, settings, stop
from tests.attack.__main__ import find_kinds
from tests.attack.flood import FLOODS, FloodSizes
from tests.attack.flood import run as run_flood
from tests.attack.losses import find_losses
from tests.attack.served_home import ServedHome, WorldRecord, settings_for, stopped_in_the_end
from tests.crash.available import needs_strace

SEED = 20260301
SMALL = FloodSizes(100, 100, 20, 1 << 20, 1_000, 10, 2.0)


def test_every_attack_is_found_by_its_name() -> None:
    assert {
        "kill",
        "stop",
        "command-lines",
        "disk",
        "clock",
        "flood",
        "hostile-text",
        "hostile-files",
        "injections",
        "settings",
    } <= set(find_kinds())


def test_a_daemon_killed_in_a_busy_life_loses_nothing_and_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill, "KILLS", 3)
    assert kill.run(SEED, 1).failures == ()


def test_an_order_that_found_nothing_to_do_is_not_counted_as_done(tmp_path: Path) -> None:
    home, world = tmp_path / "home", WorldRecord()
    # Nothing is said, so that no model is asked.
    served = ServedHome(home, settings_for(home, "http://127.0.0.1:9"))

    async def reset_what_is_empty() -> None:
        async with served.linked() as link:
            await world.order(link, "reset", "early", ["reset", "--yes"], MAIN_SESSION)

    with stopped_in_the_end(served):
        served.start()
        asyncio.run(reset_what_is_empty())
        assert served.stop() == 0
    assert (world.tried, world.done) == ([("reset", "early")], [])
    assert find_losses(home, world) == []


def test_a_daemon_that_is_stopped_in_a_sleep_loses_nothing_and_the_next_one_sleeps_on() -> None:
    assert stop.run(SEED, 1).failures == ()


@needs_strace
def test_a_disk_that_refuses_for_a_while_loses_nothing() -> None:
    assert disk.run(SEED, 2).failures == ()


def test_a_clock_that_jumps_leaves_every_reminder_where_it_belongs() -> None:
    assert clock.run(SEED, 3).failures == ()


def test_hostile_files_are_taken_or_refused_in_words() -> None:
    assert hostile_files.run(SEED, 50).failures == ()


def test_settings_of_every_wrong_kind_are_refused_in_a_few_words_and_the_old_ones_stay() -> None:
    assert settings.run(SEED, 300).failures == ()


def test_hostile_command_lines_are_carried_out_or_refused_in_a_few_words() -> None:
    assert command_lines.run(SEED, 90).failures == ()


# Every other case is an expression: those have their own test (`tests/unit/test_regex_growth.py`).
@pytest.mark.parametrize("case", [1, 5, 7])
def test_hostile_text_takes_time_in_proportion_to_its_length(case: int) -> None:
    assert hostile_text.run(SEED, only=case).failures == ()


@pytest.mark.parametrize("case", [0, 4, 5, 7])
def test_a_small_flood_is_kept_whole(case: int) -> None:
    # How fast the health is told is for a machine that does nothing else.
    failures = run_flood(SEED, only=case, sizes=SMALL).failures
    assert [failure for failure in failures if "health" not in failure] == [], list(FLOODS)[case]
