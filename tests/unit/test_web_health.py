"""`/healthz`, `/readyz` and `/metrics`, as whoever watches reads them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
from fastapi import FastAPI

from assistant.core.telemetry import Metrics
from assistant.web.app import health_routes
from assistant.web.deps import AccessRules
from assistant.web.guard import AccessGuard
from tests.unit.test_metrics import NOW, QUIET


@dataclass
class HealthStub:
    """An app in the condition that a test says."""

    fault: str = ""
    reasons: Sequence[str] = ()
    metrics: Metrics = field(default_factory=Metrics)
    started_at: datetime = NOW

    def stall_reason(self) -> str:
        return self.fault

    def readiness_problems(self) -> Sequence[str]:
        return self.reasons

    def report(self) -> dict[str, Any]:
        return QUIET


async def asked(vital: HealthStub, path: str, *, guarded: bool = False) -> httpx.Response:
    app = FastAPI()
    app.router.routes += health_routes(vital)
    around = AccessGuard(app, AccessRules(lambda: "token"), time.monotonic) if guarded else app
    async with httpx.AsyncClient(transport=httpx.ASGITransport(around), base_url="http://localhost") as client:
        return await client.get(path)


async def test_f40_a_runtime_that_stands_still_is_not_alive_and_a_home_that_is_away_is_no_reason_to_start_anew() -> (
    None
):
    wedged = await asked(HealthStub(fault="The runtime has not passed for 90 s."), "/healthz")
    assert (wedged.status_code, wedged.json()["alive"]) == (503, False)
    away = HealthStub(reasons=["script.db is not there any more."])
    alive, ready = await asked(away, "/healthz"), await asked(away, "/readyz")
    assert (alive.status_code, ready.status_code) == (200, 503)
    assert ready.json() == {"ready": False, "problems": ["script.db is not there any more."]}


async def test_whoever_asks_from_elsewhere_hears_no_more_than_yes_or_no() -> None:
    vital = HealthStub(fault="A turn of peer:telegram:7 has not ended.", reasons=["/srv/ada is full."])
    for path, name in (("/healthz", "alive"), ("/readyz", "ready")):
        answer = await asked(vital, path, guarded=True)
        assert (answer.status_code, answer.json()) == (503, {name: False})


async def test_nothing_of_it_is_kept_on_the_way_and_metrics_are_what_prometheus_takes() -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        answer = await asked(HealthStub(), path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
