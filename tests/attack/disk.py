"""A disk that refuses: one system call of a daemon fails for a while, with EIO, EROFS or ENOSPC, at its start or later.

A case is one kind of call, one error, and the calls of the home's files at which it begins and ends, put in place by
strace. Meanwhile somebody talks. The daemon lives on or says in a line why it does not; and when the disk is right
again, what was accepted is answered once, and the home is sound.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from assistant.cli.client import SocketLink
from assistant.cli.link import LinkLost
from assistant.core.errors import AssistantError
from tests.attack.losses import find_losses, wait_until_quiet
from tests.attack.served_home import (
    SESSIONS,
    ServedHome,
    WorldRecord,
    settings_for,
    stopped_in_the_end,
    terminals,
)
from tests.attack.tally import Tally
from tests.crash import strace
from tests.crash.homes import scratch
from tests.soak.model import SoakModel

KIND = "disk"
CASES = 200
ERRORS = ("EIO", "EROFS", "ENOSPC")
_READS = ("read", "pread64")
_CALLS = ("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "rename", "mkdir", *_READS)
_LATEST = {"pwrite64": 400, "pread64": 300, "write": 40, "openat": 60, "fsync": 60, "fdatasync": 200, "read": 60}
_MOST_TIMES = 40
_MESSAGES = 6
_TALK_SECONDS, _AFTERWARDS = 20.0, 0.5


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    tried, failures = 0, []
    with SoakModel() as model, TemporaryDirectory(dir=scratch()) as place:
        lived = _make_home(Path(place), model.url)
        for case in range(cases) if only is None else [only]:
            if time.monotonic() >= until:
                break
            found = _Case(lived, Path(place), model.url, seed, case)
            problems = asyncio.run(found.run())
            tried += 1
            if problems:
                failures.append(f"case {case} ({found.injection.option()}): {'; '.join(problems)}")
    return Tally(KIND, tried, tuple(failures))


def _make_home(place: Path, model_url: str) -> Path:
    """A home in which something was said, that nobody serves."""
    served = ServedHome(place / "lived", settings_for(place / "lived", model_url))
    world = WorldRecord()
    with stopped_in_the_end(served):
        served.start()
        asyncio.run(_talk_until_quiet(served, world, 3))
        served.stop()
    return served.home


async def _talk_until_quiet(served: ServedHome, world: WorldRecord, messages: int) -> list[str]:
    async with served.linked() as link, terminals(served, world):
        await world.say_again(link)
        for _ in range(messages):
            name = f"thing {len(world.said)}"
            await world.say(link, name, f"Please note {name}.", SESSIONS[len(world.said) % len(SESSIONS)])
        return await wait_until_quiet(served.home)


class _Case:
    def __init__(self, lived: Path, place: Path, model_url: str, seed: int, case: int) -> None:
        chance = Random(f"{seed} {case}")
        name = _CALLS[case % len(_CALLS)]
        error = "EIO" if name in _READS else ERRORS[case // len(_CALLS) % len(ERRORS)]
        first, times = chance.randint(1, _LATEST.get(name, 10)), chance.choice((1, 3, chance.randint(4, _MOST_TIMES)))
        self.injection = strace.Injection(name, first, error, times)
        self._lived, self._home = lived, place / f"case-{case}" / "home"
        self._served = ServedHome(self._home, settings_for(self._home, model_url))
        self._world = WorldRecord()

    async def run(self) -> list[str]:
        shutil.copytree(self._lived, self._home)
        try:
            with stopped_in_the_end(self._served):
                problems = await self._live_through_it()
                problems += await self._live_afterwards()
            return [*problems, *find_losses(self._home, self._world)]
        finally:
            shutil.rmtree(self._home.parent)

    async def _live_through_it(self) -> list[str]:
        trace = self._home.with_name("trace")
        self._served.start(at_gate=True)
        tracer = strace.attach(
            self._served.process_id, trace, self._files(), self.injection, with_data=False, traced=_CALLS
        )
        self._served.go()
        with contextlib.suppress(LinkLost, OSError, TimeoutError):
            async with (
                asyncio.timeout(_TALK_SECONDS),
                self._served.linked() as link,
                terminals(self._served, self._world),
            ):
                for number in range(_MESSAGES):
                    await self._say(link, number)
                await asyncio.sleep(_AFTERWARDS)
        died = self._served.exit_code
        code = await asyncio.to_thread(self._served.stop) if died is None else died
        await asyncio.to_thread(strace.end, tracer)
        printed = self._served.printed()
        problems = []
        if "Traceback (most recent call last)" in printed:
            problems.append(f"a traceback was printed: {printed[-900:]}")
        if died is not None and "Error: " not in printed:
            problems.append(f"it ended with {code} and no error in words: {printed[-300:]}")
        if code is None:
            problems.append("it did not stop when it was asked to")
        return problems

    async def _say(self, link: SocketLink, number: int) -> None:
        name = f"case {number}"
        with contextlib.suppress(AssistantError):
            await self._world.say(link, name, f"Please note {name}.", SESSIONS[number % len(SESSIONS)])

    def _files(self) -> Sequence[Path]:
        """All that there is in the home, and what the databases make beside themselves."""
        there = [path for path in self._home.rglob("*") if path.is_file() and path.parent.name != "run"]
        beside = [path.with_name(f"{path.name}{end}") for path in there for end in ("-wal", "-shm", "-journal")]
        return sorted({*there, *(path for path in beside if path.name.count(".db") == 1), *self._folders()})

    def _folders(self) -> Sequence[Path]:
        sessions = [self._home / "log" / session / "conversation.jsonl" for session in SESSIONS]
        return [self._home, *sessions]

    async def _live_afterwards(self) -> list[str]:
        self._served.start()
        try:
            problems = await _talk_until_quiet(self._served, self._world, 1)
        except (LinkLost, OSError):
            return [f"it did not live afterwards: {self._served.printed()[-500:]}"]
        code = await asyncio.to_thread(self._served.stop)
        return [*problems, *([f"it stopped with {code}: {self._served.printed()[-500:]}"] if code else [])]
