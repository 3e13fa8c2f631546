"""The C library's allocator, told to give back to the system what nobody uses.

By default it keeps the room of every short peak, as when an index is made, and a pool for each thread. A daemon lives
for years after such a peak.
"""

from __future__ import annotations

import ctypes

# Options of mallopt(3), and what they are set to: bytes, bytes, pools.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_OPTIONS = {_TRIM_THRESHOLD: 131_072, _MMAP_THRESHOLD: 131_072, _ARENA_MAX: 2}


def trim_heap() -> None:
    """What is free within the pools too, after work that took much; the thresholds see to their ends alone. Some
    milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def limit_heap() -> bool:
    """For the rest of this process; before it begins threads. False where the C library is not GNU's: nothing was
    changed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) for option, value in _OPTIONS.items())
