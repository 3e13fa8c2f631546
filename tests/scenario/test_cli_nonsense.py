"""config.toml edited to nonsense beside a daemon that is well: who looks and talks goes on; who starts or sets does
not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenario.command_line import daemon, look

GOES_ON = "goes on with the settings that it had, and so does this; `assistant config edit` mends it."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One that is served, on settings that the file no longer has."""
    home = tmp_path_factory.mktemp("nonsense") / "home"
    home.mkdir(mode=0o700)
    config = home / "config.toml"
    config.write_text("[budget]\ndaily_usd = 7.0\n")
    with daemon(home):
        assert look(home, "chat", "-m", "remember that my key is under the pot").returncode == 0
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
    done = look(home, *arguments)
    assert (done.returncode, answer in done.out) == (0, True), done
    (line,) = done.err.splitlines()
    assert line.startswith(f"{home / 'config.toml'} is not valid TOML") and "line 3" in line
    assert line.endswith(GOES_ON)


def test_what_is_spent_is_told_against_the_caps_that_the_daemon_has(home: Path) -> None:
    caps = json.loads(look(home, "usage", "--json").out)["caps"]
    assert {cap["setting"]: cap["most"] for cap in caps}["daily_usd"] == 7.0


@pytest.mark.parametrize("arguments", [("config", "check"), ("config", "show"), ("bridge", "remove", "telegram")])
def test_commands_about_the_settings_are_refused_with_the_line_and_what_mends_it(
    home: Path, arguments: tuple[str, ...]
) -> None:
    done = look(home, *arguments)
    assert done.returncode == 2
    assert f"{home / 'config.toml'} is not valid TOML" in done.err and "line 3" in done.err
    assert "`assistant config edit`" in done.err


def test_an_environment_that_is_nonsense_is_refused_beside_a_daemon_too(home: Path) -> None:
    done = look(home, "sessions", ASSISTANT_TURN__MAX_STEPS="0")
    assert (done.returncode, "ASSISTANT_TURN__MAX_STEPS" in done.err) == (2, True)


def test_where_nobody_serves_the_home_nothing_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "run").mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text("[home\n")
    (home / "run" / "config.toml").write_text("")
    done = look(home, "sessions")
    assert (done.returncode, "`assistant config edit`" in done.err) == (2, True)
