"""Notices that the process which serves a data folder does not answer, while a command waits for it.

A command may take minutes, so it is no sign of life; a health check on a connection of its own is, whatever it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

from assistant.cli.link import LinkLost
from assistant.core.dataclass import dataclass
from assistant.core.plain_files import read_own_file
from assistant.core.text import pluralize
from assistant.service.home_lock import lock_holder


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a command waits for a process that gives no sign of life, in seconds."""

    look_every: float = 3.0
    answer_within: float = 2.0  # a health check
    give_up_after: float = 30.0


DEFAULT_PATIENCE = Patience()
_WHAT_TO_DO = "`assistant status` shows how it is; `assistant stop` ends it, and `assistant run` starts it again."


def tell_nobody(line: str) -> None:
    """Nobody looks on, or what does says itself that nobody answers."""


class DaemonSilent(LinkLost):
    """The assistant runs and does not answer. What it accepted is kept."""


class SilenceWatch:
    """Watches the process of a data folder for as long as somebody waits for it."""

    def __init__(
        self, home: Path, check_health: Callable[[], Awaitable[object]], tell: Callable[[str], None], patience: Patience
    ) -> None:
        """`check_health` returns at any answer, and raises or takes long where there is none. `tell` shows a line to
        whoever waits."""
        self._home = home
        self._check_health = check_health
        self._tell = tell
        self._patience = patience

    async def wait_for_silence(self, outcome: str) -> NoReturn:
        """Wait until cancelled, and tell when the process gives no sign of life. Raises `DaemonSilent` once it has
        given none for too long; `outcome` says what became of what was asked."""
        loop, patience = asyncio.get_running_loop(), self._patience
        heard, told = loop.time(), False
        while True:
            await asyncio.sleep(patience.look_every)
            if await self._is_alive():
                if told:
                    self._tell("The assistant answers again.")
                heard, told = loop.time(), False
                continue
            seconds = round(loop.time() - heard)
            if seconds >= patience.give_up_after:
                raise DaemonSilent(
                    f"{describe_silence(self._home, seconds)} What it accepted is kept. {outcome} {_WHAT_TO_DO}"
                )
            if not told:
                self._tell(f"{describe_silence(self._home, seconds)} Waiting for it.")
                told = True

    async def _is_alive(self) -> bool:
        # One that is stopped answers nothing: whoever waits is told at once.
        if is_stopped(lock_holder(self._home)):
            return False
        with contextlib.suppress(TimeoutError, LinkLost):
            async with asyncio.timeout(self._patience.answer_within):
                await self._check_health()
            return True
        return False


def is_stopped(process: int | None) -> bool:
    """Return whether a process is stopped, as by SIGSTOP or Ctrl-Z; False where the system does not tell."""
    if process is None:
        return False
    with contextlib.suppress(OSError, IndexError):
        # The name, in brackets, may have any characters.
        return read_own_file(Path(f"/proc/{process}/stat")).rpartition(b")")[2].split()[0] in (b"T", b"t")
    return False


def describe_silence(home: Path, seconds: float) -> str:
    """Return a sentence about the process that serves a data folder and has not answered for so long."""
    process = lock_holder(home)
    if is_stopped(process):
        return f"The assistant does not answer: its process {process} is stopped; `kill -CONT {process}` continues it."
    since = pluralize(max(1, round(seconds)), "second")
    return f"The assistant (process {process or '?'}) has not answered for {since}."
