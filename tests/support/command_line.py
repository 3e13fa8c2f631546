"""The `assistant` command as a person runs it: in a process of its own, or within this one; with a home of its own and
nothing from this process's environment.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from assistant.cli.lazy import run_guarded
from assistant.cli.main import assistant as assistant_command
from assistant.settings.home import Home
from tests.support.forked_command import ForkedCommand

TIMEOUT_SECONDS = 60
ASSISTANT_COMMAND = (sys.executable, "-c", "from assistant.cli.main import main; main()")
ROOT = Path(__file__).parents[2]
# As it is where Telegram is set up, for commands that send it nothing.
TELEGRAM_SET_UP = {"ASSISTANT_TELEGRAM__ENABLED": "true", "ASSISTANT_TELEGRAM__TOKEN": "123:abc"}


@dataclass(frozen=True)
class FinishedCommand:
    """How a command ended."""

    returncode: int
    out: str
    err: str


def command_environment(home: Path, **settings: str) -> dict[str, str]:
    """With `ASSISTANT_WEB__PORT=""` nobody chose a port."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "100",
        # A data folder of a test is among temporary files for what is started, too.
        "TMPDIR": tempfile.gettempdir(),
        "PYTHONPATH": str(ROOT),
        "ASSISTANT_HOME": str(home),
        # Many daemons run at once; those that are asked to listen get a port of their own.
        "ASSISTANT_WEB__PORT": "0",
        **settings,
    }
    return {name: value for name, value in environment.items() if value or name != "ASSISTANT_WEB__PORT"}


def run_assistant(home: Path, *arguments: str | bytes, said: bytes | None = None, **settings: str) -> FinishedCommand:
    """Run `assistant` in its own process to the end; `said` is standard input, which is empty without it."""
    with ForkedCommand(
        arguments,
        stdin=subprocess.DEVNULL if said is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command_environment(home, **settings),
    ) as process:
        try:
            out, err = process.communicate(said, TIMEOUT_SECONDS)
        except BaseException:
            process.kill()
            raise
    return FinishedCommand(process.returncode, out.decode(), err.decode())


def run_in_process(
    home: Path, *arguments: str, command: click.Command = assistant_command, **settings: str
) -> FinishedCommand:
    """Run a command that only looks, within this process: the same frame, a hundred times faster."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in [n for n in os.environ if n.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))]:
            patch.delenv(name)
        for name, value in command_environment(home, **settings).items():
            patch.setenv(name, value)
        code = run_guarded(command, arguments)
    return FinishedCommand(code, out.getvalue(), err.getvalue())


def one_line_error(done: FinishedCommand) -> str:
    """The error of a command that failed as it should: one line, no traceback."""
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("Error: ")
    return lines[0]


class DaemonProcess:
    """A daemon in its own process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hint = ""  # what it said when it was ready

    def next_line(self) -> str:
        """The next line it says on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT_SECONDS)


@contextmanager
def run_daemon(home: Path, *arguments: str, **settings: str) -> Iterator[DaemonProcess]:
    """`assistant run`, ready; killed at the end if it still runs."""
    settings = {"ASSISTANT_LOG__LEVEL": "error", **settings}
    with ForkedCommand(
        ["run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command_environment(home, **settings),
    ) as process:
        running = DaemonProcess(process)
        try:
            running.hint = running.next_line()
            # A chat that serves itself is waited for first, and the log says what it likes.
            while "hands it over" in running.hint or running.hint.startswith("timestamp="):
                running.hint = running.next_line()
            assert "assistant chat" in running.hint, running.hint
            yield running
        finally:
            if process.poll() is None:
                running.kill()


def run_bridge_command(home: Home, *words: str, said: str = "", **settings: str) -> FinishedCommand:
    """A command with `said` as its standard input, and nothing of this process's environment."""
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    env = {**others, **command_environment(home.path, **settings)}
    with CliRunner().isolation(input=said, env=env) as (out, err, _):
        code = run_guarded(assistant_command, words)
        return FinishedCommand(code, out.getvalue().decode(), err.getvalue().decode())
