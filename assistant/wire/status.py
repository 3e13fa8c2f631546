"""How a home is, put together: one part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from assistant import __version__
from assistant.core.errors import StoreError
from assistant.core.ports import Model
from assistant.core.sessions import session_role
from assistant.core.telemetry import Metrics
from assistant.gateway.dispatcher import Dispatcher
from assistant.health import status as report
from assistant.health.gauges import Gauges
from assistant.health.problems import StatusSources
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.runtime import Runtime
from assistant.service.heartbeat import StallDetector
from assistant.settings.settings import Settings
from assistant.wire.agenda import agenda_problems
from assistant.wire.sessions import reset_problems
from assistant.wire.stores import Stores, token_counter_for

_STATM, _DESCRIPTORS = Path("/proc/self/statm"), Path("/proc/self/fd")


class RunningApp(Protocol):
    """What a running house shows of itself."""

    settings: Settings
    stores: Stores
    runtime: Runtime
    dispatcher: Dispatcher
    progress: StallDetector
    models: CurrentModels
    context_window: ContextWindow
    metrics: Metrics
    started_at: datetime


def stored_status(settings: Settings, stores: Stores, now: datetime, tokens: str = "") -> dict[str, Any]:
    """What the stores alone say of the home; `tokens` tells how a running daemon counts them."""
    sources = StatusSources(
        stores.conversation,
        stores.outbox,
        stores.ledger,
        stores.breakers,
        stores.journal,
        stores.consolidations,
        stores.erasure,
        stores.memories,
        stores.backups,
        stores.jobs,
    )
    found = report.build_stored_report(settings, sources, now)
    more = *reset_problems(settings, stores, now), *agenda_problems(settings, stores, now)
    found |= report.report_verdict([*found["problems"], *more])
    return {**found, "tokens": tokens or token_counter_for(settings, settings.values.model.name).describe()}


def running_status(app: RunningApp, now: datetime, problems: Sequence[str], waiting: Sequence[str]) -> dict[str, Any]:
    """The whole report of a running house; `problems` are those that no store tells of, `waiting` the settings that
    hold from the next start on."""
    model = app.models.answering
    found = stored_status(app.settings, app.stores, now, app.context_window.describe_token_counting(model.name))
    measured = ((one["session"], app.context_window.pressure(one["session"])) for one in found["sessions"])
    full = {session: pressure for session, pressure in measured if pressure is not None}
    problems = [*found["problems"], *problems, *_full(app, full)]
    runtime = {
        **app.runtime.status(),
        **app.progress.status(),
        "started_at": app.started_at.isoformat(),
        "uptime_seconds": round((now - app.started_at).total_seconds()),
    }
    found = {**found, "problems": problems, "changed_settings": list(waiting)}
    return report.add_daemon_report(found, runtime, app.dispatcher.status(), model_label(model), full)


def model_label(model: Model) -> str:
    """Who answers, as people read it."""
    return f"{model.provider} {model.name}" if model.provider != model.name else model.name


def _full(house: RunningApp, pressures: Mapping[str, float]) -> list[str]:
    """Conversations that nobody may make room in."""
    values = house.settings.values
    if values.compaction.auto:
        return []
    return [
        f"The context of {key} is full, and compaction.auto is off. `/compact` makes room."
        for key, pressure in pressures.items()
        if pressure >= values.context.emergency_threshold
    ]


class AppVitals:
    """Implements `vital_ports.Vitals` over a running house."""

    def __init__(self, app: RunningApp, status: Callable[[], Mapping[str, Any]], clock: Callable[[], datetime]) -> None:
        self._house = app
        self._status = status
        self._clock = clock

    @property
    def metrics(self) -> Metrics:
        return self._house.metrics

    def stall_reason(self) -> str:
        return self._house.progress.fault

    def readiness_problems(self) -> Sequence[str]:
        found = [self.stall_reason()] if self.stall_reason() else []
        try:
            self._house.stores.home_guard.require_writable()
            runtime = self._house.runtime.status()
        except StoreError as error:
            return [*found, str(error)]
        blocked = [str(text) for text in runtime["blocked"].values()]
        trouble = [runtime["trouble"]] if runtime["trouble"] else []
        begun = [] if runtime["last_tick"] else ["The runtime has not passed yet."]
        return list(dict.fromkeys([*found, *trouble, *blocked, *begun]))

    def gauges(self) -> Gauges:
        now = self._clock()
        try:
            told = self._status()
        except StoreError:
            # What the process knows of itself is told in any case.
            return self._of_process(now, problems=1)
        return self._of(told, now)

    def _of(self, told: Mapping[str, Any], now: datetime) -> Gauges:
        spent, daemon = told["spent"], told["daemon"]
        caps = {"day": spent["daily_cap_usd"], "month": spent["monthly_cap_usd"]}
        pressures: dict[str, float] = {}
        for one in told["sessions"]:
            role = session_role(one["session"])
            if one["pressure"] is not None:
                pressures[role] = max(pressures.get(role, 0.0), one["pressure"])
        last = told["last_sleep"]
        return Gauges(
            at=now,
            started_at=self._house.started_at,
            version=__version__,
            problems=len(told["problems"]),
            waiting=told["waiting"],
            running_turns=daemon["running_turns"],
            outbox=told["outbox"],
            bridges={name: one["ok"] and one["state"] == "connected" for name, one in told["bridges"].items()},
            sessions=Counter(session_role(one["session"]) for one in told["sessions"]),
            pressures=pressures,
            last_tick=_moment(daemon["last_tick"]),
            last_sleep=_moment(last["ended_at"] if last else None),
            last_backup=_moment(told["backups"]["last"]),
            backups=told["backups"]["kept"],
            spent_usd={"day": spent["today_usd"], "month": spent["month_usd"]},
            cap_usd={period: cap for period, cap in caps.items() if cap},
            disk_free_bytes=told["disk_free_bytes"],
            loop_lag_seconds=daemon["loop_lag_seconds"],
            resident_bytes=resident_bytes(),
            open_descriptors=open_descriptors(),
        )

    def _of_process(self, now: datetime, problems: int) -> Gauges:
        return Gauges(
            at=now,
            started_at=self._house.started_at,
            version=__version__,
            problems=problems,
            waiting=0,
            running_turns=0,
            resident_bytes=resident_bytes(),
            open_descriptors=open_descriptors(),
        )


def resident_bytes(statm: Path = _STATM) -> int | None:
    """The memory that this process has; None where the system does not tell (macOS)."""
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
