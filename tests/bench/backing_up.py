"""What a backup of a home of a gigabyte costs those who talk meanwhile: turns follow each other every few
milliseconds, without a backup and while one is made in its process of its own."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from assistant.backup.process import make_in_child
from assistant.core.backups import BackupResult
from assistant.store.backup.folder import BackupFolder
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import home, opened
from tests.bench.process import measured
from tests.bench.prose import Prose
from tests.bench.turn import one_turn

MESSAGES, MOST_MS = 600_000, 50
_BETWEEN, _QUIET_SECONDS = 0.005, 30.0


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    path = home(MESSAGES).copied("backup")
    try:
        found = measured("tests.bench.backing_up", path)
    finally:
        shutil.rmtree(path)
    without, during, made = found["without"], found["during"], found["made"]
    more = 1000 * (max(during) - max(without))
    yield Row("backup", MESSAGES, "turns without a backup, p50 / p95 / p99", spread(without))
    yield Row("backup", MESSAGES, f"{len(during):,} turns while one is made, p50 / p95 / p99", spread(during))
    yield Row(
        "backup",
        MESSAGES,
        "longest turn without, and with",
        f"{1000 * max(without):.0f}, {1000 * max(during):.0f} ms",
        f"<= {MOST_MS} ms more",
        more <= MOST_MS,
    )
    yield Row(
        "backup", MESSAGES, "median against without", f"{percentile(during, 0.5) / percentile(without, 0.5):.2f}x"
    )
    size = f"{made['unpacked_bytes'] / 1e6:,.0f} MB into {made['backup']['bytes'] / 1e6:,.0f} MB"
    yield Row("backup", MESSAGES, f"a backup, proved: {size}", f"{made['seconds']:.0f} s")


async def _child(path: Path) -> None:
    stores = opened(path, datetime.now(UTC))
    stores.conversation.recover_after_crash(datetime.now(UTC))
    chance, prose = random.Random(1), Prose(1)
    topic = prose.topic(chance)
    number = 0

    async def turn() -> float:
        nonlocal number
        number += 1
        asked, answered = prose.message(chance, topic), prose.message(chance, topic)
        begun = time.perf_counter()
        one_turn(stores, f"backup-{number}", asked, answered)
        seconds = time.perf_counter() - begun
        await asyncio.sleep(_BETWEEN)
        return seconds

    for _ in range(20):
        await turn()
    without, until = [], time.monotonic() + _QUIET_SECONDS
    while time.monotonic() < until:
        without.append(await turn())
    making: asyncio.Task[BackupResult] = asyncio.ensure_future(
        make_in_child(BackupFolder(path), True, "manual", datetime.now(UTC))
    )
    during = []
    while not making.done():
        during.append(await turn())
    made = asdict(making.result())
    print(json.dumps({"without": without, "during": during, "made": made}, default=str))
    stores.close()


if __name__ == "__main__":
    asyncio.run(_child(Path(sys.argv[1])))
