"""A daemon that is asked to stop (SIGTERM) in the middle of a sleep: at the beginning and the end of each phase.

A case is a home that is told something, and falls whole; its process gets the signal where a phase of the sleep begins
or ends. It ends by itself, within its time. After all of them a last life sleeps to the end: everything that was told
was read once, no sleep is under way, and the home is sound.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from assistant.cli.link import LinkLost
from assistant.core.errors import AssistantError
from assistant.core.sessions import MAIN_SESSION
from assistant.core.telemetry import Metrics, SpanAttribute, TraceSpan, WorkKind
from sleep.cycle.cycle import PHASES
from tests.attack.losses import find_losses, rows, wait_until_quiet
from tests.attack.served_home import ServedHome, WorldRecord, settings_for, stopped_in_the_end, terminals
from tests.attack.tally import Tally
from tests.crash.homes import scratch

KIND = "stop"
# Imports are read in a phase of their own only where there are some.
MOMENTS = tuple(f"{phase} {at}" for phase in ("settle", *PHASES) if phase != "imports" for at in ("begins", "ends"))
CASES = len(MOMENTS)


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    """All cases share a home, each with a life of its own."""
    moments = Random(seed).sample(MOMENTS, min(cases, len(MOMENTS))) if only is None else [MOMENTS[only]]
    with TemporaryDirectory(dir=scratch()) as folder:
        tried, failures = asyncio.run(_run(Path(folder) / "home", moments, until))
    return Tally(KIND, tried, tuple(failures))


async def _run(home: Path, moments: Sequence[str], until: float) -> tuple[int, list[str]]:
    """How many were tried before `until`, and what failed."""
    environment, world = settings_for(home, "http://127.0.0.1:9", ASSISTANT_MODEL__PROVIDER="offline"), WorldRecord()
    failures, tried = [], 0
    for moment in moments:
        if time.monotonic() >= until:
            break
        served = ServedHome(home, environment, _stop_where, *moment.split())
        with stopped_in_the_end(served):
            failures += [f"{moment}: {problem}" for problem in await _live(served, world, tried, whole=False)]
        tried += 1
    served = ServedHome(home, environment)
    with stopped_in_the_end(served):
        failures += await _live(served, world, tried, whole=True)
    return tried, failures or [*find_losses(home, world), *_unread(home, tried + 1)]


async def _live(served: ServedHome, world: WorldRecord, number: int, *, whole: bool) -> list[str]:
    """Something is told and slept over. The process ends in it, or is stopped after the `whole` of it. Returns what is
    wrong with how it ended."""
    served.start()
    # Who asked for the sleep hears that it was stopped, or nothing any more.
    with contextlib.suppress(LinkLost, AssistantError):
        async with served.linked() as link, terminals(served, world):
            await world.say(link, f"told {number}", f"My cousin Ada{number} lives in Lund{number}.", MAIN_SESSION)
            if problems := await wait_until_quiet(served.home):
                return problems
            await world.order(link, "sleep", f"sleep {number}", ["sleep"], MAIN_SESSION)
    return _ended(served, await asyncio.to_thread(served.stop if whole else served.wait))


def _ended(served: ServedHome, code: int | None) -> list[str]:
    printed = served.printed()
    unfit = [words for words in ("Traceback (most recent call last)", "took too long") if words in printed]
    return [f"it ended with {code}: {printed[-800:]}"] if code or code is None or unfit else []


def _unread(home: Path, told: int) -> Iterator[str]:
    """What the last sleep should have left."""
    states = [state for (state,) in rows(home, "SELECT state FROM sleep_cycles ORDER BY id", database="character.db")]
    if not states or states[-1] != "done" or not {*states} <= {"done", "interrupted"}:
        yield f"the sleeps are {states}"
    journal = [content for (content,) in rows(home, "SELECT content FROM journal", database="character.db")]
    for number in range(told):
        if (count := sum(f"Ada{number} " in content for content in journal)) != 1:
            yield f"what was told of Ada{number} is in the journal {count} times"


def _stop_where(phase: str, at: str) -> None:
    """In the process of the daemon: have it get the signal where this phase begins or ends."""
    span = Metrics.span

    @contextmanager
    def noted(metrics: Metrics, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        is_it = work == "phase" and attributes["phase"] == phase
        with span(metrics, work, **attributes) as it:
            if is_it and at == "begins":
                os.kill(os.getpid(), signal.SIGTERM)
            yield it
            if is_it and at == "ends":
                os.kill(os.getpid(), signal.SIGTERM)

    Metrics.span = noted  # type: ignore[method-assign]
