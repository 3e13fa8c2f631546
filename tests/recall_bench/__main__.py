"""`python -m tests.recall_bench [FILE...] [--only TABLE,...] [--sessions one|each]`: recall, in six tables: turns,
generated, learned, unasked, history, many.

The files are of LoCoMo's form. Beside them the turns of generated talks are measured (`talks`): the half of the
templates on which weights were fitted, and the half that nothing was chosen on; and those of two months that were
written by hand (`months`), on which nothing was chosen either. Parameters of the search were chosen on the first five
conversations of LoCoMo, so that of each file of more than five conversations those behind them are reported by
themselves. Each conversation is measured in a process of its own, one after another.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import Row, table
from tests.bench.machine import description
from tests.bench.process import measured
from tests.recall_bench import report
from tests.recall_bench.dataset import BadFile, read_talks
from tests.recall_bench.months import MONTHS, write_months
from tests.recall_bench.talks import EXCHANGES, write_talks
from tests.recall_bench.unasked_history import ONE_SUBJECT

CHOSEN_ON = 5


def main() -> int:
    """0 when every target is met, 1 when one is missed, 2 where a file cannot be used."""
    chosen = _chosen()
    try:
        files = {path: len(read_talks(path)) for path in chosen.files}
    except BadFile as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        print(description(Path(folder)), flush=True)
        rows = [row for name in chosen.only for row in _TABLES[name](files, chosen.sessions, Path(folder))]
    return 1 if any(row.good is False for row in rows) else 0


def _turns(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    for path, count in files.items():
        found = _each("tests.recall_bench.turns", path, count, sessions)
        rows = [row for name, part in _parts(found) for row in report.turns(name, part)]
        yield from _told(f"Turns of {path.name} found by a search of the history", rows)


def _generated(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    counts = {path: len(EXCHANGES) for path in write_talks(folder)} | {write_months(folder): len(MONTHS)}
    for path, count in counts.items():
        found = _each("tests.recall_bench.turns", path, count, sessions)
        rows = list(report.turns(path.stem, found))
        yield from _told(f"Turns of our own talks ({path.stem}) found by a search of the history", rows)


def _learned(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    for path, count in files.items():
        found = _each("tests.recall_bench.learned", path, count)
        rows = [row for name, part in _parts(found) for row in report.learned(name, part)]
        yield from _told(f"Turns of {path.name} found by what was noted of them and consolidated", rows)


def _unasked(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    for path, count in files.items():
        found = _each("tests.recall_bench.unasked", path, count)
        rows = [row for name, part in _parts(found) for row in report.unasked(name, part)]
        yield from _told(f"What questions bring to mind, of what was noted of {path.name}", rows)


def _unasked_history(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    for path, count in {**files, Path(ONE_SUBJECT): 1}.items():
        found = _each("tests.recall_bench.unasked_history", path, count)
        rows = [row for name, part in _parts(found) for row in report.unasked(name, part, "messages", most_chatter=3)]
        yield from _told(f"What questions bring to mind, of the messages of {path.name}", rows)


def _many(files: Mapping[Path, int], sessions: str, folder: Path) -> Iterator[Row]:
    built = measured("tests.recall_bench.many", "build", folder)
    yield from _told("A collection of memories", report.many(built, measured("tests.recall_bench.many", "ask", folder)))


_TABLES: Mapping[str, Callable[[Mapping[Path, int], str, Path], Iterator[Row]]] = {
    "turns": _turns,
    "generated": _generated,
    "learned": _learned,
    "unasked": _unasked,
    "history": _unasked_history,
    "many": _many,
}


def _each(module: str, path: Path, count: int, *more: str) -> list[dict[str, Any]]:
    """What a module measures of each conversation of a file, in their order."""
    print(f"measuring {path.name} ({module}) ...", file=sys.stderr, flush=True)
    return [measured(module, path, number, *more) for number in range(1, count + 1)]


def _parts(found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Sequence[dict[str, Any]]]]:
    if len(found) > CHOSEN_ON:
        yield f"1-{CHOSEN_ON}", found[:CHOSEN_ON]
        yield f"{CHOSEN_ON + 1}-{len(found)}", found[CHOSEN_ON:]
    yield "all", found


def _told(title: str, rows: Sequence[Row]) -> Sequence[Row]:
    print(f"\n{title}\n\n{table(rows)}", flush=True)
    return rows


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.recall_bench", description="Measure recall.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="conversations of LoCoMo's form")
    parser.add_argument("--only", type=_tables, default=list(_TABLES), help=f"of {', '.join(_TABLES)}, by commas")
    parser.add_argument(
        "--sessions",
        choices=("one", "each"),
        default="one",
        help="one session of the home with days between (as in use), or one for each of the conversation",
    )
    return parser.parse_args()


def _tables(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in _TABLES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is no table; there are {', '.join(_TABLES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
