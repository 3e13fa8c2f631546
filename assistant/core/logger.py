"""The loggers: `log = get_logger()` in each module that logs. `assistant/cli/logging_setup.py` says where to."""

from __future__ import annotations

from assistant.core.imports import hidden_modules

# structlog imports both where they are installed, for tracebacks in colour and Twisted's loggers, which are not used:
# a fifth of the time in which a command starts.
with hidden_modules("rich", "twisted"):
    import structlog

get_logger = structlog.get_logger

__all__ = ["get_logger", "structlog"]
