"""How the program is loaded: libraries without the parts that they import only because those are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden_modules(*names: str) -> Iterator[None]:
    """What is imported here finds these modules not installed, and does without them. What was imported stays."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None says that it cannot be imported
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
