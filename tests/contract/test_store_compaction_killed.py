"""A process killed in the middle of a compaction, or of taking one back: the earlier view, or the later one, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compactions import plan_compaction, summary_message
from tests.support.store_home import NOW, StoreHome

ROOT = Path(__file__).parents[2]
BEFORE = [f"{what} {n}" for n in range(6) for what in ("question", "answer")]
AFTER = ["[CONTEXT SUMMARY] earlier", *BEFORE[6:-1], "[archived]"]


def killed(path: Path, what: str, steps: int) -> StoreHome:
    """The home after a process was killed there, opened and settled."""
    home = StoreHome(path).open()
    home.chat(6)
    home.close()
    command = [sys.executable, "-m", "tests.support.processes.killed_compaction", str(path), what, str(steps)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    home.open().conversation.recover_after_crash(NOW)
    return home


@pytest.mark.parametrize(
    ("what", "steps", "state"),
    [
        ("begin", 40, None),
        ("begin", 150, None),
        ("begin", 0, "failed"),
        ("compact", 40, "failed"),
        ("compact", 400, "failed"),
        ("compact", 1000, "failed"),
        ("compact", 1400, "failed"),
        ("compact", 0, "live"),
    ],
)
def test_f15_a_compaction_killed_anywhere_is_there_or_has_failed(
    tmp_path: Path, what: str, steps: int, state: str | None
) -> None:
    home = killed(tmp_path / "home", what, steps)
    assert home.view_contents() == (AFTER if state == "live" else BEFORE)
    assert [one.state for one in home.conversation.checkpoints("main")] == ([] if state is None else [state])
    assert home.verify().ok
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("goes on")), NOW)
    assert home.view_contents()[0] == "goes on"
    assert home.db.rows("SELECT 1 FROM checkpoints WHERE state = 'started'") == []
    home.close()


@pytest.mark.parametrize(("steps", "state"), [(40, "live"), (900, "live"), (1800, "live"), (0, "undone")])
def test_f15_a_compaction_whose_undoing_is_killed_is_undone_or_not(tmp_path: Path, steps: int, state: str) -> None:
    home = killed(tmp_path / "home", "undo", steps)
    assert home.view_contents() == (AFTER if state == "live" else BEFORE)
    assert [one.state for one in home.conversation.checkpoints("main")] == [state]
    assert home.verify().ok
    home.close()
