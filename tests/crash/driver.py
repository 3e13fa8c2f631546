"""Runs a scenario unbroken once, then breaks it at one point after another and holds what came of it against that."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from random import Random
from zlib import crc32

from assistant.settings.home import Home
from tests.crash import homes, strace
from tests.crash.child import BUG, EXPECTED_FAILURE
from tests.crash.equivalence import PointClass, classes_of, first_of_each, keys_of_points
from tests.crash.homes import boot_of, last_lines, moved, output_of, picture_of, trace_of
from tests.crash.points import Point, RecordedCalls, all_points
from tests.crash.replay import Replay, left_by_kill, left_by_torn_write
from tests.crash.scenario import Faults, Scenario, Snapshot
from tests.crash.strace import WRITES, Injection, SystemCall
from tests.crash.warm import WarmProcess
from tests.crash.witness import effect_log_path

_KILLED = -9
_HUNG = -14
# Of the points at which a process dies, one in so many, by its name, is tried with a process that is killed; the others
# with what a replay of the calls before them leaves.
_KILLED_EVERY = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one point. `problems` is empty when it passed; `kept` is where the broken home lies then;
    `picture` is all that came of it."""

    point: Point
    problems: tuple[str, ...]
    seconds: float
    kept: Path | None = None
    picture: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """The run nothing happened to: its calls and what came of it. `apart`: `Scenario.apart` in its home; `outside`:
    calls that change files elsewhere, but for the list of data folders; `prepared`:
    the home before it."""

    home: Path
    calls: RecordedCalls
    picture: Snapshot
    apart: tuple[Path, ...]
    outside: tuple[SystemCall, ...]
    prepared: Path
    replay: Replay = field(compare=False, repr=False)

    @property
    def points(self) -> list[Point]:
        return all_points(self.calls, self.home)

    @property
    def classes(self) -> list[PointClass]:
        """The points, those together that come to the same."""
        return classes_of(keys_of_points(self.calls, self.home, self.prepared))

    def position(self, point: Point) -> int | None:
        """Before which of all calls a process dies or the power goes; None: it does not come there."""
        if point.how == "power":
            return int(point.name)
        call = first_of_each(self.calls.own).get((point.name, point.number))
        return call and next(n for n, other in enumerate(self.calls.all) if other.order == call.order)

    def paths(self, home: Path, point: Point) -> list[Path]:
        """The files this run touched that count at a point, as they are called in another home."""
        if point.apart:
            found = strace.paths_of(self.calls.apart, self.apart)
        else:
            under = [self.home] if point.fails else [self.home, effect_log_path(self.home)]
            found = [path for path in strace.paths_of(self.calls.own, under) if path not in self.apart]
        return [moved(path, self.home, home) for path in found]


class StepFailed(Exception):
    """A step that nothing was in the way of did not succeed."""


class Driver:
    """Breaks one scenario. `place` is a directory for its homes; a home that failed stays there. `kills`: at each kill
    and torn write a process dies, not at some of them."""

    def __init__(self, scenario: Scenario, place: Path, warm: Sequence[WarmProcess], *, kills: bool = False) -> None:
        self.scenario = scenario.name
        self._scenario = scenario
        self._kills = kills
        self._place = place
        self._warm: SimpleQueue[WarmProcess] = SimpleQueue()
        for process in warm:
            self._warm.put(process)
        self._jobs = len(warm)
        self._prepared = place / "prepared"
        self.failed = False

    def unbroken(self) -> ReferenceRun:
        """Prepare the home and do the work with nothing in its way. Raises `StepFailed`."""
        with self._process() as warm:
            homes.remove(self._prepared)
            self._prepared.parent.mkdir(parents=True, exist_ok=True)
            self._must(warm, self._prepared, "prepare")
            home = self._fresh("unbroken")
            status = self._traced(warm, home)
            if status:
                raise StepFailed(f"the unbroken run ended with {status}: {last_lines(output_of(home))}")
            apart = self._apart(home)
            traced, both = strace.read(trace_of(home)), [home, effect_log_path(home)]
            calls = RecordedCalls(
                tuple(strace.select(traced, both)),
                tuple(strace.select(traced, both, apart)),
                tuple(strace.select(traced, [home], apart)),
                tuple(strace.select(traced, apart)),
            )
            listed = Home(home).folder_list.parent
            elsewhere = strace.select(traced, [Path("/")], [*both, output_of(home), listed, Path(os.devnull)])
            outside = tuple(call for call in elsewhere if call.changes)
            replay = Replay(calls.all, home, self._prepared)
            if differing := replay.find_differences(home):
                raise StepFailed(f"the calls that were traced do not make these files: {', '.join(differing)}")
            return ReferenceRun(home, calls, self._look(warm, home), apart, outside, self._prepared, replay)

    def run(self, unbroken: ReferenceRun, points: Sequence[Point]) -> Iterator[Verdict]:
        """A verdict for each point, in order, as many at a time as there are processes."""
        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(lambda point: self._verdict(unbroken, point), points)

    # ------------------------------------------------------------------------------------------------------ one point

    def _verdict(self, unbroken: ReferenceRun, point: Point) -> Verdict:
        begun = time.perf_counter()
        # The path stands in what is told: names of one length, so that two points of a class come to the same.
        home, picture = self._fresh(f"point-{crc32(str(point).encode()):08x}"), None
        try:
            with self._process() as warm:
                faults, problems = self._break(warm, home, unbroken, point)
                if not problems:
                    picture = self._recovered(warm, home)
                    problems = self._scenario.problems(unbroken.picture, picture, faults) + _tracebacks(home)
        except StepFailed as failed:
            problems = [str(failed)]
        seconds = time.perf_counter() - begun
        if problems:
            self.failed = True
            return Verdict(point, tuple(problems), seconds, home, picture)
        homes.remove(home)
        home.parent.rmdir()
        return Verdict(point, (), seconds, picture=picture)

    def _break(self, warm: WarmProcess, home: Path, unbroken: ReferenceRun, point: Point) -> tuple[Faults, list[str]]:
        """Do the work with the fault in it: what happened, and what is wrong already."""
        faults, problems = self._break_once(warm, home, unbroken, point)
        if faults.kills and point.again is not None:
            faults = Faults(kills=1 + self._kill_again(warm, home, point.again))
        return faults, problems

    def _break_once(
        self, warm: WarmProcess, home: Path, unbroken: ReferenceRun, point: Point
    ) -> tuple[Faults, list[str]]:
        until = unbroken.position(point) if self._is_replayed(point) else None
        if until is not None:
            leaves = {"kill": left_by_kill, "torn": left_by_torn_write}.get(point.how)
            unbroken.replay.leave(home, until, leaves or (lambda disk, _: disk.left(point.number)))
            if point.how == "power":
                boot_of(home).write_text(str(point), encoding="utf-8")
            return Faults(kills=1), []
        paths = unbroken.paths(home, point)
        injection = Injection(point.name, point.number, point.how if point.fails else "", point.times)
        status = self._traced(warm, home, paths, injection, with_data=not point.fails)
        if point.fails:
            failed = strace.injected(trace_of(home))
            return Faults(errors=failed), _wrong_after_errors(home, status, failed)
        if status != _KILLED:
            # A process of its own died in its place; then this one goes on, and comes to its end.
            alone = bool(self._scenario.apart) and status == 0 and bool(strace.killed(trace_of(home)))
            problem = f"the process was not killed there: it ended with {status}: {last_lines(output_of(home))}"
            return Faults(kills=int(alone)), [] if alone else [problem]
        # A process of its own may still write when this one is dead, and those calls are not in the trace.
        made = () if self._scenario.apart else Replay(_calls_at(home), home, self._prepared).find_differences(home)
        if point.how == "torn":
            _tear(_calls_at(home))
        return Faults(kills=1), [f"the calls before the kill do not make {path}" for path in made]

    def _is_replayed(self, point: Point) -> bool:
        """A process is killed where another one lives on for a moment, and at some of the other points."""
        if point.fails or self._scenario.apart or point.how == "power":
            return point.how == "power"
        return not self._kills and bool(crc32(str(point).encode()) % _KILLED_EVERY)

    def _recovered(self, warm: WarmProcess, home: Path) -> Snapshot:
        """Restart with nothing in the way; all that came of it."""
        self._must(warm, home, "recover")
        return _picture(home)

    def _kill_again(self, warm: WarmProcess, home: Path, seed: int) -> int:
        """Kill the recovery as well, at a call drawn from those it makes; how many kills that was."""
        rehearsal = home.with_name("rehearsal")
        homes.copy(home, rehearsal)
        both, apart = [rehearsal, effect_log_path(rehearsal)], self._apart(rehearsal)
        self._traced(warm, rehearsal)
        found = strace.calls(trace_of(rehearsal), both)
        own = strace.select(found, both, apart)
        homes.remove(rehearsal)
        changing = [call for call in own if call.changes]
        if not changing:
            return 0
        chosen = Random(seed).choice(changing)
        if not self._scenario.apart:
            until = next(n for n, call in enumerate(found) if call.order == chosen.order)
            Replay(found, rehearsal, home).leave(home, until, left_by_kill)
            return 1
        paths = [moved(path, rehearsal, home) for path in strace.paths_of(own, both) if path not in apart]
        status = self._traced(warm, home, paths, Injection(chosen.name, chosen.number), with_data=False)
        return int(status == _KILLED)

    # ------------------------------------------------------------------------------------------------------ processes

    def _traced(
        self,
        warm: WarmProcess,
        home: Path,
        paths: Sequence[Path] = (),
        injection: Injection | None = None,
        *,
        with_data: bool = True,
    ) -> int:
        """Do the work under strace; its exit code."""
        process = warm.fork(self._scenario.name, home, "work")
        tracer = strace.attach(process, trace_of(home), paths, injection, with_data=with_data)
        status = warm.go(process)
        strace.end(tracer)
        return status

    def _must(self, warm: WarmProcess, home: Path, step: str) -> None:
        status = warm.run(self._scenario.name, home, step)
        if status:
            raise StepFailed(f"{step} ended with {status}: {last_lines(output_of(home))}")

    def _look(self, warm: WarmProcess, home: Path) -> Snapshot:
        self._must(warm, home, "look")
        return _picture(home)

    @contextmanager
    def _process(self) -> Iterator[WarmProcess]:
        warm = self._warm.get()
        try:
            yield warm
        finally:
            self._warm.put(warm)

    def _apart(self, home: Path) -> tuple[Path, ...]:
        return tuple(home / name for name in self._scenario.apart)

    def _fresh(self, name: str) -> Path:
        """A copy of the prepared home."""
        home = self._place / name / "home"
        shutil.rmtree(home.parent, ignore_errors=True)
        homes.copy(self._prepared, home)
        return home


def _picture(home: Path) -> Snapshot:
    return dict(json.loads(picture_of(home).read_text(encoding="utf-8")))


def _wrong_after_errors(home: Path, status: int, failed: int) -> list[str]:
    """A process lives through failing calls; one that cannot even start says why in a line."""
    said = last_lines(output_of(home))
    if status in (BUG, _HUNG) or status < 0:
        return [f"the process ended with {status}: {said}"]
    if status == EXPECTED_FAILURE and not said.splitlines()[-1].startswith("Error: "):
        return [f"the process failed without an error in one line: {said}"]
    return [] if failed else ["no call failed: the run did not get there"]


def _tracebacks(home: Path) -> list[str]:
    if "Traceback (most recent call last)" in output_of(home).read_text(encoding="utf-8"):
        return [f"a traceback was printed: {last_lines(output_of(home))}"]
    return []


def _calls_at(home: Path) -> tuple[SystemCall, ...]:
    """What the last process did to the home and the witness."""
    return tuple(strace.calls(trace_of(home), [home, effect_log_path(home)]))


def _tear(found: Sequence[SystemCall]) -> None:
    """Put the first half of the write that the process died in into its file."""
    torn = next(call for call in reversed(found) if call.name in WRITES)
    half = torn.data[: len(torn.data) // 2]
    with torn.paths[-1].open("r+b") as file:
        file.seek(strace.torn_offset(torn, file.seek(0, 2)))
        file.write(half)


@contextmanager
def breaking(
    scenario: Scenario, warm: Sequence[WarmProcess], place: Path | None = None, *, kills: bool = False
) -> Iterator[Driver]:
    """A driver over these processes, as `Driver` says. Its homes lie in `place` and stay there; without it, in a
    directory of their own, which is removed in the end unless one of them failed."""
    own = homes.scratch() if place is None else place.resolve()
    driver = Driver(scenario, own / scenario.name, warm, kills=kills)
    try:
        yield driver
    finally:
        if place is None and not driver.failed:
            shutil.rmtree(own)
