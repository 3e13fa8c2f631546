"""What a killed process left open, and was lost or changed before the next start: it is told, and stops it where that
has to be decided."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assistant.cli.home_stores import is_new_home
from assistant.core.errors import StoreLost
from assistant.wire.stores import Stores
from tests.scenario.test_gone_stores import LATER, live, repair, settings_of, todos
from tests.support.running_app import run_app


async def killed_with_a_todo(home: Path, killed: Path) -> None:
    """Of the to-do only the log of changes of character.db knows, the end of which is gone."""
    async with run_app(home) as it:
        await it.app.commands.run("/todo add buy a rope", "main")
        it.app.stores.record(it.clock())
        await it.app.commands.run("/todo add oil the mast", "main")
        shutil.copytree(home, killed, ignore=shutil.ignore_patterns("run"))
    log = killed / "character.db-wal"
    # Less than its first change: behind the newest one there may be what a checkpoint has moved.
    log.write_bytes(log.read_bytes()[:4096])


LOST = "character.db lost what was written to it last"


async def test_a_todo_that_a_log_of_changes_lost_after_a_kill_is_told(tmp_path: Path) -> None:
    await killed_with_a_todo(tmp_path / "home", tmp_path / "killed")
    async with run_app(tmp_path / "killed") as it:
        assert todos(it) == ["buy a rope"]
        assert [LOST in problem for problem in it.app.status()["problems"] if "character.db" in problem] == [True]
    async with run_app(tmp_path / "killed") as it:
        assert it.app.stores.remarks == ()


async def test_whoever_looks_first_after_a_kill_is_told_what_was_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await killed_with_a_todo(tmp_path / "home", tmp_path / "killed")
    shutil.copytree(tmp_path / "killed", tmp_path / "again")
    assert not is_new_home(settings_of(tmp_path / "killed").home)
    assert LOST in capsys.readouterr().err
    assert any(LOST in problem.text for problem in repair(tmp_path / "again").problems)


@pytest.mark.parametrize("name", ["script.db", "character.db"])
async def test_an_older_copy_beside_the_newest_changes_of_a_killed_process_stops_the_start(
    tmp_path: Path, name: str
) -> None:
    home, killed = tmp_path / "home", tmp_path / "killed"
    await live(home, "Hello.")
    shutil.copyfile(home / name, tmp_path / name)
    async with run_app(home) as it:
        await it.app.commands.run("/todo add oil the mast", "main")
        await it.app.commands.run("/remind oil the mast --at 'in 40 days'", "main")
        it.app.stores.record(it.clock())
        await it.app.commands.run("/todo add sell the boat", "main")
        await it.app.commands.run("/remind sell the boat --at 'in 40 days'", "main")
        shutil.copytree(home, killed, ignore=shutil.ignore_patterns("run"))
    shutil.copyfile(tmp_path / name, killed / name)
    with pytest.raises(StoreLost, match=f"{name} is older than it was"):
        Stores(settings_of(killed), LATER)
    repair(killed)
    async with run_app(killed) as it:
        assert it.app.stores.verifier.verify().ok
