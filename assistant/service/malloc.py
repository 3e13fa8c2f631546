"""Settings of the C library's allocator, so that it returns unused memory to the system.

By default it keeps the memory of every short peak, as when an index is made, and a pool for each thread. A daemon runs
for years after such a peak.
"""

from __future__ import annotations

import ctypes

# Options of mallopt(3), and what they are set to: bytes, bytes, pools.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_OPTIONS = {_TRIM_THRESHOLD: 131_072, _MMAP_THRESHOLD: 131_072, _ARENA_MAX: 2}


def trim_heap() -> None:
    """After work that took much memory: return what is free within the pools, too, which takes some milliseconds. The
    thresholds of `limit_heap` only return what is free at their ends."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def limit_heap() -> bool:
    """For the rest of this process; call it before threads start. False where the C library is not GNU's: nothing was
    changed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) for option, value in _OPTIONS.items())
