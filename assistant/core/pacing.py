"""Shares the event loop among many coroutines that could all go on at once. Pure asyncio.

The loop runs whatever is ready before it looks at its sockets again. If fifty coroutines become ready together, each
for some milliseconds, everything else (a health check, a person's message) waits for all of them, once for each of its
own steps.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Pacer:
    """Lets at most `at_once` coroutines go on in a round of the event loop, in the order in which they asked, or where
    it `alternates`, the one that asked first and the one that asked last in turns: then whoever comes behind hundreds
    need not wait for them, and they go on half as fast."""

    def __init__(self, at_once: int, *, alternates: bool = False) -> None:
        self._at_once = at_once
        self._alternates = alternates
        self._takes_last = False
        self._used = 0  # in this round
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once, or in a later round if enough coroutines go on in this one."""
        if self._used < self._at_once and not self._waiting:
            self._use_one()
            return
        released = asyncio.get_running_loop().create_future()
        self._waiting.append(released)
        await released

    def _use_one(self) -> None:
        if self._used == 0:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._used += 1

    def _begin_round(self) -> None:
        self._used = 0
        while self._waiting and self._used < self._at_once:
            released = self._waiting.pop() if self._takes_last else self._waiting.popleft()
            self._takes_last = self._alternates and not self._takes_last
            # A coroutine that was cancelled meanwhile uses nothing.
            if not released.done():
                self._use_one()
                released.set_result(None)
