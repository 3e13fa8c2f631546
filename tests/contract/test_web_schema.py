"""The web API does what `/openapi.json` says: schemathesis makes requests from it, over TCP, to an app that runs.

The event stream never ends and is left to `test_web_resume.py`.
"""

from __future__ import annotations

import asyncio
import threading
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import CheckFunction
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.support.web_api import TOKEN, run_web_api

SHOWN = {"Authorization": f"Bearer {TOKEN}"}


def echo(request: object) -> str:
    return "I see."


class SchemaApp:
    """An app that runs in a thread of its own, until it is told to stop."""

    def __init__(self, home: object) -> None:
        self._home = home
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="an app")
        self._thread.start()
        self._ready.wait(30)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with run_web_api(self._home, echo) as it:  # type: ignore[arg-type]
            await it.tcp.say("The boat is called Heron.")
            await it.wait_idle()
            self.address = f"http://127.0.0.1:{it.port}"
            self._ready.set()
            await self._stop.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.BaseSchema]:
    running = SchemaApp(tmp_path_factory.mktemp("home"))
    try:
        # The first description is made by a process of its own, for which a busy machine needs its time.
        yield schemathesis.openapi.from_url(f"{running.address}/openapi.json", headers=SHOWN, timeout=100)
    finally:
        running.stop()


ROUTES = [
    route
    for names in tomllib.loads((Path(__file__).parent / "scopes.toml").read_text(encoding="utf-8"))["routes"].values()
    for route in names
    if route != "GET /v1/events"
]


# What is asked there may be well-formed and not possible all the same, as a command that there is not, or of a browser
# that is not logged in.
MAY_BE_REFUSED = (
    "POST /v1/chat/completions",
    "POST /v1/commands",
    "POST /v1/messages",
    "POST /v1/sessions/{session}/end",
    "GET /v1/push",
    "POST /v1/push",
    "POST /v1/push/off",
)


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_asked_as_described_is_answered_as_described(api: schemathesis.BaseSchema, route: str) -> None:
    excluded = [positive_data_acceptance] if route in MAY_BE_REFUSED else []
    answered = ask(api, route, schemathesis.GenerationMode.POSITIVE, excluded)
    assert answered and max(answered) < 500


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_asked_otherwise_is_refused_as_described(api: schemathesis.BaseSchema, route: str) -> None:
    method, path = route.split()
    described = api[path][method].definition.raw
    if "parameters" not in described and "requestBody" not in described:
        assert method == "GET" or path in ("/v1/logout", "/v1/push/off"), "what changes something is told what"
        return
    answered = ask(api, route, schemathesis.GenerationMode.NEGATIVE, [])
    assert answered and max(answered) < 500


def ask(
    api: schemathesis.BaseSchema, route: str, mode: schemathesis.GenerationMode, excluded: Sequence[CheckFunction]
) -> set[int]:
    """The statuses of the answers, each of which was as described."""
    method, path = route.split()
    answered: set[int] = set()

    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=api[path][method].as_strategy(generation_mode=mode))
    def answers(case: schemathesis.Case[Any]) -> None:
        response = case.call(headers=SHOWN)
        answered.add(response.status_code)
        # Refused before it was read: schemathesis does not know it for a refusal.
        known = [negative_data_rejection] if response.status_code == 431 else []
        case.validate_response(response, excluded_checks=[*excluded, *known])

    answers()
    return answered
