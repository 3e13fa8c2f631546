"""Connections over TCP that do not wait for ever: uvicorn's own, with two limits that it has not.

What always holds: whoever connects asks for something soon, whole to the end of its headers, or is let go; and no more
are connected at once than the limit, beyond which uvicorn says so. Silent connections need no token, and each holds one
of the files that the daemon may have open: without end, they would take those of the stores too (F42).
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Impatient(H11Protocol):
    """`asking_seconds` is how long a request's headers may take."""

    asking_seconds = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        # One more than may be served is told so.
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency + 1:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """What comes after an answer, and is no request yet, has its time too."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.asking_seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
