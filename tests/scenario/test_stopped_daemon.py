"""Commands beside a daemon that is stopped (SIGSTOP) and so answers nothing: each says so, and none waits for ever."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from assistant.cli.client import open_socket_link
from assistant.cli.silence import DaemonSilent, Patience, SilenceWatch
from assistant.settings.home import Home
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    DaemonProcess,
    command_environment,
    run_assistant,
    run_daemon,
    run_in_process,
)
from tests.support.forked_command import ForkedCommand

IMPATIENT = Patience(look_every=0.01, answer_within=0.01, give_up_after=0.5)


@contextmanager
def running_command(home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with ForkedCommand(
        list(arguments),
        env=command_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process


def stop_process(running: DaemonProcess) -> str:
    """Stop the process, and return what commands say of it."""
    number = running.process.pid
    running.process.send_signal(signal.SIGSTOP)
    os.waitpid(number, os.WUNTRACED)
    return f"its process {number} is stopped; `kill -CONT {number}` continues it."


@pytest.mark.parametrize("arguments", [("todo", "add", "lamp oil"), ("chat", "-m", "put lamp oil on my list")])
def test_a_command_says_that_the_process_is_stopped_and_is_carried_out_once_when_it_continues(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_assistant(home, "chat", "-m", "hello").returncode == 0
        said = stop_process(running)
        with running_command(home, *arguments) as command:
            assert command.stderr is not None
            line = command.stderr.readline().decode()
            assert line == f"The assistant does not answer: {said} Waiting for it.\n"
            running.process.send_signal(signal.SIGCONT)
            out, _ = command.communicate(timeout=TIMEOUT_SECONDS)
        assert (command.returncode, b"lamp oil" in out) == (0, True)
        listed = json.loads(run_in_process(home, "todo", "--json").out)
    assert json.dumps(listed).count("lamp oil") == 1


def test_what_can_be_read_is_read_from_the_files_while_the_process_is_stopped(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_assistant(home, "todo", "add", "lamp oil").returncode == 0
        assert run_assistant(home, "chat", "-m", "remember that the ladder is in the shed").returncode == 0
        said = stop_process(running)
        report = json.loads((status := run_in_process(home, "status", "--json")).out)
        assert (status.returncode, report["running"]) == (1, True)
        assert report["problems"][0].startswith(f"The assistant does not answer: {said} What follows is read from its")
        assert "lamp oil" in run_in_process(home, "todo").out
        assert "ladder" in run_in_process(home, "log", "--grep", "ladder").out


async def test_a_command_gives_up_with_what_became_of_it_where_the_process_stays_stopped(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with run_daemon(home.path) as running:
        said = stop_process(running)
        told: list[str] = []
        async with open_socket_link(home.socket, told.append, IMPATIENT) as link:
            with pytest.raises(DaemonSilent, match=r"What it accepted is kept\. Nothing was sent or changed\."):
                await link.status()
            with pytest.raises(DaemonSilent, match=r"is not known: look before you repeat it\."):
                await link.run_argv(["todo", "add", "lamp oil"], "main", 300)
        assert told == [f"The assistant does not answer: {said} Waiting for it."] * 2
        running.process.send_signal(signal.SIGCONT)
        async with open_socket_link(home.socket) as link:
            assert (await link.status())["ok"]


async def test_who_waits_for_an_answer_is_told_that_the_process_has_stopped_in_the_middle_of_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with run_daemon(home.path) as running:
        told: list[str] = []
        async with open_socket_link(home.socket) as link:
            accepted = await link.send_message("hello", "m1", "main")
        async with (
            open_socket_link(home.socket, told.append, IMPATIENT) as link,
            aclosing(link.events("main", accepted.inbox_id)) as events,
        ):
            assert (await anext(events))[0] == "hello"
            said = stop_process(running)
            with pytest.raises(DaemonSilent, match=r"kept\. Your message is answered once it continues\."):
                async for _ in events:
                    pass
        assert told == [f"The assistant does not answer: {said} Waiting for it."]
        running.process.send_signal(signal.SIGCONT)
        async with open_socket_link(home.socket) as link, aclosing(link.events("main", accepted.inbox_id)) as events:
            while (await link.result(accepted.inbox_id))["state"] != "answered":
                await anext(events)


async def test_a_long_command_of_a_process_that_is_alive_is_waited_for(tmp_path: Path) -> None:
    told: list[str] = []
    signs = iter([None, None, TimeoutError(), TimeoutError(), None, None])
    ended = asyncio.Event()

    async def check_health() -> None:
        sign = next(signs, ended)
        if sign is ended:
            ended.set()
            return
        if isinstance(sign, TimeoutError):
            raise sign

    patience = Patience(look_every=0, answer_within=60, give_up_after=60)
    watch = asyncio.create_task(SilenceWatch(tmp_path, check_health, told.append, patience).wait_for_silence(""))
    await ended.wait()
    assert not watch.done()
    watch.cancel()
    assert told == [
        "The assistant (process ?) has not answered for 1 second. Waiting for it.",
        "The assistant answers again.",
    ]


def test_a_process_that_is_stopped_can_be_asked_to_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        stop_process(running)
        done = run_in_process(home, "stop")
        assert (done.returncode, running.process.wait(TIMEOUT_SECONDS)) == (0, 0)
