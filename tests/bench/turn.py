"""What the stores cost one turn: accept, begin, view, finish, and the outbox's marks, everything fsynced as in life.

The sizes are measured in turns, several rounds of each, so that what else the machine does meets them alike.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from assistant.messages import Message
from assistant.records import Incoming, Outgoing
from assistant.sessions import MAIN, OWNER_SCOPE
from assistant.store.outbox import Outbox
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import Opened, home, opened
from tests.bench.process import measured, resident_mb
from tests.bench.prose import Prose

TARGET_P50_MS, TARGET_P99_MS, TARGET_RATIO = 10, 40, 1.2
_ROUNDS, _TURNS, _WARM_UP = 3, 100, 10


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    copies = {size: home(size).copied("turn") for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    used: dict[int, list[float]] = {size: [] for size in sizes}
    memory: dict[int, float] = {}
    try:
        for number in range(_ROUNDS):
            for size in sizes:
                found = measured("tests.bench.turn", copies[size], number)
                seconds[size] += found["seconds"]
                used[size] += found["processor_seconds"]
                memory[size] = found["resident_mb"]
    finally:
        for path in copies.values():
            shutil.rmtree(path)
    smallest = 1000 * percentile(seconds[min(sizes)], 0.5)
    for size in sizes:
        p50, p99 = (1000 * percentile(seconds[size], share) for share in (0.50, 0.99))
        target = f"p50 <= {TARGET_P50_MS}, p99 <= {TARGET_P99_MS} ms"
        good = p50 <= TARGET_P50_MS and p99 <= TARGET_P99_MS
        yield Row("turn", size, "stores alone, p50 / p95 / p99", spread(seconds[size]), target, good)
        if size != min(sizes):
            ratio = p50 / smallest
            what, target = f"median against {min(sizes):,} messages", f"<= {TARGET_RATIO}x"
            yield Row("turn", size, what, f"{ratio:.2f}x", target, ratio <= TARGET_RATIO)
        yield Row("turn", size, "of it processor time", spread(used[size]))
        yield Row("turn", size, "resident memory after it", f"{memory[size]:.0f} MB")


def _child(path: Path, number: int) -> None:
    stores = opened(path, datetime.now(UTC))
    stores.conversation.reconcile(datetime.now(UTC))
    chance, prose = random.Random(number), Prose(1)
    topic = prose.topic(chance)
    seconds, processor_seconds = [], []
    for turn in range(_WARM_UP + _TURNS):
        asked, answered = prose.message(chance, topic), prose.message(chance, topic)
        began, used = time.perf_counter(), time.process_time()
        _turn(stores, f"{number}-{turn}", asked, answered)
        seconds.append(time.perf_counter() - began)
        processor_seconds.append(time.process_time() - used)
    found = {"seconds": seconds[_WARM_UP:], "processor_seconds": processor_seconds[_WARM_UP:]}
    print(json.dumps({**found, "resident_mb": resident_mb()}))
    stores.close()


def _turn(stores: Opened, key: str, asked: str, answered: str) -> None:
    now = datetime.now(UTC)
    conversation, outbox = stores.conversation, Outbox(stores.db)
    conversation.accept(Incoming("terminal", key, MAIN, OWNER_SCOPE, "me", "owner", asked), now)
    (item,) = conversation.inbox(MAIN)
    turn = conversation.begin_turn(item, "It is Friday.", now)
    conversation.view(MAIN)
    reply = Outgoing(f"reply-{key}", MAIN, OWNER_SCOPE, "terminal", "", answered)
    conversation.finish_turn(turn, "answered", Message("assistant", answered), [reply], now)
    (sent,) = outbox.pending("terminal")
    outbox.mark(sent.id, "sending", now)
    outbox.mark(sent.id, "sent", now)


if __name__ == "__main__":
    _child(Path(sys.argv[1]), int(sys.argv[2]))
