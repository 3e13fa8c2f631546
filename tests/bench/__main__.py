"""`python -m tests.bench [--sizes 1000,100000,1000000] [--only turn,search,verify]`: every figure, in one plain table.

Homes are built when they are first needed (a million messages: some minutes, 2.3 GB) and kept under `.bench/`. A new
figure is a module with `measure(sizes) -> Iterator[Row]`, named in FIGURES.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.bench import (
    backing_up,
    compaction,
    dispatch,
    documents,
    economy,
    holding,
    importing,
    page,
    reaching,
    recollection,
    reminding,
    resetting,
    search,
    sleeping,
    spending,
    start,
    turn,
    verify,
    waits,
    web_turn,
    whole_turn,
)
from tests.bench.figures import Row, table
from tests.bench.homes import CACHE, home
from tests.bench.machine import description

FIGURES: Mapping[str, Callable[[Sequence[int]], Iterator[Row]]] = {
    "turn": turn.measure,
    "whole-turn": whole_turn.measure,
    "web-turn": web_turn.measure,
    "start": start.measure,
    "dispatch": dispatch.measure,
    "documents": documents.measure,
    "search": search.measure,
    "verify": verify.measure,
    "recall": recollection.measure,
    "compaction": compaction.measure,
    "economy": economy.measure,
    "sleep": sleeping.measure,
    "backup": backing_up.measure,
    "reset": resetting.measure,
    "import": importing.measure,
    "reminders": reminding.measure,
    "reach": reaching.measure,
    "spending": spending.measure,
    "holds": holding.measure,
    "page": page.measure,
    "waits": waits.measure,
}
DEFAULT_SIZES = (1_000, 10_000, 100_000, 1_000_000)


def main() -> int:
    """0 when every target is met, 1 when one is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure Nocturne on this machine.")
    parser.add_argument("--sizes", type=_sizes, default=list(DEFAULT_SIZES), help="messages in the homes, by commas")
    parser.add_argument("--only", type=_figures, default=list(FIGURES), help=f"of {', '.join(FIGURES)}, by commas")
    chosen = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    for size in chosen.sizes:
        home(size)
    print(description(CACHE), end="\n\n", flush=True)
    rows: list[Row] = []
    for name in chosen.only:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += FIGURES[name](chosen.sizes)
    print(table(rows))
    return 1 if any(row.good is False for row in rows) else 0


def _sizes(text: str) -> list[int]:
    return sorted({int(part) for part in text.replace("_", "").split(",")})


def _figures(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is no figure; there are {', '.join(FIGURES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
