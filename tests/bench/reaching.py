"""What it costs to be reached: from a network to a turn, from a reply to the network, many at once; and what a daemon
and its bridges take while nobody says anything.

The network is in this process and answers at once, the model too: what is left is the assistant's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.core.bridge_api import BridgeCapabilities, InboundMessage, InboundPort, OutgoingPart, TurnEvent
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.core.people import Identity
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CHECKOUT, home
from tests.bench.process import measured, resident_mib
from tests.bench.start import ready
from tests.support.scripted import ScriptedModel

HAND_OVER_MS, SEND_MS, A_SECOND, BRIDGE_MIB = 10.0, 10.0, 50, 40
IDLE_SHARE, STOP_SECONDS, WARM_MIB = 0.005, 2.0, 180

_TURNS, _WARM_UP, _RUSH_SECONDS, _PEOPLE, _IDLE_SECONDS, _STOPS = 150, 10, 20, 10, 60, 5
_KNOWN_MESSAGES = 10_000
_NETWORKS = ("telegram", "matrix")


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        copy = home(size).copied("reaching")
        try:
            found = measured("tests.bench.reaching", copy)
        finally:
            shutil.rmtree(copy)
        for name, what, most in (
            ("taken", "received -> handed to a turn", HAND_OVER_MS),
            ("sent", "reply -> handed to the network", SEND_MS),
        ):
            median = 1000 * percentile(found[name], 0.5)
            yield Row("reach", size, f"{what}, p50 / p95 / p99", spread(found[name]), f"<= {most:g} ms", median <= most)
        good = found["rate"] >= 0.99 * A_SECOND and found["once"]
        told = f"{found['rate']:.1f} a second, longest wait {1000 * found['longest']:.0f} ms"
        yield Row("reach", size, f"{A_SECOND} messages a second, all answered once", told, f">= {A_SECOND}", good)
    yield from _bridges()
    yield from _daemon()


def _bridges() -> Iterator[Row]:
    for name in _NETWORKS:
        added = measured("tests.bench.reaching", "--bridge", name)["mb"]
        yield Row(
            "reach",
            None,
            f"{name}: resident memory that it adds",
            f"{added:.0f} MiB",
            f"<= {BRIDGE_MIB} MiB",
            added <= BRIDGE_MIB,
        )


def _daemon() -> Iterator[Row]:
    """An idle daemon; memory is warm once its home is indexed and a question was recalled for. On a home that is old,
    after a second start: the first one makes the index."""
    with TemporaryDirectory() as folder:
        with ready(Path(folder)) as daemon:
            warm, before = _warmed(Path(folder), daemon.pid), _cpu_seconds(daemon.pid)
            time.sleep(_IDLE_SECONDS)
            share = (_cpu_seconds(daemon.pid) - before) / _IDLE_SECONDS
        stops = [_stop_seconds(Path(folder)) for _ in range(_STOPS)]
    yield _warm_row(None, warm)
    copy = home(_KNOWN_MESSAGES).copied("reaching")
    try:
        for _ in range(2):
            with ready(copy) as daemon:
                warm = _warmed(copy, daemon.pid)
    finally:
        shutil.rmtree(copy)
    yield _warm_row(_KNOWN_MESSAGES, warm)
    yield Row(
        "reach",
        None,
        f"idle daemon, of a core over {_IDLE_SECONDS} s",
        f"{share:.2%}",
        f"<= {IDLE_SHARE:.1%}",
        share <= IDLE_SHARE,
    )
    stop = percentile(stops, 0.5)
    yield Row(
        "reach", None, "idle daemon, stop, median", f"{stop:.2f} s", f"<= {STOP_SECONDS:g} s", stop <= STOP_SECONDS
    )


def _warmed(path: Path, pid: int) -> float:
    """MiB resident once a question was asked of what was said and the daemon has nothing left to do."""
    environment = {"ASSISTANT_HOME": str(path), "ASSISTANT_MODEL__PROVIDER": "offline"}
    asked = [str(Path(sys.executable).with_name("assistant")), "chat", "-m", "What did I say of the garden?"]
    subprocess.run(asked, env={**os.environ, **environment}, cwd=CHECKOUT, check=True, capture_output=True)
    busy = -1.0
    while _cpu_seconds(pid) - busy > 0.1:
        busy = _cpu_seconds(pid)
        time.sleep(5)
    return resident_mib(pid)


def _warm_row(size: int | None, warm: float) -> Row:
    good = warm <= WARM_MIB
    return Row("reach", size, "daemon with memory warm, resident", f"{warm:.0f} MiB", f"<= {WARM_MIB} MiB", good)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stop_seconds(path: Path) -> float:
    with ready(path) as daemon:
        began = time.perf_counter()
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        return time.perf_counter() - began


# ------------------------------------------------------------------------------------------------ in its own process


@dataclass
class InstantNetwork:
    """A network that takes and gives at once. `taken` and `sent` are when a turn began and when an answer came."""

    name: str = "bench"
    capabilities: BridgeCapabilities = field(default_factory=lambda: BridgeCapabilities(max_length=4000))
    door: InboundPort | None = None
    taken: float = 0.0
    sent: dict[str, list[float]] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def check(self) -> str:
        return self.name

    async def run(self, inbound: InboundPort) -> None:
        self.door = inbound
        inbound.mark_connected(self.name)
        await asyncio.get_running_loop().create_future()

    async def send(self, part: OutgoingPart) -> None:
        self.sent.setdefault(part.text, []).append(time.perf_counter())
        self.came.set()

    def show(self, event: TurnEvent, target: str) -> None:
        if event.kind == "turn" and event.data["state"] == "started":
            self.taken = time.perf_counter()

    async def aclose(self) -> None:
        return None

    async def bring(self, number: int, sender: str) -> None:
        assert self.door is not None
        await self.door.receive(
            InboundMessage(self.name, str(number), sender, f"Note {number}.", target=sender, position=str(number))
        )


async def _child(path: Path) -> None:
    answered = [0.0]

    def answer(request: ModelRequest) -> ModelReply | str:
        answered[0] = time.perf_counter()
        return f"Answer to {request.messages[-1].content.rpartition('Note ')[2]}"

    network, model = InstantNetwork(), ScriptedModel(answer)
    off = {"daily_usd": "0", "monthly_usd": "0"}
    caps = {f"ASSISTANT_BUDGET__{name.upper()}": value for name, value in off.items()}
    settings = load_settings(None, {"ASSISTANT_HOME": str(path), **caps})
    app = build_app(settings, lambda: datetime.now(UTC), bridges={"bench": network}, model=model)
    people = [f"person-{number}" for number in range(_PEOPLE)]
    app.stores.people.link_owner(Identity("bench", people[0]), datetime.now(UTC))
    for sender in people[1:]:
        app.stores.people.admit_guest(Identity("bench", sender), sender, "allowed", datetime.now(UTC))
    await app.start()
    worker = asyncio.create_task(app.runtime.run())
    taken, sent = await _one_by_one(app, network, answered, people[0])
    rate, longest, once = await _rush(app, network, people)
    print(json.dumps({"taken": taken, "sent": sent, "rate": rate, "longest": longest, "once": once}))
    await app.stop(5)
    await worker
    app.close()


async def _one_by_one(
    app: App, network: InstantNetwork, answered: list[float], owner: str
) -> tuple[list[float], list[float]]:
    taken, sent = [], []
    for number in range(_WARM_UP + _TURNS):
        network.came.clear()
        began = time.perf_counter()
        await network.bring(number, owner)
        await network.came.wait()
        taken.append(network.taken - began)
        sent.append(max(times[-1] for times in network.sent.values()) - answered[0])
        await app.runtime.wait_until_idle()
    return taken[_WARM_UP:], sent[_WARM_UP:]


async def _rush(app: App, network: InstantNetwork, people: Sequence[str]) -> tuple[float, float, bool]:
    """Messages a second that were answered, the longest wait of one, and whether each was answered once."""
    count, first = _RUSH_SECONDS * A_SECOND, 1_000_000
    network.sent.clear()
    began = time.perf_counter()
    asked = []
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / A_SECOND - time.perf_counter()))
        asked.append(time.perf_counter())
        await network.bring(first + number, people[number % len(people)])
    while len(network.sent) < count:
        network.came.clear()
        await network.came.wait()
    times = [network.sent.get(f"Answer to {first + number}.", []) for number in range(count)]
    waits = [came[0] - at for came, at in zip(times, asked, strict=True) if came]
    ended = max(at for came in times for at in came)
    return count / (ended - began), max(waits), all(len(came) == 1 for came in times)


def _bridge(name: str) -> None:
    """An app's memory before and after the bridge's library and the bridge itself are there."""
    before = resident_mib()
    if name == "telegram":
        from assistant.bridges.telegram.bridge import TelegramBridge

        TelegramBridge("1:token", "http://127.0.0.1:9")
    else:
        from assistant.bridges.matrix.bridge import MatrixBridge
        from assistant.core.bridge_api import DeviceLogin

        with TemporaryDirectory() as folder:
            MatrixBridge(
                "http://127.0.0.1:9",
                DeviceLogin("@a:b", "D", "token"),
                store=Path(folder),
                encryption=True,
                invites=(),
                is_owners=lambda account: False,
            )
    print(json.dumps({"mb": resident_mib() - before}))


if __name__ == "__main__":
    if sys.argv[1] == "--bridge":
        _bridge(sys.argv[2])
    else:
        asyncio.run(_child(Path(sys.argv[1])))
