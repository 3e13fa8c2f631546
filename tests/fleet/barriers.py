"""What a pair of PostgreSQL servers confirms a second, and how long one waits for it, on this machine.

python -m tests.fleet.barriers                            with fsync, as in earnest
python -m tests.fleet.barriers --picture throughput.svg   and a picture of it

A barrier is one transaction that checks the owner and stores a change, confirmed by a synchronous standby. Homes that
write at once are connections here; the last line is of a whole home, from a message that was stored to its barrier.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from assistant.replica.postgres import ReplicaDatabase
from assistant.replica.service import Replicator
from tests.fleet.pictures import draw_lines
from tests.support.postgres import run_postgres_pair
from tests.support.replicated import replicated, replicator

_HOMES = (1, 2, 4, 8, 16, 32)
_SECONDS = 5.0
_CHANGE = os.urandom(7_000)  # as much as a message leads to
_MESSAGES = 100


async def _measure_servers(url: str, homes: int) -> list[float]:
    """Return how long each barrier took, of so many homes that do nothing else."""
    databases = [ReplicaDatabase(url, f"home{homes}-{number}") for number in range(homes)]
    for database in databases:
        await database.prepare()
        await database.claim("owner", "here", 0)
    end, waits = time.monotonic() + _SECONDS, list[float]()

    async def ship(database: ReplicaDatabase) -> None:
        sequence = 0
        while (begun := time.monotonic()) < end:
            await database.ship(1, sequence, _CHANGE)
            sequence += 1
            waits.append(time.monotonic() - begun)

    await asyncio.gather(*map(ship, databases))
    for database in databases:
        await database.aclose()
    return sorted(waits)


async def _measure_home(url: str) -> tuple[list[float], float]:
    """Return how long a home's barrier took after each message, and how many barriers there were for each."""
    waits, barriers, wait = [], 0, Replicator.barrier

    async def count(replicator: Replicator, messages: int = 0) -> None:
        nonlocal barriers
        barriers += 1
        await wait(replicator, messages)

    with TemporaryDirectory() as folder, patch.object(Replicator, "barrier", count):
        async with replicated(Path(folder) / "home", url, *["Noted."] * _MESSAGES) as running:
            await replicator(running).barrier()
            barriers = 0
            for number in range(_MESSAGES):
                begun = time.monotonic()
                await running.say(f"message {number}")
                waits.append(time.monotonic() - begun)
                await running.wait_idle()
    return sorted(waits), barriers / _MESSAGES


def _describe(waits: list[float]) -> str:
    half, most = (1000 * waits[int(len(waits) * share)] for share in (0.5, 0.95))
    return f"p50 {half:.1f} ms, p95 {most:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.barriers", description="Measure barriers.")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    rates = []
    with run_postgres_pair(fsync=True) as pair:
        url = pair.new_database()
        for homes in _HOMES:
            waits = asyncio.run(_measure_servers(url, homes))
            rates.append((float(homes), len(waits) / _SECONDS))
            print(f"{homes:2} homes: {len(waits) / _SECONDS:,.0f} barriers a second, {_describe(waits)}", flush=True)
        waits, each = asyncio.run(_measure_home(pair.new_database()))
    print(f"A home acknowledges a message: {_describe(waits)}; {each:.1f} barriers a message.")
    print(f"Load: {os.getloadavg()[0]:.0f}")
    if given.picture:
        title = "Barriers that one pair of servers confirms"
        draw_lines(given.picture, title, "homes that write at once", "a second", {"": rates})


if __name__ == "__main__":
    main()
