"""Floods of a daemon: messages, event streams, slow clients, a log of a gigabyte, reminders, conversations; streams and
slow clients over TLS, too, where the health is asked over TLS.

Each case is one flood of a real daemon of its own, bounded in number and time, over loopback alone. Meanwhile another
process asks for its health every 20 ms: each answer comes within 100 ms of processor time of the daemon, which is what
the clock shows on a machine that does nothing else, and all that was accepted is kept. Both are printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.cli.client import SocketLink
from assistant.cli.link import LinkLost
from assistant.core.jobs import DeliveryTarget, DueSlot, NewJob, OneTimeSpec
from assistant.core.messages import Message
from assistant.core.sessions import THREAD_PREFIX
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.attack.losses import count_down, rows
from tests.attack.tally import Tally
from tests.bench.figures import percentile
from tests.bench.holding import HeldDaemon, held_daemon, link_when_ready
from tests.crash.homes import scratch
from tests.soak.model import SoakModel
from tests.support.imports import import_messages

KIND = "flood"
MOST_HEALTH = 0.1
_TOKEN = "a-token-of-enough-characters"
_HANDS = 50
_TRIES = 5
# Times as long as it takes on a machine that does nothing else.
_CROWDED = 20
_LOOKED_INTO = 4
_OVER_TLS = " over TLS"


@dataclass(frozen=True, slots=True)
class FloodSizes:
    messages: int = 10_000
    streams: int = 10_000
    slow_clients: int = 300
    log_bytes: int = 1 << 30
    reminders: int = 100_000
    sessions: int = 200
    seconds: float = 60.0
    """How long what is not counted goes on."""


_Flood = Callable[[HeldDaemon, SocketLink, FloodSizes], Awaitable[list[str]]]


def run(
    seed: int, cases: int = 8, until: float = math.inf, only: int | None = None, sizes: FloodSizes | None = None
) -> Tally:
    """Case N is the N-th of `FLOODS`. Nothing is drawn from the seed: how much comes is what matters."""
    tried, failures = 0, []
    for number in list(range(min(cases, len(FLOODS)))) if only is None else [only]:
        if time.monotonic() >= until:
            break
        name = list(FLOODS)[number]
        problems = _run_one(name, sizes or FloodSizes())
        tried += 1
        if problems:
            failures.append(f"case {number} ({name}): {'; '.join(problems)}")
    return Tally(KIND, tried, tuple(failures))


def _run_one(name: str, sizes: FloodSizes) -> list[str]:
    flood = FLOODS[name]
    with TemporaryDirectory(dir=scratch()) as folder, SoakModel() as model:
        home = Path(folder) / "home"
        _PREPARED.get(name, lambda home, sizes: None)(home, sizes)
        encrypted = name.endswith(_OVER_TLS)
        with held_daemon(Path(folder), model.url, encrypted=encrypted, ASSISTANT_WEB__TOKEN=_TOKEN) as daemon:
            return asyncio.run(_during(name, daemon, flood, sizes))


async def _during(name: str, daemon: HeldDaemon, flood: _Flood, sizes: FloodSizes) -> list[str]:
    begun = time.monotonic()
    async with link_when_ready(daemon) as link:
        await daemon.wait_for_health()
        ready = time.monotonic() - begun
        begun += ready
        problems = await flood(daemon, link, sizes)
        await link.status()
    ended = time.monotonic()
    asked = daemon.asked_between(begun, ended)
    own = max((one.own for one in asked), default=math.inf)
    worked = max((one.worked for one in asked), default=0.0)
    processor = max((one.processor for one in asked), default=math.inf)
    health = [one.seconds for one in asked] or [math.inf]
    overslept = max((one.overslept for one in asked), default=0.0)
    holds = daemon.holds_between(begun, ended)
    held = max((hold.processor_seconds for hold in holds), default=0.0)
    median, nearly_all = (1e3 * percentile(health, share) for share in (0.5, 0.99))
    print(
        f"  {name}: {ended - begun:.0f} s, ready after {ready:.1f} s; health of {len(asked):,}: median {median:.0f},"
        f" 99 % {nearly_all:.0f}, max {1e3 * max(health):.0f} ms by the clock, {1e3 * own:.0f} without waiting for a"
        f" processor, {1e3 * processor:.0f} ms of processor ({1e3 * worked:.0f} of the loop); longest round"
        f" {1e3 * daemon.longest_round(begun, ended):.0f}, longest hold {1e3 * held:.0f} ms of processor;"
        f" load {os.getloadavg()[0]:.1f}; the asker woke {1e3 * overslept:.0f} ms late at most",
        flush=True,
    )
    for one in sorted(asked, key=lambda one: -one.processor)[:_LOOKED_INTO]:
        for stacks in daemon.stacks_between(one.at, one.at + one.seconds):
            print(f"      {1e3 * one.processor:.0f} ms, after {stacks}", file=sys.stderr)
    for hold in sorted(holds, key=lambda hold: -hold.own)[:_LOOKED_INTO]:
        print(f"      {hold}", file=sys.stderr)
    if processor > MOST_HEALTH:
        problems.append(f"the health took {1e3 * processor:.0f} ms of processor time")
    return problems


async def _in_parallel(hands: int, works: list[Awaitable[None]]) -> None:
    """So many at a time."""
    waiting = iter(works)

    async def hand() -> None:
        for work in waiting:
            await work

    await asyncio.gather(*(hand() for _ in range(hands)))


async def _sent(link: SocketLink, text: str, name: str, session: str) -> int:
    """Its number in the inbox; sent again under its name where no answer came in time, as on a crowded machine."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(LinkLost):
            return (await link.send_message(text, name, session)).inbox_id
    return (await link.send_message(text, name, session)).inbox_id


# --------------------------------------------------------------------------------------------------------------- floods


async def _messages(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    sessions = ("main", f"{THREAD_PREFIX}garden", f"{THREAD_PREFIX}work")
    accepted: list[int] = []

    async def say(number: int) -> None:
        session = sessions[number % len(sessions)]
        accepted.append(await _sent(link, f"Note {number}: it is wet.", f"f{number}", session))

    await _in_parallel(_HANDS, [say(number) for number in range(sizes.messages)])
    await asyncio.sleep(min(sizes.seconds, sizes.messages / 100))
    kept = rows(daemon.home, "SELECT count(*) FROM inbox")[0][0]
    return [] if kept == len(set(accepted)) == sizes.messages else [f"{sizes.messages} were sent, {kept} are kept"]


async def _streams(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    """Each opens an event stream, with the token, and leaves it open until the next ones come."""
    request = (
        f"GET /v1/events?session=main HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n".encode()
    )
    answers: dict[bytes, int] = {}
    open_ones: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def connect() -> None:
        line = b""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(30):
                reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port, ssl=daemon.tls)
                writer.write(request)
                line = await reader.readline()
                open_ones.put_nowait(writer)
        answers[line[9:12]] = answers.get(line[9:12], 0) + 1
        while open_ones.qsize() > 4 * _HANDS:
            open_ones.get_nowait().close()

    await _in_parallel(_HANDS, [connect() for _ in range(sizes.streams)])
    while not open_ones.empty():
        open_ones.get_nowait().close()
    odd = {status: count for status, count in answers.items() if status not in (b"200", b"503", b"")}
    return [f"answered {odd}"] if odd or b"200" not in answers else []


async def _slow_clients(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    """Half send a request byte by byte, half read what they asked for not at all, while somebody talks."""
    until = time.monotonic() + min(20.0, sizes.seconds)

    async def drip(number: int) -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", daemon.port, limit=1, ssl=daemon.tls)
                for byte in b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 1000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    if time.monotonic() >= until or writer.is_closing():
                        break
                    await asyncio.sleep(0.1)
                writer.close()

    async def ignore(number: int) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", daemon.port, limit=1, ssl=daemon.tls)
            head = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n"
            writer.write(head.encode())
            await asyncio.sleep(max(0.0, until - time.monotonic()))
            writer.close()

    async def talk() -> None:
        for number in itertools.count():
            if time.monotonic() >= until:
                return
            await link.send_message(f"Note {number}.", f"s{number}", "main")
            await asyncio.sleep(0.1)

    slow = [(drip if number % 2 else ignore)(number) for number in range(sizes.slow_clients)]
    await asyncio.gather(talk(), *slow)
    return []


async def _long_log(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    """It is indexed beside the loop, while somebody asks for what is in it."""
    until = time.monotonic() + sizes.seconds
    for number in itertools.count():
        if time.monotonic() >= until:
            return []
        await link.send_message(f"What did I say of chapter {number}?", f"l{number}", "main")
        await link.run_command("/search chapter", "main")
        await asyncio.sleep(0.5)
    return []


async def _reminders(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    """All were due while nothing ran: none is passed over, and they are told in few words."""
    waiting = "SELECT count(*) FROM jobs WHERE state = 'active'"
    left = await count_down(daemon.home, waiting, max(60.0, _CROWDED * sizes.seconds))
    ended = rows(daemon.home, "SELECT count(*) FROM slots WHERE state IN ('ran', 'late', 'missed')")[0][0]
    return [] if ended == sizes.reminders else [f"{sizes.reminders} were due, {ended} have an end, {left} wait"]


async def _sessions(daemon: HeldDaemon, link: SocketLink, sizes: FloodSizes) -> list[str]:
    """Each conversation is talked to at the same time, and is answered."""
    numbers: list[int] = []

    async def say(number: int) -> None:
        session = f"{THREAD_PREFIX}t{number % sizes.sessions}"
        numbers.append(await _sent(link, f"Note {number}.", f"t{number}", session))

    await _in_parallel(_HANDS, [say(number) for number in range(3 * sizes.sessions)])
    waiting = "SELECT count(*) FROM inbox WHERE state IN ('accepted', 'running')"
    left = await count_down(daemon.home, waiting, _CROWDED * sizes.seconds)
    return [f"{left} of {len(numbers)} were not answered"] if left else []


# ------------------------------------------------------------------------------------------------------------- prepared


def _opened(home: Path) -> Stores:
    home.mkdir()
    return Stores(load_settings(None, {"ASSISTANT_HOME": str(home)}), datetime.now(UTC))


def _write_long_log(home: Path, sizes: FloodSizes) -> None:
    """Chapters of 200 kB each."""
    chapter = "It rained on the hills, and nobody came. " * 5_000
    now = datetime.now(UTC) - timedelta(days=30)
    stores = _opened(home)
    try:
        for number in range(max(1, sizes.log_bytes // len(chapter) // 2)):
            said = [Message("user", f"Chapter {number}. {chapter}"), Message("assistant", f"Read {number}. {chapter}")]
            import_messages(stores.conversation, "main", "owner", said, now, keep=4)
    finally:
        stores.close()


def _write_due_reminders(home: Path, sizes: FloodSizes) -> None:
    at = datetime.now(UTC) - timedelta(hours=1)
    due = DueSlot(at, f"{at:%Y-%m-%dT%H:%M:%S}")
    place = DeliveryTarget("main", "owner", "terminal", "main")
    stores = _opened(home)
    try:
        stores.jobs.add(NewJob("n0", "reminder", place, "thing 0", OneTimeSpec(at), "UTC", "once", due), 1, at)
    finally:
        stores.close()
    with closing(sqlite3.connect(home / "script.db")) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(jobs)") if row[1] not in ("id", "key", "text")]
        same = ", ".join(columns)
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
            f" INSERT INTO jobs (key, text, {same})"
            f" SELECT 'n' || i, 'thing ' || i, {same} FROM n, jobs WHERE jobs.id = 1",
            (sizes.reminders,),
        )


FLOODS: Mapping[str, _Flood] = {
    "messages": _messages,
    "event streams": _streams,
    "slow clients": _slow_clients,
    "a log of a gigabyte": _long_log,
    "reminders due at once": _reminders,
    "conversations": _sessions,
    f"event streams{_OVER_TLS}": _streams,
    f"slow clients{_OVER_TLS}": _slow_clients,
}
_PREPARED: Mapping[str, Callable[[Path, FloodSizes], None]] = {
    "a log of a gigabyte": _write_long_log,
    "reminders due at once": _write_due_reminders,
}
