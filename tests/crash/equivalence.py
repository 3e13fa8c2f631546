"""Which points of a run come to the same, so that one of them is enough.

A restart sees two things: the files of the home, and what the world outside has seen (the witness). So whatever broke
a run, the restarts after it are equal where these are. Two points are in one class when their *worlds* are equal:

- the world of a kill is what the calls before it made of the home; of a torn write, that and half of the write; of a
  power cut, what `power.py` leaves of it;
- a home is its directories, and of each file the permissions and the content, as recovery sees it. For a database
  that is what SQLite itself reads, opened with the `-wal` and `-journal` files that lie beside it: frames without a
  commit frame, a torn frame, a page that a checkpoint copied, a journal that will be rolled back change nothing of it.
  Of a side file itself counts whether it is missing, empty or neither; not the `-shm` file, which SQLite makes anew;
- the witness is what stands in it, byte for byte.

Two kills (the second in the recovery) are a class of their own for each world: which call of the recovery is the second
is drawn. Where a process of its own lives on (`Scenario.apart`), how many calls it had made counts as well.

A call that fails leaves a process that lives. Two of them are in one class when the error, the thread, the name of the
call and the file are the same, and the world before them is: they are the calls of one step (the frames of one
commit, the pages of one checkpoint), which fails at any of them and does nothing then. Where twelve in a row fail, the
step fails at the first of them, as do those after it. ENOSPC and EIO are one error where SQLite makes them one: where
one call fails with it, of a side file that cannot be opened, synced, cut or removed, or of shared memory.

That this is so is tried, too: `python -m tests.crash --pairs N` breaks runs at two points of a class, drawn, and
compares all that came of them.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path, PurePath
from random import Random

from tests.crash import homes
from tests.crash.points import Point, RecordedCalls, all_points
from tests.crash.power import Content, HomeFiles, SimulatedDisk
from tests.crash.replay import left_by_torn_write
from tests.crash.strace import WRITES, SystemCall

_MAGIC = b"SQLite format 3\0"
_SIDES = ("-wal", "-journal")
_IGNORED = "-shm"
_NO_FILE = Content(0, b"", (0, 0))


@dataclass(frozen=True, slots=True)
class PointClass:
    """Points that come to the same, in the order of the run; the first stands for them."""

    members: tuple[Point, ...]


def classes_of(points: Mapping[Point, str]) -> list[PointClass]:
    """The classes, from the key of each point."""
    found: dict[str, list[Point]] = {}
    for point, key in points.items():
        found.setdefault(key, []).append(point)
    return [PointClass(tuple(members)) for members in found.values()]


def draw_pairs(classes: Sequence[PointClass], count: int, seed: int) -> list[tuple[Point, Point]]:
    """`count` pairs, each of two points of a class; classes that are broken in several ways are as likely as others."""
    chance = Random(f"{seed} pairs")
    several = [one for one in classes if len(one.members) > 1]
    chosen = chance.sample(several, min(count, len(several)))
    return [(first, second) for first, second in (chance.sample(one.members, 2) for one in chosen)]


def keys_of_points(calls: RecordedCalls, home: Path, prepared: Path) -> dict[Point, str]:
    """The key of the class of each point of a run in `home`, which began as `prepared`."""
    points = all_points(calls, home)
    broken = _broken_calls(calls, points)
    worlds = _Worlds(calls, home, prepared, points, broken)
    keys = {}
    for point in points:
        if point.how == "power":
            keys[point] = worlds.after_power_cut[point]
        elif point.how == "torn":
            keys[point] = worlds.after_torn_write[point]
        else:
            call = broken[point]
            keys[point] = worlds.before[call.order]
            if point.fails:
                file = call.paths[-1].relative_to(home)
                keys[point] += f" {_told_of(point, call)} {point.times} {call.thread} {call.name} {file}"
            keys[point] += f"{'' if point.again is None else ' twice'}{' apart' if point.apart else ''}"
    return keys


def _told_of(point: Point, call: SystemCall) -> str:
    """What the program hears of an error: of a side file SQLite tells a full disk from another error only where it
    writes. Where several calls in a row fail, some of the others may be on other files."""
    name = call.paths[-1].name
    is_told_apart = point.times > 1 or (call.name in WRITES and not name.endswith(_IGNORED))
    return point.how if is_told_apart or not name.endswith((*_SIDES, _IGNORED)) else "any error"


def _broken_calls(calls: RecordedCalls, points: Sequence[Point]) -> dict[Point, SystemCall]:
    """The call that each point breaks; a power cut breaks none."""
    own, at_home, apart = (first_of_each(found) for found in (calls.own, calls.own_at_home, calls.apart))
    return {
        point: (apart if point.apart else at_home if point.fails else own)[point.name, point.number]
        for point in points
        if point.how != "power"
    }


def first_of_each(calls: Sequence[SystemCall]) -> dict[tuple[str, int], SystemCall]:
    """By name and number; of two threads' the first, which is the one that is broken."""
    found: dict[tuple[str, int], SystemCall] = {}
    for call in calls:
        found.setdefault((call.name, call.number), call)
    return found


class _Worlds:
    """The worlds of a run, each as a digest: before each call that is broken, by its `order`, and after the torn writes
    and power cuts of `points`."""

    def __init__(
        self,
        calls: RecordedCalls,
        home: Path,
        prepared: Path,
        points: Sequence[Point],
        broken: Mapping[Point, SystemCall],
    ) -> None:
        self.before: dict[int, str] = {}
        self.after_torn_write: dict[Point, str] = {}
        self.after_power_cut: dict[Point, str] = {}
        torn = {broken[point].order: point for point in points if point.how == "torn"}
        orders = {call.order for call in broken.values()}
        cuts: dict[int, list[Point]] = {}
        for point in points:
            if point.how == "power":
                cuts.setdefault(int(point.name), []).append(point)
        apart = {call.order for call in calls.apart}
        beside = 0
        disk, seen = SimulatedDisk(prepared), blake2b(digest_size=16)
        with RecoveredHomes(prepared) as recovered:
            for ordinal, call in enumerate(calls.all):
                there = replace(call, paths=tuple(homes.moved(path, home, prepared) for path in call.paths))
                if call.order in orders or ordinal in cuts:
                    outside = f"{seen.hexdigest()} {beside}"
                    now = disk.now()
                    self.before[call.order] = f"{recovered.digest(now)} {outside}"
                    if (point := torn.get(call.order)) is not None:
                        self.after_torn_write[point] = f"{recovered.digest(left_by_torn_write(disk, there))} {outside}"
                    for point in cuts.get(ordinal, ()):
                        self.after_power_cut[point] = f"{recovered.digest(disk.left(point.number))} {outside}"
                disk.see(there)
                beside += call.order in apart
                if call.name == "write" and home not in call.paths[-1].parents:
                    seen.update(call.data)


class RecoveredHomes:
    """Digests of homes as recovery sees them. What a file or a database of some version holds is read once."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._place = homes.scratch()
        self._read: dict[tuple[object, ...], bytes] = {}

    def __enter__(self) -> RecoveredHomes:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place)

    def digest(self, home: HomeFiles) -> str:
        whole = blake2b(digest_size=16)
        for directory in sorted(home.directories):
            whole.update(f"{directory}/\0".encode())
        for path, content in sorted(home.files.items()):
            if path.name.endswith(_IGNORED) or _is_side_file(path, home.files):
                continue
            sides = [home.files.get(path.with_name(path.name + side)) for side in _SIDES]
            about = f"{path.relative_to(self._home)}\0{content.mode:o}\0{[_size(side) for side in sides]}\0"
            whole.update(about.encode() + self._digest_file(content, [side or _NO_FILE for side in sides]))
        return whole.hexdigest()

    def _digest_file(self, content: Content, sides: Sequence[Content]) -> bytes:
        parts = (content, *sides)
        # What was made for this once has no version; then its content is what it is known by.
        key = tuple(bytes(part.data) if part.version is None else part.version for part in parts)
        if key not in self._read:
            is_database = content.data[: len(_MAGIC)] == _MAGIC or any(side.data for side in sides)
            data = self._recovered(parts) if is_database else bytes(content.data)
            self._read[key] = blake2b(data, digest_size=16).digest()
        return self._read[key]

    def _recovered(self, parts: Sequence[Content]) -> bytes:
        """The pages of a database as SQLite reads them. One that it cannot read is the bytes of its files."""
        path = self._place / "database"
        for part, side in zip(parts, ("", *_SIDES), strict=True):
            if part is not _NO_FILE:
                path.with_name(path.name + side).write_bytes(part.data)
        try:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                return connection.serialize()
        except sqlite3.Error:
            return b"\0".join(bytes(part.data) for part in parts)
        finally:
            for left in self._place.iterdir():
                left.unlink()


def _size(side: Content | None) -> str:
    return "missing" if side is None else "empty" if not side.data else "there"


def _is_side_file(path: PurePath, files: Mapping[Path, Content]) -> bool:
    return any(path.name.endswith(side) and path.with_name(path.name.removesuffix(side)) in files for side in _SIDES)
