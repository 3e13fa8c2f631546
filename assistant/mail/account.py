"""A mail account: its servers, and how to connect to them.

Connections beyond this machine always use TLS with a checked certificate. Where the settings do not say how, ports 993
and 465 use TLS from the first byte; other ports must offer STARTTLS, except on this machine.
"""

from __future__ import annotations

import ssl
from dataclasses import field
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError
from assistant.settings.validators import is_loopback

Tls = Literal["auto", "tls", "starttls", "none"]
_TLS_PORTS = frozenset({465, 993})


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server and its login."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls = "auto"
    ca_file: str = ""  # certificates to trust besides the system's: the whole path of a PEM file

    @property
    def security(self) -> Literal["tls", "starttls", "none"]:
        """How the connection is encrypted: as the settings say, else by the port. "none" only to this machine."""
        if self.tls != "auto":
            # A password never crosses a network in the clear, whatever the settings say.
            return "starttls" if self.tls == "none" and not is_loopback(self.host) else self.tls
        if self.port in _TLS_PORTS:
            return "tls"
        return "none" if is_loopback(self.host) else "starttls"

    def tls_context(self) -> ssl.SSLContext:
        """Raises `MailError` for an unreadable `ca_file`."""
        context = ssl.create_default_context()
        if self.ca_file:
            try:
                context.load_verify_locations(cafile=self.ca_file)
            except OSError as error:
                why = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
                raise MailError(
                    f"{self.ca_file} cannot be used for {self}: {why}. Set ca_file.", refused=True
                ) from None
        return context

    def certificate_problem(self, error: BaseException | None) -> str:
        """Return for a person what is wrong with the server's certificate, or "" if that is not what failed."""
        while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
            error = error.__cause__ or error.__context__
        if error is None:
            return ""
        return (
            f"The certificate of {self} is not accepted: {error.verify_message or error.reason}. The password was not "
            "sent. Check the server's name and this machine's clock; for a server of your own, set ca_file to its "
            "certificate (`assistant docs mail`)."
        )

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class MailAccount:
    """An address with its IMAP and SMTP servers."""

    address: str
    imap: MailServer
    smtp: MailServer
    sender_name: str = ""  # as recipients see it
    folders: tuple[str, ...] = ("INBOX",)  # searched if no folder is named
    sent: str = ""  # "": the one the server marks as such
    drafts: str = ""
    name: str = "main"  # as the owner calls it

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]
