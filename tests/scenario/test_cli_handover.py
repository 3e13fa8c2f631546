"""A daemon that starts gets the data folder from a chat that has it, each in its own process: nothing is lost,
nothing is answered twice, and the chat continues."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pexpect
import pytest

from assistant.cli.handover import wait_until_free
from assistant.core.errors import HomeLocked
from assistant.service.heartbeat import SystemdNotifier
from assistant.service.home_lock import home_lock, lock_holder
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from tests.strict.behaviour import Held, ScriptedAnswer
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
from tests.support.forked_terminal import AssistantTerminal

PROMPT = "›"
WAITING = b"hands it over after its answer"


def model_settings(server: StrictServer) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": server.key}


@contextmanager
def started(home: Path, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in its own process, with pipes; killed at the end if it still runs."""
    with ForkedCommand(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command_environment(home, ASSISTANT_LOG__LEVEL="error", **settings),
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def idle_chat(home: Path, *arguments: str) -> Iterator[pexpect.spawn]:
    """A chat at a terminal that has the data folder, and waits for its person."""
    child = AssistantTerminal(
        *(arguments or ("chat",)),
        env=command_environment(home),
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(30, 100),
    )
    try:
        child.expect(PROMPT)
        yield child
    finally:
        child.close(force=True)


def read_until(process: subprocess.Popen[bytes], words: bytes) -> None:
    """What it says on standard error, up to the line with these words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"It ended without {words!r}.")


def said(home: Path, role: str) -> list[str]:
    """What the message log has of one who speaks."""
    lines = run_in_process(home, "log", "--json", "--limit", "100").out.splitlines()
    return [row["content"] for row in map(json.loads, lines) if row["role"] == role]


@pytest.mark.parametrize("arguments", [("chat",), ("run", "--chat")])
def test_an_idle_chat_hands_over_to_a_daemon_that_starts_and_stays_connected(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    with idle_chat(home, *arguments) as chat:
        chat.sendline("remember that the ladder is in the shed")
        chat.expect(PROMPT)
        with started(home, "run") as daemon:
            read_until(daemon, b"assistant chat")
            assert lock_holder(home) == daemon.pid
            chat.expect("takes over; this chat stays connected")
            chat.sendline("where is the ladder?")
            chat.expect("shed")
            chat.expect(PROMPT)
            # What is shown is confirmed a moment later.
            while json.loads(run_in_process(home, "status", "--json").out)["outbox"] != {"sent": 2}:
                assert daemon.poll() is None
            chat.send("\x04")
            chat.expect(pexpect.EOF)
            assert daemon.poll() is None
    assert said(home, "user") == ["remember that the ladder is in the shed", "where is the ladder?"]


def test_a_question_under_way_is_answered_before_the_daemon_takes_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        StrictServer(Held(ScriptedAnswer("It is brass."))) as server,
        started(home, "chat", "-m", "what is the bell?", **model_settings(server)) as asking,
    ):
        assert server.received.wait(TIMEOUT_SECONDS)
        with started(home, "run", **model_settings(server)) as daemon:
            read_until(daemon, WAITING)
            server.release()
            out, err = asking.communicate(timeout=TIMEOUT_SECONDS)
            read_until(daemon, b"assistant chat")
            assert (asking.returncode, out, err) == (0, b"It is brass.\n", b"")
            assert json.loads(run_in_process(home, "status", "--json").out)["outbox"] == {"sent": 1}
        assert len(server.requests) == 1
    assert said(home, "assistant") == ["It is brass."]


def test_the_daemon_that_follows_a_killed_one_waits_for_the_question_that_took_over(tmp_path: Path) -> None:
    """The daemon dies at once; the question that it was asked is answered by its asker, and the next daemon serves."""
    home = tmp_path / "home"
    with (
        StrictServer(Held(ScriptedAnswer("never")), Held(ScriptedAnswer("It is brass."))) as server,
        run_daemon(home, **model_settings(server)) as first,
        started(home, "chat", "-m", "what is the bell?", **model_settings(server)) as asking,
    ):
        assert server.received.wait(TIMEOUT_SECONDS)
        server.received.clear()
        first.kill()
        assert server.received.wait(TIMEOUT_SECONDS)
        assert lock_holder(home) == asking.pid
        with started(home, "run", **model_settings(server)) as daemon:
            read_until(daemon, WAITING)
            server.release()
            out, _ = asking.communicate(timeout=TIMEOUT_SECONDS)
            read_until(daemon, b"assistant chat")
            assert (asking.returncode, out) == (0, b"It is brass.\n")
    assert said(home, "user") == ["what is the bell?"] and said(home, "assistant") == ["It is brass."]


def test_a_pipe_that_waits_for_its_next_line_continues_with_the_daemon(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with started(home, "chat") as chat:
        assert chat.stdin is not None and chat.stdout is not None
        chat.stdin.write(b"remember that the well is deep\n")
        chat.stdin.flush()
        first = chat.stdout.readline()
        with started(home, "run") as daemon:
            read_until(daemon, b"assistant chat")
            out, err = chat.communicate(b"is the well deep?\n", timeout=TIMEOUT_SECONDS)
            assert first and b"deep" in out and (chat.returncode, err) == (0, b"")
            assert lock_holder(home) == daemon.pid


def test_a_chat_goes_on_serving_when_the_daemon_that_waited_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        StrictServer(Held(ScriptedAnswer("It is brass."))) as server,
        started(home, "chat", **model_settings(server)) as chat,
    ):
        assert chat.stdin is not None and chat.stdout is not None
        chat.stdin.write(b"what is the bell?\n")
        chat.stdin.flush()
        assert server.received.wait(TIMEOUT_SECONDS)
        with started(home, "run", **model_settings(server)) as daemon:
            read_until(daemon, WAITING)
            daemon.send_signal(signal.SIGKILL)
            daemon.wait(TIMEOUT_SECONDS)
        server.release()
        out, err = chat.communicate(b"and the gate?\n", timeout=TIMEOUT_SECONDS)
        assert (chat.returncode, out.split(b"\n")[0], err) == (0, b"It is brass.", b"") and b"ok" in out
    assert said(home, "user") == ["what is the bell?", "and the gate?"]


@pytest.mark.parametrize("first", ["chat", "daemon"])
def test_a_chat_serves_when_the_daemon_that_served_it_is_gone(tmp_path: Path, first: str) -> None:
    """Whether the daemon took over from the chat, or was there before it."""
    home = tmp_path / "home"
    with ExitStack() as stack:
        chat = stack.enter_context(idle_chat(home)) if first == "chat" else None
        daemon = stack.enter_context(started(home, "run"))
        read_until(daemon, b"assistant chat")
        chat = chat or stack.enter_context(idle_chat(home))
        chat.sendline("remember that the ladder is in the shed")
        chat.expect("Noted")
        daemon.kill()
        daemon.wait(TIMEOUT_SECONDS)
        chat.sendline("where is the ladder?")
        chat.expect("in the shed")
        assert lock_holder(home) == chat.pid
        chat.send("\x04")
        chat.expect(pexpect.EOF)
    assert said(home, "user") == ["remember that the ladder is in the shed", "where is the ladder?"]


def test_a_chat_that_is_killed_while_it_hands_over_is_followed_and_its_question_answered_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        StrictServer(Held(ScriptedAnswer("never"))) as server,
        started(home, "chat", "-m", "what is the bell?", **model_settings(server)) as asking,
    ):
        assert server.received.wait(TIMEOUT_SECONDS)
        with started(home, "run", **model_settings(server)) as daemon:
            read_until(daemon, WAITING)
            asking.kill()
            read_until(daemon, b"assistant chat")
            again = run_assistant(home, "chat", "-m", "and the gate?", **model_settings(server))
            assert again.returncode == 0
    assert said(home, "user") == ["what is the bell?", "and the gate?"] and len(said(home, "assistant")) == 2


def test_under_a_service_manager_the_start_waits_and_says_for_whom(tmp_path: Path) -> None:
    home, address = tmp_path / "home", tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(TIMEOUT_SECONDS)
        with ExitStack() as stack:
            stack.enter_context(home_lock(home))
            with started(home, "run", NOTIFY_SOCKET=str(address)) as daemon:
                heard = manager.recv(4096).decode()
                assert "EXTEND_TIMEOUT_USEC=" in heard and f"Process {os.getpid()} uses the data folder" in heard
                assert daemon.poll() is None
                stack.close()
                while "READY=1" not in heard:
                    heard = manager.recv(4096).decode()


async def test_in_the_foreground_the_wait_has_a_limit_and_says_what_to_do(tmp_path: Path) -> None:
    settings, past = load_settings(Home(tmp_path / "home"), {}), asyncio.get_running_loop().time() - 1
    with home_lock(settings.home.path, "chat"), pytest.raises(HomeLocked) as refused:
        await wait_until_free(settings, past, 945, SystemdNotifier())
    told = str(refused.value)
    assert f"Process {os.getpid()} still uses" in told and "Nothing was started" in told and "assistant stop" in told


def test_a_second_daemon_that_waits_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with home_lock(home), started(home, "run") as daemon:
        read_until(daemon, b"a command, which has to end first")
        assert "Another `assistant run` waits" in one_line_error(run_assistant(home, "run"))
