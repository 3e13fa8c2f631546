"""The moments at which a run is broken, made from the calls of the unbroken one; each has a name to repeat it by.

kill:pwrite64:17        killed before the 17th pwrite64
kill:pwrite64:17+3      the same, and killed again during the recovery, at a moment drawn with seed 3
torn:write:4            killed in the middle of the 4th write: the first half of it is in the file
power:231:0             the power goes before call 231: whatever was not synced is lost
power:231:5             the same, but of what was not synced a part, drawn with seed 5, is on the disk
ENOSPC:pwrite64:17x1    the 17th pwrite64 fails with ENOSPC, and x12: twelve in a row do
kill:pwrite64:17@apart  the 17th on files that a process of their own writes: that one is killed; so with errors
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.crash.strace import NAMES, SIZES, SYNCS, WRITES, SystemCall

FULL_DISK = ("ENOSPC", "EIO")
LONG_TROUBLE = 12
# A disk that stays full is tried from every so many-th write on: what follows is much the same.
_LONG_EVERY = 5
_FAILING = frozenset((*WRITES, *SYNCS, *SIZES, *NAMES, "mkdir", "mkdirat"))
_POINT = re.compile(r"^(\w+):(\w+)(?::(\d+))?(?:x(\d+))?(?:\+(\d+))?(@apart)?$")


@dataclass(frozen=True, slots=True)
class Point:
    """`how` is kill, torn, power or the name of an error; `number` counts the calls of `name` (for power: `name` is
    the ordinal among all calls and `number` the seed). `again` is the seed of a second kill, in the recovery. `apart`:
    only calls on files are counted that a process of their own writes; without it, only calls on all others."""

    how: str
    name: str
    number: int
    times: int = 1
    again: int | None = None
    apart: bool = False

    def __str__(self) -> str:
        text = f"{self.how}:{self.name}:{self.number}"
        if self.fails:
            text += f"x{self.times}"
        text += "" if self.again is None else f"+{self.again}"
        return f"{text}@apart" if self.apart else text

    @property
    def fails(self) -> bool:
        """Whether calls fail and the process lives."""
        return self.how not in ("kill", "torn", "power")


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """The calls of a run: `all` on the home and the witness in their order; of these, numbered by themselves, `apart`,
    on files that a process of their own writes, and `own`, on all others; and `own_at_home` without the witness: only
    the disk of the home fails."""

    all: tuple[SystemCall, ...]
    own: tuple[SystemCall, ...]
    own_at_home: tuple[SystemCall, ...]
    apart: tuple[SystemCall, ...]


def parse(text: str) -> Point:
    """The point that `str` gave."""
    match = _POINT.match(text)
    if match is None or match[3] is None:
        raise ValueError(f"{text!r} is not a kill point, as in kill:pwrite64:17")
    again = None if match[5] is None else int(match[5])
    return Point(match[1], match[2], int(match[3]), int(match[4] or 1), again, match[6] is not None)


def all_points(found: RecordedCalls, home: Path) -> list[Point]:
    """Every point of a run, once: threads may each make a call of the same name and number, and the first that comes to
    it is broken."""
    changing = [call for call in _distinct(found.own) if call.changes]
    points = [Point("kill", call.name, call.number) for call in changing]
    points += [Point("kill", call.name, call.number, again=seed) for seed, call in enumerate(changing) if seed % 4 == 0]
    torn = [call for call in changing if call.name in WRITES and call.data and home in call.paths[-1].parents]
    points += [Point("torn", call.name, call.number) for call in torn]
    points += _power_points(found.all)
    at_home = _distinct(found.own_at_home)
    points += [point for times in (1, LONG_TROUBLE) for point in _failing_points(at_home, times)]
    # Two processes may make the same call; which one is broken there is the first to come to it.
    elsewhere = {(call.name, call.number): call for call in _distinct(found.apart) if call.changes}.values()
    beside = [Point("kill", call.name, call.number) for call in elsewhere] + _failing_points(list(elsewhere), 1)
    return list(dict.fromkeys(points + [replace(point, apart=True) for point in beside]))


def _distinct(calls: Sequence[SystemCall]) -> list[SystemCall]:
    """Without the writes to a file of shared memory after the first to it: SQLite makes it longer page by page, and its
    content again after each crash, so that a break at the second page leaves what one at the first does. These are two
    thirds of all writes of a short run."""
    seen: set[Path] = set()
    distinct = []
    for call in calls:
        path = call.paths[-1]
        if call.name not in WRITES or not path.name.endswith("-shm"):
            distinct.append(call)
            if call.name in NAMES:
                seen.discard(path)
        elif path not in seen:
            seen.add(path)
            distinct.append(call)
    return distinct


def _failing_points(calls: Sequence[SystemCall], times: int) -> list[Point]:
    failing = [call for call in calls if call.changes and (call.name in _FAILING or call.creates)]
    if times > 1:
        failing = [call for call in failing if call.name in (*WRITES, *SYNCS)][::_LONG_EVERY]
    return [Point(error, call.name, call.number, times) for call in failing for error in FULL_DISK]


def _power_points(calls: Sequence[SystemCall]) -> list[Point]:
    """Before every call that changes something: everything not synced is lost; and where that could be anything at
    all, a part of it."""
    points = []
    distinct = {id(call) for call in _distinct(calls)}
    for ordinal, call in enumerate(calls):
        if call.changes and id(call) in distinct:
            points += [Point("power", str(ordinal), 0), Point("power", str(ordinal), 1 + ordinal)]
    return points


def sample(points: Sequence[Point], size: int, seed: int) -> list[Point]:
    """`size` points, each way of breaking in its share, in the order of the run. Calls that fail are one way, whatever
    error they fail with."""
    chance = random.Random(f"{seed} {size}")
    ways: dict[str, list[int]] = {}
    for index, point in enumerate(points):
        how = "error" if point.fails else point.how
        way = f"{how}x{min(point.times, 2)}{'+' if point.again is not None else ''}{'@' if point.apart else ''}"
        ways.setdefault(way, []).append(index)
    weight = {"kill": 4, "torn": 1, "power": 2}
    drawn: set[int] = set()
    total = sum(weight.get(way.partition("x")[0], 1) for way in ways)
    for way, indexes in ways.items():
        share = max(1, round(size * weight.get(way.partition("x")[0], 1) / total))
        drawn.update(chance.sample(indexes, min(share, len(indexes))))
    return [points[index] for index in sorted(drawn)]
