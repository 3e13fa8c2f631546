"""The loggers: `log = get_logger()` in each module that logs. `assistant/cli/logging_setup.py` says where to.

structlog, which writes the lines, is loaded with the first one that is written: a command seldom writes any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from assistant.core.imports import hidden_modules

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40}

# The level below which nothing is written, and what says where the rest is written to.
_level = "debug"
_configure: Callable[[Any], None] | None = None


def configure_logging(level: str, configure: Callable[[Any], None]) -> None:
    """Call `configure` with structlog once a line of this level or above is written; now, where it is loaded."""
    global _level, _configure
    _level, _configure = level, configure
    if _is_loaded():
        _configure_structlog(_structlog())


def set_log_level(level: str) -> None:
    """Takes effect for all loggers at once."""
    global _level
    _level = level
    if _is_loaded():
        _set_level(_structlog())


def get_logger() -> Any:
    """Return a logger as `structlog.get_logger` does."""
    return _LOGGER


def load_logging() -> None:
    """Load structlog now, in a process whose first line comes while somebody waits. Call it before threads start, from
    which it hides what it does not need."""
    _structlog()


class _Logger:
    def __getattr__(self, method: str) -> Any:
        # Methods of any level are not in the list.
        if not _is_loaded() and _LEVELS.get(method, 50) < _LEVELS[_level]:
            return _write_nothing
        return getattr(_structlog().get_logger(), method)


_LOGGER = _Logger()


def _write_nothing(event: str, **values: Any) -> None:
    """As structlog does below the level."""


def _is_loaded() -> bool:
    return "structlog" in sys.modules


@cache
def _structlog() -> Any:
    was_loaded = _is_loaded()
    # It imports both where they are installed, for tracebacks in colour and Twisted's loggers, which are not used.
    with hidden_modules("rich", "twisted"):
        import structlog
    if not was_loaded:
        _configure_structlog(structlog)
    return structlog


def _configure_structlog(structlog: Any) -> None:
    if _configure is not None:
        _configure(structlog)
        _set_level(structlog)


def _set_level(structlog: Any) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_level))
