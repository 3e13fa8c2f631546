"""Says in a few words why a connection failed, whichever library tried it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from assistant.core.text import shorten_line

_LONGEST = 200
# The first kind that an error is, or was caused by. Libraries wrap what the system said in words of their own.
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not accepted"),
    (ssl.SSLError, "it does not speak TLS there, or no version that is safe"),
    (socket.gaierror, "no such host is known, or there is no network"),
    (ConnectionRefusedError, "nothing answers there (connection refused)"),
    (TimeoutError, "it did not answer in time"),
    (ConnectionError, "the connection broke"),
    (EOFError, "the connection broke"),
)


def describe_connection_error(error: BaseException) -> str:
    """Return why, without a full stop."""
    causes = list(_causes(error))
    for kind, words in _KINDS:
        for cause in causes:
            if isinstance(cause, kind):
                detail = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
                return f"{words} ({detail})" if detail else words
    kinds = {type(cause).__name__ for cause in causes}  # httpx's own
    if any(kind.endswith("Timeout") for kind in kinds):
        return "it did not answer in time"
    # Of a body without its end, httpx speaks in words of the protocol.
    if kinds & {"ReadError", "WriteError", "CloseError"} or "incomplete chunked read" in str(error):
        return "the connection broke"
    system = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), "")
    return shorten_line(system or " ".join(str(error).split()) or type(error).__name__, _LONGEST).rstrip(".")


def is_certificate_refused(error: BaseException) -> bool:
    """Return whether the other end's certificate is what failed; nothing was sent then."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
