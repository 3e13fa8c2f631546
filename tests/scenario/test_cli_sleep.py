"""`assistant sleep`: by whoever serves the home, seen while it goes on, looked at and taken back."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.memories import JournalEntry, SleepReport
from assistant.mem0.client import MEMORY_DB_UNREADABLE
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    command_environment,
    one_line_error,
    run_daemon,
    run_in_process,
)
from tests.support.compacted_home import open_empty_home
from tests.support.forked_command import ForkedCommand
from tests.support.store_home import NOW

# Nobody sleeps by themselves while a test looks.
AWAKE: dict[str, Any] = {"ASSISTANT_SLEEP__AT": ""}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    stores = open_empty_home(tmp_path / "home")
    stores.chat(2)
    stores.close()
    return tmp_path / "home"


def kept(home: Path, *, state: str = "done", ended: bool = True, trigger: str = "sleep") -> None:
    """A sleep as a process left it."""
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    stores = Stores(settings, NOW)
    number = stores.journal.begin_cycle(trigger, NOW)
    phases = {"extract": {"state": "done", "read": 1200, "written": 3, "cost_usd": None, "calls": 2}}
    end = NOW + timedelta(seconds=70) if ended else None
    stores.journal.save_cycle(SleepReport(number, trigger, NOW, end, state, phases))  # type: ignore[arg-type]
    stores.close()


# -------------------------------------------------------------------------------------------------------------- looking


def test_the_last_sleep_is_told_from_what_is_kept(home: Path) -> None:
    assert run_in_process(home, "sleep", "--last").out == "No sleep yet.\n"
    assert json.loads(run_in_process(home, "sleep", "--last", "--json").out) is None
    kept(home)
    done = run_in_process(home, "sleep", "--last", ASSISTANT_HOME__TIMEZONE="Europe/Oslo")
    assert (done.returncode, done.err) == (0, "")
    assert done.out.splitlines() == [
        "Sleep 1 (night), 2026-11-20 11:00, 1 min 10 s: all went well.",
        "- Read: 1,200 messages; 3 entries for the journal.",
        "- Spent: no known price in 2 calls.",
    ]
    assert json.loads(run_in_process(home, "sleep", "--last", "--json").out)["phases"]["extract"]["read"] == 1200


def test_a_sleep_that_nobody_sleeps_any_more_was_cut_off(home: Path) -> None:
    kept(home, state="running", ended=False, trigger="late")
    assert "cut off" in run_in_process(home, "sleep", "--last").out
    assert json.loads(run_in_process(home, "sleep", "--last", "--json").out)["state"] == "interrupted"


# ---------------------------------------------------------------------------------------------- whoever serves the home


@pytest.mark.parametrize("served", [False, True])
def test_it_sleeps_foresees_and_tells(home: Path, served: bool) -> None:
    with run_daemon(home, **AWAKE) if served else nullcontext():
        assert (
            "main: 4 messages to read, 0 entries for the journal."
            in run_in_process(home, "sleep", "--dry-run", **AWAKE).out
        )
        assert json.loads(run_in_process(home, "sleep", "--last", "--json").out) is None
        done = run_in_process(home, "sleep", "--phase", "extract", **AWAKE)
        assert (done.returncode, done.err) == (0, "")
        assert "(one phase)" in done.out and "Read: 4 messages" in done.out
        report = json.loads(run_in_process(home, "sleep", "--json", **AWAKE).out)
        assert (report["id"], report["trigger"], report["state"]) == (2, "manual", "done")
        last = json.loads(run_in_process(home, "sleep", "--last", "--json").out)
        assert last == {**report, "is_new": False}
        wrong = run_in_process(home, "sleep", "--undo", **AWAKE)
        assert wrong.returncode == 2
        assert "no sleep to undo" in one_line_error(wrong)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dry-run", "--undo"], "Give one of"),
        (["--phase", "extract", "--last"], "Give one of"),
        (["--phase", "dream"], "extract, score, consolidate, curate, compact"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(home: Path, arguments: list[str], words: str) -> None:
    done = run_in_process(home, "sleep", *arguments)
    assert done.returncode == 2
    assert words in one_line_error(done)


def test_f30_a_sleep_that_failed_says_in_which_phase_and_ends_with_1(home: Path) -> None:
    stores = Stores(load_settings(None, {"ASSISTANT_HOME": str(home)}), NOW)
    stores.journal.add([JournalEntry("k", "owner", "main", 1, "I live in Oslo.", NOW, "extraction")], NOW)
    stores.close()
    (home / "memory.db").unlink()
    (home / "memory.db").mkdir()
    assert run_in_process(home, "memory", "list").err.count("level=") == 0
    done = run_in_process(home, "sleep", **AWAKE)
    assert done.returncode == 1
    assert "not all went well (remembering failed)" in done.out and MEMORY_DB_UNREADABLE in done.out
    assert MEMORY_DB_UNREADABLE in one_line_error(run_in_process(home, "memory", "rebuild"))
    assert run_in_process(home, "sleep", "--last").returncode == 0


# ------------------------------------------------------------------------------------------------------------ meanwhile


@contextmanager
def asleep(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`assistant sleep` as somebody with a terminal runs it, and what that terminal is told on standard error."""
    master, terminal = pty.openpty()
    with ForkedCommand(
        ["sleep"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=command_environment(home, **AWAKE),
    ) as process:
        os.close(terminal)
        try:
            yield process, master
        finally:
            if process.poll() is None:
                process.kill()
            os.close(master)


def read_until(words: bytes, terminal: int) -> None:
    shown = b""
    while words not in shown:
        shown += os.read(terminal, 65_536)


def test_a_terminal_shows_how_far_it_is_and_the_report_goes_where_the_output_does(home: Path) -> None:
    with asleep(home) as (process, terminal):
        read_until(b"Falling asleep", terminal)
        out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, out.splitlines()[0][:17]) == (0, b"Sleep 1 (manual),")


def test_ctrl_c_leaves_the_sleep_to_the_daemon_and_says_so(home: Path) -> None:
    """The daemon is stopped in its tracks, so that the sleep is under way for as long as it takes."""
    with run_daemon(home, **AWAKE) as running:
        running.process.send_signal(signal.SIGSTOP)
        with asleep(home) as (process, terminal):
            read_until(b"Falling asleep", terminal)
            process.send_signal(signal.SIGINT)
            read_until(b"`assistant sleep` continues in the running assistant.", terminal)
            out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        running.process.send_signal(signal.SIGCONT)
    assert (process.returncode, out) == (130, b"")
