"""python -m tests.crash: break every scenario at every point, and tell what did not come right.

python -m tests.crash                                   everything, some minutes
python -m tests.crash --scenario turn --jobs 2
python -m tests.crash --sample 40 --seed 7              a seeded part of each scenario
python -m tests.crash --scenario turn --point kill:pwrite64:17     one point again; its home is kept
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from tests.crash.driver import Verdict, breaking
from tests.crash.points import parse, sample
from tests.crash.scenario import Scenario
from tests.crash.scenarios import SCENARIOS, find
from tests.crash.warm import WarmProcess, warm_processes

_COLUMNS = "{:<22} {:>7} {:>7} {:>7} {:>8}   {}"


def main() -> int:
    options = _options()
    if shutil.which("strace") is None:
        print("strace is not installed: nothing was tried. Install it (apt install strace) and run this again.")
        return 1
    chosen = [find(options.scenario)] if options.scenario else list(SCENARIOS.values())
    print(_COLUMNS.format("scenario", "points", "passed", "failed", "seconds", "by kind"))
    with warm_processes(options.jobs) as warm:
        failed = [verdict for scenario in chosen for verdict in _run(scenario, warm, options)]
    return 1 if failed else 0


def _run(scenario: Scenario, warm: list[WarmProcess], options: argparse.Namespace) -> list[Verdict]:
    begun = time.perf_counter()
    with breaking(scenario, warm, options.keep) as driver:
        unbroken = driver.unbroken()
        points = [parse(options.point)] if options.point else unbroken.points
        if options.sample:
            points = sample(points, options.sample, options.seed)
        verdicts = list(driver.run(unbroken, points))
    failed = [verdict for verdict in verdicts if verdict.problems]
    kinds = Counter(verdict.point.how for verdict in verdicts)
    print(
        _COLUMNS.format(
            scenario.name,
            len(verdicts),
            len(verdicts) - len(failed),
            len(failed),
            f"{time.perf_counter() - begun:.1f}",
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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="Break the assistant at every call.")
    parser.add_argument("--scenario", help=f"one of {', '.join(SCENARIOS)}; all without it")
    parser.add_argument("--point", help="one point, as a failure names it")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="a seeded N of each scenario's points")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where the homes are to lie; they stay there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
