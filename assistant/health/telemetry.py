"""Metrics, which are always kept, and traces for those who want them: only then the OpenTelemetry SDK is loaded."""

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
    """What is measured of the work."""

    metrics: Metrics
    tracer: Tracer
    problem: str = ""  # why no spans are sent although the settings ask for them
    exporter: OtlpTracer | None = None

    def close(self) -> None:
        if self.exporter is not None:
            self.exporter.close()


def open_telemetry(settings: TelemetrySettings) -> TelemetrySetup:
    metrics = Metrics()
    if settings.traces == "off":
        return TelemetrySetup(metrics, metrics)
    try:
        from assistant.health import otlp  # an extra
    except ModuleNotFoundError:
        return TelemetrySetup(metrics, metrics, _MISSING)
    spans = otlp.spans_to(settings.endpoint or _ENDPOINT)
    return TelemetrySetup(metrics, CombinedTracer((metrics, spans)), exporter=spans)
