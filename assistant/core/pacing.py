"""Shares the event loop among many coroutines that could all go on at once. Pure asyncio.

The loop runs whatever is ready before it looks at its sockets again. If fifty coroutines become ready together, each
for some milliseconds, everything else (a health check, a person's message) waits for all of them, once for each of its
own steps.
"""

from __future__ import annotations

import asyncio
from collections import deque


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
