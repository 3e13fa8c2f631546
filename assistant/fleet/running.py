"""One home on a host, while the host has its lease: a process restores it if another machine had it, then serves it,
within its quota, and is started again when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from assistant.core.errors import AssistantError, StoreError
from assistant.core.logger import get_logger
from assistant.fleet.tables import HeldHome, Quota
from assistant.replica.holder import load_holder
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.home_lock import is_home_served, lock_holder
from assistant.service.idle_note import EXIT_NO_NEWS, IdleNote, read_idle_note
from assistant.service.measure import measure_folder, measure_memory

log = get_logger()

_LEAST_SECONDS_BETWEEN_STARTS, _MOST_SECONDS_BETWEEN_STARTS = 0.5, 60.0
_LOOK_EVERY = 0.05
_FORMER = ".before"
_LISTENS = "run/control.sock"
_MEGABYTE = 1_000_000

OpenReplica = Callable[[str], ReplicaDatabase]
Environment = Callable[[Quota], Mapping[str, str]]
StartProcess = Callable[[Mapping[str, str], Sequence[Sequence[str]], int], BaseProcess]
"""Starts a process that runs commands one after the other, in an environment, with so many bytes of memory (0: all)."""


class RunningHome:
    """`environment` is that of its commands. `close` ends it; `abandon` kills it at once."""

    def __init__(
        self,
        taken: HeldHome,
        folder: Path,
        port: int,
        environment: Environment,
        replica: OpenReplica,
        start: StartProcess,
        command: Sequence[str],
    ) -> None:
        """`command` serves it. One that was taken asleep ends at once if its networks have nothing."""
        self.home, self.epoch, self.folder, self.port = taken.home, taken.epoch, folder, port
        self._environment, self._replica, self._start = environment, replica, start
        self._quota, self._polls = taken.quota, taken.is_asleep
        self._command = command
        self.is_leaving = False
        self.idle_step: Literal["active", "announced", "stopping"] = "active"  # routers are told before it is stopped
        self.active_until = 0.0  # by the loop's clock: whoever woke it may still come
        self.is_refused = False  # it cannot be restored here: its copy is damaged, or there is no room
        self._begun_at, self._has_listened = time.time_ns(), False
        self._serving: BaseProcess | None = None
        self._pid, self._exit_code = 0, 0  # of the newest process
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name=f"home {taken.home}")

    @property
    def is_ended(self) -> bool:
        return self._task.done()

    @property
    def is_starting(self) -> bool:
        """Return whether it still loads: it does not listen since it was taken, which is not a minute ago."""
        if self._has_listened:
            return False
        seconds = (time.time_ns() - self._begun_at) / 1e9
        with contextlib.suppress(FileNotFoundError):
            self._has_listened = (self.folder / _LISTENS).stat().st_ctime_ns > self._begun_at
        return not self._has_listened and 0 <= seconds < _MOST_SECONDS_BETWEEN_STARTS

    @property
    def is_polling(self) -> bool:
        """Return whether it sleeps on unless its networks have something."""
        return self._polls and not self._has_listened

    def close(self) -> None:
        """Ask it to stop: running turns finish first. `is_ended` says when it has."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._serving is None:
            self._task.cancel()
        else:
            self._serving.terminate()

    def abandon(self) -> None:
        """Kill it, and say so once: another host may have the home now. Nothing acknowledged is lost."""
        if self._task.done() or self._task.cancelling():
            return
        log.warning("the lease of a home was lost", home=self.home)
        self._is_closing = True
        self._task.cancel()

    def check_holder(self, holder: str | None) -> None:
        """Kill a child whose replica has another holder: it is refused everything. It is restored."""
        if self._serving is None or holder is None:
            return
        known = _read_holder(self.folder)
        if known and known != holder:
            log.warning("the replica of a home has another holder; it is restored", home=self.home)
            self._serving.kill()

    def find_idle_note(self, *, early: bool) -> IdleNote | None:
        """Return when it has something to do next, None while somebody needs it. `early`: also if nobody has for some
        seconds only."""
        if self._serving is None or asyncio.get_running_loop().time() < self.active_until:
            return None
        note = read_idle_note(self.folder, self._pid)
        return note if note is not None and (note.lasts or early) else None

    @property
    def has_left_something(self) -> bool:
        """Return whether it ended before it did all that it had accepted, or without saying that it has."""
        return self._exit_code != 0 or read_idle_note(self.folder, self._pid) is None

    def take_quota(self, quota: Quota) -> bool:
        """Ask it to stop if the quota has changed; it is started again with the new one. Return whether it has."""
        if quota == self._quota:
            return False
        self._quota = quota
        if self._serving is not None:
            self._serving.terminate()
        return True

    def measure(self) -> tuple[int, int]:
        """Return its memory, and the size of its folder, in bytes. Called in a worker thread."""
        return measure_memory(self._pid) if self._serving is not None else 0, measure_folder(self.folder)

    async def wait(self) -> None:
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        seconds = _LEAST_SECONDS_BETWEEN_STARTS
        while not self._is_closing:
            started = asyncio.get_running_loop().time()
            try:
                restores = await self._prepare()
                await self._serve(restores=restores)
                self.is_refused = restores and not self._is_closing and load_holder(self.folder) is None
            except (AssistantError, OSError) as error:
                log.error("a home could not be started", home=self.home, error=str(error))
            if self._is_closing or self.is_refused or self._exit_code == EXIT_NO_NEWS:
                return
            lasted = asyncio.get_running_loop().time() - started
            seconds = _LEAST_SECONDS_BETWEEN_STARTS if lasted > _MOST_SECONDS_BETWEEN_STARTS else seconds * 2
            seconds = min(seconds, _MOST_SECONDS_BETWEEN_STARTS)
            await asyncio.sleep(seconds)

    async def _prepare(self) -> bool:
        """Return whether the home is to be restored: this folder does not own its replica. Raises `AssistantError`."""
        await self._end_leftover()
        async with contextlib.aclosing(self._replica(self.home)) as database:
            state = await database.read_state()
            if state is None or _read_holder(self.folder) == state.holder:
                return False
            if not state.base:
                # Nothing is acknowledged before the first base is complete: it begins anew.
                await database.delete(state.epoch)
                return False
        await asyncio.to_thread(_set_aside, self.folder)
        log.info("restores a home", home=self.home)
        return True

    async def _end_leftover(self) -> None:
        """End a child of an earlier process of this host."""
        while is_home_served(self.folder):
            if holder := lock_holder(self.folder):
                os.kill(holder, signal.SIGKILL)
            await asyncio.sleep(_LOOK_EVERY)

    async def _serve(self, *, restores: bool) -> None:
        serve = (*self._command, "--if-news") if self.is_polling else self._command
        commands = (("replica", "restore"), serve) if restores else (serve,)
        # Forked in some milliseconds, so the host's loop waits for it.
        self._serving = self._start(self._environment(self._quota), commands, self._quota.memory_mb * _MEGABYTE)
        self._pid = self._serving.pid or 0
        try:
            if self._is_closing:
                self._serving.terminate()
            await _wait_until_ended(self._serving)
            self._exit_code = self._serving.exitcode or 0
            if self._exit_code != EXIT_NO_NEWS:
                log.info("a home stopped", home=self.home, code=self._exit_code)
        finally:
            process, self._serving = self._serving, None
            process.kill()
            await _wait_until_ended(process)
            process.close()


async def _wait_until_ended(process: BaseProcess) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()


def _read_holder(folder: Path) -> str | None:
    """Return who a folder says it is, None if it never owned a replica, "" if that cannot be read. Such a folder is
    restored at its next start: the replica has all that was acknowledged."""
    try:
        holder = load_holder(folder)
    except StoreError:
        return ""
    return holder.name if holder is not None else None


def _set_aside(folder: Path) -> None:
    """Move an old folder of a home to `.before`: a restore leaves keys and secrets in place, and these are old as well.
    One former folder of each home is kept, for what no replica has."""
    if not folder.exists():
        return
    former = folder.parent / _FORMER / folder.name
    if former.exists() and _read_holder(folder) is None:
        shutil.rmtree(folder)  # a restore was interrupted
        return
    if former.exists():
        shutil.rmtree(former)
    former.parent.mkdir(mode=0o700, exist_ok=True)
    folder.rename(former)
