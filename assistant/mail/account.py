"""A mail account: its servers, and how to connect to them.

Connections beyond this machine always use TLS with a checked certificate. Ports 993 and 465 use TLS from the first
byte; other ports must offer STARTTLS.
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
    """A server and its login."""

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
    """An address with its IMAP and SMTP servers."""

    address: str
    imap: MailServer
    smtp: MailServer
    name: str = ""  # as recipients see it
    folders: tuple[str, ...] = ("INBOX",)  # searched if no folder is named
    sent: str = ""  # "": the one the server marks as such
    drafts: str = ""

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]
