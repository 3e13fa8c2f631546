"""`assistant chat` from scripts: one question, lines from a pipe, exit codes, and what is printed where."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.command_line import (
    TIMEOUT_SECONDS,
    command_environment,
    one_line_error,
    run_assistant,
    run_in_process,
)
from tests.support.forked_command import ForkedCommand


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port where nobody listens: it is taken, and refuses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_one_question_prints_the_reply_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = run_assistant(home, "chat", "-m", "remember that the boiler number is 4711")
    assert (told.returncode, told.err) == (0, "")
    asked = run_assistant(home, "chat", "-m", "what is the boiler number?")
    assert asked.returncode == 0
    assert "4711" in asked.out
    assert asked.err == ""


def test_a_conversation_that_begins_is_named_once(tmp_path: Path) -> None:
    """A name that was misspelt would begin one unseen."""
    home = tmp_path / "home"
    assert run_assistant(home, "chat", "-m", "hello").err == ""
    first = run_assistant(home, "chat", "--session", "trip", said=b"we sail on Monday\n")
    assert first.err.startswith("A new conversation begins: trip. `assistant sessions` lists those that you have.")
    assert run_assistant(home, "chat", "--session", "trip", "-m", "when do we sail?").err == ""


def test_what_looks_like_a_secret_is_named_beside_the_reply_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = run_assistant(home, "chat", "-m", "the boiler code is 4711")
    assert "That looks like a PIN." in first.err and "4711" not in first.err
    assert first.returncode == 0 and "looks like" not in first.out
    assert run_assistant(home, "chat", "-m", "the door code is 4712").err == ""


def test_json_has_its_keys_and_standard_input_is_one_turn(tmp_path: Path) -> None:
    home = tmp_path / "home"
    letter = "remember that the door is blue\nand the roof is red\n\n\x00 NUL and 🙂\n"
    done = run_assistant(home, "chat", "-m", "-", "--json", said=letter.encode())
    assert done.returncode == 0
    answer = json.loads(done.out)
    assert list(answer) == [
        "reply", "session", "turn", "model", "fallback", "fallback_reason", "notices", "usage", "pressure"
    ]  # fmt: skip
    assert (answer["fallback"], answer["fallback_reason"], answer["notices"]) == (False, "", [])
    assert set(answer["usage"]) == {"input", "output", "cache_read", "cache_write", "cache_write_hour", "cost_usd"}
    assert (answer["session"], answer["model"]) == ("main", "offline")
    assert 0 < answer["pressure"] < 1
    logged = run_in_process(home, "log", "--json").out.splitlines()
    assert json.loads(logged[0])["content"] == letter.rstrip("\n")


def test_each_line_of_a_pipe_is_answered_and_one_that_is_no_text_is_told(tmp_path: Path) -> None:
    lines = (
        b"remember that the key is under the pot\n\n\xff\xfe broken\n/todo add milk\nwhere is the key?\n/quit\nnever\n"
    )
    done = run_assistant(tmp_path / "home", "chat", said=lines)
    assert done.returncode == 2
    assert one_line_error(done) == "Error: Line 3 of the input is not valid UTF-8 (at byte 1). It was not sent."
    assert "under the pot" in done.out and "milk" in done.out
    assert "never" not in done.out


def test_a_word_of_parting_leaves_a_pipe_and_is_no_message(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert (done := run_assistant(home, "chat", said=b"Exit.\nremember the cat")).returncode == 0
    assert (done.out, "Noted" in done.err) == ("", False)
    done = run_assistant(home, "chat", said=b"remember that the dog is brown\nQUIT  ")
    assert (done.returncode, done.out.count("Noted")) == (0, 1)
    logged = [json.loads(line)["content"] for line in run_in_process(home, "log", "--json").out.splitlines()]
    assert logged[0] == "remember that the dog is brown" and len(logged) == 2
    alone = run_assistant(home, "chat", "-m", "exit")
    assert alone.returncode == 2
    assert one_line_error(alone).startswith("Error: /exit leaves a conversation in a terminal; here")


def test_lines_as_json_are_one_object_each(tmp_path: Path) -> None:
    """Commands that fail, and one that has nothing yet to work on, have theirs; the lines after them are answered."""
    lines = ("/retry", "/forget xy", "remember that the cat is grey", "what colour is the cat?")
    done = run_assistant(tmp_path / "home", "chat", "--json", said="\n".join(lines).encode())
    nothing, short, first, second = (json.loads(line) for line in done.out.splitlines())
    assert nothing["error"] == "Nothing was said here that could be undone, or asked again."
    assert short["error"].startswith("That is too short") and (short["reply"], done.returncode) == ("", 2)
    assert first["turn"] != second["turn"]
    assert "grey" in second["reply"]
    assert done.err.startswith(f"{nothing['error']}\nError: {short['error']}")


@pytest.mark.parametrize("wrong", [["-m", ""], ["-m", " \n"], ["-m", b"\xff"], ["-m", "hi", "--session", "room:x:1"]])
def test_wrong_use_is_told_in_one_line_with_exit_code_2(tmp_path: Path, wrong: list[str]) -> None:
    done = run_assistant(tmp_path / "home", "chat", *wrong)
    assert done.returncode == 2
    one_line_error(done)
    assert not (tmp_path / "home").exists()


def test_an_unknown_option_is_wrong_use(tmp_path: Path) -> None:
    done = run_assistant(tmp_path / "home", "chat", "--nonsense")
    assert done.returncode == 2
    assert "--nonsense" in done.err


def test_a_model_that_cannot_be_reached_is_exit_code_3_and_the_message_is_kept(
    tmp_path: Path, closed_port: int
) -> None:
    unreachable = {
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__NAME": "m",
        "ASSISTANT_MODEL__FALLBACK": "[]",
        "ASSISTANT_MODEL__BASE_URL": f"http://127.0.0.1:{closed_port}/v1",
        "ASSISTANT_MODEL__RETRIES": "0",
    }
    home = tmp_path / "home"
    done = run_assistant(home, "chat", "-m", "is anybody there?", "--json", **unreachable)
    assert done.returncode == 3
    assert "kept" in one_line_error(done)
    assert json.loads(done.out)["error"]
    assert "is anybody there?" in run_in_process(home, "log").out


def test_a_budget_that_is_used_up_is_exit_code_4(tmp_path: Path, closed_port: int) -> None:
    poor = {
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__NAME": "m",
        "ASSISTANT_MODEL__FALLBACK": "[]",
        "ASSISTANT_MODEL__BASE_URL": f"http://127.0.0.1:{closed_port}/v1",
        "ASSISTANT_BUDGET__DAILY_TOKENS": "10",
    }
    done = run_assistant(tmp_path / "home", "chat", "-m", "one more?", **poor)
    assert done.returncode == 4
    (error,) = done.err.splitlines()
    assert error.startswith("Error: The daily budget has too little left for a call")
    assert done.out == ""


def test_a_setting_that_is_wrong_stops_before_anything_is_made(tmp_path: Path) -> None:
    done = run_assistant(tmp_path / "home", "chat", "-m", "hi", ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="many")
    assert done.returncode == 2
    assert "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "home").exists()


def test_a_home_that_cannot_be_made_is_told_in_one_line_and_debug_shows_where(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "a disk that is not mounted" / "home")
    done = run_assistant(home, "chat", "-m", "hi")
    assert done.returncode == 1
    assert str(home) in one_line_error(done)
    assert "Traceback" in run_assistant(home, "--debug", "chat", "-m", "hi").err


class Stalled(BaseHTTPRequestHandler):
    """A provider that takes a request and never answers it."""

    asked = threading.Event()
    over = threading.Event()

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        self.asked.set()
        self.over.wait(TIMEOUT_SECONDS)

    def log_message(self, *_: object) -> None:
        """Standard error belongs to the tests."""


@pytest.fixture
def stalled_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stalled) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        Stalled.over.set()
        server.shutdown()


def test_ctrl_c_stops_the_turn_and_is_exit_code_130(tmp_path: Path, stalled_port: int) -> None:
    home = tmp_path / "home"
    stalled = {
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__NAME": "m",
        "ASSISTANT_MODEL__FALLBACK": "[]",
        "ASSISTANT_MODEL__BASE_URL": f"http://127.0.0.1:{stalled_port}/v1",
    }
    with ForkedCommand(
        ["chat", "-m", "hello?"],
        env=command_environment(home, **stalled),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as asking:
        assert Stalled.asked.wait(TIMEOUT_SECONDS)
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=TIMEOUT_SECONDS)
    assert (asking.returncode, out, err.strip()) == (130, b"", b"")
    said = run_in_process(home, "log").out
    assert "hello?" in said and "<turn-aborted>" in said


def test_a_message_of_ten_megabytes_is_kept_whole(tmp_path: Path) -> None:
    home, letter = tmp_path / "home", "a very long letter " * 550_000
    asked = run_assistant(home, "chat", "-m", "-", said=letter.encode())
    assert asked.returncode == 0
    told = " ".join(asked.err.split())
    assert "has 10,450,000 characters. All of it is kept, as the file received/" in told, "it is told what is shown"
    (file,) = (home / "workspace").rglob("*message.txt")
    assert file.read_text() == letter
    assert "message.txt" in run_in_process(home, "log").out


def test_what_a_terminal_showed_is_no_effect_that_stays_when_it_is_undone(tmp_path: Path) -> None:
    assert run_in_process(tmp_path / "home", "chat", "-m", "hello").returncode == 0
    done = run_in_process(tmp_path / "home", "undo")
    assert done.returncode == 0 and "hello" in done.out and "These effects stay" not in done.out
