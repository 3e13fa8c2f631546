"""Accepts connections and begins to serve a few of them per round of the event loop; health checks are answered at
once.

To begin to serve a connection, read its request and call the application takes a millisecond or two and several rounds.
If hundreds connect at the same moment, whoever comes last waits for all others. So connections are accepted at once,
which is quick, and looked at: one that has already asked for the health is answered, and the others wait here, in their
order, each address in turn. Over TLS nobody can tell who asks for what before the handshake: there a health check does
not wait for the handshakes of hundreds where it comes from another address than they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import ASGIApp

from assistant.core.logger import get_logger
from assistant.core.pacing import GroupPlaces, Pacer
from assistant.web.short_request import ShortRequest, answer_short_request, parse_short_request, peek_sent

log = get_logger()

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
# At most so many of each kind are begun per round: a client that has already sent its request is answered before enough
# others arrive to displace it.
_BEGUN_IN_A_ROUND = 8
# A handshake takes some milliseconds in all, in rounds that follow: those that have begun share each round with all
# others. So few of an address are at theirs at a time, where they are quick.
_HANDSHAKES_IN_A_ROUND = 2
_HANDSHAKES_OF_AN_ADDRESS, _QUICK_HANDSHAKE_SECONDS = 3, 0.2
# Where the process has no file left for another connection.
_RETRY_SECONDS = 1.0

# Serves a connection, and returns once its handshake has ended; the address is the system's. Raises `OSError`.
BeginServing = Callable[[socket.socket, Any], Awaitable[object]]


class Entrance:
    """Accepts the connections of a listening socket from `open` to `close`."""

    def __init__(
        self, listening: socket.socket, begin: BeginServing, health_app: ASGIApp | None, max_waiting: int
    ) -> None:
        """`health_app` answers health checks at once; None where everything is encrypted. Beyond `max_waiting`,
        connections wait in the system's queue."""
        self._listening = listening
        self._begin = begin
        self._health_app = health_app
        self._max_waiting = max_waiting
        self._health = Pacer(_BEGUN_IN_A_ROUND)
        self._others = Pacer(_HANDSHAKES_IN_A_ROUND if health_app is None else _BEGUN_IN_A_ROUND)
        self._handshakes = GroupPlaces(_HANDSHAKES_OF_AN_ADDRESS, _QUICK_HANDSHAKE_SECONDS)
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
        host = _host(address)
        if self._health_app is None:
            await self._shake_hands(connection, address, host)
            return
        health_check = await self._peek_health_check(connection)
        await (self._health if health_check else self._others).wait(host)
        self._begun(connection)
        with contextlib.suppress(OSError):
            if health_check:
                await answer_short_request(self._health_app, connection, address, health_check)
            else:
                await self._begin(connection, address)

    async def _shake_hands(self, connection: socket.socket, address: Any, host: str) -> None:
        has_ended = await self._handshakes.wait(host)
        try:
            await self._others.wait(host)
            self._begun(connection)
            with contextlib.suppress(OSError):
                await self._begin(connection, address)
        finally:
            has_ended()

    def _begun(self, connection: socket.socket) -> None:
        self._waiting.discard(connection)
        self.open()

    async def _peek_health_check(self, connection: socket.socket) -> ShortRequest | None:
        """Return a health check that was sent, None if none. A client sends it right after it connected, so it is
        looked for again a round later."""
        for _ in range(2):
            with contextlib.suppress(ConnectionError):
                if sent := peek_sent(connection):
                    return parse_short_request(sent, HEALTH_PATHS)
            await asyncio.sleep(0)
        return None


def _host(address: Any) -> str:
    """Whoever connects to a Unix socket has no address."""
    return str(address[0]) if isinstance(address, tuple) else ""
