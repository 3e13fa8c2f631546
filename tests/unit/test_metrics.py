"""Sums of what was done, and what Prometheus makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from assistant.core.telemetry import DURATION_BUCKETS, NULL_TRACER, CombinedTracer, Metrics
from assistant.health.vitals import Gauges
from assistant.web.metrics import render_metrics

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
QUIET = Gauges(at=NOW, started_at=NOW, version="1.2.3", problems=0, waiting=0, running_turns=0)


class Clock:
    """Tells what it was set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class MetricsVitals:
    metrics: Metrics
    told: Gauges = field(default=QUIET)

    def stall_reason(self) -> str:
        return ""

    def readiness_problems(self) -> Sequence[str]:
        return ()

    def gauges(self) -> Gauges:
        return self.told


def samples(watched: MetricsVitals) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
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
    told = replace(QUIET, outbox={"sent": 3}, bridges={"matrix": False}, last_sleep=NOW, pressures={"guest": 0.5})
    found = samples(MetricsVitals(tallies, told))
    labels = (("kind", "chat"), ("outcome", "answered"), ("provider", "anthropic"))
    assert found["nocturne_model_calls_total", labels] == 1
    assert found["nocturne_model_seconds_bucket", tuple(sorted((*labels, ("le", "2.5"))))] == 0
    assert found["nocturne_model_seconds_bucket", tuple(sorted((*labels, ("le", "5.0"))))] == 1
    assert found["nocturne_usd_total", (("kind", "chat"), ("provider", "anthropic"))] == 0.25
    of_input = (("kind", "chat"), ("of", "input"), ("provider", "anthropic"))
    assert found["nocturne_tokens_total", of_input] == 1000
    assert found["nocturne_outbox", (("state", "sent"),)] == 3
    assert found["nocturne_bridge_up", (("bridge", "matrix"),)] == 0
    assert found["nocturne_pressure_ratio", (("role", "guest"),)] == 0.5
    assert found["nocturne_last_sleep_timestamp_seconds", ()] == NOW.timestamp()


def test_what_is_not_known_has_no_line_and_no_zero_stands_for_it() -> None:
    found = samples(MetricsVitals(Metrics()))
    assert ("nocturne_last_sleep_timestamp_seconds", ()) not in found
    assert ("nocturne_disk_free_bytes", ()) not in found
    assert found["nocturne_problems", ()] == 0


def test_nothing_of_ours_is_in_the_librarys_global_registry() -> None:
    render_metrics(MetricsVitals(Metrics()))
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("nocturne")]
