"""`python -m tests.attack [KIND...] [--seed N] [--minutes M] [--cases N]`: attack the assistant, and count what held.

python -m tests.attack                              every kind, in turn
python -m tests.attack kill disk --seed 7
python -m tests.attack kill --cases 400             as many cases of each kind that is named
python -m tests.attack kill --seed 7 --case 12      one case again, as a failure names it

A kind is a module of this folder with a function `run(seed, cases, until)` that returns a `Tally`. Everything is drawn
from the seed, runs against a home and servers of its own on this machine, and ends.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import pkgutil
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.tally import Tally

_COLUMNS = "{:<14} {:>7} {:>7} {:>7} {:>9}"


def find_kinds() -> dict[str, Callable[..., Tally]]:
    """The attacks by their names."""
    kinds = {}
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if found.name.startswith(("test_", "__")):
            continue
        module = importlib.import_module(f"tests.attack.{found.name}")
        if inspect.isfunction(getattr(module, "run", None)):
            kinds[found.name.replace("_", "-")] = module.run
    return kinds


def main() -> int:
    """0 when everything held."""
    kinds = find_kinds()
    options = _options(list(kinds))
    if shutil.which("strace") is None:
        print("strace is not installed: nothing was tried. Install it (apt install strace) and run this again.")
        return 1
    until = time.monotonic() + options.minutes * 60
    print(f"seed {options.seed}")
    print(_COLUMNS.format("kind", "tried", "held", "failed", "seconds"))
    failed = False
    for kind in options.kinds or kinds:
        begun = time.monotonic()
        tally = kinds[kind](options.seed, **_given(kinds[kind], options, until))
        took = f"{time.monotonic() - begun:.0f}"
        print(_COLUMNS.format(kind, tally.tried, tally.held, len(tally.failures), took), flush=True)
        for failure in tally.failures:
            print(f"  {failure}\n  again: python -m tests.attack {kind} --seed {options.seed} --case N")
        failed = failed or bool(tally.failures)
    return 1 if failed else 0


def _given(run: Callable[..., Tally], options: argparse.Namespace, until: float) -> dict[str, Any]:
    """Of what may be chosen, what is and what the attack takes."""
    chosen = {"cases": options.cases, "until": until, "only": options.case}
    taken = inspect.signature(run).parameters
    return {name: value for name, value in chosen.items() if value is not None and name in taken}


def _options(kinds: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description="Attack the assistant.")
    parser.add_argument("kinds", nargs="*", choices=[*kinds, []], metavar="KIND", help=", ".join(kinds))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case later than that")
    parser.add_argument("--cases", type=int, help="how many of each kind; each has a number of its own")
    parser.add_argument("--case", type=int, help="only the case of this number, as a failure names it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
