"""python -m tests.crash: break every scenario at a point of each class, and tell what did not come right.

Points that come to the same are a class (`equivalence.py`).

python -m tests.crash                                   everything, for some hours
python -m tests.crash --every-point                     not one of each class but all, for days
python -m tests.crash --pairs 5                         first two points of each of 5 classes: do they come to the same?
python -m tests.crash --scenario turn --jobs 2
python -m tests.crash --sample 40 --seed 7              a seeded part of each scenario
python -m tests.crash --scenario turn --point kill:pwrite64:17     one point again; its home is kept
python -m tests.crash --journal FILE --minutes 60       an hour of it; the next run with FILE goes on from there
python -m tests.crash --journal FILE --failed           what failed, again
python -m tests.crash --journal FILE --report           what FILE has, as a table
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.crash.driver import Driver, ReferenceRun, Verdict, breaking
from tests.crash.equivalence import PointClass, draw_pairs
from tests.crash.journal import Journal
from tests.crash.points import Point, parse, sample
from tests.crash.scenario import Scenario
from tests.crash.scenarios import SCENARIOS, find
from tests.crash.warm import WarmProcess, warm_processes

_COLUMNS = "{:<22} {:>7} {:>7} {:>7} {:>8}   {}"


# Points between two looks at the time.
_AT_ONCE = 10


def main() -> int:
    options = _options()
    journal = Journal(options.journal)
    chosen = [find(options.scenario)] if options.scenario else list(SCENARIOS.values())
    if options.report:
        print(journal.report([scenario.name for scenario in chosen]))
        return 1 if any(journal.failed(scenario.name) for scenario in chosen) else 0
    if shutil.which("strace") is None:
        print("strace is not installed: nothing was tried. Install it (apt install strace) and run this again.")
        return 1
    journal.begin()
    until = time.monotonic() + options.minutes * 60
    print(_COLUMNS.format("scenario", "points", "passed", "failed", "seconds", "by kind"))
    with warm_processes(options.jobs) as warm:
        failed = [verdict for scenario in chosen for verdict in _run(scenario, warm, options, journal, until)]
    return 1 if failed else 0


def _run(
    scenario: Scenario, warm: list[WarmProcess], options: argparse.Namespace, journal: Journal, until: float
) -> list[Verdict]:
    """Break one scenario at what is left of its points, until the time is over; the verdicts that failed."""
    begun = time.monotonic()
    if begun >= until:
        return []
    with breaking(scenario, warm, options.keep) as driver:
        unbroken = driver.unbroken()
        classes = unbroken.classes
        journal.list_classes(
            scenario.name, [PointClass((point,)) for point in unbroken.points] if options.every_point else classes
        )
        pairs = [] if options.point else draw_pairs(classes, options.pairs, options.seed)
        verdicts = list(_try(driver, unbroken, [point for pair in pairs for point in pair], journal, until))
        for first, second in zip(verdicts[::2], verdicts[1::2], strict=False):
            _compare(scenario, first, second, journal)
        points = journal.failed(scenario.name) if options.failed else journal.left(scenario.name)
        if options.point:
            points = [parse(options.point)]
        if options.sample:
            points = sample(points, options.sample, options.seed)
        verdicts += _try(driver, unbroken, points, journal, until)
    failed = [verdict for verdict in verdicts if verdict.problems]
    kinds = Counter(verdict.point.how for verdict in verdicts)
    print(
        _COLUMNS.format(
            scenario.name,
            len(verdicts),
            len(verdicts) - len(failed),
            len(failed),
            f"{time.monotonic() - begun:.1f}",
            ", ".join(f"{kind} {count}" for kind, count in kinds.items()),
        ),
        flush=True,
    )
    for verdict in failed:
        print(f"  {verdict.point}  (again: python -m tests.crash --scenario {scenario.name} --point {verdict.point})")
        for problem in verdict.problems:
            print("    " + problem.replace("\n", "\n    "))
        print(f"    kept: {verdict.kept}")
    return failed


def _try(
    driver: Driver, unbroken: ReferenceRun, points: Sequence[Point], journal: Journal, until: float
) -> Iterator[Verdict]:
    for first in range(0, len(points), _AT_ONCE):
        if time.monotonic() >= until:
            return
        for verdict in driver.run(unbroken, points[first : first + _AT_ONCE]):
            journal.add(driver.scenario, verdict)
            yield verdict


def _compare(scenario: Scenario, first: Verdict, second: Verdict, journal: Journal) -> None:
    """Two points of a class: what differs of what came of them is told."""
    one, other = first.picture or {}, second.picture or {}
    differing = [part for part in sorted({*one, *other}) if one.get(part) != other.get(part)]
    if first.problems != second.problems:
        differing.append("problems")
    journal.add_pair(scenario.name, first.point, second.point, differing)
    if differing:
        print(f"  {scenario.name}: {first.point} and {second.point} differ in {', '.join(differing)}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="Break the assistant at every call.")
    parser.add_argument("--scenario", help=f"one of {', '.join(SCENARIOS)}; all without it")
    parser.add_argument("--point", help="one point, as a failure names it")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="a seeded N of each scenario's points")
    parser.add_argument("--every-point", action="store_true", help="not one of each class, but all")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="compare two points of each of N classes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where the homes are to lie; they stay there")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no point later than that")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="what is in it is not done again; it is added to")
    parser.add_argument("--failed", action="store_true", help="only what failed, by the journal, again")
    parser.add_argument("--report", action="store_true", help="print the journal as a table, and try nothing")
    options = parser.parse_args()
    if options.journal is None and (options.failed or options.report):
        parser.error("--failed and --report need --journal FILE")
    return options


if __name__ == "__main__":
    sys.exit(main())
