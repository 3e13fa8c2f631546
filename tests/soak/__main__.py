"""`python -m tests.soak [--minutes 30] [--rate 10]`: a daemon under load, with sleeps, watched for what grows.

A real daemon on a home of some ten thousand messages is talked to over its control socket, in three of the owner's
conversations, where every tenth message asks what was said before, and is answered by a model server on this machine;
its window is small, so that a compaction is due every few seconds. Its resident memory and descriptors are read every
few seconds. After the warm-up memory may grow by 5 %, descriptors not at all; every message has to be answered once,
and nothing may be logged as an error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.cli.client import SocketLink, open_socket_link
from assistant.cli.link import LinkLost
from assistant.core.sessions import MAIN_SESSION, THREAD_PREFIX
from tests.bench.figures import Row, table
from tests.bench.homes import CACHE, CHECKOUT, home
from tests.bench.machine import description
from tests.bench.process import resident_mib
from tests.soak.model import SoakModel

SESSIONS = (MAIN_SESSION, f"{THREAD_PREFIX}garden", f"{THREAD_PREFIX}work")
MESSAGES = 12_000
GROWTH, COMPACTIONS_A_MINUTE = 0.05, 1.0

_WINDOW_TOKENS = 24_000
_LOOK_SECONDS = 5.0
_SLEEP_MINUTES = 5.0
_MOST_WAITING = 60
# Every so many messages one is a question about what was said before the soak, which is searched for it.
_ASKS = 10
_ASSISTANT = str(Path(sys.executable).with_name("assistant"))
_WARM_SHARE, _END_SHARE = 0.2, 0.2


@dataclass
class DaemonObservation:
    """What was seen of the daemon: (seconds since the start, MB, descriptors) each; what was asked and answered."""

    samples: list[tuple[float, float, int]] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    sleeps: int = 0
    took: float = 0.0
    one_more: asyncio.Event = field(default_factory=asyncio.Event)

    def between(self, first: float, last: float) -> list[tuple[float, float, int]]:
        return [sample for sample in self.samples if first <= sample[0] <= last]


def main() -> int:
    """0 when every bound holds, 1 when one is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=10.0, help="turns a second")
    chosen = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    print(description(CACHE), end="\n\n", flush=True)
    made = home(MESSAGES)
    copy = made.copied("soak")
    questions = [fact.question for fact in made.planted]
    try:
        with TemporaryDirectory() as folder, SoakModel() as model:
            log = Path(folder) / "daemon.log"
            with _daemon(copy, model.url, log) as process:
                watched = asyncio.run(_soak(copy, process, questions, chosen.minutes * 60, chosen.rate))
            rows = list(_rows(watched, chosen.rate, model, log))
    finally:
        shutil.rmtree(copy)
    print(table(rows))
    return 1 if any(row.good is False for row in rows) else 0


# --------------------------------------------------------------------------------------------------------------- daemon


@contextmanager
def _daemon(path: Path, url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        "ASSISTANT_HOME": str(path),
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__BASE_URL": f"{url}/v1",
        "ASSISTANT_MODEL__NAME": "local-model",
        "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": str(_WINDOW_TOKENS),
        "ASSISTANT_SLEEP__AT": "",
        "ASSISTANT_BACKUP__AT": "",
        "ASSISTANT_LOG__LEVEL": "warning",
    }
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [_ASSISTANT, "run"], cwd=CHECKOUT, env={**os.environ, **environment}, stderr=errors, stdout=errors
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@asynccontextmanager
async def _linked(path: Path) -> AsyncIterator[SocketLink]:
    """A link to a daemon that is just starting."""
    for _ in range(600):
        with contextlib.suppress(LinkLost, OSError):
            async with open_socket_link(path / "run" / "control.sock") as link:
                await link.status()
                yield link
                return
        await asyncio.sleep(0.1)
    raise RuntimeError("the daemon did not become ready")


# ----------------------------------------------------------------------------------------------------------------- load


async def _soak(
    path: Path, process: subprocess.Popen[bytes], questions: Sequence[str], seconds: float, rate: float
) -> DaemonObservation:
    watched = DaemonObservation()
    async with _linked(path) as link:
        beside = [
            *(asyncio.create_task(_listen(path, session, watched)) for session in SESSIONS),
            asyncio.create_task(_watch(process.pid, watched)),
            asyncio.create_task(_sleep_now_and_then(path, watched)),
        ]
        began = time.monotonic()
        await _talk(link, watched, questions, seconds, rate)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(120):
                await _all_answered(watched)
        watched.took = time.monotonic() - began
        for task in beside:
            task.cancel()
        for outcome in await asyncio.gather(*beside, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
    return watched


async def _all_answered(watched: DaemonObservation, but: int = 0) -> None:
    """Wait until no more than `but` messages wait for an answer."""
    while len(watched.asked) - len(watched.answered) > but:
        watched.one_more.clear()
        await watched.one_more.wait()


async def _talk(
    link: SocketLink, watched: DaemonObservation, questions: Sequence[str], seconds: float, rate: float
) -> None:
    """So many messages a second, in turn in each conversation; where answers fall behind, no more than some wait."""
    began = time.monotonic()
    for number in itertools.count():
        due = began + number / rate
        if due - began > seconds:
            return
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await _all_answered(watched, but=_MOST_WAITING)
        asks, which = number % _ASKS == 0, number // _ASKS % len(questions)
        text = questions[which] if asks else _note(number)
        session = SESSIONS[number % len(SESSIONS)]
        accepted = await link.send_message(text, f"soak-{number}", session)
        watched.asked[str(accepted.inbox_id)] = time.monotonic()


def _note(number: int) -> str:
    return f"Note {number}: the {_THINGS[number % len(_THINGS)]} in row {number % 97} needs {number % 13} litres."


_THINGS = ("rose", "fig tree", "lemon", "bean", "tomato", "vine", "olive", "sage", "plum", "leek", "quince")


async def _listen(path: Path, session: str, watched: DaemonObservation) -> None:
    """A terminal of one conversation, that shows and confirms all it is given."""
    async with open_socket_link(path / "run" / "control.sock") as link:
        while True:
            async for name, data in link.events(session):
                if name != "deliver":
                    continue
                await link.acknowledge(data["key"])
                if data["kind"] == "reply":
                    inbox_id = str(data["inbox_id"])
                    watched.answered[inbox_id] = watched.answered.get(inbox_id, 0) + 1
                    watched.one_more.set()
                    if inbox_id in watched.asked:
                        watched.seconds.append(time.monotonic() - watched.asked[inbox_id])


async def _watch(pid: int, watched: DaemonObservation) -> None:
    began = time.monotonic()
    while True:
        watched.samples.append((time.monotonic() - began, resident_mib(pid), _descriptors(pid)))
        await asyncio.sleep(_LOOK_SECONDS)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def _sleep_now_and_then(path: Path, watched: DaemonObservation) -> None:
    async with open_socket_link(path / "run" / "control.sock") as link:
        while True:
            await asyncio.sleep(_SLEEP_MINUTES * 60)
            await link.run_command("/sleep", MAIN_SESSION)
            watched.sleeps += 1


# -------------------------------------------------------------------------------------------------------------- figures


def _rows(watched: DaemonObservation, rate: float, model: SoakModel, log: Path) -> Iterator[Row]:
    took = watched.took
    warm = watched.between(took * _WARM_SHARE, took * 2 * _WARM_SHARE)
    end = watched.between(took * (1 - _END_SHARE), took)
    before, after = (statistics.median(mb for _, mb, _ in samples) for samples in (warm, end))
    growth = after / before - 1
    yield Row("soak", MESSAGES, "minutes", f"{took / 60:.0f}", "", None)
    turns = len(watched.answered) / watched.took
    yield Row("soak", MESSAGES, "turns a second", f"{turns:.1f}", f">= {0.98 * rate:.1f}", turns >= 0.98 * rate)
    waited = statistics.median(watched.seconds)
    yield Row("soak", MESSAGES, "from message to answer shown, median", f"{1000 * waited:.0f} ms", "", None)
    once = set(watched.answered) == set(watched.asked) and set(watched.answered.values()) == {1}
    missing = len(set(watched.asked) - set(watched.answered))
    twice = sum(count > 1 for count in watched.answered.values())
    yield Row("soak", MESSAGES, "messages: missing / answered twice", f"{missing} / {twice}", "0 / 0", once)
    yield Row("soak", MESSAGES, "resident, warm", f"{before:.0f} MB", "", None)
    yield Row("soak", MESSAGES, "resident, at the end", f"{after:.0f} MB", "", None)
    yield Row("soak", MESSAGES, "growth after the warm-up", f"{growth:+.1%}", f"<= {GROWTH:.0%}", growth <= GROWTH)
    # Connections come and go, and logs are opened when they are first read: what leaks is always open in the end, and
    # never was before.
    opened, still = max(fds for *_, fds in warm), min(fds for *_, fds in end)
    known = f"{opened} and {still}"
    yield Row("soak", MESSAGES, "descriptors: most when warm, fewest at the end", known, "no more", still <= opened)
    compactions = model.summaries / (took / 60)
    good = compactions >= COMPACTIONS_A_MINUTE
    yield Row("soak", MESSAGES, "summaries a minute", f"{compactions:.1f}", f">= {COMPACTIONS_A_MINUTE:g}", good)
    yield Row("soak", MESSAGES, "answers with something recalled", str(model.recalled), ">= 1", model.recalled > 0)
    yield Row("soak", MESSAGES, "sleeps", str(watched.sleeps), "", None)
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if "[error" in line or "Traceback" in line]
    if errors:
        print("\n".join(lines[-200:]), file=sys.stderr)
    yield Row("soak", MESSAGES, "errors logged", str(len(errors)), "0", not errors)


if __name__ == "__main__":
    sys.exit(main())
