"""Shares the event loop among many coroutines that could all go on at once. Pure asyncio.

The loop runs whatever is ready before it looks at its sockets again. If fifty coroutines become ready together, each
for some milliseconds, everything else (a health check, a person's message) waits for all of them, once for each of its
own steps.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


def is_in_event_loop() -> bool:
    """Return whether an event loop runs in this thread, which would stand still for whatever takes long."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Pacer:
    """Lets at most `at_once` coroutines go on in a round of the event loop: in the order in which they asked, or where
    they are of several groups, each group in turn, so that none waits for the hundreds of another."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._used = 0  # in this round
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by group; the next one first

    async def wait(self, group: str = "") -> None:
        """Return at once, or in a later round if enough coroutines go on in this one."""
        if self._used < self._at_once and not self._waiting:
            self._use_one()
            return
        released = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(released)
        await released

    def _use_one(self) -> None:
        if self._used == 0:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._used += 1

    def _begin_round(self) -> None:
        self._used = 0
        while self._waiting and self._used < self._at_once:
            released = self._pop_next()
            # A coroutine that was cancelled meanwhile uses nothing.
            if not released.done():
                self._use_one()
                released.set_result(None)

    def _pop_next(self) -> asyncio.Future[None]:
        group = next(iter(self._waiting))
        waiting = self._waiting.pop(group)
        released = waiting.popleft()
        if waiting:
            self._waiting[group] = waiting
        return released


class GroupPlaces:
    """Lets at most `at_once` coroutines of each group be at something at a time. One that takes longer than `seconds`
    gives its place to the next and goes on, so that nobody keeps others out by being slow."""

    def __init__(self, at_once: int, seconds: float) -> None:
        self._at_once = at_once
        self._seconds = seconds
        self._taken: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def wait(self, group: str) -> Callable[[], None]:
        """Return once there is a place, in the order in which they asked, with what gives it back: harmless where it
        was given back before."""
        loop = asyncio.get_running_loop()
        if self._taken.get(group, 0) < self._at_once:
            self._taken[group] = self._taken.get(group, 0) + 1
        else:
            offered = loop.create_future()
            self._waiting.setdefault(group, deque()).append(offered)
            try:
                await offered
            except asyncio.CancelledError:
                if offered.done() and not offered.cancelled():
                    self._offer(group)
                raise
        is_taken = True

        def give_back() -> None:
            nonlocal is_taken
            if is_taken:
                is_taken = False
                timer.cancel()
                self._offer(group)

        timer = loop.call_later(self._seconds, give_back)
        return give_back

    def _offer(self, group: str) -> None:
        """Hand a place over to the next, if any."""
        waiting = self._waiting.get(group, deque())
        while waiting:
            if not (offered := waiting.popleft()).done():
                offered.set_result(None)
                return
        self._waiting.pop(group, None)
        self._taken[group] -= 1
        if not self._taken[group]:
            del self._taken[group]
