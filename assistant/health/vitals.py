"""What monitors ask of a running daemon: whether it is alive, whether it can serve, and its gauges."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant import __version__
from assistant.core.errors import StoreError
from assistant.core.sessions import session_role
from assistant.core.telemetry import Metrics
from assistant.runtime.runtime import Runtime
from assistant.service.heartbeat import StallDetector
from assistant.store.home.guard import HomeGuard

_STATM, _DESCRIPTORS = Path("/proc/self/statm"), Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class Gauges:
    """A daemon at one moment, without any name of a guest."""

    at: datetime
    started_at: datetime
    version: str
    problems: int
    waiting: int
    running_turns: int
    outbox: Mapping[str, int] = field(default_factory=dict)  # deliveries by state
    bridges: Mapping[str, bool] = field(default_factory=dict)  # whether each is up
    sessions: Mapping[str, int] = field(default_factory=dict)  # by role
    pressures: Mapping[str, float] = field(default_factory=dict)  # the fullest context of each role, 0-1 and above
    last_tick: datetime | None = None
    last_sleep: datetime | None = None
    last_backup: datetime | None = None
    backups: int = 0
    spent_usd: Mapping[str, float] = field(default_factory=dict)
    cap_usd: Mapping[str, float] = field(default_factory=dict)
    disk_free_bytes: int | None = None
    loop_lag_seconds: float = 0.0
    resident_bytes: int | None = None
    open_descriptors: int | None = None


class Vitals:
    """A running daemon, watched. Nothing here writes, and nothing raises."""

    def __init__(
        self,
        metrics: Metrics,
        progress: StallDetector,
        home_guard: HomeGuard,
        runtime: Runtime,
        status: Callable[[], Mapping[str, Any]],
        clock: Callable[[], datetime],
        started_at: datetime,
    ) -> None:
        self.metrics = metrics
        self._progress = progress
        self._home_guard = home_guard
        self._runtime = runtime
        self._status = status
        self._clock = clock
        self._started_at = started_at

    def stall_reason(self) -> str:
        """What makes no progress, as a sentence; "" while all does. A restart mends it."""
        return self._progress.fault

    def readiness_problems(self) -> Sequence[str]:
        """Why messages cannot be taken and answered just now, a sentence each; () while they can."""
        stalled = [self.stall_reason()] if self.stall_reason() else []
        try:
            self._home_guard.require_writable()
            runtime = self._runtime.status()
        except StoreError as error:
            return [*stalled, str(error)]
        blocked = [str(text) for text in runtime["blocked"].values()]
        trouble = [runtime["trouble"]] if runtime["trouble"] else []
        starting = [] if runtime["last_tick"] else ["The assistant is starting."]
        return list(dict.fromkeys([*stalled, *trouble, *blocked, *starting]))

    def gauges(self) -> Gauges:
        now = self._clock()
        memory, descriptors = resident_bytes(), open_descriptors()
        try:
            status = self._status()
        except StoreError:
            # What the process knows of itself is reported in any case.
            return Gauges(
                now, self._started_at, __version__, 1, 0, 0, resident_bytes=memory, open_descriptors=descriptors
            )
        spent, daemon, last_sleep = status["spent"], status["daemon"], status["last_sleep"]
        caps = {"day": spent["daily_cap_usd"], "month": spent["monthly_cap_usd"]}
        pressures: dict[str, float] = {}
        for session in status["sessions"]:
            role = session_role(session["session"])
            if session["pressure"] is not None:
                pressures[role] = max(pressures.get(role, 0.0), session["pressure"])
        return Gauges(
            at=now,
            started_at=self._started_at,
            version=__version__,
            problems=len(status["problems"]),
            waiting=status["waiting"],
            running_turns=daemon["running_turns"],
            outbox=status["outbox"],
            bridges={
                name: bridge["ok"] and bridge["state"] == "connected" for name, bridge in status["bridges"].items()
            },
            sessions=Counter(session_role(session["session"]) for session in status["sessions"]),
            pressures=pressures,
            last_tick=_moment(daemon["last_tick"]),
            last_sleep=_moment(last_sleep["ended_at"] if last_sleep else None),
            last_backup=_moment(status["backups"]["last"]),
            backups=status["backups"]["kept"],
            spent_usd={"day": spent["today_usd"], "month": spent["month_usd"]},
            cap_usd={period: cap for period, cap in caps.items() if cap},
            disk_free_bytes=status["disk_free_bytes"],
            loop_lag_seconds=daemon["loop_lag_seconds"],
            resident_bytes=memory,
            open_descriptors=descriptors,
        )


def resident_bytes(statm: Path = _STATM) -> int | None:
    """The memory that this process has; None where the system does not say (macOS)."""
    try:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def open_descriptors(folder: Path = _DESCRIPTORS) -> int | None:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return None


def _moment(iso: str | None) -> datetime | None:
    return datetime.fromisoformat(iso) if iso else None
