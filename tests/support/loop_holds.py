"""How long a loop is held: the time of each callback, and what it was doing.

    with LoopHolds() as holds:
        await something()
    print(holds.longest())

A thread looks at the loop's thread every few milliseconds; what it saw most often within a callback tells where that
spent its time. An expression or other C code that keeps the interpreter is seen when it ends, in the function that
called it. What another thread does with the interpreter counts as well: a callback that waits for it takes longer
than the processor time it needs, and `beside` tells where the other threads were. A garbage collection in any thread,
which keeps the interpreter, is noted as a hold of its own, and so is a round of the loop: all callbacks that were ready
together, after which it looks at its sockets again.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.thread_stacks import Place, ThreadStacks, waits

_LOOK_SECONDS = 0.004
_ROOT = Path(__file__).parents[2]
_Run = Callable[[asyncio.Handle], None]
ROUND = "a round of the loop"


@dataclass(frozen=True, slots=True)
class Hold:
    """One callback of the loop: when it began by `time.monotonic`, its seconds by the clock and of this processor, how
    long of them the machine had no processor for it, and where it was seen most often, the innermost functions first;
    and where other threads were then."""

    began: float
    seconds: float
    processor_seconds: float
    starved: float = 0.0
    where: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def own(self) -> float:
        """Seconds that are the callback's own: it worked, or waited for a file, a lock or the interpreter."""
        return self.seconds - self.starved

    def __str__(self) -> str:
        beside = f" | beside: {' < '.join(self.beside)}" if self.beside else ""
        return (
            f"{1e3 * self.seconds:.0f} ms ({1e3 * self.processor_seconds:.0f} ms of processor, without one for "
            f"{1e3 * self.starved:.0f} ms): "
            f"{' < '.join(self.where) or 'not seen'}{beside}"
        )


class LoopHolds:
    """Notes the callbacks of all loops of this thread that take at least `least` seconds while it is open; `told` is
    called with each, too. One at a time in a process."""

    def __init__(self, least: float = 0.02, told: Callable[[Hold], None] | None = None) -> None:
        self.holds: list[Hold] = []
        self.rounds: list[Hold] = []
        self._least = least
        self._told = told
        self._thread = threading.get_ident()
        self._began = 0.0
        self._collecting = 0.0, 0.0
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._beside: Counter[tuple[str, ...]] = Counter()
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="loop holds", daemon=True)
        self._schedule = _open_schedule()
        self._run: _Run = asyncio.events.Handle._run

    def longest(self) -> Hold | None:
        return max(self.holds, key=lambda hold: hold.seconds, default=None)

    def __enter__(self) -> Self:
        run, holds = self._run, self

        def timed(handle: asyncio.Handle) -> None:
            if threading.get_ident() != holds._thread:
                return run(handle)
            began, used, starved = time.monotonic(), time.thread_time(), holds._starved()
            holds._seen.clear()
            holds._beside.clear()
            holds._began = began
            try:
                run(handle)
            finally:
                holds._began = 0.0
                seconds = time.monotonic() - began
                if seconds >= holds._least:
                    # 0 for the callback that closed it.
                    waited = max(0.0, holds._starved() - starved)
                    holds._note(Hold(began, seconds, time.thread_time() - used, waited, *holds._places()))

        def timed_round(loop: asyncio.BaseEventLoop) -> None:
            if threading.get_ident() != holds._thread:
                return round_(loop)
            began, used = time.monotonic(), time.thread_time()
            try:
                round_(loop)
            finally:
                # Its time by the clock has the loop's sleep in it.
                if (processor := time.thread_time() - used) >= holds._least:
                    holds._note(Hold(began, processor, processor, 0.0, (ROUND,)), holds.rounds)

        round_ = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]
        self._round = round_
        _replace_run(timed)
        asyncio.BaseEventLoop._run_once = timed_round  # type: ignore[attr-defined]
        gc.callbacks.append(self._collection)
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _replace_run(self._run)
        asyncio.BaseEventLoop._run_once = self._round  # type: ignore[attr-defined]
        gc.callbacks.remove(self._collection)
        self._closed.set()
        self._watcher.join()
        if self._schedule is not None:
            os.close(self._schedule)
            # The callback that closes it is not at its end, and the number is soon another file's.
            self._schedule = None

    def _collection(self, phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.monotonic(), time.thread_time()
            return
        (began, used), self._collecting = self._collecting, (0.0, 0.0)
        if began and (seconds := time.monotonic() - began) >= self._least:
            where = f"garbage collection of generation {about['generation']} in {threading.current_thread().name}"
            self._note(Hold(began, seconds, time.thread_time() - used, 0.0, (where,)))

    def _starved(self) -> float:
        """How long this thread has waited for a processor, in seconds; 0 where nobody counts that."""
        return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9 if self._schedule is not None else 0.0

    def _note(self, hold: Hold, among: list[Hold] | None = None) -> None:
        (self.holds if among is None else among).append(hold)
        if self._told is not None:
            self._told(hold)

    def _places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        where, beside = (dict(seen) for seen in (self._seen, self._beside))
        return max(where, key=where.__getitem__, default=()), max(beside, key=beside.__getitem__, default=())

    def _watch(self) -> None:
        threads, own = ThreadStacks(), threading.get_ident()
        while not self._closed.wait(_LOOK_SECONDS):
            if self._began and time.monotonic() - self._began > _LOOK_SECONDS:
                for thread, places in threads.look().items():
                    if thread == self._thread:
                        self._seen[_project_places(places)] += 1
                    elif thread != own and not waits(places):
                        self._beside[_project_places(places)] += 1


def _open_schedule() -> int | None:
    try:
        return os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    except OSError:
        return None


def _replace_run(run: Any) -> None:
    asyncio.events.Handle._run = run  # type: ignore[method-assign]


@cache
def _shown(file: str) -> tuple[str, bool]:
    """How a file is shown, and whether it is of the project. Cached: the daemon waits while this is found out."""
    path = Path(file)
    if path.is_relative_to(_ROOT) and ".venv" not in path.parts and path.name != Path(__file__).name:
        return str(path.relative_to(_ROOT)), True
    return "/".join(path.parts[-2:]), False


def _project_places(places: list[Place]) -> tuple[str, ...]:
    """The three innermost functions whatever they are of, then those of the project around them."""
    shown: list[str] = []
    for place in places:
        file, is_project = _shown(place.file)
        if is_project or len(shown) < 3:
            shown.append(f"{file}:{place.line} {place.function}")
    return tuple(shown[:10])
