"""Accepts connections and begins to serve a few of them per round of the event loop, health checks first.

To begin to serve one, read its request and call the application takes a millisecond or two. If hundreds connect at the
same moment, whoever comes last waits for all others. So connections are accepted at once, which is quick, and looked at:
one that has already asked for the health is served next, and the others wait here, in their order. Over TLS nobody can
tell who asks for what.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from assistant.core.logger import get_logger
from assistant.core.pacing import Pacer

log = get_logger()

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
_HEALTH_REQUESTS = tuple(f"GET {path} ".encode() for path in sorted(HEALTH_PATHS))
_LONGEST = max(map(len, _HEALTH_REQUESTS))
# At most so many of each kind are begun per round: a client that has already sent its request is answered before enough
# others arrive to displace it.
_BEGUN_IN_A_ROUND = 8
# Where the process has no file left for another connection.
_RETRY_SECONDS = 1.0

# Serves a connection; the address is the system's.
BeginServing = Callable[[socket.socket, Any], Awaitable[object]]


class Entrance:
    """Accepts the connections of a listening socket from `open` to `close`."""

    def __init__(self, listening: socket.socket, begin: BeginServing, max_waiting: int) -> None:
        """`begin` may raise `OSError`. Beyond `max_waiting`, connections wait in the system's queue."""
        self._listening = listening
        self._begin = begin
        self._max_waiting = max_waiting
        self._health, self._others = Pacer(_BEGUN_IN_A_ROUND), Pacer(_BEGUN_IN_A_ROUND)
        self._waiting: set[socket.socket] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_accepting = False

    def open(self) -> None:
        if not self._is_accepting and self._listening.fileno() != -1:
            self._is_accepting = True
            asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting, and close the listening socket and the connections that wait."""
        self._pause()
        self._listening.close()
        for task in self._tasks:
            task.cancel()
        while self._waiting:
            self._waiting.pop().close()

    def _pause(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            asyncio.get_running_loop().remove_reader(self._listening.fileno())

    def _accept(self) -> None:
        while len(self._waiting) < self._max_waiting:
            try:
                connection, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no connection can be accepted for now", error=str(error))
                self._pause()
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self.open)
                return
            connection.setblocking(False)
            self._waiting.add(connection)
            task = asyncio.create_task(self._serve(connection, address), name="connection")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._pause()

    async def _serve(self, connection: socket.socket, address: Any) -> None:
        pacer = self._health if await _asks_for_health(connection) else self._others
        await pacer.wait()
        self._waiting.discard(connection)
        self.open()
        with contextlib.suppress(OSError):
            await self._begin(connection, address)


async def _asks_for_health(connection: socket.socket) -> bool:
    """Return whether the request's beginning is there and asks for the health. A client sends it right after it
    connected, so it is looked for again a round later."""
    for _ in range(2):
        with contextlib.suppress(BlockingIOError, InterruptedError):
            try:
                return connection.recv(_LONGEST, socket.MSG_PEEK).startswith(_HEALTH_REQUESTS)
            except ConnectionError:
                return False
        await asyncio.sleep(0)
    return False
