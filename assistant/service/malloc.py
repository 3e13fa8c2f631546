"""Memory: the C library's allocator returns unused memory to the system, and the collector of cycles leaves alone what
is loaded for good.

By default the allocator keeps the memory of every short peak, as when an index is made, and a pool for each thread. A
daemon runs for years after such a peak. The collector walks all modules and schemas again and again, for 100 ms and
more each time, and nothing else runs meanwhile.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Options of mallopt(3), and what they are set to: bytes, bytes, pools.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# Python's own: new objects, looks at those, looks at those that stayed, until the next look.
_OFTEN = (700, 10, 10)
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


def keep_for_good() -> None:
    """What is loaded by now stays as long as this process: the collector does not walk it any more, and looks often at
    what is new, so that no look takes long."""
    gc.freeze()
    gc.set_threshold(*_OFTEN)


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """While the context is open the collector waits. In a process that has begun to `keep_for_good`, what was loaded
    meanwhile is kept as well."""
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count():
            keep_for_good()
        gc.enable()
