"""Whole-process figures: a fresh interpreter for each, so that nothing that ran before is measured with it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.homes import CHECKOUT


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """A process that ran to its end: wall seconds, its peak resident memory in MiB, what it printed, and the peak of it
    and of all that it started together, 0 where that was not asked for."""

    seconds: float
    peak_mib: float
    output: str
    together_mib: float = 0


class _Together(threading.Thread):
    """Looks twice a second how much memory a process and all that it started have together. Pages that they share
    count for each of them."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self._pid, self._ended = pid, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.5):
            self.peak_mib = max(self.peak_mib, self._look())

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self.peak_mib

    def _look(self) -> float:
        listed = subprocess.run(["ps", "-Ao", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
        rows = {
            pid: (parent, size) for pid, parent, size in (map(int, row.split()) for row in listed.stdout.splitlines())
        }
        family = {self._pid}
        while more := {pid for pid, (parent, _) in rows.items() if parent in family} - family:
            family |= more
        return sum(rows[pid][1] for pid in family & rows.keys()) / 1024


def run(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, *, together: bool = False
) -> ProcessRun:
    """Run a command; `together`: measure the memory of all its processes. Raises `CalledProcessError` with its output
    when it fails."""
    began = time.perf_counter()
    child = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, cwd=CHECKOUT, env={**os.environ, **(environment or {})}, text=True
    )
    watch = _Together(child.pid) if together else None
    output = child.stdout.read() if child.stdout else ""
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, list(arguments), output)
    return ProcessRun(seconds, _mebibytes(used.ru_maxrss), output, watch.end() if watch else 0)


def measured(module: str, *arguments: object) -> dict[str, Any]:
    """Run `python -m MODULE ARGUMENTS`, which prints one JSON object as its last line, and give that object."""
    # One thread for numpy, as `assistant.cli.main` has it.
    ended = run([sys.executable, "-m", module, *map(str, arguments)], {"OPENBLAS_NUM_THREADS": "1"})
    found: dict[str, Any] = json.loads(ended.output.splitlines()[-1])
    return found


def resident_mib(pid: int | None = None) -> float:
    """Resident memory of a running process (this one by default) in MiB (1,048,576 bytes)."""
    status = Path(f"/proc/{pid or os.getpid()}/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024
    if pid is None:
        return _mebibytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(listed.stdout) / 1024


def _mebibytes(maxrss: int) -> float:
    """`ru_maxrss` is in kilobytes, but in bytes on macOS."""
    return maxrss / (2**20 if sys.platform == "darwin" else 2**10)
