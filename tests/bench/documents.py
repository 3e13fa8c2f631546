"""How long the loop is held, and a turn takes, while a PDF of 500 pages is read and indexed.

First the whole app is in this process with the daemon's switch interval, so the threads that index take turns with the
loop as they do there. Then a daemon is talked to while `assistant add` gives it the PDF. What a hold waited for a
processor is the machine's; its processor time is what the loop worked.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.daemon import SWITCH_SECONDS
from tests.bench.figures import Row, spread
from tests.bench.holding import HeldDaemon, held_daemon, link_when_ready
from tests.bench.homes import CHECKOUT
from tests.bench.process import measured
from tests.soak.model import SoakModel
from tests.support.documents import make_pdf
from tests.support.loop_holds import LoopHolds
from tests.support.running_app import run_app

PAGES, MOST_HOLD = 500, 0.05
_WORDS = ("harbour", "lease", "kestrel", "notice", "boat", "rent", "pier", "office", "crowns", "window", "garden")
_WORDS_OF_A_PAGE = 300
_WARM_UP, _QUIET_TURNS = 5, 30
_ASK_SECONDS = 0.002


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    found = measured("tests.bench.documents")
    what = f"a PDF of {PAGES} pages is indexed"
    worst = found["processor"]
    result = f"{1000 * worst:.0f} ms ({1000 * found['own']:.0f} with waiting for files, locks and threads)"
    yield Row("documents", None, f"{what}: longest hold, processor", result, "<= 50 ms", worst <= MOST_HOLD)
    yield Row("documents", None, f"{what}: turns meanwhile, p50 / p95 / p99", spread(found["turns"]))
    yield Row("documents", None, "a turn when nothing is indexed, p50 / p95 / p99", spread(found["quiet"]))
    yield Row("documents", None, what, f"{found['seconds']:.1f} s, {len(found['turns'])} turns meanwhile")
    yield from _measure_daemon()


def _measure_daemon() -> Iterator[Row]:
    with TemporaryDirectory() as folder, SoakModel() as model, held_daemon(Path(folder), model.url) as daemon:
        book = Path(folder) / "book.pdf"
        book.write_bytes(make_pdf(*map(_page, range(PAGES))))
        quiet, turns, began, ended = asyncio.run(_add_beside_turns(daemon, book))
        holds = daemon.holds_between(began, ended)
    what = f"`assistant add` of {PAGES} pages to a daemon"
    worst = max((hold.processor_seconds for hold in holds), default=0.0)
    result = f"{1000 * worst:.0f} ms ({1000 * max((hold.own for hold in holds), default=0.0):.0f} with all its waiting)"
    yield Row("documents", None, f"{what}: longest hold, processor", result, "<= 50 ms", worst <= MOST_HOLD)
    yield Row("documents", None, f"{what}: turns meanwhile, p50 / p95 / p99", spread(turns))
    yield Row("documents", None, "a daemon's turn without it, p50 / p95 / p99", spread(quiet))
    yield Row("documents", None, what, f"{ended - began:.1f} s, {len(turns)} turns meanwhile")


async def _add_beside_turns(daemon: HeldDaemon, book: Path) -> tuple[list[float], list[float], float, float]:
    """Seconds of turns before and while the PDF is added, and when that began and ended."""
    quiet, turns = [], []
    async with link_when_ready(daemon) as link:

        async def turn(number: int) -> float:
            began = time.perf_counter()
            accepted = await link.send_message("And now?", f"t{number}", "main")
            while (await link.result(accepted.inbox_id))["state"] in ("accepted", "running"):  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)
            return time.perf_counter() - began

        numbers = itertools.count()
        for _ in range(_WARM_UP):
            await turn(next(numbers))
        for _ in range(_QUIET_TURNS):
            quiet.append(await turn(next(numbers)))
        began = time.monotonic()
        environment = {**os.environ, "ASSISTANT_HOME": str(daemon.home)}
        adding = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "assistant.cli.main", "add", str(book), cwd=CHECKOUT, env=environment
        )
        while adding.returncode is None:
            turns.append(await turn(next(numbers)))
        assert adding.returncode == 0
        return quiet, turns, began, time.monotonic()


async def _child() -> None:
    with TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        async with run_app(Path(folder)) as it:
            sys.setswitchinterval(SWITCH_SECONDS)
            quiet, turns = [], []

            async def turn() -> float:
                began = time.perf_counter()
                await it.say("And now?")
                await it.wait_idle()
                return time.perf_counter() - began

            for _ in range(_QUIET_TURNS):
                quiet.append(await turn())
            (workspace / "book.pdf").write_bytes(make_pdf(*map(_page, range(PAGES))))
            began = time.perf_counter()
            with LoopHolds() as holds:
                indexing = asyncio.create_task(it.app.maintenance.index_new_messages())
                while not indexing.done():
                    turns.append(await turn())
                await indexing
            seconds = time.perf_counter() - began
            assert it.app.stores.file_search.index.counts().pages == PAGES
        processor = max((hold.processor_seconds for hold in holds.holds), default=0.0)
        own = max((hold.own for hold in holds.holds), default=0.0)
        print(json.dumps({"quiet": quiet, "turns": turns, "seconds": seconds, "processor": processor, "own": own}))


def _page(number: int) -> str:
    words = (f"{_WORDS[(number * step) % len(_WORDS)]}{number % 7}" for step in range(1, _WORDS_OF_A_PAGE))
    return f"mark{number}q {' '.join(words)}"


if __name__ == "__main__":
    asyncio.run(_child())
