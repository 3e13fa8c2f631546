"""Metrics in the form of Prometheus, made when they are asked for from numbers that are kept anyway.

A registry of its own for each answer; nothing is registered with the library's global one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from assistant.core.telemetry import DURATION_BUCKETS, Metrics, WorkKind
from assistant.health.vitals import Gauges, Vitals

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
_TOKENS = ("input", "output", "cache_read", "cache_write")


def render_metrics(vitals: Vitals) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_MetricsCollector(vitals))
    return generate_latest(registry)


class _MetricsCollector(Collector):
    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _work_metrics(self._vitals.metrics)
        yield from _spend_metrics(self._vitals.metrics)
        gauges = self._vitals.gauges()
        yield from _current_metrics(gauges)
        yield from _dated_metrics(gauges)


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


def _current_metrics(gauges: Gauges) -> Iterator[Metric]:
    build = InfoMetricFamily(f"{_PREFIX}build", "What runs.")
    build.add_metric((), {"version": gauges.version})
    yield build
    yield _gauge("problems", "Problems that `assistant status` lists.", gauges.problems)
    yield _gauge("inbox_waiting_sessions", "Sessions with messages that wait for a turn.", gauges.waiting)
    yield _gauge("running_turns", "Turns that run.", gauges.running_turns)
    yield _gauge("loop_lag_seconds", "How late the last heartbeat was.", gauges.loop_lag_seconds)
    yield _labelled_gauge("outbox", "Deliveries by state.", "state", gauges.outbox)
    yield _labelled_gauge(
        "bridge_up", "Whether a bridge is up.", "bridge", {name: float(up) for name, up in gauges.bridges.items()}
    )
    yield _labelled_gauge("sessions", "Conversations by role.", "role", gauges.sessions)
    yield _labelled_gauge(
        "pressure_ratio", "How full the context is, the fullest of each role.", "role", gauges.pressures
    )
    yield _gauge("resident_bytes", "Memory that the process has.", gauges.resident_bytes)
    yield _gauge("open_descriptors", "Files and sockets that the process has open.", gauges.open_descriptors)
    yield _gauge("disk_free_bytes", "Free space on the file system of the data folder.", gauges.disk_free_bytes)


def _dated_metrics(gauges: Gauges) -> Iterator[Metric]:
    yield _gauge("start_timestamp_seconds", "When it was started.", _epoch(gauges.started_at))
    yield _gauge("last_tick_timestamp_seconds", "When the runtime last looked for work.", _epoch(gauges.last_tick))
    yield _gauge("last_sleep_timestamp_seconds", "When the last sleep ended.", _epoch(gauges.last_sleep))
    yield _gauge("last_backup_timestamp_seconds", "When the newest backup was made.", _epoch(gauges.last_backup))
    yield _gauge("backups", "Backups that are kept.", gauges.backups)
    yield _labelled_gauge(
        "spent_usd", "Spent so far, with the worst case of calls that still run.", "period", gauges.spent_usd
    )
    yield _labelled_gauge("budget_usd", "The caps; no line for none.", "period", gauges.cap_usd)


def _gauge(name: str, description: str, value: float | None) -> Metric:
    """A value that is not known has no line."""
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", description)
    if value is not None:
        gauge.add_metric((), value)
    return gauge


def _labelled_gauge(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", description, labels=(label,))
    for word, value in values.items():
        gauge.add_metric((word,), value)
    return gauge


def _epoch(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
