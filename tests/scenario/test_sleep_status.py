"""What keeps a home from remembering turns its status red, a line each, until it is over."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.memories import ChangePlan, JournalEntry, MemoryChange, SleepReport
from assistant.wire.stores import stored_status
from sleep.cycle.change_plan import memory_from_entry
from tests.scenario.test_compaction_status import problems
from tests.support.command_line import run_in_process
from tests.support.running_app import LiveApp, run_app
from tests.support.store_home import NOW

DOWN = "The memory store cannot be reached: connection refused"
ENTRY = JournalEntry("k", "owner", "main", 1, "I live in Oslo.", NOW, "extraction")


def slept(it: LiveApp, trigger: str = "sleep", state: Any = "done", **phases: dict[str, Any]) -> SleepReport:
    """A sleep that ended so, now."""
    journal, now = it.app.stores.journal, it.clock()
    report = SleepReport(journal.begin_cycle(trigger, now), trigger, now, now, state, phases)
    journal.save_cycle(report)
    return report


async def test_f30_a_memory_store_that_is_down_is_told_with_what_waits_until_a_sleep_reaches_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        it.app.stores.journal.add([ENTRY], NOW)
        slept(it, consolidate={"state": "failed", "error": DOWN})
        (line,) = problems(it)
        assert DOWN in line and "(1 entry waits)" in line and line.endswith("`assistant sleep` tries again.")
        slept(it, "nap", extract={"error": ""}, compact={"error": ""})
        assert problems(it) == [line], "a nap reaches no memory store"
        slept(it, "sleep", "interrupted", extract={"state": "running"})
        assert problems(it) == [line]
        slept(it, "phase", consolidate={"state": "done", "error": ""})
        assert problems(it) == []


async def test_a_nap_that_went_wrong_is_told_beside_the_night_and_cleared_by_the_next(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        slept(it, extract={"error": ""}, curate={"error": "MEMORY.md is no text."})
        slept(it, "nap", extract={"error": "no route to host"})
        (line,) = problems(it)
        assert "reading: no route to host" in line and "files and profiles: MEMORY.md is no text." in line
        slept(it, extract={"error": ""}, curate={"error": ""})
        assert problems(it) == []


async def test_f34_a_sleep_that_saved_nothing_is_told_though_a_nap_came_after_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        slept(it, extract={"warning": "9 messages read, and nothing was saved from them"})
        slept(it, "phase", compact={"error": ""})
        assert "9 messages read" in problems(it)[0]


async def test_a_night_that_nobody_slept_for_a_day_is_missed_until_a_sleep_ends(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        assert problems(it) == []
        await it.say("hello")
        await it.wait_idle()
        it.clock.now = it.clock.now.replace(hour=4) + timedelta(days=1)
        assert problems(it) == [], "it is only late"
        it.clock.now += timedelta(days=1)
        (line,) = problems(it)
        assert "The night of 2026-03-02 03:30 was missed" in line and "`assistant sleep`" in line
        slept(it, "nap")
        slept(it, "sleep", "interrupted")
        assert problems(it) == [line]
        slept(it, "manual", "failed")
        assert problems(it) == []


async def test_a_home_that_never_sleeps_by_itself_misses_no_night(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", ASSISTANT_SLEEP__AT="", ASSISTANT_BACKUP__AT="") as it:
        await it.say("hello")
        await it.wait_idle()
        it.clock.now += timedelta(days=9)
        assert problems(it) == []


async def test_a_forgetting_that_is_not_finished_is_told(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.say("My passport number is X1234567.")
        await it.wait_idle()
        forgetting = it.app.stores.erasure
        begun = forgetting.write_plan(forgetting.plan_erasure(ErasureRequest("owner", text="X1234567")))
        (line,) = problems(it)
        assert "is not erased everywhere yet" in line and "X1234567" not in line
        forgetting.remove_plan(begun)
        assert problems(it) == []


async def test_a_forgetting_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        (tmp_path / "forgetting-1.json").write_text("{")
        (line,) = problems(it)
        assert "forgetting-1.json cannot be read" in line


async def test_a_sleep_that_is_taken_back_in_part_is_told(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        report = slept(it)
        it.app.stores.journal.save_cycle(replace(report, state="undoing"))
        assert "`assistant sleep --undo` continues" in problems(it)[0]
        it.app.stores.journal.save_cycle(replace(report, state="undone"))
        assert problems(it) == []


async def test_memory_files_that_need_a_look_are_told_until_they_can_be_settled(tmp_path: Path) -> None:
    inside, outside = tmp_path / "home", tmp_path / "elsewhere.md"
    outside.write_text("theirs")
    async with run_app(inside, "ok"):
        pass
    (inside / "MEMORY.md").symlink_to(outside)
    (inside / ".MEMORY.md.7.partial").write_text("half")
    async with run_app(inside, "ok") as it:
        status = it.app.status()
        assert not status["ok"] and "outside the data folder" in " ".join(status["problems"])
        it.app.maintenance.run()
        assert not it.app.status()["ok"]
        (inside / "MEMORY.md").unlink()
        it.app.maintenance.run()
        assert it.app.status()["ok"]
        assert stored_status(it.app.settings, it.app.stores, it.clock())["ok"]


@pytest.mark.parametrize(("make", "remove"), [(os.mkfifo, Path.unlink), (Path.mkdir, Path.rmdir)])
async def test_what_took_the_place_of_a_memory_file_is_told_whether_anything_runs_or_not(
    tmp_path: Path, make: Callable[[Path], None], remove: Callable[[Path], None]
) -> None:
    async with run_app(tmp_path, "ok") as it:
        make(tmp_path / "MEMORY.md")
        make(tmp_path / "PERSONA.md")
        (told,) = it.app.status()["problems"]
        assert re.search(r"/MEMORY\.md is (a directory|not a plain file)\..* remove it", told)
        stored = stored_status(it.app.settings, it.app.stores, it.clock())["problems"]
        assert stored[0] == told
        assert re.search(r"/PERSONA\.md is (a directory|not a plain file)\..* remove it", stored[1])
        os.mkfifo(tmp_path / "odd")
        assert any(line.startswith("odd is a pipe") for line in it.app.status()["problems"])
        (tmp_path / "odd").unlink()
        remove(tmp_path / "MEMORY.md")


def test_a_name_in_the_settings_that_stops_the_next_start_is_told_while_nothing_runs(tmp_path: Path) -> None:
    assert run_in_process(tmp_path, "chat", "-m", "hello").returncode == 0
    (tmp_path / "config.toml").write_text('compaction.protected_tools = ["manage_todo_lists"]\n')
    status = run_in_process(tmp_path, "status")
    assert status.returncode == 1
    assert "names 'manage_todo_lists', which does not exist; did you mean 'manage_todo_list'?" in status.out
    assert "does not start until that is corrected" in status.out and "Green" not in status.out


async def test_memories_that_were_lost_are_told_with_the_way_to_make_them_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        (entry,) = it.app.stores.journal.add([ENTRY], NOW)
        plan = ChangePlan("p", 1, "owner", (MemoryChange("add", memory_from_entry(entry)),), (entry.id or 0,))
        it.app.stores.consolidations.save_plan(plan, NOW)
        it.app.stores.consolidations.mark_applied("p", NOW)
        status = it.app.status()
        assert not status["ok"] and any("assistant memory rebuild" in line for line in status["problems"])
        it.app.stores.consolidations.mark_undone(["p"], NOW)
        assert it.app.status()["ok"]


async def test_one_memory_that_is_there_does_not_hide_that_the_others_are_missing(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        stores = it.app.stores
        told = [replace(ENTRY, key=f"k{number}", content=f"I have {number} bees.") for number in range(45)]
        entries = stores.journal.add(told, NOW)
        changes = tuple(MemoryChange("add", memory_from_entry(entry)) for entry in entries)
        stores.consolidations.save_plan(
            ChangePlan("p", 1, "owner", changes, tuple(entry.id or 0 for entry in entries)), NOW
        )
        assert problems(it) == [], "they are only planned"
        stores.consolidations.mark_applied("p", NOW)
        await stores.memories.apply(changes[22:])
        (line,) = problems(it)
        assert "not all (9 of 18 looked for are missing)" in line and "`assistant memory rebuild`" in line
        await stores.memories.apply(changes)
        assert problems(it) == []
