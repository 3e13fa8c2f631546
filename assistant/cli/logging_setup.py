"""The daemon's own log: lines on standard error, so that answers on standard output stay alone.

Each is a line of `name=value` (logfmt), which people read as well as programs do, whoever reads it. What people say is
in none of them: of a fault they tell its kind and its place, never its own words, which may quote somebody.

A line that cannot be written (a full disk behind it, a terminal that is gone) is lost: to say that something failed
must never fail what goes on.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class _StandardError:
    """What log lines are written to."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def configure_logging(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _place_of_fault,
            _in_words,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _StandardError())),
    )


def _place_of_fault(logger: object, method: str, event: EventDict) -> EventDict:
    """A `structlog` processor."""
    error = event.pop("exc_info", None)
    error = sys.exception() if error is True else error
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["at"] = " > ".join(_places(error))
    return event


def _in_words(logger: object, method: str, event: EventDict) -> EventDict:
    """A `structlog` processor: what is several things, or nothing, is told as people tell it."""
    for name, value in event.items():
        if value is None:
            event[name] = "none"
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            event[name] = ", ".join(map(str, value)) or "none"
    return event


def _places(error: BaseException) -> Iterator[str]:
    """Where what caused it was, and where it came from itself, innermost last."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _places(cause)
        yield f"{type(cause).__name__}, then"
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno} {frame.name}"
