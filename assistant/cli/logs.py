"""The daemon's own log: lines on standard error, so that answers on standard output stay alone.

A line that cannot be written (a full disk behind it, a terminal that is gone) is lost: to say that something failed
must never fail what goes on.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO, cast

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class _StandardError:
    """What log lines are written to."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def log_to_stderr(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _StandardError())),
    )
