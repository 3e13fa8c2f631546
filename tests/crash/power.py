"""What a power cut leaves of a home: the calls of a run, replayed onto a model of a disk.

The rule is POSIX's, not that of one file system: what was written is durable once the file was synced, a name (new,
renamed, removed) once its directory was. Names become durable in the order they changed in, as journals do it; writes
in any. What was not synced may be lost, there, there in half, or there as zeros of the right length.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.strace import SYNCS, SystemCall

_SHARED_MEMORY = "-shm"
"""SQLite maps this file into memory and makes it anew after a crash; what the disk has of it means nothing."""


@dataclass(slots=True)
class _Change:
    """A change of a file's content: `data` at `offset`, or a new `size`."""

    offset: int = 0
    data: bytes = b""
    size: int | None = None

    def apply(self, content: bytearray) -> None:
        if self.size is not None:
            content[self.size :] = bytes(max(0, self.size - len(content)))
            return
        content.extend(bytes(max(0, self.offset + len(self.data) - len(content))))
        content[self.offset : self.offset + len(self.data)] = self.data


@dataclass(slots=True)
class _File:
    """`changes` is how many there were, `synced` how many of them the disk surely has."""

    mode: int = 0o600
    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Change] = field(default_factory=list)
    changes: int = 0
    synced: int = 0
    current: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.current = bytearray(self.durable)

    def change(self, change: _Change) -> None:
        self.pending.append(change)
        change.apply(self.current)
        self.changes += 1

    def sync(self) -> None:
        for change in self.pending:
            change.apply(self.durable)
        self.pending.clear()
        self.synced = self.changes


@dataclass(slots=True)
class _Renaming:
    """A change of names: `path` now is `file` (None: nothing), `gone` is no more."""

    path: Path
    file: _File | None
    gone: Path | None = None
    directory: bool = False

    @property
    def parents(self) -> set[Path]:
        return {self.path.parent} | ({self.gone.parent} if self.gone else set())

    def apply(self, files: dict[Path, _File], directories: set[Path]) -> None:
        if self.gone is not None and self.gone in directories:
            self._move_folder(files, directories)
        elif self.directory:
            directories.add(self.path)
        elif self.file is None:
            files.pop(self.path, None)
            directories.discard(self.path)
        else:
            files[self.path] = self.file
        if self.gone is not None:
            files.pop(self.gone, None)

    def _move_folder(self, files: dict[Path, _File], directories: set[Path]) -> None:
        """Everything below it goes along."""
        assert self.gone is not None
        for old in [path for path in files if self.gone in path.parents]:
            files[self.path / old.relative_to(self.gone)] = files.pop(old)
        for old in [path for path in directories if path == self.gone or self.gone in path.parents]:
            directories.discard(old)
            directories.add(self.path / old.relative_to(self.gone))


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a file. Two of the same `version` (a file, and how many changes of it) hold the same; None: it was
    made for this once."""

    mode: int
    data: bytes | bytearray
    version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class HomeFiles:
    directories: frozenset[Path]
    files: dict[Path, Content]


class SimulatedDisk:
    """A home as the disk has it, while calls go by. Starts with everything in `home` durable."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._now: dict[Path, _File] = {}
        self._durable: dict[Path, _File] = {}
        self._directories = {home, *(path for path in home.rglob("*") if path.is_dir())}
        # A home that is yet to be made is not synced by anybody that a trace of its own files shows.
        self._folders = set(self._directories) if home.is_dir() else set()
        self._renamings: list[_Renaming] = []
        # Two processes may have two files under the same number.
        self._opened: dict[tuple[Path, int], tuple[_File, int, bool]] = {}
        # Never forgotten, so that no two have the same identity.
        self._files: list[_File] = []
        for path in home.rglob("*"):
            if path.is_file() and not path.is_symlink():
                file = self._made(path.stat().st_mode & 0o777, bytearray(path.read_bytes()))
                self._now[path] = self._durable[path] = file

    def _made(self, mode: int, content: bytearray | None = None) -> _File:
        self._files.append(_File(mode, content or bytearray()))
        return self._files[-1]

    def see(self, call: SystemCall) -> None:
        """Take one call of the run into account. Raises `ValueError` for one whose effect cannot be replayed."""
        if call.result is None or call.result < 0 or not call.paths:
            return
        path = call.paths[-1]
        if path != self._home and self._home not in path.parents:
            return
        if call.name == "openat":
            self._open(call, path)
        elif call.name in ("write", "pwrite64"):
            self._write(call, path)
        elif call.name in SYNCS:
            self._sync(path)
        elif call.name == "lseek" and (path, call.descriptor or 0) in self._opened:
            file, _, appends = self._opened[path, call.descriptor or 0]
            self._opened[path, call.descriptor or 0] = (file, call.result, appends)
        elif call.name == "ftruncate" and path in self._now:
            self._now[path].change(_Change(size=int(call.arguments.rpartition(",")[2])))
        elif call.name.startswith(("rename", "link", "unlink", "mkdir", "rmdir")):
            self._rename(call, path)
        elif "chmod" in call.name:
            if path in self._now:
                self._now[path].mode = int(call.arguments.rpartition(",")[2], 8)
        elif call.changes:
            raise ValueError(f"a power cut cannot be replayed over {call.name}")

    def _open(self, call: SystemCall, path: Path) -> None:
        if call.creates and path not in self._now and path not in self._folders:
            mode = int(call.arguments.rpartition(",")[2], 8)
            self._change_name(_Renaming(path, self._made(mode)))
        file = self._now.get(path)
        if file is not None and call.result is not None:
            if "O_TRUNC" in call.arguments:
                file.change(_Change(size=0))
            self._opened[path, call.result] = (file, 0, "O_APPEND" in call.arguments)

    def _write(self, call: SystemCall, path: Path) -> None:
        file = self._now.get(path)
        if file is None:
            return
        data = call.data[: call.result]
        if call.name == "pwrite64":
            file.change(_Change(int(call.arguments.rpartition(",")[2]), data))
            return
        opened = path, call.descriptor or 0
        _, position, appends = self._opened.get(opened, (file, 0, True))
        offset = len(file.current) if appends else position
        file.change(_Change(offset, data))
        self._opened[opened] = (file, offset + len(data), appends)

    def _sync(self, path: Path) -> None:
        if path in self._now:
            self._now[path].sync()
        for renaming in [r for r in self._renamings if path in r.parents]:
            renaming.apply(self._durable, self._directories)
            self._renamings.remove(renaming)

    def _rename(self, call: SystemCall, path: Path) -> None:
        if call.name.startswith("mkdir"):
            self._change_name(_Renaming(path, None, directory=True))
        elif call.name.startswith("rename"):
            old = call.paths[-2]
            self._change_name(_Renaming(path, self._now.get(old), gone=old))
        elif call.name.startswith("link"):
            self._change_name(_Renaming(path, self._now.get(call.paths[-2])))
        else:
            self._change_name(_Renaming(path, None))

    def _change_name(self, renaming: _Renaming) -> None:
        self._renamings.append(renaming)
        renaming.apply(self._now, self._folders)

    def now(self) -> HomeFiles:
        """What a process that is killed leaves."""
        files = {path: Content(file.mode, file.current, (id(file), file.changes)) for path, file in self._now.items()}
        return HomeFiles(frozenset(self._folders), files)

    def left(self, seed: int) -> HomeFiles:
        """What is left when the power goes now. Seed 0: nothing that was not synced; any other: some of it."""
        chance = random.Random(seed) if seed else None
        durable, directories = dict(self._durable), set(self._directories)
        kept = chance.randint(0, len(self._renamings)) if chance else 0
        for renaming in self._renamings[:kept]:
            renaming.apply(durable, directories)
        files = {}
        for path, file in durable.items():
            if not path.name.endswith(_SHARED_MEMORY):
                version = (id(file), file.synced) if not (chance and file.pending) else None
                files[path] = Content(file.mode, _left(file, chance), version)
        return HomeFiles(frozenset(directories), files)


def _left(file: _File, chance: random.Random | None) -> bytes | bytearray:
    if chance is None or not file.pending:
        return file.durable
    content = bytearray(file.durable)
    for change in file.pending:
        fate = chance.choice(("lost", "whole", "half", "zeros"))
        if change.size is not None or fate == "whole":
            change.apply(content)
        elif fate == "half":
            _Change(change.offset, change.data[: len(change.data) // 2]).apply(content)
        elif fate == "zeros" and change.offset >= len(content):
            _Change(change.offset, bytes(len(change.data))).apply(content)
    return bytes(content)
