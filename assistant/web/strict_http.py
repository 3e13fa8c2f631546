"""Strict HTTP/1.1 parsing, for a server behind proxies: anything that two parsers could interpret differently is
refused before it is processed (request smuggling; F42).

h11 accepts more, and hides it: it keeps one of several equal lengths, joins folded lines, and permits a longer header
if it arrives at once. So the raw header is checked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

MAX_HEAD_BYTES = 16 * 1024
_HEAD_END = re.compile(rb"\n\r?\n")
_ONCE = (b"host", b"content-length", b"transfer-encoding", b"authorization")
_NOT_HTTP = "This is no HTTP request. Nothing was accepted."
_TOO_LONG = f"The headers are longer than {MAX_HEAD_BYTES // 1024} KB. Nothing was accepted."

# A status and its one-line message.
Refusal = tuple[int, str]


def find_head_fault(received: bytes) -> Refusal | None:
    """Return what is wrong with the received part of a request header; None if nothing so far."""
    end = _HEAD_END.search(received, 0, MAX_HEAD_BYTES + 2)
    if end is None:
        return (431, _TOO_LONG) if len(received) > MAX_HEAD_BYTES else None
    request_line, *lines = received[: end.start()].split(b"\n")
    _, *rest = request_line.split(b" ")
    if len(rest) == 2 and rest[1].startswith(b"HTTP/") and not rest[0].startswith(b"/"):
        return 400, "A request has to name a path, as in `GET /v1/status`, and its host in Host. Nothing was accepted."
    if any(line[:1] in (b" ", b"\t") for line in lines):
        return 400, "A header is folded over several lines, which is obsolete. Nothing was accepted."
    headers = [(name.strip().lower(), value) for name, _, value in (line.partition(b":") for line in lines)]
    counts = Counter(name for name, _ in headers)
    for name in _ONCE:
        if counts[name] > 1:
            return 400, f"The header {name.decode().title()} is there more than once. Nothing was accepted."
    values = dict(headers)
    if {b"content-length", b"transfer-encoding"} <= counts.keys() or b"," in values.get(b"content-length", b""):
        return 400, "The request gives the length of its body twice. Nothing was accepted."
    return None


class StrictConnection(h11.Connection):
    """The server's end of a connection; `fault` says why a request was refused here."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.fault: Refusal = (400, _NOT_HTTP)

    def next_event(self) -> Any:
        """Raises `h11.RemoteProtocolError`."""
        if self.their_state is h11.IDLE and (fault := find_head_fault(self.trailing_data[0])):
            self.fault = fault
            raise h11.RemoteProtocolError(fault[1], error_status_hint=fault[0])
        return super().next_event()


class StrictProtocol(H11Protocol):
    """uvicorn's protocol over a `StrictConnection`. A refused request is answered with a reason, and the connection is
    closed."""

    def __init__(self, config: Config, *arguments: Any, **named: Any) -> None:
        super().__init__(config, *arguments, **named)
        self.conn: StrictConnection = StrictConnection()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # asyncio's transports keep their own methods, so that only a garbage collection would free them: one that walks
        # thousands of closed connections keeps everybody waiting.
        kept = getattr(self.transport, "__dict__", {})
        for name in [name for name, value in kept.items() if getattr(value, "__self__", None) is self.transport]:
            del kept[name]

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for invalid HTTP."""
        self.refuse(*self.conn.fault)

    def refuse(self, status: int, error: str) -> None:
        """Close the connection, with an error answer if none has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = json.dumps({"error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        events = (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        # At once: each part would be encrypted and sent by itself.
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
