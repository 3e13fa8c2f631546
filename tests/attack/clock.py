"""A wall clock that jumps: by seconds, hours and years, ahead and back, for a moment or to stay, also over a restart,
within a turn and within a sleep.

A case is a home with reminders on a machine whose clock is drawn from the seed. In the end the clock is right and a day
goes by: each reminder that repeats is next due within a day, one that lies far ahead still waits and was told at most
once, what was due was told, what was said is answered once, nothing is said of the clock any more, and the home is
sound.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from structlog.testing import capture_logs

from assistant.agenda.scheduler import AgendaScheduler
from assistant.core.errors import AssistantError
from assistant.core.records import is_answer_key
from assistant.service.clock import HOLD, SteadyClock
from tests.attack.tally import Tally
from tests.crash.homes import scratch
from tests.support.machine_clock import MachineClock
from tests.support.running_app import LiveApp, run_app

KIND = "clock"
CASES = 100
_START = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)
_DAY = timedelta(days=1)
_JUMPS = (
    timedelta(seconds=40),
    timedelta(minutes=7),
    timedelta(hours=1),
    timedelta(hours=13),
    timedelta(days=3),
    timedelta(days=400),
    timedelta(days=3_000),
    timedelta(days=2_900_000),
)
_ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia")


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    tried, failures = 0, []
    for case in range(cases) if only is None else [only]:
        if time.monotonic() >= until:
            break
        with TemporaryDirectory(dir=scratch()) as folder, capture_logs():
            problems = asyncio.run(_Case(Path(folder), Random(f"{seed} {case}")).run())
        tried += 1
        if problems:
            failures.append(f"case {case}: {'; '.join(problems)}")
    return Tally(KIND, tried, tuple(failures))


class _Case:
    def __init__(self, folder: Path, chance: Random) -> None:
        self._home = folder / "home"
        self._chance = chance
        self._machine = MachineClock(_START)
        self._off = timedelta(0)
        self._zone = chance.choice(_ZONES)
        self._told: list[str] = []
        self._is_over = False

    async def run(self) -> list[str]:
        try:
            await self._live(first=True)
            for _ in range(self._chance.randint(0, 2)):
                await self._live()
            return await self._live(last=True)
        except (AssistantError, AssertionError, ArithmeticError, ValueError) as error:
            return [repr(error)]

    async def _live(self, *, first: bool = False, last: bool = False) -> list[str]:
        now = SteadyClock(self._machine.wall, self._machine.elapsed)
        async with run_app(
            self._home, lambda _: self._answer(), now=now, ASSISTANT_HOME__TIMEZONE=self._zone, ASSISTANT_SLEEP__AT=""
        ) as it:
            if first:
                for text in ("stretch --every 'day at 9'", "walk --every hour", "call mum --at '2027-01-05 10:00'"):
                    # What is asked for in one moment is taken for one thing.
                    self._machine.run(timedelta(seconds=1))
                    await it.app.commands.run(f"/remind {text}", "main", bridge="kept", target="main")
                self._machine.run(timedelta(seconds=1))
                await it.app.commands.run("/remind bread --at 'in 3 hours'", "main", bridge="kept", target="main")
            for _ in range(self._chance.randint(1, 5)):
                await self._step(it)
            problems = await self._end(it) if last else []
            problems += self._find_unanswered(it)
            self._told += it.bridge.bodies
            return [*problems, *(self._wrongly_told() if last else [])]

    async def _step(self, it: LiveApp) -> None:
        """The clock jumps, and stays so for a while; or comes right; or time goes by."""
        what = self._chance.randrange(5)
        if what < 2:
            self._jump(what)
        elif what == 2:
            await it.say(f"Thing {len(it.accepted)} is blue.", f"{self._chance.random()}")
            await it.wait_idle()
        elif what == 3:
            await it.app.commands.run("/sleep", "main")
        await self._wake(
            it, self._chance.choice((timedelta(seconds=1), timedelta(minutes=2), timedelta(hours=2), HOLD))
        )

    def _answer(self) -> str:
        """The clock may jump while the model thinks, in a turn or in a sleep."""
        if not self._is_over and self._chance.random() < 0.5:
            self._jump(self._chance.randrange(2))
        return "ok"

    def _jump(self, what: int) -> None:
        if what == 0 and not self._off:
            by = self._chance.choice(_JUMPS) * self._chance.choice((1, -1))
            # No earlier than a home may have been begun.
            self._off = max(by, timedelta(days=-3_000))
            self._machine.set_clock(self._off)
        elif what == 1:
            self._come_right()

    def _come_right(self) -> None:
        self._machine.set_clock(-self._off)
        self._off = timedelta(0)

    async def _wake(self, it: LiveApp, after: timedelta) -> None:
        self._machine.run(after)
        it.app.check_due()
        scheduler: AgendaScheduler = it.app.agenda_scheduler
        await scheduler.fire_due()
        await it.wait_idle()

    async def _end(self, it: LiveApp) -> list[str]:
        self._is_over = True
        self._come_right()
        await self._wake(it, timedelta(seconds=1))
        await self._wake(it, HOLD)
        for _ in range(26):
            await self._wake(it, timedelta(hours=1))
        now = self._machine.wall()
        due = {job.text: job.due.at for job in it.app.stores.jobs.list_waiting("owner", "reminder") if job.due}
        problems = [
            f"{text} is next due {due.get(text)}, and it is {now}"
            for text in ("stretch", "walk")
            if text not in due or not now - timedelta(hours=1) <= due[text] <= now + _DAY + timedelta(hours=2)
        ]
        if due.get("call mum", now).year != 2027:
            problems.append(f"the reminder of next year is due {due.get('call mum')}")
        problems += [f"status: {line}" for line in it.app.status()["problems"] if "clock" in line]
        return problems

    def _find_unanswered(self, it: LiveApp) -> list[str]:
        answers = Counter(sent.outgoing.inbox_id for sent in it.bridge.sent if is_answer_key(sent.outgoing.key))
        return [
            f"message {number} is {it.inbox_item(number).state} and was answered {answers[number]} times"
            for number in it.accepted
            if (it.inbox_item(number).state, answers[number]) != ("answered", 1)
        ]

    def _wrongly_told(self) -> list[str]:
        if not any("bread" in body for body in self._told):
            return ["what was due in three hours was never told"]
        return []
