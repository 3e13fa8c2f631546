"""`assistant web token`: the token of the web API, shown to its owner and made anew."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from subprocess import CompletedProcess

import httpx2
import pytest

from assistant.cli.config.change import store_secret
from assistant.cli.service import command
from assistant.core.errors import UsageError
from assistant.settings.home import Home
from tests.support.command_line import (
    command_environment,
    one_line_error,
    run_daemon,
    run_in_process,
)
from tests.support.forked_terminal import AssistantTerminal
from tests.support.web_api import free_port

TOKEN = "q8W-3ZtV_7pLmX0sRyB5nKd2HfJc9GaUeToI4vEwQ1r"


def test_a_token_that_is_not_there_yet_is_told(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "web", "token")
    assert done.returncode == 2 and "web.port" in one_line_error(done)
    assert not (tmp_path / "home").exists()


def test_a_new_token_is_kept_and_shown_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = run_in_process(home, "web", "token", "--new", ASSISTANT_WEB__PORT="8484")
    again = run_in_process(home, "web", "token", ASSISTANT_WEB__PORT="8484")
    assert first.returncode == 0 and first.out == again.out and first.err == ""
    shown = run_in_process(home, "web", "token", "--json", ASSISTANT_WEB__PORT="8484")
    assert json.loads(shown.out) == {"token": first.out.strip(), "origin": "secrets.toml"}
    assert (home / "secrets.toml").stat().st_mode & 0o777 == 0o600
    other = run_in_process(home, "web", "token", "--new", ASSISTANT_WEB__PORT="8484")
    assert other.out not in ("", first.out)


def test_that_nothing_listens_yet_is_told_beside_the_token(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "web", "token", "--new")
    assert len(done.out.split()) == 1 and "web.port" in done.err


def test_an_address_at_which_nothing_listens_is_shown_with_the_reason(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        off = run_in_process(home, "web", ASSISTANT_WEB__PORT=taken)
        assert (off.returncode, off.out) == (0, f"http://127.0.0.1:{taken}\n") and "not running" in off.err
        with run_daemon(home, ASSISTANT_WEB__PORT=taken):
            done = run_in_process(home, "web", ASSISTANT_WEB__PORT=taken)
            assert done.returncode == 1 and done.err.startswith("Nothing listens there: ") and taken in done.err
            status = run_in_process(home, "status", ASSISTANT_WEB__PORT=taken)
            assert status.returncode == 1 and "Web API: does not listen" in status.out
            doctor = run_in_process(home, "doctor", ASSISTANT_WEB__PORT=taken)
            assert doctor.returncode == 1 and f"port {taken}" in doctor.out and "All is well" not in doctor.out


def test_the_address_that_listens_is_shown_alone_and_by_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = CompletedProcess([], 0, "ActiveState=active\nSubState=running\nMainPID=41\n", "")
    monkeypatch.setattr(command, "detect_service_manager", lambda: "systemd")
    monkeypatch.setattr(command, "run_subprocess", lambda words: running)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home, port = tmp_path / "home", str(free_port())
    with run_daemon(home, ASSISTANT_WEB__PORT=port):
        token = run_in_process(home, "web", "token", ASSISTANT_WEB__PORT=port).out.strip()
        transport = httpx2.HTTPTransport(retries=8)
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=30) as client:
            assert client.get("/v1/status", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        done = run_in_process(home, "web", ASSISTANT_WEB__PORT=port)
        assert (done.returncode, done.out, done.err) == (0, f"http://127.0.0.1:{port}\n", "")
        run_in_process(home, "service", "install", "--no-start")
        assert f"\nPage: http://127.0.0.1:{port}\n" in run_in_process(home, "service", "status").out


def test_a_port_that_was_set_while_the_assistant_ran_is_told_to_wait_for_the_next_start(tmp_path: Path) -> None:
    with run_daemon(tmp_path / "home"):
        done = run_in_process(tmp_path / "home", "web", ASSISTANT_WEB__PORT="8484")
        assert done.returncode == 1 and "started again" in done.err


def test_a_token_in_the_environment_wins_and_that_is_told(tmp_path: Path) -> None:
    mine = "a-token-of-enough-characters"
    done = run_in_process(
        tmp_path / "home", "web", "token", "--new", ASSISTANT_WEB__PORT="8484", ASSISTANT_WEB__TOKEN=mine
    )
    assert done.out == f"{mine}\n"
    assert "ASSISTANT_WEB__TOKEN" in done.err and mine not in done.err


def test_a_new_token_is_taken_by_the_assistant_that_runs_and_that_is_told(tmp_path: Path) -> None:
    port = free_port()
    settings = {"ASSISTANT_WEB__PORT": str(port)}

    def status(token: str) -> int:
        # A daemon that was just started binds its port a moment after it is ready.
        transport = httpx2.HTTPTransport(retries=8)
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=30) as client:
            return client.get("/v1/status", headers={"Authorization": f"Bearer {token}"}).status_code

    with run_daemon(tmp_path / "home", **settings):
        former = run_in_process(tmp_path / "home", "web", "token", **settings).out.strip()
        assert status(former) == 200
        done = run_in_process(tmp_path / "home", "web", "token", "--new", **settings)
        assert "from now on" in done.err
        assert (status(former), status(done.out.strip())) == (401, 200)


@pytest.mark.parametrize("guessable", ["secret", "0123456789abcdef", "nocturne" * 8, TOKEN[:-1]])
def test_a_token_that_could_be_guessed_is_not_kept_and_what_makes_one_is_told(tmp_path: Path, guessable: str) -> None:
    home = Home(tmp_path / "home")
    with pytest.raises(UsageError) as refused:
        store_secret(home, "web.token", guessable, in_file=True)
    told = str(refused.value)
    assert "`assistant web token --new`" in told and "Nothing was changed" in told and guessable not in told
    assert not home.secrets.exists()


def test_a_token_of_ones_own_that_is_as_strong_as_ours_is_kept(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    store_secret(home, "web.token", TOKEN, in_file=True)
    assert run_in_process(home.path, "web", "token").out == f"{TOKEN}\n"


def test_where_nobody_chose_a_port_each_assistant_listens_and_says_where(tmp_path: Path) -> None:
    addresses = set()
    with (
        run_daemon(tmp_path / "a", ASSISTANT_WEB__PORT="") as one,
        run_daemon(tmp_path / "b", ASSISTANT_WEB__PORT="") as two,
    ):
        for home, daemon in ((tmp_path / "a", one), (tmp_path / "b", two)):
            told = run_in_process(home, "web", ASSISTANT_WEB__PORT="")
            assert told.returncode == 0 and told.out.strip() in daemon.hint
            assert told.out.strip().endswith(":8484") or "is taken" in told.err
            addresses.add(told.out)
            link = run_in_process(home, "open", "--print", ASSISTANT_WEB__PORT="")
            assert link.returncode == 0 and link.out.startswith(f"{told.out.strip()}/#login=")
    assert len(addresses) == 2


def test_f42_a_link_to_the_page_stands_in_no_log(tmp_path: Path) -> None:
    settings = {"ASSISTANT_WEB__PORT": str(free_port()), "ASSISTANT_LOG__LEVEL": "debug"}
    with run_daemon(tmp_path / "home", **settings) as daemon:
        code = run_in_process(tmp_path / "home", "open", "--print", **settings).out.strip().partition("#login=")[2]
        address = f"http://127.0.0.1:{settings['ASSISTANT_WEB__PORT']}"
        with httpx2.Client(base_url=address, transport=httpx2.HTTPTransport(retries=8), timeout=30) as client:
            done = client.post("/v1/login", headers={"Authorization": f"Login {code}"})
        assert done.status_code == 200
        secret = done.headers["set-cookie"].partition(";")[0].partition("=")[2]
        daemon.process.terminate()
        said = (daemon.process.communicate(timeout=60)[1]).decode()
    kept = [file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file()]
    for word in (code, secret):
        assert len(word) > 40 and word not in said and not any(word.encode() in content for content in kept)


def test_a_page_is_not_opened_while_nothing_runs(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "open", "--print", ASSISTANT_WEB__PORT="")
    assert done.returncode == 2 and "`assistant run` starts it" in one_line_error(done)
    off = run_in_process(tmp_path / "home", "open", "--print", ASSISTANT_WEB__PORT="0")
    assert off.returncode == 2 and "`assistant config unset web.port` turns them on" in one_line_error(off)


def test_a_conversation_that_runs_the_assistant_serves_the_page_and_says_where(tmp_path: Path) -> None:
    home, settings = tmp_path / "home", {"ASSISTANT_WEB__PORT": ""}
    said = AssistantTerminal(
        "run",
        "--chat",
        env={"NO_COLOR": "1", **command_environment(home, **settings)},
        dimensions=(40, 100),
        timeout=60,
    )
    said.expect(rb"The page for your browser is at (http://127\.0\.0\.1:\d+); `assistant open`")
    address = said.match.group(1).decode()
    link = run_in_process(home, "open", "--print", **settings)
    assert link.returncode == 0 and link.out.startswith(f"{address}/#login="), link.err
    said.close(force=True)
