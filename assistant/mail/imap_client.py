"""An IMAP client that reads a limited amount, and whose connection another thread can shut."""

from __future__ import annotations

import imaplib
import socket
import ssl
from collections.abc import Callable
from io import BufferedReader
from typing import Any, cast

from imap_tools.mailbox import BaseMailBox

from assistant.mail.account import MailServer

MAX_COMMAND_BYTES = 40 * 1024 * 1024
_LINE_COSTS = 300  # bytes that the library accepts in a line


class _ReadLimit:
    """Counts what a command reads. `opened` receives the socket before anything is read from it."""

    left = MAX_COMMAND_BYTES

    def __init__(self, opened: Callable[[socket.socket], None], *server: Any, **options: Any) -> None:
        self._opened = opened
        super().__init__(*server, **options)

    def open(self, *server: Any, **options: Any) -> None:
        super().open(*server, **options)  # type: ignore[misc]
        self._opened(self.sock)  # type: ignore[attr-defined]

    def read(self, size: int) -> bytes:
        self._spend(size)
        data: bytes = super().read(size)  # type: ignore[misc]
        return data

    def readline(self) -> bytes:
        line: bytes = super().readline()  # type: ignore[misc]
        self._spend(len(line) + _LINE_COSTS)
        return line

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise imaplib.IMAP4.abort("it sends more than was asked for")


class _PlainClient(_ReadLimit, imaplib.IMAP4):
    pass


class _TlsClient(_ReadLimit, imaplib.IMAP4_SSL):
    pass


class BoundedMailBox(BaseMailBox):
    def __init__(self, server: MailServer, seconds: float, opened: Callable[[socket.socket], None]) -> None:
        self._server, self._seconds, self._opened = server, seconds, opened
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        server, opened, seconds = self._server, self._opened, self._seconds
        if server.security == "tls":
            return _TlsClient(opened, server.host, server.port, ssl_context=server.tls_context(), timeout=seconds)
        client = _PlainClient(opened, server.host, server.port, timeout=seconds)
        if server.security == "starttls":
            try:
                client.starttls(server.tls_context())
                opened(client.sock)
            except BaseException:
                client.shutdown()
                raise
        return client


def has_buffered(client: imaplib.IMAP4) -> bool:
    """Return whether received data is buffered and not processed yet: waiting on the socket would miss it."""
    connection, read_ahead = client.sock, cast(BufferedReader, client.file)
    seconds = connection.gettimeout()
    connection.settimeout(0)
    try:
        return bool(read_ahead.peek(1))
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    finally:
        connection.settimeout(seconds)
