"""Runs lives, each in an event loop of its own, and finds the shortest list of events that still leads to a failure."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from tests.simulate.clock import StandsStill, VirtualLoop
from tests.simulate.knowledge import Failure
from tests.simulate.life import Life
from tests.simulate.model import Provider
from tests.simulate.plan import DAY, Event, plan_life
from tests.simulate.words import WORD
from tests.simulate.world import surroundings

_MAX_REPLAYS = 60
# Days after which everything has happened at least once.
_LONG = 60
_FAULTS = ("command failed",)
# Looking for cycles among what lives as long as the process, at each 700 new objects, took a ninth of a life.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def simulate(seed: int, days: int, *, keep: set[int] | None = None, shrink: bool = True) -> str | None:
    """One life; None where every invariant held, else what broke one. Prints what was seen, and how to see it again."""
    begun = time.process_time()
    events = [event for event in plan_life(seed, days) if keep is None or event.number in keep]

    def report(life: Life) -> None:
        seconds = time.process_time() - begun
        print(
            f"seed {seed}: {life.now() / DAY:.0f} days, {sum(life.counts.values()):,} events, "
            f"{life.world.lives} starts, {life.models.calls:,} model calls, recalled {dict(life.models.recalled)}, "
            f"forgotten {len(life.knowledge.forgotten)}; {seconds:.0f} s of CPU",
            flush=True,
        )

    failure = run_life(seed, days, events, report)
    if failure is None:
        return None
    _print_failure(seed, days, failure)
    if shrink:
        shortest = find_shortest(seed, events, failure)
        numbers = ",".join(str(event.number) for event in shortest)
        print(f"The shortest way that was found ({len(shortest)} events):")
        print("\n".join(map(str, shortest)))
        print(f"Replay it: python -m tests.simulate --seed {seed} --days {_days_of(shortest)} --keep {numbers}")
    return failure.texts[0]


def _print_failure(seed: int, days: int, failure: Failure) -> None:
    print(f"FAILED with seed {seed}, seen after: {failure.event or 'the look at the end of a day'}")
    print("\n".join(f"  {text}" for text in failure.texts[:40]))
    print(f"Replay it: python -m tests.simulate --seed {seed} --days {days}", flush=True)


def _days_of(events: Sequence[Event]) -> int:
    return int(events[-1].at // DAY) + 3 if events else 1


def find_shortest(seed: int, events: Sequence[Event], failure: Failure, replays: int = _MAX_REPLAYS) -> list[Event]:
    """Delta debugging: leave out halves, quarters, ... of the events while the same kind of failure is seen."""
    if failure.event is not None and failure.event.number:
        events = [event for event in events if event.number <= failure.event.number]
    current, parts = list(events), 2
    while len(current) > 1 and replays > 0:
        size = -(-len(current) // parts)
        for begin in range(0, len(current), size):
            shorter = current[:begin] + current[begin + size :]
            replays -= 1
            again = run_life(seed, _days_of(shorter), shorter) if shorter else None
            if again is not None and again.kinds & failure.kinds:
                current, parts = shorter, max(parts - 1, 2)
                break
            if replays <= 0:
                break
        else:
            if parts >= len(current):
                break
            parts = min(len(current), parts * 2)
    return current


# ---------------------------------------------------------------------------------------------------------- one life


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _list_tasks(loop: VirtualLoop) -> list[str]:
    """What each task is at, for whoever has to find out why nothing goes on."""
    return [f"  {task.get_name()}: {' < '.join(_places(task))}" for task in asyncio.all_tasks(loop)]


def _places(task: asyncio.Task[Any]) -> list[str]:
    """Where a task waits, from the inside out. `Task.get_stack` knows only the outermost function."""
    places: list[str] = []
    waiting: Any = task.get_coro()
    while waiting is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(waiting, f"{kind}_frame")), None)
        if kind is None:
            break
        frame = getattr(waiting, f"{kind}_frame")
        if frame is not None:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
        waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return places[::-1]


def _note_faults(complaints: list[str]) -> Callable[[Any, str, Any], Any]:
    """What the program logs as a fault of its own is a complaint."""

    def note(_: Any, method: str, entry: Any) -> Any:
        if method == "exception" or entry.get("exc_info") or entry["event"] in _FAULTS:
            error = sys.exc_info()[1]
            place = traceback.extract_tb(error.__traceback__)[-1] if error is not None else ""
            complaints.append(f"fault: {entry['event']}: {error!r} {place} {entry}")
        raise structlog.DropEvent

    return note


def run_life(
    seed: int, days: int, events: Sequence[Event], report: Callable[[Life], None] | None = None
) -> Failure | None:
    """Live it. Raises nothing of the program's: that is a failure too."""
    complaints: list[str] = []
    structlog.configure(
        processors=[_note_faults(complaints)], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR)
    )
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    life: Life | None = None
    models = Provider(
        seed,
        complaints.append,
        lambda question: life.knowledge.find_answers(question, life.now()),
        lambda *bill: life.checks.note_billed(*bill),
        lambda result: life.checks.reminders.note_result(result),
        lambda text: life.knowledge.forgotten.intersection(WORD.findall(text)),
    )
    try:
        with surroundings(models) as folder:
            life = Life(folder, seed, loop, models, complaints)
            living = loop.create_task(life.live(events, days), name="life")
            try:
                failure = loop.run_until_complete(living)
            except StandsStill as error:
                what = f"stands still: on day {life.now() / DAY:.3f}: {error}"
                failure = Failure(life.event, [what, *_list_tasks(loop)])
                # Its own end cancels all others.
                living.cancel()
                with suppress(asyncio.CancelledError, StandsStill):
                    loop.run_until_complete(living)
            if report is not None:
                report(life)
            if failure is None and days >= _LONG and (untried := life.checks.list_untried()):
                failure = Failure(None, [f"untried: {', '.join(untried)}"])
            return failure
    finally:
        loop.run_until_complete(_end_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
        gc.set_threshold(*usual)
