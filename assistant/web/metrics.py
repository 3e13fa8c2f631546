"""Metrics for Prometheus, computed on request from numbers that are collected anyway.

Nothing is registered with the library's global registry.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from assistant import __version__
from assistant.core.errors import StoreError
from assistant.core.sessions import session_role
from assistant.core.telemetry import DURATION_BUCKETS, Metrics, WorkKind
from assistant.health.status import DaemonStatus

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_PREFIX = "nocturne_"
# Name and description of each kind of work that is counted and timed.
_WORK_KINDS: dict[WorkKind, tuple[str, str]] = {
    "turn": ("turns", "Turns that ended, by how."),
    "model": ("model_calls", "Attempts to have a model answer, by purpose and outcome."),
    "tool": ("tool_runs", "Tools that were run."),
    "sleep": ("sleeps", "Sleeps that ended."),
    "phase": ("sleep_phases", "Phases of sleeps that ended."),
    "compaction": ("compactions", "Compactions that were tried."),
    "send": ("sends", "Messages handed to a bridge."),
}
_PROBLEMS = "Problems that `assistant status` lists."
_TOKENS = ("input", "output", "cache_read", "cache_write")


def render_metrics(status: DaemonStatus) -> bytes:
    """Return the status in Prometheus' text format."""
    return generate_latest(_StatusCollector(status))


class _StatusCollector(Collector):
    def __init__(self, status: DaemonStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        yield from _work_metrics(self._status.metrics)
        yield from _spend_metrics(self._status.metrics)
        # The process's own figures are always exposed.
        yield from _process_metrics(self._status.started_at)
        try:
            report = self._status.report()
        except StoreError:
            yield _gauge("problems", _PROBLEMS, 1)
        else:
            yield from _report_metrics(report)


def _work_metrics(metrics: Metrics) -> Iterator[Metric]:
    for work, (name, description) in _WORK_KINDS.items():
        labels = metrics.label_names(work)
        counter = CounterMetricFamily(f"{_PREFIX}{name}", description, labels=labels)
        timed = HistogramMetricFamily(f"{_PREFIX}{work}_seconds", f"How long each took: {description}", labels=labels)
        for words, tally in metrics.metrics_of(work).items():
            counter.add_metric(words, tally.times)
            bounds = [*map(str, DURATION_BUCKETS), "+Inf"]
            timed.add_metric(words, list(zip(bounds, accumulate(tally.counts), strict=True)), tally.seconds)
        yield counter
        yield timed


def _spend_metrics(metrics: Metrics) -> Iterator[Metric]:
    tokens = CounterMetricFamily(f"{_PREFIX}tokens", "Tokens of answered calls.", labels=("kind", "provider", "of"))
    usd = CounterMetricFamily(f"{_PREFIX}usd", "US dollars of answered calls.", labels=("kind", "provider"))
    for (kind, provider, outcome), tally in metrics.metrics_of("model").items():
        if outcome == "answered":
            for of in _TOKENS:
                tokens.add_metric((kind, provider, of), tally.sums[of])
            usd.add_metric((kind, provider), tally.sums["usd"])
    checkpoints = CounterMetricFamily(f"{_PREFIX}checkpoints", "Checkpoints made.", labels=("trigger",))
    for words, tally in metrics.metrics_of("compaction").items():
        checkpoints.add_metric(words, tally.sums["made"])
    yield from (tokens, usd, checkpoints)


def _process_metrics(started_at: datetime) -> Iterator[Metric]:
    build = InfoMetricFamily(f"{_PREFIX}build", "What runs.")
    build.add_metric((), {"version": __version__})
    yield build
    yield _gauge("start_timestamp_seconds", "When it was started.", started_at.timestamp())
    yield _gauge("resident_bytes", "Memory that the process has.", _resident_bytes())
    yield _gauge("open_descriptors", "Files and sockets that the process has open.", _open_descriptors())


def _report_metrics(report: Mapping[str, Any]) -> Iterator[Metric]:
    """Report sessions by role, without names of guests."""
    daemon, spent, last_sleep = report["daemon"], report["spent"], report["last_sleep"] or {}
    yield _gauge("problems", _PROBLEMS, len(report["problems"]))
    yield _gauge("inbox_waiting_sessions", "Sessions with messages that wait for a turn.", report["waiting"])
    yield _gauge("running_turns", "Turns that run.", daemon["running_turns"])
    yield _gauge("loop_lag_seconds", "How late the last heartbeat was.", daemon["loop_lag_seconds"])
    yield _labelled_gauge("outbox", "Deliveries by state.", "state", report["outbox"])
    up = {name: bridge["ok"] and bridge["state"] == "connected" for name, bridge in report["bridges"].items()}
    yield _labelled_gauge("bridge_up", "Whether a bridge is up.", "bridge", up)
    roles: Counter[str] = Counter(session_role(session["session"]) for session in report["sessions"])
    yield _labelled_gauge("sessions", "Conversations by role.", "role", roles)
    # Ascending, so that the fullest session of a role is used.
    measured = sorted((row["pressure"], row["session"]) for row in report["sessions"] if row["pressure"] is not None)
    fullest: dict[str, float] = {session_role(session): pressure for pressure, session in measured}
    yield _labelled_gauge("pressure_ratio", "How full the context is, the fullest of each role.", "role", fullest)
    yield _gauge("disk_free_bytes", "Free space on the file system of the data folder.", report["disk_free_bytes"])
    for name, description, iso in (
        ("last_tick", "When the runtime last looked for work.", daemon["last_tick"]),
        ("last_sleep", "When the last sleep ended.", last_sleep.get("ended_at")),
        ("last_backup", "When the newest backup was made.", report["backups"]["last"]),
    ):
        at = datetime.fromisoformat(iso).timestamp() if iso else None
        yield _gauge(f"{name}_timestamp_seconds", description, at)
    yield _gauge("backups", "Backups that are kept.", report["backups"]["kept"])
    sums = {"day": spent["today_usd"], "month": spent["month_usd"]}
    yield _labelled_gauge("spent_usd", "Spent so far, with the worst case of calls that still run.", "period", sums)
    caps = {"day": spent["daily_cap_usd"], "month": spent["monthly_cap_usd"]}
    caps = {period: cap for period, cap in caps.items() if cap}
    yield _labelled_gauge("budget_usd", "The caps; no line for none.", "period", caps)


def _gauge(name: str, description: str, value: float | None) -> Metric:
    """A metric with an unknown value has no line."""
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", description)
    if value is not None:
        gauge.add_metric((), value)
    return gauge


def _labelled_gauge(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", description, labels=(label,))
    for word, value in values.items():
        gauge.add_metric((word,), value)
    return gauge


def _resident_bytes() -> int | None:
    """Return the memory of this process; None if the system does not tell (macOS)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _open_descriptors() -> int | None:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return None
