"""The process that is killed.

    python -m tests.crash.child SCENARIO HOME [prepare|work|look|recover]

does one step of a scenario by hand. The driver uses `--warm` instead: one process that has imported everything, and
has once done all steps of the scenario, and forks itself for each step: a point does nothing that every process does
once in its life. `recover` is work and a look in one process, since a fork costs about as much as either. A forked
process waits at a gate until strace holds it. Orders come as JSON lines on standard input, answers go to standard
output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assistant.core.errors import AssistantError
from assistant.core.text import _LazyPattern
from assistant.store.script import reserved_ahead
from assistant.wire.app import build_app
from assistant.wire.search import builtin_embedder
from sleep.rules.classifier import find_signs
from sleep.rules.pattern_files import _CountedPattern
from tests.crash.homes import boot_of, picture_of
from tests.crash.scenario import Scenario
from tests.crash.scenarios import find
from tests.crash.witness import effect_log_path
from tests.crash.world import settings_of
from tests.support.scripted import ScriptedModel, SteppingClock

# Files are copied by plain writes: a trace has their bytes, so that a power cut can be replayed over them.
shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]

_IMPORTED_LATE = (
    "assistant.archive.encryption",
    "assistant.archive.object_store",
    "assistant.gateway.markdown_splitter",
    "assistant.search.engine",
    "fsspec.implementations.local",
    "numpy.ma",
    "pyrage",
)
EXPECTED_FAILURE = 1
BUG = 70


def step(name: str, home: Path, what: str) -> int:
    """Do one step; the exit code. An error meant for people is one line on standard error."""
    scenario = find(name)
    if boot_of(home).exists():
        reserved_ahead.BOOT_ID_FILE = boot_of(home)
    try:
        match what:
            case "prepare":
                scenario.prepare(home)
            case "work":
                scenario.work(home)
            case "look":
                _look(scenario, home)
            case "recover":
                scenario.work(home)
                _look(scenario, home)
    except AssistantError as error:
        print(f"Error: {error}", file=sys.stderr)
        return EXPECTED_FAILURE
    except Exception:  # noqa: BLE001 -- the end of a process: whatever it was, the driver must read of it
        traceback.print_exc()
        return BUG
    return 0


def _look(scenario: Scenario, home: Path) -> None:
    picture_of(home).write_text(json.dumps(scenario.look(home)), encoding="utf-8")


class ForkServer:
    """The process that forks."""

    def __init__(self) -> None:
        self._gates: dict[int, int] = {}
        self._limits: dict[int, float] = {}
        self._ready: set[str] = set()

    def serve(self) -> None:
        _do_once()
        for line in sys.stdin:
            print(json.dumps(self._obey(json.loads(line))), flush=True)

    def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        match order["do"]:
            case "fork":
                return {
                    "process": self._fork(order["scenario"], Path(order["home"]), order["step"], Path(order["output"]))
                }
            case "go":
                os.close(self._gates.pop(order["process"]))
                _wait(order["process"], self._limits.pop(order["process"]))
                return {"status": os.waitstatus_to_exitcode(os.waitpid(order["process"], 0)[1])}
        raise ValueError(f"unknown order {order}")

    def _fork(self, name: str, home: Path, what: str, output: Path) -> int:
        if name not in self._ready:
            _rehearse(find(name), output)
            self._ready.add(name)
        closed, gate = os.pipe()
        process = os.fork()
        if process:
            os.close(closed)
            self._gates[process] = gate
            self._limits[process] = find(name).within * (2 if what == "recover" else 1)
            return process
        os.close(gate)
        for other in self._gates.values():
            os.close(other)
        _redirect(output)
        os.read(closed, 1)
        os.close(closed)
        code = step(name, home, what)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(process: int, seconds: float) -> None:
    """Until the process ended. One that takes longer is ended, where the time in which it, or strace that holds it,
    waited for a processor is not its own."""
    handle = os.pidfd_open(process)
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        begun, left = time.monotonic(), seconds
        while not ended.poll(left * 1000):
            left = seconds - (time.monotonic() - begun - _waited_for_processors(process))
            if left <= 0:
                os.kill(process, signal.SIGALRM)
                return
    finally:
        os.close(handle)


def _waited_for_processors(process: int) -> float:
    waited = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
        tracer = status.partition("TracerPid:")[2].split()[0]
        for task in (*Path(f"/proc/{process}/task").iterdir(), Path(f"/proc/{tracer}")):
            waited += int((task / "schedstat").read_text(encoding="ascii").split()[1])
    return waited / 1e9


def _do_once() -> None:
    """What every process does once in its life, before the first fork: expressions are compiled, tools declared, prices
    and word vectors read, and what is imported late is imported. The home that this takes is gone then."""
    for module in _IMPORTED_LATE:
        importlib.import_module(module)
    find_signs("")
    for kind in (_CountedPattern, _LazyPattern):
        for one in gc.get_objects():
            if isinstance(one, kind):
                assert one.match
    with TemporaryDirectory() as folder:
        build_app(settings_of(Path(folder) / "home"), SteppingClock(), model=ScriptedModel()).close()
    builtin_embedder()
    gc.freeze()


def _rehearse(scenario: Scenario, output: Path) -> None:
    """Do everything once, in a home that is gone then: what is read, compiled and found out at first is in every fork.
    Whatever fails here fails in the first fork again, and is told there."""
    if scenario.ready is not None:
        scenario.ready()
    with TemporaryDirectory(dir=output.parent) as folder, _silenced(), suppress(Exception):
        home = Path(folder) / "home"
        scenario.prepare(home)
        effect_log_path(home).touch(0o600)
        scenario.work(home)
        scenario.look(home)
    gc.collect()
    gc.freeze()


@contextmanager
def _silenced() -> Iterator[None]:
    """By descriptor: whoever keeps the streams writes to where they lead afterwards."""
    kept, nothing = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nothing, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, former in zip((1, 2), kept, strict=True):
            os.dup2(former, number)
            os.close(former)
        os.close(nothing)


def _redirect(output: Path) -> None:
    file = os.open(output, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    os.close(nothing)


def main() -> None:
    if sys.argv[1:] == ["--warm"]:
        ForkServer().serve()
        return
    name, home, *what = sys.argv[1:]
    sys.exit(step(name, Path(home).resolve(), what[0] if what else "work"))


if __name__ == "__main__":
    main()
