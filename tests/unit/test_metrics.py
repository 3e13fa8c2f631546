"""Sums of what was done, and what Prometheus makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from assistant.core.errors import StoreError
from assistant.core.telemetry import DURATION_BUCKETS, NULL_TRACER, CombinedTracer, Metrics
from assistant.web.metrics import render_metrics

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
QUIET: dict[str, Any] = {
    "problems": [],
    "sessions": [],
    "waiting": 0,
    "outbox": {},
    "bridges": {},
    "daemon": {"running_turns": 0, "loop_lag_seconds": 0.0, "last_tick": None},
    "spent": {"today_usd": 0.0, "daily_cap_usd": 5.0, "month_usd": 0.0, "monthly_cap_usd": 0.0},
    "last_sleep": None,
    "backups": {"kept": 0, "last": None},
    "disk_free_bytes": None,
}


class Clock:
    """Tells what it was set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class MetricsStatus:
    """What of a `DaemonStatus` metrics are made of; without a report its stores cannot be read."""

    metrics: Metrics
    told: dict[str, Any] | None = field(default_factory=lambda: QUIET)
    started_at: datetime = NOW

    def report(self) -> dict[str, Any]:
        if self.told is None:
            raise StoreError("script.db is not there any more.")
        return self.told


def samples(watched: MetricsStatus) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What a Prometheus reads: (name, labels) and the value."""
    families = text_string_to_metric_families(render_metrics(watched).decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_work_is_counted_by_what_came_of_it_and_timed() -> None:
    clock = Clock()
    tallies = Metrics(clock)
    for seconds, state in ((0.02, "answered"), (400.0, "answered"), (0.3, "failed")):
        with tallies.span("turn", role="owner") as span:
            clock.now += seconds
            span.set_attributes(state=state)
    answered = tallies.metrics_of("turn")["owner", "answered"]
    assert answered.times == 2
    assert answered.seconds == pytest.approx(400.02)
    assert answered.counts[DURATION_BUCKETS.index(0.025)] == 1 and answered.counts[-1] == 1
    assert tallies.metrics_of("turn")["owner", "failed"].times == 1


def test_work_that_was_left_before_anything_was_told_is_counted_as_such() -> None:
    tallies = Metrics()
    with pytest.raises(ValueError, match="no"), tallies.span("turn", role="owner"):
        raise ValueError("no")
    with pytest.raises(ValueError, match="no"), tallies.span("send", bridge="matrix"):
        raise ValueError("no")
    assert list(tallies.metrics_of("turn")) == [("owner", "cut off")]
    assert list(tallies.metrics_of("send")) == [("matrix", "no")]


def test_everybody_who_listens_hears_the_same() -> None:
    one, other = Metrics(), Metrics()
    with CombinedTracer((one, NULL_TRACER, other)).span("tool", tool="look", role="owner") as span:
        span.set_attributes(ok=True)
    assert list(one.metrics_of("tool")) == list(other.metrics_of("tool")) == [("look", "yes")]


def test_prometheus_reads_counters_histograms_and_gauges() -> None:
    clock = Clock()
    tallies = Metrics(clock)
    with tallies.span("model", kind="chat", provider="anthropic", model="m") as span:
        clock.now += 3.0
        span.set_attributes(outcome="answered", input=1000, output=20, cache_read=0, cache_write=5, usd=0.25)
    told = {
        **QUIET,
        "outbox": {"sent": 3},
        "bridges": {"matrix": {"ok": True, "state": "connecting"}, "telegram": {"ok": True, "state": "connected"}},
        "last_sleep": {"ended_at": NOW.isoformat()},
        "sessions": [
            {"session": "peer:matrix:@bo:example.org", "pressure": 0.5},
            {"session": "peer:telegram:7", "pressure": 0.25},
            {"session": "main", "pressure": None},
        ],
    }
    found = samples(MetricsStatus(tallies, told))
    labels = (("kind", "chat"), ("outcome", "answered"), ("provider", "anthropic"))
    assert found["nocturne_model_calls_total", labels] == 1
    assert found["nocturne_model_seconds_bucket", tuple(sorted((*labels, ("le", "2.5"))))] == 0
    assert found["nocturne_model_seconds_bucket", tuple(sorted((*labels, ("le", "5.0"))))] == 1
    assert found["nocturne_usd_total", (("kind", "chat"), ("provider", "anthropic"))] == 0.25
    of_input = (("kind", "chat"), ("of", "input"), ("provider", "anthropic"))
    assert found["nocturne_tokens_total", of_input] == 1000
    assert found["nocturne_outbox", (("state", "sent"),)] == 3
    assert found["nocturne_bridge_up", (("bridge", "matrix"),)] == 0
    assert found["nocturne_bridge_up", (("bridge", "telegram"),)] == 1
    assert found["nocturne_pressure_ratio", (("role", "guest"),)] == 0.5
    assert found["nocturne_sessions", (("role", "guest"),)] == 2
    assert ("nocturne_pressure_ratio", (("role", "owner"),)) not in found
    assert found["nocturne_last_sleep_timestamp_seconds", ()] == NOW.timestamp()
    assert found["nocturne_budget_usd", (("period", "day"),)] == 5.0
    assert ("nocturne_budget_usd", (("period", "month"),)) not in found


def test_what_is_not_known_has_no_line_and_no_zero_stands_for_it() -> None:
    found = samples(MetricsStatus(Metrics()))
    assert ("nocturne_last_sleep_timestamp_seconds", ()) not in found
    assert ("nocturne_disk_free_bytes", ()) not in found
    assert found["nocturne_problems", ()] == 0


def test_a_process_whose_stores_cannot_be_read_still_says_what_it_knows_of_itself() -> None:
    found = samples(MetricsStatus(Metrics(), None))
    assert found["nocturne_problems", ()] == 1 and found["nocturne_start_timestamp_seconds", ()] == NOW.timestamp()
    assert ("nocturne_backups", ()) not in found


def test_nothing_of_ours_is_in_the_librarys_global_registry() -> None:
    render_metrics(MetricsStatus(Metrics()))
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("nocturne")]
