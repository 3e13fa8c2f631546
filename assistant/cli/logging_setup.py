"""The program's own log: lines on standard error for the daemon, whose manager collects them, and in a file wherever a
person talks or types a command, who is told in words what they have to know.

Each is a line of `name=value` (logfmt), which people read as well as programs do. What people say is
in none of them: of a fault they tell its kind and its place, never its own words, which may quote somebody.

A line that cannot be written (a full disk behind it, a terminal that is gone) is lost: to say that something failed
must never fail the work under way.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from assistant.core.logger import configure_logging, get_logger
from assistant.core.plain_files import open_plain_file

if TYPE_CHECKING:
    from structlog.typing import EventDict

_LARGEST_FILE = 1_000_000


class _StandardError:
    """What log lines are written to."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def _open_log(path: str, flags: int) -> int:
    return open_plain_file(Path(path), flags)


class _LogFile:
    """A file of log lines, where its folder is; a full one becomes the former one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            with open(self._path, "a", encoding="utf-8", opener=_open_log) as file:
                file.write(text)
                is_full = file.tell() > _LARGEST_FILE
            if is_full:
                self._path.replace(self._path.with_suffix(".old.log"))

    def flush(self) -> None:
        pass


class _OfLibraries(logging.Handler):
    """What libraries log, without their words, which may quote somebody."""

    def emit(self, record: logging.LogRecord) -> None:
        exception = record.exc_info[1] if record.exc_info else None
        get_logger().warning("library", of=record.name, at_level=record.levelname, exc_info=exception)


def log_to_stderr(level: str) -> None:
    """For the daemon alone."""
    _configure(level, _StandardError())


def log_to_file(path: Path, level: str = "warning") -> None:
    """Where a person talks or types a command. Nothing that was said gets there, whatever the level: it would be found
    there after it was forgotten."""
    logging.basicConfig(handlers=[_OfLibraries()], level=logging.WARNING, force=True)
    _configure(level, _LogFile(path), without_debug=True)


def _configure(level: str, file: _StandardError | _LogFile, *, without_debug: bool = False) -> None:
    def configure(structlog: Any) -> None:
        def drop_debug(logger: object, method: str, event: EventDict) -> EventDict:
            if method == "debug":
                raise structlog.DropEvent
            return event

        structlog.configure(
            processors=[
                *([drop_debug] if without_debug else []),
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _place_of_fault,
                _in_words,
                structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
            ],
            logger_factory=structlog.WriteLoggerFactory(cast(TextIO, file)),
        )

    configure_logging(level, configure)


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
