"""One home on a host, while the host has its lease: restored if another machine had it, then run as a child process and
started again when it ends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path

from assistant.core.errors import AssistantError, StoreError
from assistant.core.logger import get_logger
from assistant.core.processes import end_process
from assistant.replica.holder import load_holder
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.home_lock import is_home_served, lock_holder

log = get_logger()

_LEAST_SECONDS_BETWEEN_STARTS, _MOST_SECONDS_BETWEEN_STARTS = 0.5, 60.0
_LOOK_EVERY = 0.05
_FORMER = ".before"
# The child is asked to stop when its host dies (Linux); where that is missing, the fence of the replica refuses it.
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")

OpenReplica = Callable[[str], ReplicaDatabase]


class RunningHome:
    """`environment` is that of its commands. `close` ends it; `abandon` kills it at once."""

    def __init__(
        self, home: str, epoch: int, folder: Path, environment: Mapping[str, str], replica: OpenReplica
    ) -> None:
        self.home, self.epoch, self.folder = home, epoch, folder
        self._environment, self._replica = environment, replica
        self.is_leaving = False
        self._serving: Process | None = None
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name=f"home {home}")

    @property
    def is_ended(self) -> bool:
        return self._task.done()

    def close(self) -> None:
        """Ask it to stop: running turns finish first. `is_ended` says when it has."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._serving is None:
            self._task.cancel()
        elif self._serving.returncode is None:
            self._serving.terminate()

    def abandon(self) -> None:
        """Kill it: another host may have the home now. Nothing acknowledged is lost."""
        self._is_closing = True
        self._task.cancel()

    def check_owner(self, owner: str | None) -> None:
        """Kill a child whose replica has another owner: it is refused everything. It is restored, and started again."""
        if self._serving is None or self._serving.returncode is not None or owner is None:
            return
        holder = load_holder(self.folder)
        if holder is not None and holder.name != owner:
            log.warning("the replica of a home has another owner; it is restored", home=self.home)
            self._serving.kill()

    async def wait(self) -> None:
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        seconds = _LEAST_SECONDS_BETWEEN_STARTS
        while not self._is_closing:
            started = asyncio.get_running_loop().time()
            try:
                await self._prepare()
                await self._serve()
            except (AssistantError, OSError) as error:
                log.error("a home could not be started", home=self.home, error=str(error))
            if self._is_closing:
                return
            lasted = asyncio.get_running_loop().time() - started
            calm = lasted > _MOST_SECONDS_BETWEEN_STARTS
            seconds = _LEAST_SECONDS_BETWEEN_STARTS if calm else min(seconds * 2, _MOST_SECONDS_BETWEEN_STARTS)
            await asyncio.sleep(seconds)

    async def _prepare(self) -> None:
        """Restore the home unless this folder owns its replica. Raises `AssistantError`."""
        await self._end_leftover()
        database = self._replica(self.home)
        try:
            state, holder = await database.read_state(), load_holder(self.folder)
            if state is None or (holder is not None and holder.name == state.holder):
                return
            if not state.base:
                # Nothing is acknowledged before the first base is complete: it begins anew.
                await database.delete(state.epoch)
                return
        finally:
            await database.aclose()
        await asyncio.to_thread(_set_aside, self.folder)
        process = await self._start("replica", "restore", output=PIPE)
        try:
            _, err = await process.communicate()
        finally:
            await end_process(process)
        if process.returncode:
            raise StoreError(err.decode(errors="replace").strip() or "Its restore was killed.")
        log.info("restored a home", home=self.home)

    async def _end_leftover(self) -> None:
        """End a child of an earlier process of this host."""
        while is_home_served(self.folder):
            if holder := lock_holder(self.folder):
                os.kill(holder, signal.SIGKILL)
            await asyncio.sleep(_LOOK_EVERY)

    async def _serve(self) -> None:
        process = await self._start("run")
        try:
            self._serving = process
            if self._is_closing:
                process.terminate()
            code = await process.wait()
            log.info("a home stopped", home=self.home, code=code)
        finally:
            self._serving = None
            await end_process(process)

    async def _start(self, *words: str, output: int | None = None) -> Process:
        prefix = _END_WITH_PARENT if shutil.which(_END_WITH_PARENT[0]) else ()
        return await asyncio.create_subprocess_exec(
            *(*prefix, sys.executable, "-P", "-m", "assistant.cli.main", *words),
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            env=self._environment,
        )


def _set_aside(folder: Path) -> None:
    """Move an old folder of a home to `.before`: a restore leaves keys and secrets in place, and these are old as well.
    One former folder of each home is kept, for what no replica has."""
    if not folder.exists():
        return
    former = folder.parent / _FORMER / folder.name
    if former.exists() and load_holder(folder) is None:
        shutil.rmtree(folder)  # a restore was interrupted
        return
    if former.exists():
        shutil.rmtree(former)
    former.parent.mkdir(mode=0o700, exist_ok=True)
    folder.rename(former)
