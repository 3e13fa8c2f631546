"""`python -m tests.attack.damage [--cases 500] [--seed 1] [--only N]`: any file of a lived-in data folder, damaged in
any way.

A folder is lived in once: messages, compactions, a reset with its archive, sleeps, reminders, to-dos, pins, people, a
backup, and more of all that after the backup. It is there as it was left by a stop, and as a kill left it. Each case
damages one file of a copy: bits are flipped, it is cut, emptied, removed, overwritten with text or zeros, or swapped
for its older self. Then the assistant is started, verified, repaired, and started again.

A case holds when nothing ends in a traceback, each start takes at most five seconds or is refused with what to do, the
start after the repair works and verifies, and each thing that was there is there, or was named by what people read.

Not tried: single bits flipped within a database that a kill left open. SQLite has no checksums for its pages, and what
was written down of the file is of its last stop.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import math
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from assistant.core.errors import AssistantError
from assistant.store.derived import remake_problems
from assistant.store.home.inventory import check_stores
from assistant.wire.checks import build_repairer
from assistant.wire.stores import Stores
from tests.attack.lived_home import Facts, LivedHome, SetClock, facts_of, live_once, living, settings_of
from tests.attack.tally import Tally

_LONGEST_START = 5.0
_DATABASES = ("script.db", "character.db", "memory.db", "search.db", "files.db")
# Files of which there are many, or that matter little, are drawn less often than these.
_OFTEN = (*_DATABASES, "conversation.jsonl", "stores.json", "MEMORY.md")


# --------------------------------------------------------------------------------------------------------------- damage


def _flip(path: Path, chance: random.Random, older: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 3, 30))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, chance: random.Random, older: Path) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def _cut_tail(path: Path, chance: random.Random, older: Path) -> None:
    path.write_bytes(path.read_bytes()[: -min(path.stat().st_size, chance.choice((1, 40, 400, 4096)))])


def _take_out(path: Path, chance: random.Random, older: Path) -> None:
    """Some bytes from the middle, so that all that follows is elsewhere."""
    data = path.read_bytes()
    start = chance.randrange(len(data))
    path.write_bytes(data[:start] + data[start + chance.choice((1, 20, 600)) :])


def _empty(path: Path, chance: random.Random, older: Path) -> None:
    path.write_bytes(b"")


def _delete(path: Path, chance: random.Random, older: Path) -> None:
    path.unlink()


def _write_text(path: Path, chance: random.Random, older: Path) -> None:
    path.write_text("nothing that anybody knows\n" * chance.choice((1, 400)), encoding="utf-8")


def _zero(path: Path, chance: random.Random, older: Path) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data)) // 4096 * 4096
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    path.write_bytes(data)


def _swap(path: Path, chance: random.Random, older: Path) -> None:
    shutil.copyfile(older, path)


_DAMAGE: Mapping[str, Callable[[Path, random.Random, Path], None]] = {
    "flip": _flip,
    "cut": _cut,
    "cut tail": _cut_tail,
    "take out": _take_out,
    "empty": _empty,
    "delete": _delete,
    "text": _write_text,
    "zeros": _zero,
    "swap": _swap,
}


@dataclass(frozen=True)
class Case:
    """One file, damaged in one way."""

    number: int
    variant: str
    name: str
    damage: str
    seed: int

    def __str__(self) -> str:
        return f"case {self.number} ({self.damage} {self.name}, {self.variant}, seed {self.seed})"

    @property
    def file_kind(self) -> str:
        if self.name.startswith("log/"):
            return "log"
        return self.name.partition("/")[0]


def draw_cases(lived: LivedHome, seed: int, count: int) -> list[Case]:
    chance = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        home = lived.stopped if chance.random() < 0.75 else lived.killed
        names = sorted(
            path.relative_to(home).as_posix()
            for path in home.rglob("*")
            if path.is_file() and path.stat().st_size and not path.name.endswith("-shm")
        )
        often = [name for name in names if name.endswith(_OFTEN)]
        name = chance.choice(often if chance.random() < 0.75 else names)
        damage = chance.choice([*_DAMAGE])
        is_open = home == lived.killed and name in _DATABASES
        if (damage == "swap" and not (lived.earlier / name).exists()) or (is_open and damage == "flip"):
            continue
        cases.append(Case(len(cases), home.name, name, damage, chance.randrange(1 << 30)))
    return cases


# ---------------------------------------------------------------------------------------------------------------- cases


@dataclass
class _Seen:
    """What people read in a case, and what went wrong."""

    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    """Seconds, of each start until it served or was refused."""

    def read(self, *lines: str) -> None:
        self.lines += lines

    def start_took(self, seconds: float, what: str) -> None:
        self.starts.append(seconds)
        if seconds > _LONGEST_START:
            self.failures.append(f"{what} after {seconds:.1f} s")

    def names(self, kind: str, name: str) -> bool:
        # Of most kinds people read how many are gone: "2 journal entries of 18".
        wanted = re.escape(name) + r"\b" if kind in ("message", "MEMORY.md") else re.escape(kind.rstrip("yno"))
        word = re.compile(rf"\b{wanted}", re.I)
        return any(word.search(line) for line in self.lines)


def run_case(lived: LivedHome, case: Case, place: Path) -> _Seen:
    """It held where there are no failures."""
    home = place / "home"
    shutil.copytree(lived.stopped if case.variant == "stopped" else lived.killed, home)
    seen = _Seen()
    try:
        _DAMAGE[case.damage](home / case.name, random.Random(case.seed), lived.earlier / case.name)
        now = lived.clock.now
        is_settings = case.name in ("config.toml", "PERSONA.md")
        _start(home, now, seen, "start")
        _verify(home, now + timedelta(minutes=10), seen)
        if is_settings:
            shutil.copyfile(lived.stopped / case.name, home / case.name)
        _repair(home, now + timedelta(minutes=20), seen)
        if _start(home, now + timedelta(minutes=30), seen, "start after the repair"):
            facts, then = lived.facts[case.variant], now + timedelta(minutes=50)
            if (error := _error_of(lambda: _compare(facts, home, then, seen, case))) is not None:
                seen.failures.append(f"looking: {_traceback(error)}")
        elif not seen.failures:
            seen.failures.append(f"it does not start after the repair: {seen.lines[-1]}")
    finally:
        shutil.rmtree(home)
    return seen


def _start(home: Path, now: datetime, seen: _Seen, what: str) -> bool:
    def start() -> None:
        begun = _own_seconds()
        try:
            asyncio.run(_started(home, now, seen, begun))
        except AssistantError:
            seen.start_took(_own_seconds() - begun, f"{what}: refused")
            raise

    error = _error_of(start)
    if isinstance(error, AssistantError):
        seen.read(str(error))
        if "`" not in str(error) and "correct it" not in str(error):
            seen.failures.append(f"{what}: refused without what to do: {error}")
    elif error is not None:
        seen.failures.append(f"{what}: {_traceback(error)}")
    return error is None


def _own_seconds() -> float:
    """The time, without how long this thread waited for a processor that had other work."""
    waited = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1]
    return time.monotonic() - int(waited) / 1e9


def _error_of(step: Callable[[], object]) -> BaseException | None:
    """What a step raised, whatever it is."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(step).exception()


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-1500:]


async def _started(home: Path, now: datetime, seen: _Seen, begun: float) -> None:
    clock = SetClock(now)
    async with living(home, clock) as it:
        seen.start_took(_own_seconds() - begun, "a start")
        seen.read(*it.app.status()["problems"])
        it.app.stores.history.search("lamp", "owner")
        it.app.stores.memory_search.search("boat", "owner")
        await it.idle()
        seen.read(*it.app.status()["problems"], *it.bridge.bodies)
        await it.app.maintenance.index_new_messages()
        await it.app.maintenance.remake_memories()
        await it.idle()
        if left := list(remake_problems(home)):
            seen.failures.append(f"not made again: {left}")


def _verify(home: Path, now: datetime, seen: _Seen) -> None:
    def look() -> None:
        seen.read(*check_stores(home).remarks)
        with closing(Stores(settings_of(home), now, reading=True)) as stores:
            problems = [*stores.verifier.verify().problems, *stores.archive.verify_all(remote=False)]
        seen.read(*(f"{problem.where}: {problem.text}" for problem in problems))

    error = _error_of(look)
    if isinstance(error, AssistantError):
        seen.read(str(error))
    elif error is not None:
        seen.failures.append(f"verify: {_traceback(error)}")


def _repair(home: Path, now: datetime, seen: _Seen) -> None:
    def repair() -> None:
        report = build_repairer(settings_of(home)).repair(now)
        seen.read(*report.repaired, *(f"{problem.where}: {problem.text}" for problem in report.problems))
        left = [problem for problem in report.problems if problem.kind not in ("gone", "backup", "archive", "store")]
        if left:
            seen.failures.append(f"still wrong after the repair: {[f'{one.where}: {one.text}' for one in left][:3]}")

    error = _error_of(repair)
    if isinstance(error, AssistantError):
        seen.failures.append(f"repair: refused: {error}")
    elif error is not None:
        seen.failures.append(f"repair: {_traceback(error)}")


def _compare(facts: Facts, home: Path, now: datetime, seen: _Seen, case: Case) -> None:
    found = facts_of(home, now)
    for kind, before in facts.items():
        for name, words in before.items():
            after = found[kind].get(name)
            if after == words or (kind == "MEMORY.md" and case.name == "MEMORY.md" and after is not None):
                continue
            if not seen.names(kind, name) and not _is_told_as_a_whole(kind, seen):
                state = "is gone" if after is None else f"says {after[:80]!r} and not {words[:80]!r}"
                seen.failures.append(f"{kind} {name!r} {state}, and nothing says so")
                break


def _is_told_as_a_whole(kind: str, seen: _Seen) -> bool:
    """Whether people read that a value may have changed in a file whose structure is intact."""
    script = ("message", "reminder", "compaction", "received message", "person", "delivery")
    file = "script.db" if kind in script else "character.db"
    tables = {"delivery": "outbox", "reminder": "jobs", "compaction": "checkpoints", "received message": "inbox"}
    tables |= {"person": "people", "journal entry": "journal", "to-do": "todos", "pinned text": "pins"}
    tables |= {"profile": "entity_profiles", "sleep": "sleep_cycles"}
    said = [line for line in seen.lines if file in line]
    return any(
        "was changed while the assistant was not running" in line
        or "lost what was written to it last" in line
        or ("not all could be read of" in line and tables.get(kind, "-") in line)
        for line in said
    )


@dataclass(slots=True)
class _Tried:
    """Cases of one kind of damage to one kind of file."""

    held: int = 0
    cases: int = 0
    longest_start: float = 0.0

    def __str__(self) -> str:
        return f"{self.held}/{self.cases} {self.longest_start:.1f} s"


def run(seed: int, cases: int = 500, until: float = math.inf, only: int | None = None) -> Tally:
    """Try so many cases, drawn with the seed, or `only` one of them. Prints, for each kind of file and of damage, how
    many held of those tried, and the longest start."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(io.StringIO()))
    failures: list[str] = []
    tried: dict[tuple[str, str], _Tried] = defaultdict(_Tried)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="nocturne-damage-", dir=memory if memory.is_dir() else None) as folder:
        lived = live_once(Path(folder))
        for case in draw_cases(lived, seed, cases):
            if only not in (None, case.number) or time.monotonic() >= until:
                continue
            seen = run_case(lived, case, Path(folder))
            row = tried[case.file_kind, case.damage]
            row.cases += 1
            row.held += not seen.failures
            row.longest_start = max([row.longest_start, *seen.starts])
            if seen.failures:
                failures.append(f"{case}: {'; '.join(seen.failures[: 1 if only is None else 9])}")
                print(failures[-1], file=sys.stderr, flush=True)
    _print_table(tried)
    return Tally("damage", sum(row.cases for row in tried.values()), tuple(failures))


def _print_table(tried: Mapping[tuple[str, str], _Tried]) -> None:
    """Held of tried and the longest start, by file and kind of damage."""
    print(f"{'':24}" + "".join(f"{damage:>12}" for damage in _DAMAGE))
    for file in sorted({file for file, _ in tried}):
        cells = (str(tried[file, damage]) if (file, damage) in tried else "" for damage in _DAMAGE)
        print(f"{file[:23]:24}" + "".join(f"{cell:>12}" for cell in cells))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.damage")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=None, help="the case of this number alone")
    arguments = parser.parse_args()
    tally = run(arguments.seed, arguments.cases, only=arguments.only)
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
