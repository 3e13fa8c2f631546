"""Kills a daemon at random moments of a busy life, many times, and looks for what was lost or done twice.

A case is a home (every second one is the oldest that there is, upgraded at its first start) that lives some twenty
times: it is talked to in three conversations, compacts, sleeps, begins new conversations, reminds, keeps to-dos and is
backed up, and each time it is killed, at its start or later, at a moment drawn from the seed. Then it is left to come
to its end, and stopped: everything accepted was answered once, and the home is sound. The moments are times, so that a
repeated case is killed at about the same ones, not at the same instruction; `make crash` does that.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
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
from tests.crash.homes import scratch
from tests.soak.model import SoakModel
from tests.support.home_0_1 import unpack_home_0_1

KIND = "kill"
CASES = 80
KILLS = 25
_HANDS = 3
_LONG_LIFE, _LIFE = 8.0, 2.0


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    """`tried` counts kills. `only`: this case alone."""
    tried, failures = 0, []
    with SoakModel() as model:
        for case in range(cases) if only is None else [only]:
            if time.monotonic() >= until:
                break
            with TemporaryDirectory(dir=scratch()) as folder:
                problems = asyncio.run(_Case(Path(folder), model.url, seed, case).run())
            tried += KILLS
            failures += [f"case {case}: {problem}" for problem in problems]
    return Tally(KIND, tried, tuple(failures))


class _Case:
    def __init__(self, folder: Path, model_url: str, seed: int, case: int) -> None:
        self._chance = Random(f"{seed} {case}")
        home = unpack_home_0_1(folder) if case % 2 else folder / "home"
        self._served = ServedHome(home, settings_for(home, model_url))
        self._world = WorldRecord()
        self._start_seconds = 0.5

    async def run(self) -> list[str]:
        with stopped_in_the_end(self._served):
            for _ in range(KILLS):
                await self._live_and_die()
            problems = await self._settle()
        return [*problems, *find_losses(self._served.home, self._world), *self._tracebacks()]

    async def _live_and_die(self) -> None:
        self._served.start()
        killing = asyncio.create_task(self._kill_after(self._moment()))
        with contextlib.suppress(LinkLost, OSError):
            async with self._served.linked() as link, terminals(self._served, self._world):
                await asyncio.gather(self._world.say_again(link), *(self._act(link) for _ in range(_HANDS)))
        await killing

    def _moment(self) -> float:
        """Seconds from its start until it is killed."""
        drawn = self._chance.random()
        if drawn < 0.25:
            return self._chance.uniform(0, self._start_seconds)
        return self._start_seconds + self._chance.uniform(0, _LONG_LIFE if drawn > 0.93 else _LIFE)

    async def _kill_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._served.kill)

    async def _act(self, link: SocketLink) -> None:
        """One thing after the other, until the daemon is gone."""
        while True:
            try:
                await self._one_thing(link)
            except LinkLost:
                return
            except AssistantError:
                """Refused, as a reset is while another is under way."""
            await asyncio.sleep(self._chance.uniform(0, 0.05))

    async def _one_thing(self, link: SocketLink) -> None:
        chance, world = self._chance, self._world
        name = f"thing {len(world.said) + len(world.tried)} {chance.randrange(1 << 30):x}"
        session = chance.choice(SESSIONS)

        def order(verb: str, *argv: str) -> Awaitable[None]:
            return world.order(link, verb, name, argv, session)

        things: dict[Callable[[], Awaitable[None]], int] = {
            lambda: world.say(link, name, f"Please note {name}.", session): 30,
            lambda: order("todo", "todo", "add", name): 4,
            lambda: order("remind", "remind", "add", name, "--at", "in 1 second"): 4,
            lambda: order("compact", "compact"): 4,
            lambda: order("reset", "reset", "--yes"): 3,
            lambda: order("backup", "backup", "create"): 1,
            lambda: order("sleep", "sleep"): 1,
        }
        [thing] = chance.choices(list(things), list(things.values()))
        await thing()

    async def _settle(self) -> list[str]:
        """A life that nothing happens to, until there is nothing left to do."""
        self._served.start()
        try:
            async with self._served.linked() as link, terminals(self._served, self._world):
                await self._world.say_again(link)
                problems = await wait_until_quiet(self._served.home)
        except (LinkLost, OSError):
            return [f"it did not live: {self._served.printed()[-800:]}"]
        if code := await asyncio.to_thread(self._served.stop):
            problems.append(f"it stopped with {code}: {self._served.printed()[-500:]}")
        return problems

    def _tracebacks(self) -> list[str]:
        printed = self._served.printed()
        return [f"a traceback was printed: {printed[-800:]}"] if "Traceback (most recent call last)" in printed else []
