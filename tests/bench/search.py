"""`search_history`: how long a natural question takes, and whether its answer is among the first eight, same plan."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

from assistant.core.sessions import OWNER_SCOPE
from assistant.wire.search import open_history
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import home
from tests.bench.process import measured, resident_mib

TARGET_P95_MS = 200
FEW, MANY = 8, 50
OF_MESSAGES, TARGET_OF_MANY_MS = 10_000, (8, 15)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        home(size)
        found = measured("tests.bench.search", size, FEW)
        p95 = 1000 * percentile(found["seconds"], 0.95)
        target = f"p95 <= {TARGET_P95_MS} ms" if size >= 1_000_000 else ""
        good = p95 <= TARGET_P95_MS if target else None
        asked = len(found["seconds"])
        yield Row("search", size, f"p50 / p95 / p99 of {asked} questions", spread(found["seconds"]), target, good)
        yield Row("search", size, "of it processor time", spread(found["processor_seconds"]))
        seconds = measured("tests.bench.search", size, MANY)["seconds"]
        p50, p95 = TARGET_OF_MANY_MS
        good = 1000 * percentile(seconds, 0.5) <= p50 and 1000 * percentile(seconds, 0.95) <= p95
        aimed = size == OF_MESSAGES
        target = f"p50 <= {p50}, p95 <= {p95} ms" if aimed else ""
        what = f"with {MANY} excerpts, p50 / p95 / p99"
        yield Row("search", size, what, spread(seconds), target, good if aimed else None)
        yield Row("search", size, "recall@8 of planted facts, same plan", f"{100 * found['recall']:.1f} %")
        shares = " / ".join(f"{100 * share:.0f}" for share in found["kinds"].values())
        yield Row("search", size, f"by kind: {' / '.join(found['kinds'])}", f"{shares} %")
        yield Row("search", size, "resident memory it adds", f"{found['added_mib']:.1f} MiB")


def _child(size: int, limit: int) -> None:
    made = home(size)
    history = open_history(made.path, patient=True)[0]
    before = resident_mib()
    history.search("Where did we say the meeting is?", OWNER_SCOPE)
    seconds, processor_seconds, kinds = [], [], defaultdict(list)
    for fact in made.planted:
        began, used = time.perf_counter(), time.process_time()
        hits = history.search(fact.question, OWNER_SCOPE, limit=limit)
        seconds.append(time.perf_counter() - began)
        processor_seconds.append(time.process_time() - used)
        kinds[fact.kind].append(fact.answer in [hit.message_id for hit in hits])
    every = [found for kind in kinds.values() for found in kind]
    print(
        json.dumps(
            {
                "seconds": seconds,
                "processor_seconds": processor_seconds,
                "recall": sum(every) / len(every),
                "kinds": {kind: sum(found) / len(found) for kind, found in kinds.items()},
                "added_mib": resident_mib() - before,
            }
        )
    )


if __name__ == "__main__":
    _child(int(sys.argv[1]), int(sys.argv[2]))
