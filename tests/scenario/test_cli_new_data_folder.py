"""A machine on which nothing was said yet: every command says so plainly, and how to begin; and a data folder that was
there and is missing is another matter."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant
from tests.support.command_line import command_environment, one_line_error, run_assistant, run_in_process

TREES = {"assistant": assistant, "aihistory": aihistory}
# They serve, ask a person, or are about a service manager and networks; each has tests of its own.
LEFT_OUT = ("chat", "run", "setup", "config edit", "service", "bridge", "mcp serve")
# Refused wherever they are typed bare, or because what they need was not set up: each says how.
NEEDED = (
    *("Error: Say ", "Error: Give ", "Error: Name the ", "Error: Your mail is not set up", "Error: There is no page"),
    # A script that asked for them goes no further.
    *("Error: There is no token", "Error: There is no backup", "Error: No service is set up"),
    "Error: There is no replica",
)
MISSING = "There was a data folder at"


def all_commands(group: click.Group, path: str) -> Iterator[str]:
    """Every command of a tree as it is typed, with something for each argument that has to be there."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command, typed = group.get_command(context, name), f"{path} {name}"
        if isinstance(command, click.Group):
            yield typed
            yield from all_commands(command, typed)
        elif command is not None:
            yield " ".join([typed, *_arguments(command)])


def _arguments(command: click.Command) -> Iterator[str]:
    for param in command.params:
        if isinstance(param, click.Argument) and param.required:
            yield param.type.choices[0] if isinstance(param.type, click.Choice) else "1"


def names_nothing(line: str) -> bool:
    return not line.endswith(("1", "bash", "create"))


COMMANDS = [
    line
    for name, tree in TREES.items()
    for line in all_commands(tree, name)
    if not any(f" {words} " in f"{line} " for words in LEFT_OUT)
]


@pytest.mark.parametrize("line", ["aihistory", *COMMANDS])
def test_on_a_new_machine_every_command_says_plainly_that_there_is_nothing_yet(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where an export is written
    name, *words = line.split()
    done = run_in_process(tmp_path / "home", *words, command=TREES[name])
    said = done.out + done.err
    assert "mounted" not in said and "bring it back" not in said and "defect" not in said
    if "There is nothing in" in said:
        assert "`assistant chat`" in said and not (tmp_path / "home" / "script.db").exists()
    if names_nothing(line) and not done.err.startswith(NEEDED):
        assert done.returncode == 0, said
    else:
        # There is no such compaction, task or backup.
        assert done.returncode in (0, 2) or "Nothing was changed" in done.err, said


@pytest.mark.parametrize(
    "line",
    [
        *("status", "log", "sessions", "requests", "pins", "memory", "archive", "archive verify", "todo", "remind"),
        *("schedule", "people", "deliveries", "usage", "verify", "backup", "doctor", "config check"),
    ],
)
def test_on_a_new_machine_an_empty_list_is_an_answer(line: str, tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", *line.split(), "--json")
    assert done.returncode == 0, done.err
    if line != "log":
        json.loads(done.out)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("line", ["verify --repair", "backup restore", "backup restore gone.tar.gz --force"])
def test_what_found_nothing_to_do_leaves_nothing_behind(line: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for home in (tmp_path / "home", tmp_path / "there"):
        run_in_process(home, *line.split())
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used, and in which nothing was said."""
    home = tmp_path_factory.mktemp("begun") / "home"
    for words in (("todo", "add", "water the ferns"), ("todo", "remove", "1")):
        assert run_in_process(home, *words).returncode == 0
    return home


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("undo", "Nothing was said here that could be undone, or asked again."),
        ("reset", "Nothing was said yet. Begin with `assistant chat`."),
        ("sessions show", "Nothing was said yet. Begin with `assistant chat`."),
        ("pins add", "Nothing has been said here yet."),
        ("memory why", "Nothing was recalled for the last answer. Name a memory: `assistant memory why ID`."),
        ("todo", "Nothing is on the list."),
        ("remind history", "Nothing was due yet."),
    ],
)
def test_where_nothing_was_said_yet_a_command_says_so_and_has_not_failed(line: str, said: str, begun: Path) -> None:
    done = run_in_process(begun, *line.split())
    assert (done.returncode, done.out.strip()) == (0, said), done.err


def test_a_log_without_messages_says_so_beside_what_a_program_reads(begun: Path) -> None:
    asked = [run_in_process(begun, "log", *words) for words in ((), ("--grep", "boat"), ("--json",))]
    assert [(done.out, done.err) for done in asked] == [
        ("", "Nothing was said yet. Begin with `assistant chat`.\n"),
        ("", "No message has 'boat'.\n"),
        ("", ""),
    ]


def test_what_is_named_and_is_not_there_is_an_error(begun: Path, tmp_path: Path) -> None:
    for line in ("sessions show trip", "reset --session thread:trip", "todo done 7", "memory show 1a2b3c4d"):
        assert run_in_process(begun, *line.split()).returncode == 2, line
    done = run_in_process(tmp_path / "home", "todo", "done", "7")
    assert done.returncode == 1 and one_line_error(done).endswith("`assistant chat` begins without one.")


def test_the_doctor_finds_no_problem_on_a_new_machine(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "doctor")
    assert done.returncode == 0 and "problem" not in done.out
    assert f"nothing is in {tmp_path / 'home'} yet" in done.out


def test_the_status_of_a_new_machine_is_green_and_names_the_folder_to_be(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "status", "--json")
    report = json.loads(done.out)
    assert report["ok"] and report["home"] == str(tmp_path / "home") and report["disk_free_bytes"] > 0


@pytest.fixture
def gone(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A data folder outside of the temporary files, in which something was said before it went."""
    home, elsewhere = tmp_path / "home", tmp_path / "temporary"
    elsewhere.mkdir()
    settings = {"TMPDIR": str(elsewhere)}
    assert run_assistant(home, "todo", "add", "water the ferns", **settings).returncode == 0
    shutil.rmtree(home)
    return home, settings


def test_a_data_folder_that_was_there_is_missed(gone: tuple[Path, dict[str, str]]) -> None:
    home, settings = gone
    for command in ("status", "todo", "undo", "log"):
        error = one_line_error(run_assistant(home, command, **settings))
        assert MISSING in error and "is its disk mounted?" in error
    done = run_assistant(home, "doctor", **settings)
    assert done.returncode == 1 and MISSING in done.out
    assert not home.exists()


def test_one_that_begins_in_place_of_a_missing_one_says_so(gone: tuple[Path, dict[str, str]]) -> None:
    home, settings = gone
    begun = run_assistant(home, "chat", "-m", "hello", **settings)
    assert begun.returncode == 0 and MISSING in begun.err
    assert "There" not in run_assistant(home, "todo", **settings).err


def test_one_among_temporary_files_is_expected_to_go(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run_assistant(home, "todo", "add", "water the ferns").returncode == 0
    shutil.rmtree(home)
    done = run_assistant(home, "todo")
    assert done.returncode == 0 and MISSING not in done.err


@pytest.mark.parametrize("umask", [0o000, 0o277])
def test_whatever_the_umask_what_is_made_is_for_its_owner_and_nobody_else_can_write_around_it(
    tmp_path: Path, umask: int
) -> None:
    home = tmp_path / "one" / "two" / "home"
    command = [sys.executable, "-m", "assistant.cli.main", "todo", "oil for the lamp"]
    # A fork of another process would have its umask.
    assert subprocess.run(command, env=command_environment(home), umask=umask, check=False).returncode == 0
    modes = {path: path.stat().st_mode & 0o777 for path in (home.parent, home, *home.rglob("*"))}
    assert {mode & 0o077 for path, mode in modes.items() if path.is_relative_to(home)} == {0}
    assert modes[home.parent] & 0o022 == 0
    assert {mode & 0o600 for mode in modes.values()} == {0o600}
