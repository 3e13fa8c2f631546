"""What a turn costs, in homes of several sizes: rounds of each size in turn, so that what else the machine does meets
them alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from tests.bench.appends import durable_append, in_appends
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CACHE, home
from tests.bench.process import measured

TARGET_P50_MS, TARGET_P99_MS, TARGET_RATIO = 8, 25, 1.2
_ROUNDS = 3


def turn_costs(figure: str, module: str, what: str, sizes: Sequence[int]) -> Iterator[Row]:
    """`module PATH NUMBER` runs turns on a home and prints `seconds` of each, `resident_mib`, and perhaps
    `processor_seconds`."""
    copies = {size: home(size).copied(figure) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    used: dict[int, list[float]] = {size: [] for size in sizes}
    memory: dict[int, float] = {}
    try:
        for number in range(_ROUNDS):
            for size in sizes:
                found = measured(module, copies[size], number)
                seconds[size] += found["seconds"]
                used[size] += found.get("processor_seconds", [])
                memory[size] = found["resident_mib"]
    finally:
        for path in copies.values():
            shutil.rmtree(path)
    append = durable_append(CACHE)
    smallest = 1000 * percentile(seconds[min(sizes)], 0.5)
    for size in sizes:
        p50, p99 = (1000 * percentile(seconds[size], share) for share in (0.50, 0.99))
        target = f"p50 <= {TARGET_P50_MS}, p99 <= {TARGET_P99_MS} ms"
        good = p50 <= TARGET_P50_MS and p99 <= TARGET_P99_MS
        yield Row(figure, size, f"{what}, p50 / p95 / p99", spread(seconds[size]), target, good)
        yield Row(figure, size, *in_appends(seconds[size], append))
        if size != min(sizes):
            ratio = p50 / smallest
            against, target = f"median against {min(sizes):,} messages", f"<= {TARGET_RATIO}x"
            yield Row(figure, size, against, f"{ratio:.2f}x", target, ratio <= TARGET_RATIO)
        if used[size]:
            yield Row(figure, size, "of it processor time", spread(used[size]))
        yield Row(figure, size, "resident memory after it", f"{memory[size]:.0f} MiB")
