"""The `assistant` command as a person runs it: its own process, its own home, nothing from this one's environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60
ASSISTANT = (sys.executable, "-c", "from assistant.cli.main import main; main()")
AIHISTORY = (sys.executable, "-c", "from assistant.cli.aihistory import main; main()")
ROOT = Path(__file__).parents[2]

Done = subprocess.CompletedProcess[bytes]


def environment(home: Path, **settings: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(home.parent), "LANG": "C.UTF-8", "TERM": "xterm", "COLUMNS": "100",
        "PYTHONPATH": str(ROOT), "ASSISTANT_HOME": str(home), **settings,
    }  # fmt: skip


def assistant(
    home: Path,
    *arguments: str | bytes,
    said: bytes | None = None,
    command: tuple[str, ...] = ASSISTANT,
    **settings: str,
) -> Done:
    """Run to the end; `said` is standard input, which is empty without it."""
    return subprocess.run(
        [*command, *arguments], input=said, stdin=subprocess.DEVNULL if said is None else None, capture_output=True,
        env=environment(home, **settings), timeout=SECONDS,
    )  # fmt: skip


def one_line_error(done: Done) -> str:
    """The error of a command that failed as it should: one line, no traceback."""
    lines = done.stderr.decode().strip().splitlines()
    assert len(lines) == 1, done.stderr.decode()
    assert lines[0].startswith("Error: ")
    return lines[0]


class Running:
    """A daemon in its own process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def line(self) -> str:
        """The next line it says on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)


@contextmanager
def daemon(home: Path, *arguments: str, **settings: str) -> Iterator[Running]:
    """`assistant run`, ready; killed at the end if it still runs."""
    settings = {"ASSISTANT_LOG__LEVEL": "error", **settings}
    with subprocess.Popen(
        [*ASSISTANT, "run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(home, **settings),
    ) as process:  # fmt: skip
        running = Running(process)
        try:
            hint = running.line()
            assert "assistant chat" in hint, hint
            yield running
        finally:
            if process.poll() is None:
                running.kill()
