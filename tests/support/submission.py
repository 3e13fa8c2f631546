"""A real server that takes mail for sending: aiosmtpd on a free loopback port, with a login, that has troubles when it
is told to: it refuses, asks for patience, or breaks the connection before or after a mail was taken."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any, Literal

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.dovecot import PASSWORD

# It warns of what its own next version will do.
logging.getLogger("mail.log").setLevel(logging.ERROR)


@dataclass
class SentMail:
    sender: str
    recipients: list[str]
    raw: bytes
    message: EmailMessage


@dataclass
class Submission:
    """`troubles` are taken one a mail: "before" and "after" break the connection, anything else is the answer."""

    port: int = 0
    tls: Literal["none", "starttls", "tls"] = "none"
    certificate: tuple[Path, Path] | None = None  # and its key
    taken: list[SentMail] = field(default_factory=list)
    attempts: int = 0
    troubles: list[str] = field(default_factory=list)
    on_change: Callable[[], None] = lambda: None
    _server: asyncio.Server | None = None
    _connections: set[_Connection] = field(default_factory=set)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        wrapped = self.tls_context if self.tls == "tls" else None
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, ssl=wrapped)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self.certificate)
        return context

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.abort()

    # What aiosmtpd calls.

    async def handle_DATA(self, server: _Connection, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.attempts += 1
        if not session.authenticated:
            return "530 5.7.0 Authentication required"
        trouble: Literal["before", "after"] | str = self.troubles.pop(0) if self.troubles else ""
        raw = envelope.original_content or b""
        if trouble in ("", "after"):
            message = BytesParser(EmailMessage, policy=default).parsebytes(raw)
            assert isinstance(message, EmailMessage)
            self.taken.append(SentMail(envelope.mail_from or "", list(envelope.rcpt_tos), raw, message))
        self.on_change()
        if trouble in ("before", "after"):
            server.abort()
        return trouble or "250 OK"


class _Connection(SMTP):
    def __init__(self, owner: Submission) -> None:
        offered = owner.tls_context if owner.tls == "starttls" else None
        super().__init__(
            owner,
            auth_require_tls=False,
            authenticator=_authenticate,
            hostname="test.example",
            tls_context=offered,
            require_starttls=offered is not None,
        )
        self._owner = owner

    def connection_made(self, transport: Any) -> None:
        self._owner._connections.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._owner._connections.discard(self)
        super().connection_lost(error)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=is_right, handled=False)


@asynccontextmanager
async def taking_mail() -> AsyncIterator[Submission]:
    server = Submission()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class SubmissionThread:
    """The server in a thread of its own, for tests that are not asynchronous."""

    def __enter__(self) -> Submission:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = Submission()
        self._call(self._server.start())
        return self._server

    def __exit__(self, *_: object) -> None:
        self._call(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)
