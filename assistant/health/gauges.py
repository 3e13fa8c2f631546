"""What monitors ask of a running daemon: whether it is alive, whether it can serve, and its gauges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from assistant.core.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class Gauges:
    """A house at one moment. No name of a guest stands in here: `pressures` are the largest by role of the sessions,
    as a share of the context; `outbox` counts deliveries by state, `bridges` tells which are up."""

    at: datetime
    started_at: datetime
    version: str
    problems: int
    waiting: int
    running_turns: int
    outbox: Mapping[str, int] = field(default_factory=dict)
    bridges: Mapping[str, bool] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    pressures: Mapping[str, float] = field(default_factory=dict)
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


class VitalsPort(Protocol):
    """A running house, watched. Nothing here writes, and nothing raises."""

    @property
    def metrics(self) -> Metrics: ...

    def stall_reason(self) -> str:
        """What does not get on, as a sentence; "" while all does. A new start mends it."""
        ...

    def readiness_problems(self) -> Sequence[str]:
        """Why messages cannot be taken and answered just now, a sentence each; () while they can."""
        ...

    def gauges(self) -> Gauges: ...
