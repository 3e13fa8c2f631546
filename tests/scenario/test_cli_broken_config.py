"""config.toml edited to nonsense beside a daemon that is well: who looks and talks goes on; who starts or sets does
not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.cli.aihistory.main import aihistory
from tests.support.command_line import run_daemon, run_in_process

GOES_ON = "keeps its last valid settings, and so does this command; `assistant config edit` fixes the file."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One that is served, on settings that the file no longer has."""
    home = tmp_path_factory.mktemp("nonsense") / "home"
    home.mkdir(mode=0o700)
    config = home / "config.toml"
    config.write_text("[budget]\ndaily_usd = 7.0\n")
    with run_daemon(home):
        assert run_in_process(home, "chat", "-m", "remember that my key is under the pot").returncode == 0
        config.write_text("[budget]\ndaily_usd = 7.0\n[home\n")
        yield home


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("chat", "-m", "where is my key?"), "under the pot"),
        (("bridge", "list"), "No bridge is set up."),
        (("sessions",), "main"),
        (("log",), "under the pot"),
        (("requests",), ""),
        (("remind", "call mum", "--at", "2099-01-01 09:00"), "call mum"),
    ],
)
def test_commands_that_look_and_talk_go_on_and_say_so_in_a_line(
    home: Path, arguments: tuple[str, ...], answer: str
) -> None:
    done = run_in_process(home, *arguments)
    assert (done.returncode, answer in done.out) == (0, True), done
    (line,) = done.err.splitlines()
    assert line.startswith(f"{home / 'config.toml'} is not valid TOML") and "line 3" in line
    assert line.endswith(GOES_ON)


def test_what_is_spent_is_told_against_the_caps_that_the_daemon_has(home: Path) -> None:
    caps = json.loads(run_in_process(home, "usage", "--json").out)["caps"]
    assert {cap["setting"]: cap["most"] for cap in caps}["daily_usd"] == 7.0


@pytest.mark.parametrize("arguments", [("config", "check"), ("config", "show"), ("bridge", "remove", "telegram")])
def test_commands_about_the_settings_are_refused_with_the_line_and_what_mends_it(
    home: Path, arguments: tuple[str, ...]
) -> None:
    done = run_in_process(home, *arguments)
    assert done.returncode == 2
    assert f"{home / 'config.toml'} is not valid TOML" in done.err and "line 3" in done.err
    assert "`assistant config edit`" in done.err


def test_an_environment_that_is_nonsense_is_refused_beside_a_daemon_too(home: Path) -> None:
    done = run_in_process(home, "sessions", ASSISTANT_TURN__MAX_STEPS="0")
    assert (done.returncode, "ASSISTANT_TURN__MAX_STEPS" in done.err) == (2, True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nobody serves, with something said and remembered in it."""
    home = tmp_path_factory.mktemp("alone") / "home"
    assert run_in_process(home, "chat", "-m", "remember that my key is under the pot").returncode == 0
    return home


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("sessions",), "main"),
        (("log",), "under the pot"),
        (("usage", "--json"), '"most": 7.0'),
        (("memory", "list"), ""),
        (("memory", "search", "key"), ""),
        (("aihistory", "stats"), ""),
    ],
)
def test_where_nobody_serves_the_home_who_looks_goes_on_with_what_can_be_read(
    alone: Path, arguments: tuple[str, ...], answer: str
) -> None:
    (alone / "config.toml").write_text("[budget]\ndaily_usd = 7.0\nmonthly_usd = -1\n[nonsense]\nx = 1\n")
    name, *more = arguments
    done = run_in_process(alone, *more, command=aihistory) if name == "aihistory" else run_in_process(alone, *arguments)
    assert (done.returncode, answer in done.out) == (0, True), done
    line = done.err.splitlines()[0]
    assert line.startswith(f"{alone / 'config.toml'}: `") and "(and 1 more)" in line
    assert line.endswith("The other settings are used; `assistant config edit` fixes it.")


def test_where_nobody_serves_the_home_a_file_that_is_no_toml_turns_status_red(alone: Path) -> None:
    (alone / "config.toml").write_text("[home\n")
    done = run_in_process(alone, "status")
    assert (done.returncode, f"{alone / 'config.toml'} is not valid TOML" in done.out) == (1, True), done
    assert "`assistant config edit`" in done.out and not done.err


@pytest.mark.parametrize(
    "arguments", [("remind", "call mum", "--at", "2099-01-01 09:00"), ("requests", "done", "1"), ("verify",)]
)
def test_where_nobody_serves_the_home_who_writes_or_proves_does_not_go_on(
    alone: Path, arguments: tuple[str, ...]
) -> None:
    (alone / "config.toml").write_text("[home\n")
    (alone / "run").mkdir(exist_ok=True, mode=0o700)
    (alone / "run" / "config.toml").write_text("")
    done = run_in_process(alone, *arguments)
    assert (done.returncode, "`assistant config edit`" in done.err) == (2, True)
