"""The daemon and what attaches to it, each in its own process: start, attach, stop, killed in between."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

from tests.strict.server import StrictServer
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    command_environment,
    one_line_error,
    run_assistant,
    run_daemon,
    run_in_process,
)
from tests.support.forked_command import ForkedCommand


def test_a_question_attaches_to_the_daemon_and_stop_ends_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert stat.S_IMODE((home / "run" / "control.sock").stat().st_mode) == 0o600
        told = run_assistant(home, "chat", "-m", "remember that the ladder is in the shed")
        asked = run_assistant(home, "chat", "-m", "where is the ladder?", "--json")
        assert (told.returncode, told.err, asked.returncode, asked.err) == (0, "", 0, "")
        assert "shed" in json.loads(asked.out)["reply"]
        report = json.loads(run_in_process(home, "status", "--json").out)
        assert (report["ok"], report["running"]) == (True, True)
        assert report["outbox"] == {"sent": 2}
        stopped = run_in_process(home, "stop", "--json")
        assert (stopped.returncode, stopped.err) == (0, f"Stopped process {running.process.pid}.\n")
        assert json.loads(stopped.out) == {"process": running.process.pid}
        assert running.process.wait(TIMEOUT_SECONDS) == 0
    assert not (home / "run" / "control.sock").exists()
    assert run_in_process(home, "stop").err == "The assistant is not running.\n"


def test_stopping_with_reminders_pending_says_that_nothing_will_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_assistant(home, "remind", "call Ines", "--at", "in 2 hours").returncode == 0
        stopped = run_in_process(home, "stop")
        assert stopped.returncode == 0 and "1 reminder waits" in stopped.err
        assert "nothing will run the assistant then" in stopped.err
        running.process.wait(TIMEOUT_SECONDS)


def test_a_second_daemon_is_refused_in_one_line_that_names_the_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        done = run_assistant(home, "run")
        assert done.returncode == 1
        assert str(running.process.pid) in one_line_error(done)
        piped = run_assistant(home, "run", "--chat", said=b"hello\n")
        assert piped.returncode == 0
        assert "this terminal connects to it" in piped.err and "Hello" in piped.out


def test_repair_is_refused_while_the_daemon_has_the_home(tmp_path: Path) -> None:
    with run_daemon(tmp_path / "home"):
        done = run_in_process(tmp_path / "home", "verify", "--repair")
        assert done.returncode == 1
        assert "assistant stop" in one_line_error(done)


def test_run_with_chat_answers_the_lines_and_ends(tmp_path: Path) -> None:
    done = run_assistant(
        tmp_path / "home", "run", "--chat", said=b"remember that the gate is open\nis the gate open?\n"
    )
    assert (done.returncode, done.err) == (0, "")
    assert "gate is open" in done.out


def test_run_with_chat_and_no_input_serves_and_says_how_to_talk(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home, "--chat") as running:
        assert run_assistant(home, "chat", "-m", "hello").returncode == 0
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(TIMEOUT_SECONDS) == 0


def test_ctrl_c_ends_a_daemon_that_serves_as_it_should(tmp_path: Path) -> None:
    with run_daemon(tmp_path / "home") as running:
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(TIMEOUT_SECONDS) == 0


def test_a_daemon_that_was_killed_leaves_a_home_that_the_next_one_serves(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_assistant(home, "chat", "-m", "remember that the well is deep").returncode == 0
        running.kill()
    assert (home / "run" / "control.sock").exists()
    report = run_in_process(home, "status", "--json")
    assert json.loads(report.out)["running"] is False
    with run_daemon(home):
        assert "deep" in run_assistant(home, "chat", "-m", "is the well deep?").out


def test_a_question_whose_daemon_is_killed_while_it_answers_is_answered_once(tmp_path: Path) -> None:
    """The daemon is stopped in its tracks, accepts in the kernel's queue, and dies; the asker takes the home over."""
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_assistant(home, "chat", "-m", "remember that the bell is brass").returncode == 0
        running.process.send_signal(signal.SIGSTOP)
        with ForkedCommand(
            ["chat", "-m", "what is the bell?"],
            env=command_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as asking:
            running.kill()
            out, err = asking.communicate(timeout=TIMEOUT_SECONDS)
    assert (asking.returncode, err) == (0, b"")
    assert b"brass" in out
    questions = [
        json.loads(line)
        for line in run_in_process(home, "log", "--json", "--grep", "what is the bell").out.splitlines()
    ]
    assert [row["role"] for row in questions].count("user") == 1


def test_a_home_deeper_than_a_socket_address_is_served(tmp_path: Path) -> None:
    home = tmp_path / ("a" * 60) / ("b" * 60) / "home"
    with run_daemon(home):
        assert run_assistant(home, "chat", "-m", "hello").returncode == 0


def test_the_status_without_a_daemon_has_what_the_daemon_learned_about_tokens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with StrictServer() as server:
        settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": server.key}
        with run_daemon(home, **settings):
            assert run_assistant(home, "chat", "-m", "hello", **settings).returncode == 0
            learned = json.loads(run_in_process(home, "status", "--json", **settings).out)["tokens"]
        assert "learned from 1 call" in learned
        status = json.loads(run_in_process(home, "status", "--json", **settings).out)
        assert (status["running"], status["tokens"]) == (False, learned)
        found = json.loads(run_in_process(home, "doctor", "--json", **settings).out)["findings"]
        assert [one["detail"] for one in found if one["subject"] == "tokens"] == [learned]
