"""A mail account: where its servers are, and how they are spoken to.

What always holds: nothing goes to a server beyond this machine without TLS, and its certificate is checked. Ports 993
and 465 speak TLS from the first byte; any other port has to offer STARTTLS.
"""

from __future__ import annotations

import ssl
from dataclasses import field
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.settings.sections import is_loopback

_TLS_PORTS = frozenset({465, 993})


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server, and the login there."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)

    @property
    def security(self) -> Literal["tls", "starttls", "none"]:
        if self.port in _TLS_PORTS:
            return "tls"
        return "none" if is_loopback(self.host) else "starttls"

    def tls_context(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class MailAccount:
    """An address with the servers that keep and send its mail."""

    address: str
    imap: MailServer
    smtp: MailServer
    name: str = ""  # as recipients see it
    folders: tuple[str, ...] = ("INBOX",)  # that are searched where none is named
    sent: str = ""  # "": the one that the server calls so
    drafts: str = ""

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]
