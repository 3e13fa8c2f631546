"""`python -m tests.fleet [--seed N] [--runs N] [--minutes M]`: lose machines of a fleet, and count what was lost.

python -m tests.fleet                       300 runs, in fleets of 10 runs each
python -m tests.fleet --seed 7 --runs 20
python -m tests.fleet demo --homes 10       a demonstration: what people see while a host and the primary are lost

A run loses one thing (a host, the primary, both, the standby, the router; a host is frozen, a disk full) while people
write, waits until all homes run, and checks that nothing acknowledged is lost, nothing is answered twice and every home
verifies.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from tests.attack.tally import Tally
from tests.fleet.demo import demonstrate
from tests.fleet.losses import run

_RUNS_IN_A_FLEET = 10


def main() -> int:
    """0 when everything held."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description="Lose machines of a fleet.")
    parser.add_argument("what", nargs="?", choices=("crash", "demo"), default="crash")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run later than that")
    parser.add_argument("--kinds", default="", help="lose only these, in turn, as in 'host,full server'")
    parser.add_argument("--picture", type=Path, help="demo: draw what was acknowledged, as SVG")
    parser.add_argument("--homes", type=int, help="how many homes (crash: 2, demo: 10)")
    options = parser.parse_args()
    if options.what == "demo":
        return demonstrate(options.homes or 10, options.picture)
    kinds = tuple(filter(None, options.kinds.split(",")))
    return _crash(options.seed, options.runs, time.monotonic() + options.minutes * 60, options.homes or 2, kinds)


def _crash(seed: int, runs: int, until: float, homes: int, kinds: tuple[str, ...]) -> int:
    tried, held, failures = 0, 0, []
    while tried < runs and time.monotonic() < until:
        print(f"seed {seed}", flush=True)
        tally: Tally = run(seed, min(_RUNS_IN_A_FLEET, runs - tried), until, homes=homes, kinds=kinds, tell=True)
        tried, held, seed = tried + tally.tried, held + tally.held, seed + 1
        failures += tally.failures
    print(f"{tried} runs, {held} without a fault")
    for failure in failures:
        print(f"  {failure}")
    return 1 if failures else 0


sys.exit(main())
