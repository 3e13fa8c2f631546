"""How long the loop is held, and a turn takes, while a PDF of 500 pages is read and indexed.

The whole app is in this process with the daemon's switch interval, so the threads that index take turns with the loop
as they do there. What a hold waited for a processor is the machine's; its processor time is what the loop worked.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.daemon import SWITCH_SECONDS
from tests.bench.figures import Row, spread
from tests.bench.process import measured
from tests.support.documents import make_pdf
from tests.support.loop_holds import LoopHolds
from tests.support.running_app import run_app

PAGES, MOST_HOLD = 500, 0.05
_WORDS = ("harbour", "lease", "kestrel", "notice", "boat", "rent", "pier", "office", "crowns", "window", "garden")
_WORDS_OF_A_PAGE = 300


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

            for _ in range(30):
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
