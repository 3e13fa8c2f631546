"""Requests are counted, and background work lets them go first, for a moment."""

from __future__ import annotations

import asyncio
from typing import Any

from assistant.web.request_counter import RequestCounter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def _app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start"})


async def _ask(counter: RequestCounter, path: str = "/v1/status") -> None:
    async def nothing(*_: object) -> Any:
        return None

    await counter({"type": "http", "path": path}, nothing, nothing)


async def test_who_waits_goes_on_once_no_request_has_come_for_a_moment() -> None:
    clock = Clock()
    counter = RequestCounter(_app, clock)
    await counter.wait_until_quiet()  # nothing was asked yet
    await _ask(counter)
    waiting = asyncio.create_task(counter.wait_until_quiet())
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.now += 1.6
    await waiting


async def test_whoever_asks_all_the_time_holds_background_work_up_for_two_seconds_at_most() -> None:
    clock = Clock()
    counter = RequestCounter(_app, clock)
    await _ask(counter)
    waiting = asyncio.create_task(counter.wait_until_quiet())
    asked = 0
    while not waiting.done():
        clock.now += 0.1
        await _ask(counter)
        asked += 1
        await asyncio.sleep(0)
    assert asked >= 20


async def test_whether_a_request_is_answered_is_known_for_a_moment_longer() -> None:
    clock = Clock()
    counter = RequestCounter(_app, clock)
    assert not counter.is_answering()
    await _ask(counter)
    assert counter.is_answering()
    clock.now += 1.6
    assert not counter.is_answering()


async def test_what_only_watches_is_not_counted() -> None:
    counter = RequestCounter(_app, Clock())
    await _ask(counter, "/healthz")
    assert not counter.is_asked()
    await asyncio.wait_for(counter.wait_until_quiet(), 60)
    await _ask(counter)
    assert counter.is_asked() and not counter.is_asked()
