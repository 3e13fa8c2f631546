"""`assistant web token`: the token of the web API, shown to its owner and made anew."""

from __future__ import annotations

from pathlib import Path

from tests.scenario.command_line import look, one_line_error


def test_a_token_that_is_not_there_yet_is_told(tmp_path: Path) -> None:
    done = look(tmp_path / "home", "web", "token")
    assert done.returncode == 2 and "web.port" in one_line_error(done)
    assert not (tmp_path / "home").exists()


def test_a_new_token_is_kept_and_shown_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = look(home, "web", "token", "--new", ASSISTANT_WEB__PORT="8484")
    again = look(home, "web", "token", ASSISTANT_WEB__PORT="8484")
    assert first.returncode == 0 and first.out == again.out and first.err == ""
    assert (home / "secrets.toml").stat().st_mode & 0o777 == 0o600
    other = look(home, "web", "token", "--new", ASSISTANT_WEB__PORT="8484")
    assert other.out not in ("", first.out)


def test_that_nothing_listens_yet_is_told_beside_the_token(tmp_path: Path) -> None:
    done = look(tmp_path / "home", "web", "token", "--new")
    assert len(done.out.split()) == 1 and "web.port" in done.err


def test_a_token_in_the_environment_wins_and_that_is_told(tmp_path: Path) -> None:
    mine = "a-token-of-enough-characters"
    done = look(tmp_path / "home", "web", "token", "--new", ASSISTANT_WEB__PORT="8484", ASSISTANT_WEB__TOKEN=mine)
    assert done.out == f"{mine}\n"
    assert "ASSISTANT_WEB__TOKEN" in done.err and mine not in done.err
