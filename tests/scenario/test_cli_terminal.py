"""`assistant chat` at a real terminal (a pty): what a person types and sees."""

from __future__ import annotations

import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.strict.behaviour import Held, ScriptedAnswer
from tests.strict.server import StrictServer
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    command_environment,
    run_assistant,
    run_daemon,
    run_in_process,
)
from tests.support.forked_terminal import AssistantTerminal

PROMPT = "›"
CTRL_C, CTRL_D = "\x03", "\x04"


@contextmanager
def terminal(home: Path, *arguments: str, **settings: str) -> Iterator[pexpect.spawn]:
    """The command at a terminal, ready for typing."""
    child = started(home, *arguments, **settings)
    try:
        child.expect("Ctrl-D leaves")
        child.expect(PROMPT)
        yield child
    finally:
        child.close(force=True)


def started(home: Path, *arguments: str, **settings: str) -> pexpect.spawn:
    """The command at a terminal of 100 by 30."""
    return AssistantTerminal(
        *arguments,
        env=command_environment(home, **settings),
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(30, 100),
    )


def left(child: pexpect.spawn) -> int:
    """Leave with Ctrl-D; the exit code."""
    child.send(CTRL_D)
    child.expect(pexpect.EOF)
    child.wait()
    return int(child.exitstatus)


def test_a_conversation_at_a_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with terminal(home, "chat") as child:
        child.send("remember that the **lamp** is on the shelf\r")
        child.expect("Noted")
        child.send("/todo add buy oil\r")
        child.expect("buy oil")
        child.send("where is the lamp?\r")
        child.expect("You told me")
        assert left(child) == 0
    history = home / "chat_history"
    assert "/todo add buy oil" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert '"sent"' in run_in_process(home, "status", "--json").out


def test_an_answer_is_drawn_at_a_terminal_and_plain_in_a_pipe(tmp_path: Path) -> None:
    home = tmp_path / "home"
    plain = run_assistant(home, "chat", "-m", "put lamp oil on my list").out
    assert "- 1: lamp oil" in plain and "*This is offline mode" in plain
    for arguments in (["remind", "call Ines", "--at", "in 2 hours"], ["remind", "list"]):
        plain = run_assistant(home, *arguments).out
    assert plain.startswith("- 1: ")
    for arguments, line in ((["remind", "list"], "1: "), (["chat", "-m", "what is on my list?"], "1: lamp oil")):
        child = started(home, *arguments)
        child.expect(pexpect.EOF)
        assert re.search(rf"^\x1b\[1m • \x1b\[0m{line}", child.before, re.MULTILINE), child.before


def test_who_leaves_while_an_answer_is_written_reads_it_first(tmp_path: Path) -> None:
    with (
        StrictServer(Held(ScriptedAnswer("It is brass."))) as server,
        terminal(tmp_path / "home", "chat", ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY=server.key) as child,
    ):
        child.send("what is the bell?\r")
        assert server.received.wait(TIMEOUT_SECONDS)
        child.send(CTRL_D)
        child.expect("finished first")
        server.release()
        child.expect("It is brass.")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    assert '"sent": 1' in run_in_process(tmp_path / "home", "status", "--json").out


def test_run_with_chat_talks_here_and_another_terminal_attaches(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with terminal(home, "run", "--chat") as first, terminal(home, "chat") as second:
        second.send("remember that the attic is dry\r")
        second.expect("Noted.")
        first.expect("from elsewhere")
        first.expect("Noted.")
        first.send("is the attic dry?\r")
        first.expect("You told me")
        assert left(second) == 0
        assert left(first) == 0


def test_an_escape_sequence_that_was_said_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home), terminal(home, "chat") as child:
        child.send("remember that \x16\x1b]0;owned\x16\x07 is a title\r")
        child.expect("Noted")
        child.send("what is a title?\r")
        seen = ""
        while "You told me" not in seen:
            child.expect("\n")
            seen += child.before
        child.expect("a title")
        seen += child.before
        assert not re.search(r"\x1b\]0;owned", seen)
        assert left(child) == 0


def test_a_terminal_whose_daemon_restarts_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running, terminal(home, "chat") as child:
        running.kill()
        child.expect("onnection to the assistant lost")
        child.send("remember that the fuse is green\r")
        child.expect("kept here")
        with run_daemon(home):
            child.expect("Noted")
            assert left(child) == 0
    log = run_in_process(home, "log", "--json", "--grep", "fuse").out
    assert log.count('"role": "user"') == 1


def test_a_terminal_that_is_told_to_end_gives_the_home_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with terminal(home, "chat") as child:
        child.kill(signal.SIGTERM)
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    assert (
        '"running": false' in run_in_process(home, "status", "--json").out
        or "Begin with" in run_in_process(home, "status").err
    )


@pytest.mark.parametrize("leave", [CTRL_D, "bye\r", "/exit now\r"], ids=["Ctrl-D", "bye", "exit"])
def test_who_leaves_with_reminders_pending_is_told_that_nothing_will_run(tmp_path: Path, leave: str) -> None:
    with terminal(tmp_path / "home", "chat") as child:
        child.send("/remind call Ines --at in 3 hours\r")
        child.expect("call Ines.*Reminders come only while the assistant runs")
        child.expect(PROMPT)
        child.send(leave)
        said = "1 reminder waits.*nothing will run the assistant then.*assistant.*running"
        child.expect(said.replace(" ", r"\s+"))  # the terminal gets it broken between words
        child.expect(pexpect.EOF)


def test_a_terminal_that_draws_nothing_shows_each_line_once_and_the_prompt_again(tmp_path: Path) -> None:
    with terminal(tmp_path / "home", "chat", TERM="dumb") as child:
        child.send("remember that the lamp is red\r")
        child.expect(f"{PROMPT} \r\n")
        assert child.before.strip() == "remember that the lamp is red"
        child.expect(f"Noted.*{PROMPT} ")
        child.send(CTRL_C)
        child.expect(f"To leave: Ctrl-D, or type exit.\r\n{PROMPT} ")
        assert left(child) == 0


def test_a_word_that_a_command_does_not_take_is_refused_in_whole_words(tmp_path: Path) -> None:
    child = started(tmp_path / "home", "setup", "the-cheese-board")
    child.expect(pexpect.EOF)
    child.wait()
    *_, first, second = child.before.splitlines()
    assert first.startswith("Error: Invalid value") and len(first) <= 100
    assert second.startswith("'") and second.endswith("'reply'.") and child.exitstatus == 2
