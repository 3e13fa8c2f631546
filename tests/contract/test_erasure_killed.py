"""A process killed at any step of a forgetting: the next start finishes it, and nothing else is changed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.store.erasure.plan import PLAN_FILES
from tests.support.erasure_home import SECRET, ErasureHome, erasure_request, write_everywhere
from tests.support.store_home import NOW, memory_backed_directory

ROOT = Path(__file__).parents[2]
POINTS = 10


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    with memory_backed_directory() as path:
        home = ErasureHome(path / "home").open()
        write_everywhere(home, SECRET, SECRET)
        home.close()
        yield path / "home"


@pytest.fixture(scope="module")
def steps(filled: Path) -> int:
    """How many steps a forgetting takes."""
    whole = filled.with_name("whole")
    shutil.copytree(filled, whole)
    return int(_run(whole, 0).stdout)


def _run(path: Path, step: int, ending: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.processes.killed_erasure", str(path), str(step), ending]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("point", range(POINTS))
async def test_a_forgetting_killed_anywhere_is_finished_at_the_next_start(filled: Path, steps: int, point: int) -> None:
    path = filled.with_name(f"killed{point}")
    shutil.copytree(filled, path)
    ended = _run(path, 1 + point * (steps - 1) // (POINTS - 1))
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    begun = list(path.glob(PLAN_FILES))
    home = ErasureHome(path).open()
    home.conversation.recover_after_crash(NOW)
    assert home.verify().problems == (), "whole before it is finished"
    settled = await home.erasure.finish_interrupted(NOW)
    assert len(settled) == len(begun)
    [done] = settled or [await home.erasure.erase(erasure_request(), NOW)]
    assert [(one.where, one.why) for one in done.leftovers] == []
    assert home.files_containing() == []
    assert home.verify().problems == ()
    assert len(home.verify().redactions) == 6
    assert [one.name for one in path.rglob("*forgetting*")] == []
    contents = {entry.content for entry in home.journal.entries("owner")}
    assert contents == {"The boat has a word.", "The boat is red.", "They met.\nThey left.", "The word was changed."}
    assert set(home.search_ids("boat")) >= {1, 2}
    assert home.search_ids("zanzibarquux") == []
    assert sum(record.kind == "redaction" for record in home.log.scan("main")) == 1
    home.close()
