"""Runs a shell command of the model in bubblewrap: it can only read and write the workspace among the owner's folders,
and has no network, environment or access to other processes.

It always ends. At its limits of time, memory, output or processes it is killed with everything it started; output until
then is kept. Without bubblewrap nothing runs, unless the owner set `run_command.sandbox` to "none": then only the
limits apply.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError
from assistant.core.processes import end_process
from assistant.core.text import format_bytes, pluralize, strip_control_characters

SandboxKind = Literal["bubblewrap", "none"]

_INSIDE = "/workspace"
# What programs need from the machine. /etc has secrets of other programs: only what finds libraries and names the user.
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_MAX_FILE_BYTES = 1 << 30
_MAX_TEMPORARY_BYTES = 256 << 20
_MAX_OPEN_FILES = 256
_MAX_OWN_PROCESSES = 4096
_LOOK_SECONDS = 0.1
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# In a command with one of these, a wildcard could match several commands.
_SHELL_SIGNS = frozenset(";&|<>$`\n\r(){}\\")


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """`seconds` of time, `memory_bytes` of all processes together, `output_bytes`, and number of `processes`."""

    seconds: float
    memory_bytes: int
    output_bytes: int
    processes: int


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """`exit_code` as of a shell; `stopped` says why it was killed, "" if it ended."""

    exit_code: int
    output: str
    stopped: str


@dataclass(frozen=True, slots=True)
class CommandSandbox:
    workspace: Path
    kind: SandboxKind
    limits: CommandLimits

    def describe(self) -> str:
        """Describe where a command runs, for the person who approves it."""
        if self.kind == "none":
            return "NOT in a sandbox: it can do all that you can"
        return "in the workspace, without network"

    async def run(self, command: str) -> SandboxResult:
        """Raises `ToolError` if the command cannot be run."""
        argv = self._argv(command)
        environment = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}
        try:
            self.workspace.mkdir(mode=0o700, exist_ok=True)
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                cwd=self.workspace,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"The command was not run: {error.strerror}.") from error
        return await self._follow(process)

    def _argv(self, command: str) -> list[str]:
        memory, file_blocks = self.limits.memory_bytes // 1024, _MAX_FILE_BYTES // 512
        # Older kernels count all processes of a user, including those outside. For root there is no limit, only
        # monitoring.
        processes = self.limits.processes + _count_own_processes()
        limits = (
            f"ulimit -c 0; ulimit -d {memory}; ulimit -f {file_blocks}; ulimit -n {_MAX_OPEN_FILES};"
            f" ulimit -t {int(self.limits.seconds) + 1};"
            f" {{ ulimit -u {processes} || ulimit -p {processes}; }} 2>/dev/null;"
        )
        shell = ["/bin/sh", "-c", f'{limits} eval "$1"', "sh", command]
        if self.kind == "none":
            return shell
        program = find_bubblewrap()
        if program is None:
            raise ToolError(
                "The command was not run: bubblewrap is not installed (`apt install bubblewrap` or the like). Tell the "
                "person; `assistant doctor` checks it."
            )
        return [program, *_confinement(self.workspace), "--", *shell]

    async def _follow(self, process: Process) -> SandboxResult:
        assert process.stdout is not None
        output = _Output(self.limits.output_bytes)
        reading = asyncio.create_task(output.read(process.stdout))
        watching = asyncio.create_task(self._find_excess(process.pid))
        ending = asyncio.create_task(process.wait())
        stopped = ""
        try:
            await asyncio.wait({ending, watching}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                late = f"it took longer than {self.limits.seconds:g} seconds"
                stopped = watching.result() if watching.done() else late
        finally:
            watching.cancel()
            _kill(process)
            try:
                # Without a sandbox, processes it started may keep the pipe open forever.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reading, 1.0)
            finally:
                await end_process(process)
                await ending
        code = process.returncode or 0
        return SandboxResult(code if code >= 0 else 128 - code, output.text(), stopped)

    async def _find_excess(self, pid: int) -> str:
        """Return which limit is exceeded, as soon as one is."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            count, memory = await asyncio.to_thread(_measure, pid)
            if memory > self.limits.memory_bytes:
                return f"it used more than {format_bytes(self.limits.memory_bytes)} of memory"
            if count > self.limits.processes:
                return f"it started more than {pluralize(self.limits.processes, 'process', 'processes')}"


def find_bubblewrap() -> str | None:
    """Return its path, None if it is not installed."""
    return shutil.which("bwrap")


def is_allowed(command: str, patterns: Iterable[str]) -> bool:
    """Return whether the owner allowed a command in the settings: exactly, or by a pattern with `*`, which matches
    words of one command and never a second command."""
    if command in patterns:
        return True
    return not _SHELL_SIGNS & set(command) and any(fnmatch.fnmatchcase(command, it) for it in patterns if "*" in it)


def _confinement(workspace: Path) -> list[str]:
    """Return the options of bubblewrap: https://github.com/containers/bubblewrap"""
    arguments = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    for path in map(Path, (*_SYSTEM_FOLDERS, *_SYSTEM_FILES)):
        if path.is_symlink() and path.parent == Path("/"):  # /bin is a link to usr/bin on most machines
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--size", str(_MAX_TEMPORARY_BYTES), "--tmpfs", "/tmp"]
    return [*arguments, "--bind", str(workspace), _INSIDE, "--chdir", _INSIDE]


class _Output:
    """Keeps the first and the last output of a command: the beginning shows what it did, the end how it went."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._first, self._last, self._size = bytearray(), bytearray(), 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(2**16):
            self._size += len(chunk)
            room = self._half - len(self._first)
            self._first += chunk[:room] if room > 0 else b""
            self._last += chunk[max(room, 0) :]
            del self._last[: -self._half]

    def text(self) -> str:
        left_out = self._size - len(self._first) - len(self._last)
        gap = f"\n[{format_bytes(left_out)} left out]\n" if left_out else ""
        text = f"{self._first.decode(errors='replace')}{gap}{self._last.decode(errors='replace')}"
        return strip_control_characters(text, keep_newlines=True)


def _kill(process: Process) -> None:
    """Kill it and everything it started: processes in bubblewrap end with it, others by their group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _measure(pid: int) -> tuple[int, int]:
    """Return the number of processes, including itself, and their memory in bytes; (1, 0) if the machine does not
    tell."""
    children: Mapping[int, list[int]] = _children_by_parent()
    found, waiting, memory = 0, [pid], 0
    while waiting:
        one = waiting.pop()
        found += 1
        waiting += children.get(one, ())
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()
            memory += (int(resident) - int(shared)) * _PAGE_SIZE
    return found, memory


def _count_own_processes() -> int:
    with contextlib.suppress(OSError):
        return sum(entry.name.isdecimal() and entry.stat().st_uid == os.getuid() for entry in os.scandir("/proc"))
    return _MAX_OWN_PROCESSES


def _children_by_parent() -> Mapping[int, list[int]]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    # A program name may contain blanks and brackets: parse after the last bracket.
                    after = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
                    children[int(after.split()[1])].append(int(entry.name))
    return children
