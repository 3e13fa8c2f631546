"""Runs a scenario unbroken once, then breaks it at one point after another and holds what came of it against that."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

from tests.crash import power, strace
from tests.crash.child import BUG, picture_of
from tests.crash.points import Point, all_points
from tests.crash.scenario import Faults, Picture, Scenario
from tests.crash.strace import WRITES, Call, Injection
from tests.crash.witness import witness_of

_KILLED = -9
_HUNG = -14
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one point. `problems` is empty when it passed; `kept` is where the broken home lies then."""

    point: Point
    problems: tuple[str, ...]
    seconds: float
    kept: Path | None = None


@dataclass(frozen=True, slots=True)
class Unbroken:
    """The run nothing happened to: its calls (see `all_points`), the files they touch, what came of it."""

    home: Path
    calls: tuple[Call, ...]
    home_calls: tuple[Call, ...]
    picture: Picture

    @property
    def points(self) -> list[Point]:
        return all_points(self.calls, self.home_calls, self.home)


class WarmProcess:
    """A process of `child.py` that forks the processes to be killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.crash.child", "--warm"]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )  # fmt: skip

    def fork(self, scenario: str, home: Path, step: str) -> int:
        """A new process for this step, waiting at its gate."""
        order = {"do": "fork", "scenario": scenario, "home": str(home), "step": step, "output": str(output_of(home))}
        return int(self._ask(order)["process"])

    def go(self, process: int) -> int:
        """Let it run to its end; its exit code, negative for a signal."""
        return int(self._ask({"do": "go", "process": process})["status"])

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the warm process ended with {self._process.wait()}")
        return dict(json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def output_of(home: Path) -> Path:
    """What the processes that served a home printed."""
    return home.with_name(f"{home.name}.output")


class Driver:
    """Breaks one scenario. `place` is a directory for its homes; a home that failed stays there."""

    def __init__(self, scenario: Scenario, place: Path, warm: Sequence[WarmProcess]) -> None:
        self._scenario = scenario
        self._place = place
        self._warm: SimpleQueue[WarmProcess] = SimpleQueue()
        for process in warm:
            self._warm.put(process)
        self._jobs = len(warm)
        self._prepared = place / "prepared"
        place.mkdir(parents=True, exist_ok=True)

    def unbroken(self) -> Unbroken:
        """Prepare the home and do the work with nothing in its way. Raises `RuntimeError` when that fails."""
        with self._process() as warm:
            self._must(warm, self._prepared, "prepare")
            home = self._fresh("unbroken")
            status, found = self._traced(warm, home, "work")
            if status:
                raise RuntimeError(f"the unbroken run ended with {status}: {output_of(home).read_text()}")
            at_home = strace.calls(self._trace(home), [home])
            return Unbroken(home, tuple(found), tuple(at_home), self._look(warm, home))

    def run(self, unbroken: Unbroken, points: Sequence[Point]) -> Iterator[Verdict]:
        """A verdict for each point, in order, `jobs` at a time."""
        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(lambda point: self._verdict(unbroken, point), points)

    # ------------------------------------------------------------------------------------------------------ one point

    def _verdict(self, unbroken: Unbroken, point: Point) -> Verdict:
        begun = time.perf_counter()
        home = self._fresh(str(point).replace(":", "-"))
        with self._process() as warm:
            try:
                faults, problems = self._break(warm, home, unbroken, point)
                if not problems:
                    problems = self._recovered(warm, home, unbroken, faults)
            except _Failed as failed:
                problems = [str(failed)]
        seconds = time.perf_counter() - begun
        if problems:
            return Verdict(point, tuple(problems), seconds, home)
        self._remove(home)
        return Verdict(point, (), seconds)

    def _break(self, warm: WarmProcess, home: Path, unbroken: Unbroken, point: Point) -> tuple[Faults, list[str]]:
        """Do the work with the fault in it."""
        if point.how == "power":
            self._cut_power(home, unbroken, point)
            return Faults(kills=1), []
        under = [home] if point.fails else [home, witness_of(home)]
        injection = Injection(point.name, point.number, point.how if point.fails else "", point.times)
        paths = self._moved(unbroken, under, home)
        status, found = self._traced(warm, home, "work", paths, injection, with_data=point.how == "torn")
        if point.fails:
            return self._judged_errors(home, status, found)
        if status != _KILLED:
            return Faults(), [f"the process was not killed there: it ended with {status}"]
        if point.how == "torn":
            _tear(found)
        if point.again is not None:
            return Faults(kills=1 + self._kill_again(warm, home, point.again)), []
        return Faults(kills=1), []

    def _judged_errors(self, home: Path, status: int, found: Sequence[Call]) -> tuple[Faults, list[str]]:
        failed = sum(call.failed for call in found)
        if status in (BUG, _HUNG) or status < 0:
            return Faults(errors=failed), [f"the process ended with {status}: {_last_lines(output_of(home))}"]
        if not failed:
            return Faults(), ["no call failed: the run did not get there"]
        return Faults(errors=failed), []

    def _recovered(self, warm: WarmProcess, home: Path, unbroken: Unbroken, faults: Faults) -> list[str]:
        """Restart with nothing in the way, and compare."""
        self._must(warm, home, "work")
        printed = output_of(home).read_text(encoding="utf-8")
        problems = self._scenario.problems(unbroken.picture, self._look(warm, home), faults)
        if "Traceback (most recent call last)" in printed:
            problems.append(f"a traceback was printed: {_last_lines(output_of(home))}")
        return problems

    def _kill_again(self, warm: WarmProcess, home: Path, seed: int) -> int:
        """Kill the recovery as well, at a call drawn from those it makes; how many kills that was."""
        rehearsal = home.with_name(f"{home.name}-rehearsal")
        self._copy(home, rehearsal)
        _, found = self._traced(warm, rehearsal, "work", with_data=False)
        changing = [call for call in found if call.changes]
        self._remove(rehearsal)
        if not changing:
            return 0
        chosen = Random(seed).choice(changing)
        paths = [_moved(path, rehearsal, home) for path in strace.paths_of(found, [rehearsal, witness_of(rehearsal)])]
        injection = Injection(chosen.name, chosen.number)
        status, _ = self._traced(warm, home, "work", paths, injection, with_data=False)
        return int(status == _KILLED)

    def _cut_power(self, home: Path, unbroken: Unbroken, point: Point) -> None:
        until = int(point.name)
        calls = [_call_moved(call, unbroken.home, home) for call in unbroken.calls]
        power.replay(home, calls, until, point.number)
        witness = witness_of(home)
        seen = [call.data for call in calls[:until] if call.name == "write" and call.paths[-1] == witness]
        witness.write_bytes((witness.read_bytes() if witness.exists() else b"") + b"".join(seen))

    # ----------------------------------------------------------------------------------------------------- processes

    def _traced(
        self,
        warm: WarmProcess,
        home: Path,
        step: str,
        paths: Sequence[Path] = (),
        injection: Injection | None = None,
        *,
        with_data: bool = True,
    ) -> tuple[int, list[Call]]:
        """Run a step under strace; its exit code and its calls on the home and the witness."""
        process = warm.fork(self._scenario.name, home, step)
        tracer = strace.attach(process, self._trace(home), paths, injection, with_data=with_data)
        status = warm.go(process)
        strace.end(tracer)
        return status, strace.calls(self._trace(home), [home, witness_of(home)])

    def _must(self, warm: WarmProcess, home: Path, step: str) -> None:
        status = warm.go(warm.fork(self._scenario.name, home, step))
        if status:
            raise _Failed(f"{step} ended with {status}: {_last_lines(output_of(home))}")

    def _look(self, warm: WarmProcess, home: Path) -> Picture:
        self._must(warm, home, "look")
        return dict(json.loads(picture_of(home).read_text(encoding="utf-8")))

    @contextmanager
    def _process(self) -> Iterator[WarmProcess]:
        warm = self._warm.get()
        try:
            yield warm
        finally:
            self._warm.put(warm)

    # --------------------------------------------------------------------------------------------------------- files

    def _fresh(self, name: str) -> Path:
        home = self._place / name / "home"
        if home.parent.exists():
            shutil.rmtree(home.parent)
        self._copy(self._prepared, home)
        return home

    @staticmethod
    def _copy(home: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if home.exists():
            shutil.copytree(home, target)
        witness_of(target).touch(0o600)
        if witness_of(home).exists():
            shutil.copyfile(witness_of(home), witness_of(target))

    @staticmethod
    def _remove(home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)
        for beside in (witness_of(home), picture_of(home), output_of(home), home.with_name(f"{home.name}.trace")):
            beside.unlink(missing_ok=True)

    @staticmethod
    def _trace(home: Path) -> Path:
        return home.with_name(f"{home.name}.trace")

    @staticmethod
    def _moved(unbroken: Unbroken, under: Sequence[Path], home: Path) -> list[Path]:
        """The files that the unbroken run touched, as they are called in this home."""
        known = [unbroken.home, witness_of(unbroken.home)] if len(under) > 1 else [unbroken.home]
        return [_moved(path, unbroken.home, home) for path in strace.paths_of(unbroken.calls, known)]


class _Failed(Exception):
    """A step that must succeed did not."""


def _moved(path: Path, old: Path, new: Path) -> Path:
    if path == witness_of(old):
        return witness_of(new)
    return new / path.relative_to(old) if path == old or old in path.parents else path


def _call_moved(call: Call, old: Path, new: Path) -> Call:
    return replace(call, paths=tuple(_moved(path, old, new) for path in call.paths))


def _tear(found: Sequence[Call]) -> None:
    """Put the first half of the write that the process died in into its file."""
    torn = next(call for call in reversed(found) if call.name in WRITES)
    half = torn.data[: len(torn.data) // 2]
    with torn.paths[-1].open("r+b") as file:
        file.seek(int(torn.arguments.rpartition(",")[2]) if torn.name == "pwrite64" else file.seek(0, 2))
        file.write(half)


def _last_lines(path: Path, most: int = 6) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-most:])


@contextmanager
def breaking(scenario: Scenario, place: Path, jobs: int = 1) -> Iterator[Driver]:
    """A driver with its processes. `place` is a directory for its homes."""
    warm = [WarmProcess() for _ in range(jobs)]
    try:
        yield Driver(scenario, place.resolve() / scenario.name, warm)
    finally:
        for process in warm:
            process.close()
