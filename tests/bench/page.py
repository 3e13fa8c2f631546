"""The page in a browser: what it takes to show each page of a home, what live text costs, and what the daemon pays.

A real daemon serves a copy of the home; Debian's Chromium opens each page with an empty cache, logged in. The paint is
the browser's own measurement (first contentful paint), from asking for the address on; so is when the largest part of
what the page shows was painted, and what its scripts took of a processor. Bytes are those over the wire, without the
plots' library, which is loaded once. Of what the pages ask first, the daemon's time of a processor is measured, which a
busy machine does not change much; a home of a thousand messages or more has a memory for every ten.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from assistant.core.sessions import OWNER_SCOPE
from assistant.settings.settings import load_settings
from assistant.web.markdown_html import StreamedHtml
from assistant.wire.search import open_history
from assistant.wire.stores import Stores
from tests.bench.figures import Row, percentile
from tests.bench.homes import home
from tests.bench.memories import add_memories
from tests.bench.process import resident_mib
from tests.bench.start import ready
from tests.support.browser import Browser, run_browser
from tests.support.command_line import ASSISTANT_COMMAND
from tests.support.web_api import free_port

PAINT_MS, WIRE_KB, BATCH_MS, SERVER_MIB, ANSWER_MS = 300.0, 200.0, 20.0, 15.0, 50.0
# What the pages ask first: an address, or a command.
_ASKED = (
    *("/v1/status", "/v1/sessions?limit=1", "/v1/messages?limit=60&html=true", "/v1/sleeps?limit=30&html=true"),
    *("memory list --limit 100", "memory changes", "memory profiles --limit 100", "agenda 2026-11-28"),
    *("agenda 2026-11-23 --week", "context", "usage", "approvals list", "status", "memory search garden"),
    *("/v1/compactions?limit=200", "/v1/usage?days=31", "/v1/history?q=garden&limit=20"),
)
_PAGES = ("talk", "today", "memory", "context", "sleep", "spending", "health", "settings")
_RUNS = 5
_INDEXED = 100_000  # messages of the largest home that is indexed before
_QUIET_MS = 700  # less than the second after which a page looks again how far a sleep is
_TEXT = "Here is **what** was asked for, in `words`:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\n" * 40
_BATCH = 24  # characters
_MEASURED = """
const done = arguments[0], paint = performance.getEntriesByName('first-contentful-paint')[0];
const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .filter(it => !it.name.includes('/vendor/uplot'));
new PerformanceObserver(seen => done([
  paint.startTime, seen.getEntries().at(-1).startTime, loaded.reduce((sum, it) => sum + it.transferSize, 0)
])).observe({type: 'largest-contentful-paint', buffered: true})
"""


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    yield _batches()
    for size in sizes:
        copy = home(size).copied("page")
        try:
            add_memories(copy, size // 10)
            _index(copy, size)
            asyncio.run(_keep_days(copy))
            yield from _served(copy, size)
        finally:
            shutil.rmtree(copy)


def _index(copy: Path, size: int) -> None:
    """Make the search index, which the daemon would make while it is measured; it does so in a very large home."""
    history, finder = open_history(copy)
    try:
        while size <= _INDEXED and finder.index_next_batch():
            pass
    finally:
        history.close()


async def _keep_days(copy: Path) -> None:
    """Parse the days that texts mention, as the daemon does as they come."""
    now = datetime.now(UTC)
    with closing(Stores(load_settings(None, {"ASSISTANT_HOME": str(copy)}), now)) as stores:
        await stores.mentioned_dates.keep_up(OWNER_SCOPE, now)


def _batches() -> Row:
    """Words become HTML in batches, as they come from a model; the slowest of a long answer."""
    streamed, took, worked = StreamedHtml(), [], []
    for start in range(0, len(_TEXT), _BATCH):
        began, begun = time.perf_counter(), time.thread_time()
        streamed.add(_TEXT[start : start + _BATCH])
        took.append(1000 * (time.perf_counter() - began))
        worked.append(1000 * (time.thread_time() - begun))
    slow, work = percentile(took, 0.99), percentile(worked, 0.99)
    name = f"a batch of an answer of {len(_TEXT):,} characters as HTML, p99 of the work"
    result = f"{work:.1f} ms, {slow:.1f} ms by the clock"
    return Row("page", None, name, result, f"<= {BATCH_MS:.0f} ms", work <= BATCH_MS)


def _served(copy: Path, size: int) -> Iterator[Row]:
    port = free_port()
    # Nothing is measured while it sleeps.
    with ready(copy, ASSISTANT_WEB__PORT=str(port), ASSISTANT_SLEEP__AT="", ASSISTANT_SLEEP__NAP_MINUTES="0") as daemon:
        address = f"http://127.0.0.1:{port}"
        # A daemon that was just started binds its port a moment after it is ready.
        with httpx2.Client(base_url=address, transport=httpx2.HTTPTransport(retries=8), timeout=60) as client:
            # The web API is loaded when it is first asked; what the page adds comes after that.
            client.get("/healthz")
            before = resident_mib(daemon.pid)
            client.get("/")
        added = resident_mib(daemon.pid) - before
        target = f"<= {SERVER_MIB:.0f} MiB"
        yield Row("page", size, "memory that the page's files add", f"{added:.1f} MiB", target, added <= SERVER_MIB)
        yield from _asked(copy, port, daemon.pid, size)
        with run_browser() as browser:
            browser.size(1280, 900)
            browser.open(_link(copy, port))
            browser.find("nav")
            for page in _PAGES:
                yield from _painted(browser, address, page, size)


def _asked(copy: Path, port: int, pid: int, size: int) -> Iterator[Row]:
    address, code = _link(copy, port).split("/#login=")
    with httpx2.Client(base_url=address, headers={"Origin": address}, timeout=120) as client:
        client.post("/v1/login", headers={"Authorization": f"Login {code}"}).raise_for_status()
        for asked in _ASKED:
            took = []
            for _ in range(_RUNS + 1):
                before = _processor_ms(pid)
                if asked.startswith("/"):
                    answer = client.get(asked)
                else:
                    answer = client.post("/v1/commands", json={"argv": asked.split(), "html": True})
                answer.raise_for_status()
                took.append(_processor_ms(pid) - before)
            least = min(took[1:])
            result = f"{least:.0f} ms, the first time {took[0]:.0f} ms"
            yield Row("page", size, f"{asked}: processor", result, f"<= {ANSWER_MS:.0f} ms", least <= ANSWER_MS)


def _processor_ms(pid: int) -> float:
    """What all threads of a process took so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


def _link(copy: Path, port: int) -> str:
    environment = {"ASSISTANT_HOME": str(copy), "ASSISTANT_WEB__PORT": str(port)}
    done = subprocess.run(
        [*ASSISTANT_COMMAND, "open", "--print", "--json"],
        env={"PATH": str(Path(sys.executable).parent), **environment},
        capture_output=True,
        check=True,
    )
    return str(json.loads(done.stdout)["url"])


def _painted(browser: Browser, address: str, page: str, size: int) -> Iterator[Row]:
    paints, largest, scripts, sizes = [], [], [], []
    browser.driver.execute_cdp_cmd("Performance.enable", {})
    for _ in range(_RUNS):
        browser.open("about:blank")
        browser.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        before = _script_seconds(browser)
        browser.open(f"{address}/#/{page}")
        browser.find("main")
        browser.settle(_QUIET_MS)
        paint, shown, loaded = browser.driver.execute_async_script(_MEASURED)
        paints.append(paint)
        largest.append(shown)
        scripts.append(1000 * max(0.0, _script_seconds(browser) - before))
        sizes.append(loaded / 1000)
    paint, wire = percentile(paints, 0.5), max(sizes)
    target = f"<= {PAINT_MS:.0f} ms"
    yield Row("page", size, f"first paint of {page}, median", f"{paint:.0f} ms", target, paint <= PAINT_MS)
    whole = f"{percentile(largest, 0.5):.0f} ms, {percentile(scripts, 0.5):.0f} ms"
    yield Row("page", size, f"{page}: its largest part is shown, and time of its scripts", whole)
    yield Row("page", size, f"{page} over the wire", f"{wire:.0f} kB", f"<= {WIRE_KB:.0f} kB", wire <= WIRE_KB)


def _script_seconds(browser: Browser) -> float:
    metrics = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(it["value"] for it in metrics if it["name"] == "ScriptDuration"))
