"""How long one durable append takes on the disk that is measured: what a turn's cost is told as a multiple of, so that
machines compare."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import percentile

_APPENDS, _BYTES = 50, 4096


def durable_append(folder: Path) -> float:
    """The median seconds of writing four kilobytes to the end of a file in `folder` and an fsync."""
    probe = folder / "append.probe"
    samples = []
    try:
        with probe.open("wb", buffering=0) as file:
            for _ in range(_APPENDS):
                began = time.perf_counter()
                file.write(b"\0" * _BYTES)
                os.fsync(file.fileno())
                samples.append(time.perf_counter() - began)
    finally:
        probe.unlink(missing_ok=True)
    return sorted(samples)[_APPENDS // 2]


def in_appends(seconds: Sequence[float], append: float) -> tuple[str, str]:
    """What is measured, and p50, p95 and p99 of `seconds` as multiples of one append."""
    multiples = " / ".join(f"{percentile(seconds, share) / append:.0f}" for share in (0.50, 0.95, 0.99))
    return f"in durable appends of {1000 * append:.2f} ms each", multiples
