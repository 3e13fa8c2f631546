"""A process killed while it changes a memory file, before each of its durable steps: nothing is lost, nothing is there
twice, and what a person wrote meanwhile stays."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.core.errors import StaleView
from tests.support.memory_files_home import DAY, NOW, MemoryFilesHome
from tests.support.processes.killed_memory_file_change import KEY, LINE, WANTED, act

ROOT = Path(__file__).parents[2]
# BEGIN, INSERT or UPDATE, the waiting text opened, COMMIT, its rename; then it is done.
STEPS = range(1, 7)
DONE = STEPS[-1]


def killed(path: Path, what: str, step: int) -> MemoryFilesHome:
    """A home whose MEMORY.md was changed from "zero" to "one", where a process was then killed; opened, not settled."""
    home = MemoryFilesHome(path).open()
    home.files.replace_memory_file("zero\n", "", "user", NOW)
    home.files.replace_memory_file("one\n", "zero\n", "sleep", NOW)
    home.close()
    command = [sys.executable, "-m", "tests.support.processes.killed_memory_file_change", str(path), what, str(step)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return home.open()


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_f15_a_change_killed_anywhere_and_made_again_is_made_once(tmp_path: Path, step: int, settled: bool) -> None:
    home = killed(tmp_path / "home", "curate", step)
    if settled:
        assert home.files.recover_after_crash() == [] and home.partial_files() == []
        made = [edit.after for edit in home.files.list_edits("owner")].count(WANTED)
        assert home.files.read_memory_file() == (WANTED if made else "one\n")
        assert made == (step >= DONE - 1)
    # The next sleep makes it for what it reads: under its key it is made already, or it is made now.
    edit = home.files.replace_memory_file(WANTED, home.files.read_memory_file(), "sleep", NOW, key=KEY)
    assert (edit.before, edit.after, edit.id) == ("one\n", WANTED, home.files.list_edits("owner")[0].id)
    assert (
        home.files.read_memory_file() == WANTED
        and len(home.files.list_edits("owner")) == 3
        and home.partial_files() == []
    )
    home.files.undo_edit(edit.id or 0, "owner", NOW)
    assert home.files.read_memory_file() == "one\n"
    home.close()


@pytest.mark.parametrize("step", STEPS)
def test_f15_a_person_who_edits_after_the_crash_keeps_their_text(tmp_path: Path, step: int) -> None:
    home = killed(tmp_path / "home", "curate", step)
    home.memory_md.write_text("mine\n")
    assert (
        home.files.recover_after_crash() == []
        and home.files.read_memory_file() == "mine\n"
        and home.partial_files() == []
    )
    if step < DONE:
        assert [edit.after for edit in home.files.list_edits("owner")] == ["one\n", "zero\n"]
        with pytest.raises(StaleView):
            act(home, "curate")
    assert home.files.read_memory_file() == "mine\n"
    home.close()


@pytest.mark.parametrize("edited", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_f15_a_note_killed_anywhere_and_written_again_is_there_once(tmp_path: Path, step: int, edited: bool) -> None:
    home = killed(tmp_path / "home", "note", step)
    if edited:
        home.day_file().parent.mkdir(exist_ok=True)
        stood = home.day_file().read_text() if home.day_file().exists() else ""
        home.day_file().write_text(f"{stood}mine\n")
    act(home, "note")
    act(home, "note")
    assert home.day_file().read_text().count(LINE) == 1 and home.partial_files() == []
    assert ("mine\n" in home.day_file().read_text()) == edited
    assert [edit.target for edit in home.files.list_edits("owner")].count("file:memory/2026-11-20.md") == 1
    home.close()


@pytest.mark.parametrize("step", STEPS)
def test_f15_a_change_whose_undoing_is_killed_is_taken_back_or_stands(tmp_path: Path, step: int) -> None:
    home = killed(tmp_path / "home", "undo", step)
    assert home.files.recover_after_crash() == [] and home.partial_files() == []
    undone = home.files.list_edits("owner")[0].undone_at is not None
    assert home.files.read_memory_file() == ("zero\n" if undone else "one\n")
    assert undone == (step >= DONE - 1)
    if not undone:
        act(home, "undo")
    assert home.files.read_memory_file() == "zero\n"
    home.close()


@pytest.mark.parametrize("step", [DONE - 1])
def test_f15_a_person_who_edits_after_an_undoing_was_cut_off_keeps_their_text(tmp_path: Path, step: int) -> None:
    home = killed(tmp_path / "home", "undo", step)
    home.memory_md.write_text("mine\n")
    assert (
        home.files.recover_after_crash() == []
        and home.files.read_memory_file() == "mine\n"
        and home.partial_files() == []
    )
    assert home.files.list_edits("owner")[0].undone_at is None
    home.close()


@pytest.mark.parametrize("mark", ["999", "1", "2", "2-undo", "x", "", "9" * 40])
def test_a_text_that_waits_without_its_change_is_taken_away(tmp_path: Path, mark: str) -> None:
    """Torn while it was written: the change was never committed."""
    home = MemoryFilesHome(tmp_path / "home").open()
    home.day_file().parent.mkdir()
    home.memory_md.write_text("mine\n")
    others = [home.files.append_daily_note("peer:x:ann", DAY, "14:03", [f"theirs {key}"], key) for key in "ab"]
    assert others == [True, True]
    (home.path / f".MEMORY.md.{mark}.partial").write_text("to")
    (home.day_file().parent / f".2026-11-20.md.{mark}.partial").write_bytes(b"\xff")
    assert home.files.recover_after_crash() == [] and home.partial_files() == []
    assert home.memory_md.read_text() == "mine\n" and not home.day_file().exists()
    assert [edit.undone_at for edit in home.files.list_edits("peer:x:ann")] == [None, None]
    home.close()
