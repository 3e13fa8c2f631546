"""Memory settings: the C library's allocator returns unused memory to the system, and the garbage collector skips
objects that are loaded for good.

By default the allocator keeps the memory of every short peak, such as building an index, and a pool per thread,
although a daemon runs for years afterwards. The collector would walk all modules and schemas again and again, for 100
ms and more each time, blocking everything.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Options of mallopt(3) and their values: bytes, bytes, pools.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# Number of new objects, and of collections, until the next generation is collected. A turn makes and frees thousands,
# few of them in cycles: with Python's 700 it waits for two collections, of which each takes up to half a millisecond.
_OFTEN = (5_000, 10, 10)
_OPTIONS = {_TRIM_THRESHOLD: 131_072, _MMAP_THRESHOLD: 131_072, _ARENA_MAX: 2}
# Whether this process has called `keep_for_good`. To count what is excluded would walk through all of it.
_is_kept = False


def trim_heap() -> None:
    """Return free memory within the pools to the system, which takes some milliseconds; call it after work that needed
    much memory. The limits of `limit_heap` only return what is free at the ends."""
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def limit_heap() -> bool:
    """Limit the heap of this process; call it before threads start. Returns False, with nothing changed, if the C
    library is not GNU's."""
    mallopt = _c_function("mallopt")
    return mallopt is not None and all(mallopt(option, value) for option, value in _OPTIONS.items())


def _c_function(name: str) -> Callable[..., Any] | None:
    import ctypes  # a chat of one question calls none

    return getattr(ctypes.CDLL(None), name, None)


def keep_for_good() -> None:
    """Exclude all current objects from garbage collection, and collect new ones often, so that each collection is
    short."""
    global _is_kept
    _is_kept = True
    gc.freeze()
    gc.set_threshold(*_OFTEN)


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """Pause garbage collection in this context. If the process has called `keep_for_good`, objects created meanwhile
    are excluded as well."""
    gc.disable()
    try:
        yield
    finally:
        if _is_kept:
            keep_for_good()
        gc.enable()
