"""Metrics, which are always collected, and traces, for which the OpenTelemetry SDK is loaded only if enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.core.dataclass import dataclass
from assistant.core.errors import install_hint
from assistant.core.telemetry import CombinedTracer, Metrics, Tracer
from assistant.settings.sections import TelemetrySettings

if TYPE_CHECKING:
    from assistant.health.otlp import OtlpTracer

_ENDPOINT = "http://127.0.0.1:4318/v1/traces"
_MISSING = (
    'telemetry.traces is "otlp", and a package that it needs is not installed, so that no spans are sent; '
    f"{install_hint('telemetry')}."
)


@dataclass(frozen=True, slots=True)
class TelemetrySetup:
    """The configured metrics and traces."""

    metrics: Metrics
    tracer: Tracer
    problem: str = ""  # why no spans are sent although the settings enable them
    exporter: OtlpTracer | None = None

    def close(self) -> None:
        """Send the remaining spans, waiting only briefly."""
        if self.exporter is not None:
            self.exporter.close()


def open_telemetry(settings: TelemetrySettings) -> TelemetrySetup:
    """Return metrics, and spans too if they are on. A missing optional package is a problem of the result, not an
    error."""
    metrics = Metrics()
    if settings.traces == "off":
        return TelemetrySetup(metrics, metrics)
    try:
        from assistant.health import otlp  # an optional dependency
    except ModuleNotFoundError:
        return TelemetrySetup(metrics, metrics, _MISSING)
    spans = otlp.spans_to(settings.endpoint or _ENDPOINT)
    return TelemetrySetup(metrics, CombinedTracer((metrics, spans)), exporter=spans)
