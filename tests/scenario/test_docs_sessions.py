"""Every command of docs/sessions.md does what the page says: run in order, in a home of its own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, run_assistant, run_in_process

PAGE = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")


def shown() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    assert run_assistant(home, "chat", "-m", "hello").returncode == 0
    commands = shown()
    assert len(commands) == 11
    for command in commands:
        done = run_in_process(home, *command)
        assert done.returncode == 0, (command, done.err)
    assert "We fly to Rome in May." in (tmp_path / "trip.md").read_text(encoding="utf-8")
    assert "trip 1" in run_in_process(home, "sessions").out


def test_the_settings_that_the_page_names_are_there() -> None:
    defaults = (ROOT / "config" / "default.toml").read_text(encoding="utf-8")
    section = defaults.split("[reset]")[1].split("\n[")[0]
    for key in re.findall(r"`reset\.(\w+)`", PAGE):
        assert f"\n{key} = " in section, key
