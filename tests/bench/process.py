"""Whole-process figures: a fresh interpreter for each, so that nothing that ran before is measured with it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.homes import CHECKOUT


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """A process that ran to its end: wall seconds, its peak resident memory in MB, and what it printed."""

    seconds: float
    peak_mb: float
    output: str


def run(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> ProcessRun:
    """Run a command. Raises `CalledProcessError` with its output when it fails."""
    began = time.perf_counter()
    child = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, cwd=CHECKOUT, env={**os.environ, **(environment or {})}, text=True
    )
    output = child.stdout.read() if child.stdout else ""
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, list(arguments), output)
    return ProcessRun(seconds, _megabytes(used.ru_maxrss), output)


def measured(module: str, *arguments: object) -> dict[str, Any]:
    """Run `python -m MODULE ARGUMENTS`, which prints one JSON object as its last line, and give that object."""
    # One thread for numpy, as `assistant.cli.main` has it.
    ended = run([sys.executable, "-m", module, *map(str, arguments)], {"OPENBLAS_NUM_THREADS": "1"})
    found: dict[str, Any] = json.loads(ended.output.splitlines()[-1])
    return found


def resident_mb(pid: int | None = None) -> float:
    """Resident memory of a running process (this one by default) in MB."""
    status = Path(f"/proc/{pid or os.getpid()}/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024
    if pid is None:
        return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(listed.stdout) / 1024


def _megabytes(maxrss: int) -> float:
    """`ru_maxrss` is in kilobytes, but in bytes on macOS."""
    return maxrss / (2**20 if sys.platform == "darwin" else 2**10)
