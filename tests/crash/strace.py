"""strace as the hand that kills: what a process does to its files, and stopping it at exactly one of those calls.

How the injection behaves (`test_strace.py` holds it to that): SIGKILL injected into a call is delivered when the call
is entered, and the call then has no effect. So a process is killed *before* each call in turn; "after call k" is
"before call k+1", since nothing between two of them touches a file. Counters run per system call and thread, and `-P`
makes them count the calls on the given paths alone; so the number of a call in an unbroken run finds that call again.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range")
SYNCS = ("fsync", "fdatasync", "sync_file_range")
SIZES = ("ftruncate", "truncate", "fallocate")
NAMES = ("rename", "renameat", "renameat2", "unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat", "rmdir")
MADE = ("mkdir", "mkdirat", "chmod", "fchmod", "fchmodat")
OPEN = "openat"
TRACED = (*WRITES, *SYNCS, *SIZES, *NAMES, *MADE, OPEN, "lseek")
CHANGING = frozenset(TRACED) - {OPEN, "lseek"}

_HEX = r"(?:\\x[0-9a-f]{2})*"
_LINE = re.compile(r"^(?P<thread>\d+) +(?P<name>\w+)\((?P<rest>.*)$", re.DOTALL)
_DESCRIPTOR = re.compile(rf"(\d+)<({_HEX})>")
_STRING = re.compile(rf'"({_HEX})"')
_UNFINISHED = "<unfinished ...>"
_RESUMED = re.compile(r"^\d+ +<\.\.\. \w+ resumed>")
_RESULT = " = "
_LONGEST_WRITE = 1 << 20


@dataclass(frozen=True, slots=True)
class SystemCall:
    """One traced call. `number` is its ordinal among the calls of its name and thread (from 1), as injection counts
    them. `paths` are the files it names; `data` what a write was given; `result` None when the process died in it;
    `order` its place among all calls of its trace."""

    thread: int
    name: str
    number: int
    paths: tuple[Path, ...]
    arguments: str
    result: int | None
    data: bytes = b""
    descriptor: int | None = None
    order: int = 0

    @property
    def creates(self) -> bool:
        return self.name == OPEN and "O_CREAT" in self.arguments

    @property
    def changes(self) -> bool:
        """Whether it may change what is on the disk."""
        return self.name in CHANGING or self.creates or (self.name == OPEN and "O_TRUNC" in self.arguments)


@dataclass(frozen=True, slots=True)
class Injection:
    """Into calls number `first` to `first + times - 1` of `name`: SIGKILL, or `error` instead of the call."""

    name: str
    first: int
    error: str = ""
    times: int = 1

    def option(self) -> str:
        if not self.error:
            return f"inject={self.name}:signal=KILL:when={self.first}"
        last = self.first + self.times - 1
        return f"inject={self.name}:error={self.error}:when={self.first}..{last}"


def attach(
    process: int,
    output: Path,
    paths: Iterable[Path] = (),
    injection: Injection | None = None,
    *,
    with_data: bool = True,
    traced: Sequence[str] = TRACED,
) -> subprocess.Popen[str]:
    """Trace a process that waits to be let go; returns once strace holds it. Ends when the process does."""
    longest = str(_LONGEST_WRITE if with_data else 0)
    command = ["strace", "-f", "-y", "-xx", "-s", longest, "-o", str(output), "-p", str(process)]
    command += ["-e", f"trace={','.join(traced)}"]
    for path in paths:
        command += ["-P", str(path)]
    if injection is not None:
        command += ["-e", injection.option()]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    for line in tracer.stderr:
        if "attached" in line:
            return tracer
    raise RuntimeError(f"strace could not attach to process {process} (exit code {tracer.wait()})")


def end(tracer: subprocess.Popen[str]) -> None:
    """Wait for strace to write its last line."""
    tracer.communicate()


def calls(output: Path, under: Sequence[Path], besides: Sequence[Path] = ()) -> list[SystemCall]:
    """The traced calls that `select` selects."""
    return select(read(output), under, besides)


def read(output: Path) -> list[SystemCall]:
    """All traced calls in order, without numbers."""
    lines = _whole_lines(output.read_text(encoding="ascii").splitlines())
    return [replace(call, order=order) for order, line in enumerate(lines) if (call := _parsed(line)) is not None]


def select(traced: Iterable[SystemCall], under: Sequence[Path], besides: Sequence[Path] = ()) -> list[SystemCall]:
    """The calls on files that lie in or are one of `under`, and not of `besides`, in order, numbered as `-P` with all
    of their paths would count them."""
    found: list[SystemCall] = []
    counts: Counter[tuple[int, str]] = Counter()
    wanted: dict[Path, bool] = {}
    for call in traced:
        for path in call.paths:
            if path not in wanted:
                wanted[path] = _within(path, under) and not _within(path, besides)
        if any(wanted[path] for path in call.paths):
            counts[call.thread, call.name] += 1
            found.append(replace(call, number=counts[call.thread, call.name]))
    return found


def torn_offset(call: SystemCall, size: int) -> int:
    """Where in a file of this size a write begins that a process died in."""
    return int(call.arguments.rpartition(",")[2]) if call.name == "pwrite64" else size


def killed(output: Path) -> set[int]:
    """The threads that ended with SIGKILL."""
    lines = output.read_text(encoding="ascii").splitlines()
    return {int(line.split()[0]) for line in lines if line.endswith("+++ killed by SIGKILL +++")}


def injected(output: Path) -> int:
    """How many calls had an error put in their place, also those whose end stands on a line of its own."""
    return sum(line.endswith("(INJECTED)") for line in output.read_text(encoding="ascii").splitlines())


def paths_of(found: Iterable[SystemCall], under: Sequence[Path]) -> list[Path]:
    """Every path under `under` that the calls name."""
    return sorted({path for call in found for path in call.paths if _within(path, under)})


def _within(path: Path, under: Sequence[Path]) -> bool:
    return any(path.is_relative_to(top) for top in under)


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Each call on one line, where it returned. Where another thread was traced in between, strace writes the end of a
    call on a line of its own; a call that never returned comes last."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.partition(" ")[0]
        resumed = _RESUMED.match(line)
        if resumed is not None and thread in begun:
            yield begun.pop(thread) + line[resumed.end() :]
        elif line.endswith(_UNFINISHED):
            begun[thread] = line.removesuffix(_UNFINISHED)
        else:
            yield line
    yield from begun.values()


def _parsed(line: str) -> SystemCall | None:
    match = _LINE.match(line)
    if match is None or match["name"] not in TRACED:
        return None
    name = match["name"]
    arguments, equals, result = match["rest"].rpartition(_RESULT)
    if not equals:
        arguments, result = match["rest"], "?"
    arguments = arguments.rstrip().removesuffix(")").rstrip().removesuffix(_UNFINISHED).rstrip()
    returned = None if result.lstrip().startswith("?") else int(result.split()[0].partition("<")[0])
    if name in WRITES:
        # What was written may be long, and is looked at by nobody but `bytes.fromhex`.
        arguments, data, last = _quoted(arguments)
        arguments += last
        strings = []
    else:
        data, strings = b"", [_bytes(text).decode() for text in _STRING.findall(arguments)]
    descriptors = [(int(number), _path(path)) for number, path in _DESCRIPTOR.findall(arguments)]
    directory = descriptors[0][1] if descriptors else Path()
    descriptor = descriptors[0][0] if descriptors else None
    return SystemCall(
        int(match["thread"]),
        name,
        0,
        (*(path for _, path in descriptors), *(directory / text for text in strings)),
        arguments,
        returned,
        data,
        returned if name == OPEN else descriptor,
    )


def _quoted(arguments: str) -> tuple[str, bytes, str]:
    """What stands before, in and after the quotes."""
    before, _, rest = arguments.partition('"')
    quoted, _, after = rest.rpartition('"')
    return before, _bytes(quoted), after


@lru_cache(maxsize=4096)
def _path(quoted: str) -> Path:
    return Path(_bytes(quoted).decode())


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
