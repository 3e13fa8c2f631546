"""A machine whose clock is wrong: a library that is loaded before the C library's and shifts the time of day."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SOURCE = """
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) { return atol(getenv("CLOCK_SHIFT") ? getenv("CLOCK_SHIFT") : "0"); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (into) *into = exact.tv_sec;
    return exact.tv_sec;
}
"""


def has_compiler() -> bool:
    return shutil.which("cc") is not None


def shifted_clock(folder: Path, seconds: int) -> dict[str, str]:
    """The environment of programs whose clock is wrong by so much (Linux, with a C compiler)."""
    library = folder / "clock.so"
    if not library.exists():
        source = folder / "clock.c"
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(seconds)}
