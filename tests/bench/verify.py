"""`assistant verify`: megabytes of master log proved a second."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from assistant.store.verify.verifier import Verifier
from tests.bench.figures import Row
from tests.bench.homes import home, opened
from tests.bench.process import measured, resident_mib

TARGET_MB = 50


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        home(size)
        found = measured("tests.bench.verify", size)
        speed = found["megabytes"] / found["seconds"]
        what = f"{found['megabytes']:.0f} MB of log, {found['records']:,} records in {found['seconds']:.1f} s"
        yield Row("verify", size, what, f"{speed:.0f} MB/s", f">= {TARGET_MB} MB/s", speed >= TARGET_MB)
        yield Row(
            "verify", size, "sound; resident memory at its end", f"{found['ok']}; {found['resident_mib']:.0f} MiB"
        )


def _child(size: int) -> None:
    path = home(size).path
    stores = opened(path, datetime.now(UTC))
    began = time.perf_counter()
    report = Verifier(path, stores.db, stores.log, stores.conversation).verify()
    seconds = time.perf_counter() - began
    stores.close()
    print(
        json.dumps(
            {
                "seconds": seconds,
                "megabytes": report.bytes / 1e6,
                "records": report.records,
                "ok": report.ok,
                "resident_mib": resident_mib(),
            }
        )
    )


if __name__ == "__main__":
    _child(int(sys.argv[1]))
