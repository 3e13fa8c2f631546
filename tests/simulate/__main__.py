"""`python -m tests.simulate --seed S --days D [--years N] [--journal FILE]`: years of a person's life, in minutes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

_HASH_SEED = "PYTHONHASHSEED"


def main() -> int:
    """0 when every invariant held, 1 when one was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description=__doc__.partition(": ")[2])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--years", type=int, default=1, help="lives of so many days, each of the next seed")
    parser.add_argument("--keep", help="only the events of these numbers, as a failure prints them")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="a life that held by it is not lived again")
    parser.add_argument("--no-shrink", action="store_true", help="do not look for a shorter way to a failure")
    chosen = parser.parse_args()
    if os.environ.get(_HASH_SEED) != "0":
        # The order of sets of words is a part of what happens.
        os.environ.update({_HASH_SEED: "0", "OPENBLAS_NUM_THREADS": "1"})
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulate", *sys.argv[1:]])
    from tests.simulate.journal import LifeJournal
    from tests.simulate.run import simulate

    keep = None if chosen.keep is None else {int(number) for number in chosen.keep.split(",")}
    # A part of a life is none.
    journal = LifeJournal(chosen.journal if keep is None else None)
    good = []
    for seed in range(chosen.seed, chosen.seed + chosen.years):
        if journal.has_held(seed, chosen.days):
            continue
        begun = time.process_time()
        failure = simulate(seed, chosen.days, keep=keep, shrink=not chosen.no_shrink)
        journal.add(seed, chosen.days, failure is None, failure or "", time.process_time() - begun)
        good.append(failure is None)
    print(f"{sum(good)} of {len(good)} lives of {chosen.days} days held; {time.process_time():.0f} s of CPU.")
    if chosen.journal is not None:
        print(journal.report())
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
