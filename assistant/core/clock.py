"""The wall clock. The daemon and the command line read it; everybody else is handed the time as `now`."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
