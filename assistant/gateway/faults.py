"""The one place where whatever goes wrong inside a bridge becomes an error (F39).

What always holds: a fault of a bridge, or of the library it speaks with, stands whole in the log; the `BridgeError`
that it ends as names only its type, since what a library says may quote somebody. A cancelled task ends as cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from assistant.core.errors import BridgeError

log = structlog.get_logger()


@contextmanager
def contained(bridge: str, failed: str, *, ambiguous: bool = False) -> Iterator[None]:
    """Raises `BridgeError` and nothing else: the bridge's own, or one that begins with `failed`, as in "It failed"."""
    try:
        yield
    except BridgeError:
        raise
    # Nobody can list what a network's library raises, and no bridge may take another one, or the house, down with it.
    except Exception as error:
        log.exception("bridge fault", bridge=bridge)
        fault = f"a fault of its own ({type(error).__name__}); the log has the details"
        raise BridgeError(f"{failed} by {fault}.", ambiguous=ambiguous) from None
