"""Files that a command names: from a network or the API inside the workspace alone, in a person's own terminal any of
theirs, which the terminal reads."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from assistant.core.errors import UsageError
from assistant.web.app import build_web_app
from tests.support.command_line import run_daemon, run_in_process
from tests.support.running_app import OWNER, BridgePeople, LiveApp, run_app


def remembered(it: LiveApp) -> list[str]:
    return [entry.content for entry in it.app.stores.journal.entries("owner")]


@pytest.mark.parametrize(
    "name",
    ["{home}/secret.txt", "../secret.txt", "/proc/self/environ", "link", "door/secret.txt", "pipe", "folder", "gone"],
)
async def test_a_file_that_a_command_names_is_read_inside_the_workspace_alone(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "folder").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("The key is 1234.\n")
    (workspace / "link").symlink_to(tmp_path / "secret.txt")
    (workspace / "door").symlink_to(tmp_path)
    os.mkfifo(workspace / "pipe")
    named = name.format(home=tmp_path)
    async with run_app(tmp_path) as it:
        people = BridgePeople(it)
        await people.allow_everybody()
        people.sent_since_last()
        async with asyncio.timeout(20):
            await people.write(f"/memory import {named}", OWNER)
        (_, answer) = people.sent_since_last()[-1]
        assert "From here only files in the workspace folder are read" in answer and "1234" not in answer
        client = TestClient(build_web_app(it.app.web.deps))
        for body in ({"text": f"/memory import {named}"}, {"argv": ["memory", "import", named]}):
            refused = client.post("/v1/commands", json=body)
            assert refused.status_code == 400 and "only files in the workspace" in refused.json()["error"]
        assert remembered(it) == []


async def test_a_file_of_the_workspace_is_read_from_anywhere_by_its_name_or_whole_path(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "notes").mkdir(parents=True)
    (tmp_path / "workspace" / "notes" / "a.txt").write_text("I sail.\n")
    async with run_app(tmp_path) as it:
        for name in ("notes/a.txt", str(tmp_path / "workspace" / "notes" / "a.txt")):
            assert "Added" in await it.app.commands.run(f"/memory import {name}", "main")
        assert remembered(it) == ["I sail."]


async def test_a_file_larger_than_its_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with (tmp_path / "workspace" / "huge.txt").open("wb") as file:
        file.truncate(1 << 40)
    async with run_app(tmp_path) as it:
        with pytest.raises(UsageError, match="is larger than 32 MB"):
            await it.app.commands.run("/memory import huge.txt", "main")


def test_a_terminal_reads_the_file_itself_and_the_daemon_reads_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    mine = tmp_path / "mine.txt"
    mine.write_text("I was born in Oslo.\n")
    os.mkfifo(tmp_path / "pipe")
    with run_daemon(home):
        done = run_in_process(home, "memory", "import", str(mine), "--json")
        assert json.loads(done.out)["new"] == 1, done.err
        for name, why in (("pipe", "is not a plain file"), ("gone", "is not there"), (".", "is a directory")):
            refused = run_in_process(home, "memory", "import", str(tmp_path / name))
            assert refused.returncode == 2 and why in refused.err
        typed = run_in_process(home, "chat", "-m", f"/memory import {mine}")
        assert "Added 0 journal entries. 1 entry was there already." in typed.out, typed.err
        kernel = run_in_process(home, "memory", "import", "/proc/self/environ")
        assert kernel.returncode == 2 and "is not a plain file" in kernel.err


@pytest.mark.parametrize("name", ["PERSONA.md", "prompts/summary.md"])
@pytest.mark.parametrize("what", ["not UTF-8", "a pipe", "a folder", "too large"])
def test_a_prompt_that_is_no_text_is_an_error_in_words(tmp_path: Path, name: str, what: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if what == "not UTF-8":
        file.write_bytes(b"You are Ada.\nGr\xfc\xdfe\n")
    elif what == "a pipe":
        os.mkfifo(file)
    elif what == "a folder":
        file.mkdir()
    else:
        file.write_text("x" * (2 << 20))
    done = run_in_process(tmp_path, "chat", "-m", "hi")
    why = {"not UTF-8": "is not UTF-8 text (line 2)", "a pipe": "is not a plain file", "a folder": "is a directory"}
    assert done.returncode == 2
    assert f"{file} {why.get(what, 'is larger than 1 MB')}. Nothing was started; save it as UTF-8" in done.err
    assert "codec" not in done.err and len(done.err.splitlines()) == 1
