"""One home on a host, while the host has its lease: restored if another machine had it, then run as a child process
within its quota, and started again when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from assistant.core.errors import AssistantError, StoreError
from assistant.core.logger import get_logger
from assistant.core.processes import end_process
from assistant.fleet.tables import Quota
from assistant.replica.holder import load_holder
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.home_lock import is_home_served, lock_holder
from assistant.service.idle_note import read_idle_note

log = get_logger()

_LEAST_SECONDS_BETWEEN_STARTS, _MOST_SECONDS_BETWEEN_STARTS = 0.5, 60.0
_LOOK_EVERY = 0.05
_FORMER = ".before"
# The child is asked to stop when its host dies (Linux); where that is missing, the fence of the replica refuses it.
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")

_MEGABYTE = 1_000_000

OpenReplica = Callable[[str], ReplicaDatabase]
Environment = Callable[[Quota], Mapping[str, str]]


class RunningHome:
    """`environment` is that of its commands. `close` ends it; `abandon` kills it at once."""

    def __init__(
        self,
        home: str,
        epoch: int,
        folder: Path,
        environment: Environment,
        replica: OpenReplica,
        quota: Quota,
        idle_minutes: float,
    ) -> None:
        """`idle_minutes`: after how long without use it notes that nobody needs it; 0 for never."""
        self.home, self.epoch, self.folder = home, epoch, folder
        self._environment, self._replica = environment, replica
        self._quota, self._idle_minutes = quota, idle_minutes
        self.is_leaving = False
        self.idle_step: Literal["active", "announced", "stopping"] = "active"  # routers are told before it is stopped
        self.active_until = 0.0  # by the loop's clock: it was woken before it was stopped
        self._is_restarting = False
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

    def find_next_due(self) -> datetime | None:
        """Return when it has something to do next, None while somebody needs it."""
        if self._serving is None or asyncio.get_running_loop().time() < self.active_until:
            return None
        return read_idle_note(self.folder, self._serving.pid)

    def take_quota(self, quota: Quota) -> bool:
        """Ask it to stop if the quota has changed; it is started again with the new one. Return whether it has."""
        if quota == self._quota:
            return False
        self._quota = quota
        if self._serving is not None and self._serving.returncode is None:
            self._is_restarting = True
            self._serving.terminate()
        return True

    def measure(self) -> tuple[int, int]:
        """Return its memory, and the size of its folder, in bytes. Called in a worker thread."""
        serving = self._serving
        return measure_memory(serving.pid) if serving is not None else 0, measure_folder(self.folder)

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
            if self._is_restarting:
                self._is_restarting = False
                continue
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
        words = ("--note-idle", str(self._idle_minutes)) if self._idle_minutes else ()
        process = await self._start("run", *words)
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
        process = await asyncio.create_subprocess_exec(
            *(*prefix, sys.executable, "-P", "-m", "assistant.cli.main", *words),
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            env=self._environment(self._quota),
        )
        _limit_memory(process.pid, self._quota.memory_mb)
        return process


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


def _limit_memory(pid: int, megabytes: int) -> None:
    """Limit the memory of a child, and of each process that it starts (Linux)."""
    import resource

    if megabytes and hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (megabytes * _MEGABYTE, megabytes * _MEGABYTE))


def measure_memory(pid: int) -> int:
    """Return the bytes of a process and its children, of shared ones its part; 0 where the system does not tell."""
    size = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                size += int(line.split()[1]) * 1024
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            size += measure_memory(int(child))
    return size


def measure_folder(folder: Path) -> int:
    """Return the bytes that the files of a folder take on the disk."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(parent, name).lstat().st_blocks * 512
    return size
