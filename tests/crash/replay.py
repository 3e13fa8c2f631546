"""What a kill or a power cut leaves, without a process that dies: the calls before it, made on a model of the disk.

A process that is killed leaves its files and what it told others, and nothing else; and every call that changes a file
of the home is in the trace (`find_differences`, which each unbroken run is held to, says that the model has the same
files in the end, byte by byte). So the home at a kill is made of the trace in milliseconds, where coming there again
takes a life of the process. What SQLite shares through memory is not in the trace: its `-shm` files are as long as they
were, and SQLite makes their content anew when the first process opens the database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from tests.crash.homes import moved
from tests.crash.power import Content, HomeFiles, SimulatedDisk
from tests.crash.strace import SystemCall, torn_offset
from tests.crash.witness import effect_log_path

_SHARED_MEMORY = "-shm"

Leaves = Callable[[SimulatedDisk, SystemCall], HomeFiles]
"""What is left of a disk before a call."""


class Replay:
    """The calls of a run in `home`, which began as `prepared`. Asked for one point after another in the order of the
    run it makes each call once. Several threads may use it."""

    def __init__(self, calls: Sequence[SystemCall], home: Path, prepared: Path) -> None:
        there = {path: moved(path, home, prepared) for call in calls for path in call.paths}
        self._calls = [replace(call, paths=tuple(there[path] for path in call.paths)) for call in calls]
        self._prepared = prepared
        self._lock = Lock()
        self._rewind()

    def _rewind(self) -> None:
        self._disk, self._position, self._told = SimulatedDisk(self._prepared), 0, bytearray()

    def _go(self, until: int) -> None:
        """Make the calls before that one."""
        if until < self._position:
            self._rewind()
        for call in self._calls[self._position : until]:
            self._disk.see(call)
            if call.name == "write" and call.paths[-1] == effect_log_path(self._prepared):
                self._told += call.data
        self._position = until

    def leave(self, target: Path, until: int, leaves: Leaves) -> None:
        """Make of `target`, a copy of `prepared` or itself, what is left of the run before call `until`."""
        with self._lock:
            self._go(until)
            put(leaves(self._disk, self._calls[until]), self._prepared, target)
            with effect_log_path(target).open("ab") as told:
                told.write(self._told)

    def find_differences(self, home: Path) -> list[str]:
        """The files and directories of `home`, where the whole run was, that are not what its calls make of them."""
        with self._lock:
            self._go(len(self._calls))
            now = self._disk.now()
        made: dict[Path, object] = {moved(path, self._prepared, home): None for path in now.directories}
        made |= {moved(path, self._prepared, home): bytes(content.data) for path, content in now.files.items()}
        there = {
            path: path.read_bytes() if path.is_file() else None for path in home.rglob("*") if not path.is_symlink()
        }
        there |= {home: None}
        paths = {path for path in {*made, *there} if not path.name.endswith(_SHARED_MEMORY)}
        return sorted(
            str(path.relative_to(home)) for path in paths if made.get(path, "missing") != there.get(path, "missing")
        )


def left_by_kill(disk: SimulatedDisk, _: SystemCall) -> HomeFiles:
    """All of it."""
    return disk.now()


def left_by_torn_write(disk: SimulatedDisk, call: SystemCall) -> HomeFiles:
    """All of it, with the first half of the write in its file."""
    now, path = disk.now(), call.paths[-1]
    if path not in now.files or len(call.data) < 2:
        return now
    content = now.files[path]
    data, half = bytearray(content.data), call.data[: len(call.data) // 2]
    offset = torn_offset(call, len(data))
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(half)] = half
    return HomeFiles(now.directories, {**now.files, path: Content(content.mode, data)})


def put(left: HomeFiles, base: Path, home: Path) -> None:
    """Make of `home` what `left` says of `base`. A file that is as it should be is not touched."""
    directories = {moved(path, base, home) for path in left.directories}
    files = {moved(path, base, home): content for path, content in left.files.items()}
    for path in sorted(home.rglob("*"), reverse=True):
        if path.is_symlink() or path in files or path in directories:
            continue
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    if home not in directories and home.is_dir():
        home.rmdir()
    for directory in sorted(directories):
        if directory == home or directory.parent.is_dir():
            directory.mkdir(mode=0o700, exist_ok=True)
    for path, content in files.items():
        if path.parent.is_dir() and not _has(path, content):
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, content.mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content.data)


def _has(path: Path, content: Content) -> bool:
    return path.is_file() and path.stat().st_mode & 0o777 == content.mode and path.read_bytes() == content.data
