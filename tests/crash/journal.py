"""What a run over all crash points has done so far: a file to which each verdict is appended, so that a run may be
stopped at any time and goes on where it was.

A point counts by its scenario and name, and for its class (`equivalence.py`). Threads make the calls of two unbroken
runs differ a little, so the list of classes is that of the newest unbroken run of a scenario: a class of which no
verdict names a point is left to do. A verdict on a point that is not in it any more still counts; a later verdict on a
point takes the place of an earlier one.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.machine import description
from tests.crash.driver import Verdict
from tests.crash.equivalence import PointClass
from tests.crash.points import Point, parse

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class JournaledVerdict:
    """What became of one point, and at which commit."""

    point: Point
    problems: tuple[str, ...]
    seconds: float
    commit: str


class Journal:
    """Appends to the file and reads it. Without a path nothing is kept, and everything is left to do."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._listed: dict[str, list[list[str]]] = {}
        self._pairs: dict[str, dict[tuple[str, ...], bool]] = {}
        self._verdicts: dict[str, dict[str, JournaledVerdict]] = {}
        self._machines: dict[str, None] = {}
        self._commit = ""
        for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
            self._read(line)

    def begin(self) -> None:
        """Name the machine and the commit of what is appended from now on."""
        if self._path is not None:
            self._append({"machine": description(self._path.resolve().parent), "commit": checked_out_commit()})

    def list_classes(self, scenario: str, classes: Sequence[PointClass]) -> None:
        self._append({"scenario": scenario, "classes": [[str(point) for point in one.members] for one in classes]})

    def add(self, scenario: str, verdict: Verdict) -> None:
        problems, seconds = list(verdict.problems), round(verdict.seconds, 2)
        self._append({"scenario": scenario, "point": str(verdict.point), "problems": problems, "seconds": seconds})

    def add_pair(self, scenario: str, first: Point, second: Point, differing: Sequence[str]) -> None:
        """Two points of a class were tried, and these parts of what came of them differ."""
        self._append({"scenario": scenario, "pair": [str(first), str(second)], "differing": list(differing)})

    def left(self, scenario: str) -> list[Point]:
        """The first point of each class of the newest unbroken run of which none has a verdict."""
        done = self._verdicts.get(scenario, {})
        return [parse(names[0]) for names in self._listed.get(scenario, ()) if not done.keys() & set(names)]

    def failed(self, scenario: str) -> list[Point]:
        """Those that the newest unbroken run still has: the others cannot be tried again, and their classes are left
        under other names."""
        listed = {name for names in self._listed.get(scenario, ()) for name in names}
        verdicts = self._verdicts.get(scenario, {}).items()
        return [verdict.point for name, verdict in verdicts if verdict.problems and name in listed]

    # ----------------------------------------------------------------------------------------------------------- report

    def report(self, scenarios: Sequence[str]) -> str:
        """The table for the pages, as Markdown: what was tried of what there is, and on which machine and commits."""
        rows, kinds, total = [], Counter[str](), Counter[str]()
        for scenario in scenarios:
            verdicts, classes = self._verdicts.get(scenario, {}), self._listed.get(scenario, [])
            counts = Counter(_kind(verdict.point) for verdict in verdicts.values())
            pairs = self._pairs.get(scenario, {})
            row = {
                "points": sum(map(len, classes)),
                "classes": len(classes),
                "covered": len(classes) - len(self.left(scenario)),
                "left": len(self.left(scenario)),
                "tried": len(verdicts),
                "failed": len(self.failed(scenario)),
                "pairs": len(pairs),
                "equal": sum(pairs.values()),
            }
            rows.append(_row(scenario, row, counts))
            kinds.update(counts)
            total.update(row)
        rows.append(_row("all", total, kinds))
        verdicts = [verdict for found in self._verdicts.values() for verdict in found.values()]
        commits = ", ".join(f"{commit} ({count:,})" for commit, count in Counter(v.commit for v in verdicts).items())
        seconds = sum(verdict.seconds for verdict in verdicts)
        return "\n".join(
            [
                "| Scenario | Points | Classes | Tried | Left | Points tried | Failed | Pairs equal | By kind |",
                "|---|---|---|---|---|---|---|---|---|",
                *rows,
                "",
                f"Points tried at commits: {commits or 'none'}; {seconds / 3600:.1f} hours of trying.",
                *(f"\n```text\n{machine}\n```" for machine in self._machines),
            ]
        )

    # ------------------------------------------------------------------------------------------------------------- file

    def _append(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry)
        self._read(line)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            # The last line of a run that was killed.
            return
        if "machine" in entry:
            self._machines[_lasting(entry["machine"])] = None
            self._commit = entry["commit"]
        elif "classes" in entry:
            self._listed[entry["scenario"]] = entry["classes"]
        elif "points" in entry:
            # From before there were classes.
            self._listed[entry["scenario"]] = [[name] for name in entry["points"]]
        elif "pair" in entry:
            self._pairs.setdefault(entry["scenario"], {})[tuple(entry["pair"])] = not entry["differing"]
        else:
            verdict = JournaledVerdict(
                parse(entry["point"]), tuple(entry["problems"]), float(entry["seconds"]), self._commit
            )
            self._verdicts.setdefault(entry["scenario"], {})[entry["point"]] = verdict


def _row(scenario: str, row: Mapping[str, int], kinds: Mapping[str, int]) -> str:
    numbers = [f"{row[name]:,}" for name in ("points", "classes", "covered", "left", "tried", "failed")]
    pairs = f"{row['equal']:,} of {row['pairs']:,}"
    by_kind = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
    return f"| {' | '.join([scenario, *numbers, pairs, by_kind])} |"


def _kind(point: Point) -> str:
    twice = " twice" if point.again is not None else ""
    return f"{point.how}{twice}{' in a row' if point.times > 1 else ''}{' beside' if point.apart else ''}"


def _lasting(machine: str) -> str:
    """Without what differs from run to run."""
    return "\n".join(line for line in machine.splitlines() if line.startswith(("machine", "software")))


def checked_out_commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=_CHECKOUT, capture_output=True, text=True, check=False
        ).stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if git("status", "--porcelain") else "")
