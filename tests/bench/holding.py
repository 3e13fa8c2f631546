"""How long hostile texts and floods hold the loop of a real daemon, and how long `/healthz` takes meanwhile.

The daemon runs with its probe (`held_daemon`) and an answering model on this machine, and is asked over its control
socket. Its health is asked over TCP by a process of its own, every 20 ms. A stage is what is sent until the answers
are there. Where something else needs the processors of this machine, the loop waits for it: the figure next to
each hold is the processor time that it took, and with each question for the health stands how long the daemon waited
for a processor meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import math
import multiprocessing
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assistant.cli.client import SocketLink, open_socket_link
from assistant.cli.link import LinkLost
from tests.bench.figures import Row, percentile
from tests.bench.homes import CHECKOUT
from tests.soak.model import SoakModel
from tests.support.hostile_texts import KINDS, hostile_text
from tests.support.loop_holds import ROUND, Hold
from tests.support.web_api import free_port, make_certificate

MOST_HOLD, MOST_HEALTH = 0.05, 0.1
BYTES = 1_000_000
_ASK_SECONDS = 0.02
# An answer that is not there after so long is looked into, again and again.
_LATE_SECONDS, _LOOK_AGAIN_SECONDS = 0.05, 0.025
_HOLDS, _HEALTH, _STACKS, _LOOKS = "holds.jsonl", "health.txt", "stacks.jsonl", "looks"
_STAGE_SECONDS = 120.0
_TOLD_LINES = 40


class HostileModel(SoakModel):
    """Answers "echo KIND SIZE" with so much of a kind."""

    def _answer(self, system: str, asked: str) -> str:
        if echo := re.search(r"^echo ([\w ]+)\|(\d+)$", asked[-200:], re.MULTILINE):
            return hostile_text(echo[1], int(echo[2]))
        return super()._answer(system, asked)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    with TemporaryDirectory() as folder, HostileModel() as model, held_daemon(Path(folder), model.url) as daemon:
        yield from asyncio.run(_flood(daemon))


@dataclass(frozen=True, slots=True)
class HealthAsked:
    """One question for the health: when, by `time.monotonic`, how long the answer took, and how long of it the daemon's
    loop could have run, had this machine had a processor for it, how long it did run, how long all threads of the
    daemon together, and by how much the asker itself woke too late before it."""

    at: float
    seconds: float
    starved: float
    worked: float
    busy: float
    overslept: float

    @property
    def own(self) -> float:
        """Seconds in which the daemon's loop ran, or waited for anything but a processor."""
        return self.seconds - self.starved

    @property
    def processor(self) -> float:
        """Seconds for which the daemon had it wait, whatever else this machine does: the loop's work, and its waiting
        for the interpreter while another thread worked. One that has the interpreter and no processor has the loop wait
        as well; that is not the daemon's."""
        return min(self.own, max(self.busy, self.worked))


class HeldDaemon:
    def __init__(self, home: Path, folder: Path, port: int, tls: ssl.SSLContext | None) -> None:
        """`folder` has what is noted; `tls`: how to connect to the port; None: unencrypted."""
        self.home, self.port, self.tls = home, port, tls
        self._holds, self._health, self._stacks = (folder / name for name in (_HOLDS, _HEALTH, _STACKS))
        self.rows: list[Row] = []

    def holds_between(self, began: float, ended: float) -> list[Hold]:
        return [hold for hold in self._noted(began, ended) if ROUND not in hold.where]

    def longest_round(self, began: float, ended: float) -> float:
        """Processor seconds of the longest round of the loop."""
        rounds = [hold.processor_seconds for hold in self._noted(began, ended) if ROUND in hold.where]
        return max(rounds, default=0.0)

    def _noted(self, began: float, ended: float) -> list[Hold]:
        lines = [json.loads(line) for line in self._holds.read_text().splitlines()]
        return [Hold(**line) for line in lines if began <= line["began"] + line["seconds"] and line["began"] <= ended]

    def health_between(self, began: float, ended: float) -> list[float]:
        """Seconds until the health was told, infinite where it was not."""
        return [asked.seconds for asked in self.asked_between(began, ended)]

    async def wait_for_health(self) -> None:
        """The web API is loaded when it is first asked."""
        while not self._health.read_text():  # noqa: ASYNC110
            await asyncio.sleep(_ASK_SECONDS)

    def asked_between(self, began: float, ended: float) -> list[HealthAsked]:
        lines = (HealthAsked(*map(float, line.split())) for line in self._health.read_text().splitlines())
        return [asked for asked in lines if began <= asked.at + asked.seconds and asked.at <= ended]

    def stacks_between(self, began: float, ended: float) -> list[str]:
        """Where the threads were that did not wait, each time that an answer was looked into."""
        looks = map(json.loads, self._stacks.read_text().splitlines())
        return [f"{1e3 * (at - began):.0f} ms: {' | '.join(seen)}" for at, seen in looks if began <= at <= ended]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began, note = time.monotonic(), ""
        try:
            yield
        except TimeoutError:
            note = " (not ended)"
        ended = time.monotonic()
        time.sleep(2 * _ASK_SECONDS)
        holds = sorted(self.holds_between(began, ended), key=lambda hold: -hold.seconds)
        health = self.health_between(began, ended) or [0.0]
        worst = holds[0].seconds if holds else 0.0
        cpu = max((hold.processor_seconds for hold in holds), default=0.0)
        print(f"{name}{note}: {ended - began:.1f} s, health {1e3 * max(health):.0f} ms", file=sys.stderr)
        for hold in holds[:6]:
            print(f"    {hold}", file=sys.stderr)
        sys.stderr.flush()
        result = f"{1e3 * worst:.0f} ms ({1e3 * cpu:.0f})"
        self.rows.append(Row("holds", None, f"{name}: longest hold (processor)", result, "<= 50 ms", cpu <= MOST_HOLD))
        result = f"{1e3 * percentile(health, 0.5):.0f} / {1e3 * max(health):.0f} ms"
        self.rows.append(
            Row("holds", None, f"{name}: health, median / max", result, "<= 100 ms", max(health) <= MOST_HEALTH)
        )


@contextmanager
def held_daemon(folder: Path, model_url: str, *, encrypted: bool = False, **settings: str) -> Iterator[HeldDaemon]:
    """A daemon with its probe over `folder/home`, which may be there already; `encrypted`: with a certificate."""
    home, port, tls = folder / "home", free_port(), None
    if encrypted:
        certificate, key = make_certificate(folder, "test.example")
        settings |= {"ASSISTANT_WEB__CERTIFICATE": str(certificate), "ASSISTANT_WEB__CERTIFICATE_KEY": str(key)}
        tls = ssl.create_default_context(cafile=certificate)
    found = HeldDaemon(home, folder, port, tls)
    environment = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__BASE_URL": f"{model_url}/v1",
        "ASSISTANT_MODEL__NAME": "local-model",
        "ASSISTANT_WEB__PORT": str(port),
        "ASSISTANT_SLEEP__AT": "",
        "ASSISTANT_BACKUP__AT": "",
        "ASSISTANT_BUDGET__DAILY_TOKENS": "0",
        "ASSISTANT_LOG__LEVEL": "warning",
        **settings,
    }
    home.mkdir(exist_ok=True)
    notes = [folder / name for name in (_HOLDS, _LOOKS, _STACKS)]
    os.mkfifo(folder / _LOOKS)
    with (folder / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.held_daemon", *map(str, notes)],
            cwd=CHECKOUT,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    asker = multiprocessing.get_context("fork").Process(
        target=_ask_health, args=(port, tls, daemon.pid, folder), daemon=True
    )
    asker.start()
    try:
        yield found
    finally:
        asker.terminate()
        asker.join()
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        if text := (folder / "daemon.log").read_text(errors="replace"):
            lines = text.splitlines()
            # What ended the interpreter stands before the stacks of its threads.
            fatal = next((at for at, line in enumerate(lines) if line.startswith("Fatal Python error")), len(lines))
            print("\n".join(lines[min(fatal, max(0, len(lines) - _TOLD_LINES)) :]), file=sys.stderr)


def _connect(port: int, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if tls is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    # A monitor is not where a flood comes from, and is known by its address alone.
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls, source_address=("127.0.0.2", 0))


def _ask_health(port: int, tls: ssl.SSLContext | None, process: int, folder: Path) -> None:
    # What is measured is the daemon: who asks is woken before it. Where processors are shared out by sessions, it has a
    # share of its own, and elsewhere it may be ordered.
    with contextlib.suppress(OSError):
        os.setsid()
        os.nice(-10)
    answered, overslept = False, 0.0
    # For reading, too: that waits for nobody.
    asks = os.open(folder / _LOOKS, os.O_RDWR)
    with (folder / _HEALTH).open("w", buffering=1) as file:

        def look(*_: object) -> None:
            if answered:
                os.write(asks, f"{time.monotonic()}\n".encode())

        signal.signal(signal.SIGALRM, look)
        # Whoever began it may be killed.
        parent = os.getppid()
        while os.getppid() == parent:
            asked = sent = time.monotonic()
            busy, (worked, starved) = _processor_seconds(process), _scheduled(process)
            try:
                connection = _connect(port, tls)
                if tls is None:
                    connection.request("GET", "/healthz")
                # What the daemon did before it was asked is not what the answer waited for.
                sent, busy, (worked, starved) = time.monotonic(), _processor_seconds(process), _scheduled(process)
                signal.setitimer(signal.ITIMER_REAL, _LATE_SECONDS, _LOOK_AGAIN_SECONDS)
                if tls is not None:
                    # The daemon has its part in each step of the handshake.
                    connection.request("GET", "/healthz")
                connection.getresponse().read()
                connection.close()
                answered, took = True, time.monotonic() - sent
            except (OSError, http.client.HTTPException):
                took = math.inf
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if answered:
                worked_after, starved_after = _scheduled(process)
                busy = _processor_seconds(process) - busy
                file.write(f"{sent} {took} {starved_after - starved} {worked_after - worked} {busy} {overslept}\n")
            now = time.monotonic()
            pause = max(0.0, asked + _ASK_SECONDS - now)
            time.sleep(pause)
            overslept = time.monotonic() - now - pause


def _processor_seconds(process: int) -> float:
    """Processor time of all threads of a process so far; 0 where nobody counts that."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) makes it on Linux.
        return time.clock_gettime((~process << 3) | 2)
    except (OSError, OverflowError):
        return 0.0


def _scheduled(process: int) -> tuple[float, float]:
    """How long the first thread of a process has run, and has waited for a processor, in seconds; 0 where nobody counts
    that."""
    try:
        ran, waited, *_ = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()
        return int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0


@asynccontextmanager
async def link_when_ready(daemon: HeldDaemon) -> AsyncIterator[SocketLink]:
    async with open_socket_link(daemon.home / "run" / "control.sock") as link:
        for _ in range(3_000):
            with contextlib.suppress(LinkLost, OSError):
                await link.status()
                break
            await asyncio.sleep(0.1)
        else:
            raise RuntimeError("the daemon did not become ready")
        yield link


async def _flood(daemon: HeldDaemon) -> list[Row]:
    async with link_when_ready(daemon) as link:
        await _answer(link, "Hello", "hello")
        for kind in KINDS:
            text = hostile_text(kind, BYTES)
            with daemon.stage(f"message of {kind}"):
                await _answer(link, text, f"in {kind}")
            with daemon.stage(f"question after {kind}"):
                await _answer(link, f"What did I say about {kind}?", f"asked {kind}")
            with daemon.stage(f"answer of {kind}"):
                await _answer(link, f"echo {kind}|{BYTES}", f"out {kind}")
            with daemon.stage(f"/search after {kind}"):
                await link.run_command(f"/search {kind}", "main")
        with daemon.stage("compact"):
            await link.run_command("/compact", "main")
        with daemon.stage("sleep"):
            await link.run_command("/sleep", "main")
        with daemon.stage("status"):
            await link.status()
    return daemon.rows


async def _answer(link: SocketLink, text: str, external_id: str, session: str = "main") -> dict[str, Any]:
    async with asyncio.timeout(_STAGE_SECONDS):
        accepted = await link.send_message(text, external_id, session)
        while True:
            result = await link.result(accepted.inbox_id)
            if result["state"] not in ("accepted", "running"):
                return dict(result)
            await asyncio.sleep(0.05)
