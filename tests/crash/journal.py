"""What a run over all crash points has done so far: a file to which each verdict is appended, so that a run may be
stopped at any time and goes on where it was.

A point counts by its scenario and name. Threads make the calls of two unbroken runs differ a little, so the list of
points is that of the newest unbroken run of a scenario: what it has and no verdict names is left to do. A verdict on a
point that is not in it any more still counts; a later verdict on a point takes the place of an earlier one.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.machine import description
from tests.crash.driver import Verdict
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
        self._listed: dict[str, tuple[str, ...]] = {}
        self._verdicts: dict[str, dict[str, JournaledVerdict]] = {}
        self._machines: dict[str, None] = {}
        self._commit = ""
        for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
            self._read(line)

    def begin(self) -> None:
        """Name the machine and the commit of what is appended from now on."""
        if self._path is not None:
            self._append({"machine": description(self._path.resolve().parent), "commit": checked_out_commit()})

    def list_points(self, scenario: str, points: Sequence[Point]) -> None:
        self._append({"scenario": scenario, "points": [str(point) for point in points]})

    def add(self, scenario: str, verdict: Verdict) -> None:
        problems, seconds = list(verdict.problems), round(verdict.seconds, 2)
        self._append({"scenario": scenario, "point": str(verdict.point), "problems": problems, "seconds": seconds})

    def left(self, scenario: str) -> list[Point]:
        """The points of the newest unbroken run without a verdict."""
        done = self._verdicts.get(scenario, {})
        return [parse(name) for name in self._listed.get(scenario, ()) if name not in done]

    def failed(self, scenario: str) -> list[Point]:
        return [verdict.point for verdict in self._verdicts.get(scenario, {}).values() if verdict.problems]

    # ----------------------------------------------------------------------------------------------------------- report

    def report(self, scenarios: Sequence[str]) -> str:
        """The table for the pages, as Markdown: what was tried of what there is, and on which machine and commits."""
        rows, kinds, total = [], Counter[str](), Counter[str]()
        for scenario in scenarios:
            verdicts = self._verdicts.get(scenario, {})
            counts = Counter(_kind(verdict.point) for verdict in verdicts.values())
            failed, left = len(self.failed(scenario)), len(self.left(scenario))
            by_kind = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
            begun = scenario in self._listed
            rows.append(_row(scenario, len(verdicts) + left if begun else "?", len(verdicts), failed, left, by_kind))
            kinds.update(counts)
            total.update(points=len(verdicts) + left, tried=len(verdicts), failed=failed, left=left)
        by_kind = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
        rows.append(_row("all", total["points"], total["tried"], total["failed"], total["left"], by_kind))
        verdicts = [verdict for found in self._verdicts.values() for verdict in found.values()]
        commits = ", ".join(f"{commit} ({count:,})" for commit, count in Counter(v.commit for v in verdicts).items())
        seconds = sum(verdict.seconds for verdict in verdicts)
        return "\n".join(
            [
                "| Scenario | Points | Passed | Failed | Left | Tried, by kind |",
                "|---|---|---|---|---|---|",
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
        elif "points" in entry:
            self._listed[entry["scenario"]] = tuple(entry["points"])
        else:
            verdict = JournaledVerdict(
                parse(entry["point"]), tuple(entry["problems"]), float(entry["seconds"]), self._commit
            )
            self._verdicts.setdefault(entry["scenario"], {})[entry["point"]] = verdict


def _row(scenario: str, points: int | str, tried: int, failed: int, left: int, by_kind: str) -> str:
    shown = points if isinstance(points, str) else f"{points:,}"
    return f"| {scenario} | {shown} | {tried - failed:,} | {failed:,} | {left:,} | {by_kind} |"


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
