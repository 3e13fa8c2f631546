"""The driver's end of `child.py --warm`: processes that start in milliseconds, and wait until strace holds them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.crash.homes import output_of

_ROOT = Path(__file__).resolve().parents[2]


class WarmProcess:
    """A process that forks the processes to be killed."""

    def __init__(self) -> None:
        # -B: what is imported late would write its bytecode beside the code.
        command = [sys.executable, "-B", "-m", "tests.crash.child", "--warm"]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def fork(self, scenario: str, home: Path, step: str) -> int:
        """A new process for this step, waiting at its gate."""
        order = {"do": "fork", "scenario": scenario, "home": str(home), "step": step, "output": str(output_of(home))}
        return int(self._ask(order)["process"])

    def go(self, process: int) -> int:
        """Let it run to its end; its exit code, negative for a signal."""
        return int(self._ask({"do": "go", "process": process})["status"])

    def run(self, scenario: str, home: Path, step: str) -> int:
        return self.go(self.fork(scenario, home, step))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the warm process ended with {self._process.wait()}")
        return dict(json.loads(answer))


@contextmanager
def warm_processes(count: int) -> Iterator[list[WarmProcess]]:
    """Processes for any number of scenarios, one after the other."""
    processes = [WarmProcess() for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.close()
