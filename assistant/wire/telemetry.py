"""Who listens to the work of a home: one part of the composition root (`assistant.wire.app`).

The sums for `/metrics` are always kept; the OpenTelemetry SDK is loaded for those alone who want its spans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from assistant.core.errors import install_hint
from assistant.core.telemetry import CombinedTracer, Metrics, Tracer
from assistant.settings.settings import Settings

_ENDPOINT = "http://127.0.0.1:4318/v1/traces"
_MISSING = (
    'telemetry.traces is "otlp", and a package that it needs is not installed, so that no spans are sent; '
    f"{install_hint('telemetry')}."
)


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class TelemetrySetup:
    """`tracer` is handed to whoever works; `problem` tells why nobody gets the spans that were asked for."""

    metrics: Metrics
    tracer: Tracer
    problem: str = ""
    close: Callable[[], None] = field(default=_nothing)


def open_telemetry(settings: Settings) -> TelemetrySetup:
    tallies = Metrics()
    wanted = settings.values.telemetry
    if wanted.traces == "off":
        return TelemetrySetup(tallies, tallies)
    try:
        from assistant.health import otlp  # an extra
    except ModuleNotFoundError:
        return TelemetrySetup(tallies, tallies, _MISSING)
    spans = otlp.spans_to(wanted.endpoint or _ENDPOINT)
    return TelemetrySetup(tallies, CombinedTracer((tallies, spans)), close=spans.close)
