"""Why a connection failed, in words of a person, whichever library tried it."""

from __future__ import annotations

import socket
import ssl

import aiosmtplib
import httpx2
import pytest

from assistant.core.network_errors import describe_connection_error, is_certificate_refused

REFUSED = "nothing answers there (connection refused)"


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def test_a_port_where_nothing_listens_is_said_the_same_by_every_library() -> None:
    port = closed_port()
    with pytest.raises(ConnectionRefusedError) as plain:
        socket.create_connection(("127.0.0.1", port))
    with pytest.raises(aiosmtplib.SMTPConnectError) as mail:
        await aiosmtplib.SMTP(hostname="127.0.0.1", port=port).connect()
    async with httpx2.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx2.ConnectError) as web:
            await client.get(f"http://127.0.0.1:{port}/")
    assert {describe_connection_error(it.value) for it in (plain, mail, web)} == {REFUSED}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx2.ReadTimeout(""), "it did not answer in time"),
        (TimeoutError(), "it did not answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "no such host is known, or there is no network"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "it does not speak TLS there, or no version that is safe"),
        (aiosmtplib.SMTPServerDisconnected("Unexpected EOF received"), "the connection broke"),
        (OSError(101, "Network is unreachable"), "Network is unreachable"),
        (httpx2.RemoteProtocolError("Server disconnected."), "Server disconnected"),
        (httpx2.ReadError(""), "the connection broke"),
        (
            httpx2.RemoteProtocolError("peer closed connection without ... message body (incomplete chunked read)"),
            "the connection broke",
        ),
    ],
)
def test_other_reasons_have_words_too(error: Exception, words: str) -> None:
    assert describe_connection_error(error) == words
    assert not is_certificate_refused(error)
