"""Submits a mail to the SMTP server.

Afterwards the mail was accepted for all recipients, or for none, or the outcome is reported as unknown
(`MailError.ambiguous`): the connection ended while the text was being sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import aiosmtplib

from assistant.core.errors import MailError
from assistant.core.network_errors import describe_connection_error
from assistant.core.text import shorten_line
from assistant.mail.account import MailServer

READ_SECONDS = 60.0
DEADLINE_SECONDS = 180.0
_PATIENCE_SECONDS = 60.0
_FAILURES = (aiosmtplib.SMTPException, OSError, TimeoutError, ValueError)
# "Greylisted, try again in 300 seconds".
_WAIT = re.compile(r"\b(\d{1,5}) ?(s|sec|seconds?|m|min|minutes?)\b")


async def submit(
    server: MailServer, sender: str, recipients: Sequence[str], mail: bytes, seconds: float = READ_SECONDS
) -> None:
    """Raises `MailError`."""
    client = _client(server, seconds)
    text_began = False
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await _connect(client, server)
            await client.mail(sender)
            for recipient in recipients:
                await client.rcpt(recipient)
            text_began = True
            await client.data(mail)
    except _FAILURES as error:
        raise _explain(server, error, text_began) from None
    finally:
        client.close()


async def check_login(server: MailServer, seconds: float = READ_SECONDS) -> None:
    """Raises `MailError`."""
    client = _client(server, seconds)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await _connect(client, server)
    except _FAILURES as error:
        raise _explain(server, error, text_began=False) from None
    finally:
        client.close()


def _client(server: MailServer, seconds: float) -> aiosmtplib.SMTP:
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.security == "tls",
        start_tls=server.security == "starttls",
        tls_context=None if server.security == "none" else server.tls_context(),
        local_hostname="localhost",
        timeout=seconds,
    )


async def _connect(client: aiosmtplib.SMTP, server: MailServer) -> None:
    await client.connect()
    if server.password:
        await client.login(server.user, server.password)


def _explain(server: MailServer, error: Exception, text_began: bool) -> MailError:
    if problem := server.certificate_problem(error):
        return MailError(problem)
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return _refusal(server, error)
    if isinstance(error, aiosmtplib.SMTPNotSupported):
        return MailError(f"{server} cannot be used: {_line(str(error))}.", refused=True)
    why = describe_connection_error(error)
    if text_began:
        return MailError(f"{server} was sent the mail, but did not say that it took it: {why}.", ambiguous=True)
    return MailError(f"{server} cannot be reached: {why}.")


def _refusal(server: MailServer, error: aiosmtplib.SMTPResponseException) -> MailError:
    said = _line(str(error.message))
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return MailError(f"{server} refuses the user name or the password.", retry_after=_PATIENCE_SECONDS)
    # An invalid status code says nothing about what the server did.
    if not 400 <= error.code < 600:
        is_answer_to_text = isinstance(error, aiosmtplib.SMTPDataError)
        return MailError(f"{server} answers {error.code} {said}.", ambiguous=is_answer_to_text)
    if error.code >= 500:
        return MailError(f"{server} refuses it: {error.code} {said}.", refused=True)
    wait = _WAIT.search(said)
    seconds = int(wait[1]) * (60 if wait[2].startswith("m") else 1) if wait else _PATIENCE_SECONDS
    return MailError(f"{server} does not take it now: {error.code} {said}.", retry_after=seconds)


def _line(text: str) -> str:
    return shorten_line(" ".join(text.split()), 200).rstrip(".")
