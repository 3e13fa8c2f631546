"""Connections over TCP that do not wait for ever: uvicorn's own, with the limits that it has not.

What always holds: whoever connects asks for something soon, whole to the end of its headers; a body comes at some pace;
what is answered is taken. Otherwise the connection ends, with a word of why where one can still be said (F42). How many
there may be at once is the `crowd`'s to say.
"""

from __future__ import annotations

import asyncio
import json
from typing import Literal

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

_Awaited = Literal["request", "body", ""]


class Impatient(H11Protocol):
    """`asking_seconds` is how long a request's headers may take, and a body so much longer as it has bytes by
    `bytes_a_second`; `taking_seconds` how long an answer may wait to be taken."""

    asking_seconds = 10.0
    bytes_a_second = 1000.0
    taking_seconds = 30.0

    _awaited: _Awaited = ""
    _since = 0.0
    _came = 0
    _asking: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        self._came += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._asking, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ------------------------------------------------------------------------------------------------ what is asked for

    def _waits_for(self) -> _Awaited:
        """What comes after an answer, and is no request yet, has its time too."""
        if self.cycle is None or self.cycle.response_complete:
            return "request"
        return "body" if self.cycle.more_body else ""

    def _watch(self) -> None:
        awaited = self._waits_for()
        if awaited == self._awaited:
            return
        if self._asking is not None:
            self._asking.cancel()
        self._awaited, self._since, self._came, self._asking = awaited, self.loop.time(), 0, None
        if awaited:
            self._asking = self.loop.call_later(self.asking_seconds, self._look)

    def _look(self) -> None:
        earned = self._came / self.bytes_a_second if self._awaited == "body" else 0.0
        left = self._since + self.asking_seconds + earned - self.loop.time()
        if left > 0:
            self._asking = self.loop.call_later(left, self._look)
        else:
            self._refuse(408, "The request came too slowly. Nothing was accepted.")

    # ------------------------------------------------------------------------------------------------ what is answered

    def pause_writing(self) -> None:
        super().pause_writing()
        self._let_go_soon()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None and not self.transport.is_closing():
            self._taking.cancel()
            self._taking = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._let_go_soon()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._let_go_soon()

    def _let_go_soon(self) -> None:
        """An end waits until everything written is taken, which nobody has to do."""
        if self._taking is None:
            self._taking = self.loop.call_later(self.taking_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """For uvicorn, where something is no HTTP, or has headers without end."""
        self._refuse(400, "This is no HTTP request, or its headers are too long. Nothing was accepted.")

    def _refuse(self, status: int, error: str) -> None:
        """End it, with a failure as every other where no answer has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = json.dumps({"error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._let_go_soon()
