"""F42: whoever asks for the health over the web API is answered while hundreds connect, and as by any other way. Over
real sockets."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from assistant.web import entrance
from assistant.web.deps import AccessRules
from assistant.web.guard import AccessGuard
from assistant.web.server import ConnectionLimit, SlowClientProtocol
from assistant.web.tcp_listener import listen_tcp
from tests.support.limited_server import ASKING, LongRequestTimeout, plain, served
from tests.support.web_api import TOKEN, run_web_api

KNOWN = ASKING + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()


async def test_f42_who_asks_for_the_health_is_answered_while_others_connect_and_all_places_are_taken() -> None:
    crowd = ConnectionLimit(1)
    app = AccessGuard(plain, AccessRules(lambda: TOKEN), lambda: 0.0, admit_authenticated=crowd.admit_authenticated)
    async with served(app=app, crowd=crowd, protocol=LongRequestTimeout) as it:
        known = await it.connect()
        assert b" 200 " in await known.ask(KNOWN)
        asking = await it.connect()
        others = [await it.silent() for _ in range(10)]
        assert await asking.ask(ASKING + b"\r\n") != b""
        for one in (known, asking, *others):
            one.writer.close()


async def test_f42_a_question_for_the_health_is_answered_when_a_hundred_connect_after_it_at_once() -> None:
    async with served(crowd=ConnectionLimit(0), protocol=LongRequestTimeout) as it:
        # All of them are in the kernel's queue before the server sees the first.
        asking = socket.create_connection(it.address)
        asking.send(ASKING + b"\r\n")
        others = [socket.create_connection(it.address) for _ in range(95)]
        reader, writer = await asyncio.open_connection(sock=asking)
        assert b" 200 " in await reader.readline()
        writer.close()
        for one in others:
            one.close()


HEALTH = ASKING.replace(b"/0", b"/healthz") + b"\r\n"


async def already_asked(address: tuple[str, int], request_: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has sent this before the server accepts it."""
    asking = socket.create_connection(address)
    asking.send(request_)
    return await asyncio.open_connection(sock=asking)


@pytest.mark.parametrize("sends_late", [False, True])
async def test_f42_a_question_for_the_health_is_answered_before_the_hundred_that_connected_before_it(
    sends_late: bool,
) -> None:
    begun: list[str] = []

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await PlainTextResponse("")(scope, receive, send)

    async with served(app=noting, protocol=LongRequestTimeout) as it:
        others = [socket.create_connection(it.address) for _ in range(100)]
        for one in others:
            one.send(ASKING + b"\r\n")
        asking = socket.create_connection(it.address)
        if sends_late:
            # The server has accepted all of them by then.
            await asyncio.sleep(0)
        asking.send(HEALTH)
        reader, writer = await asyncio.open_connection(sock=asking)
        assert b" 200 " in await reader.readline()
        assert begun.index("/healthz") < 30
        writer.close()
        for one in others:
            one.close()


async def _let_in_101_of_two_addresses(begin: entrance.BeginServing, last: asyncio.Event) -> list[socket.socket]:
    """A hundred clients of one address, and the last of another, let in over TLS until `last` is set."""
    listening = await listen_tcp("127.0.0.1", 0)
    listening.listen(128)
    clients = [socket.create_connection(listening.getsockname()) for _ in range(100)]
    clients.append(socket.create_connection(listening.getsockname(), source_address=("127.0.0.2", 0)))
    door = entrance.Entrance(listening, begin, None, 256)
    door.open()
    await last.wait()
    door.close()
    return clients


async def test_f42_over_tls_whoever_connects_behind_a_hundred_of_another_address_is_begun_before_most_of_them() -> None:
    begun: list[int] = []
    last = asyncio.Event()

    async def begin(connection: socket.socket, address: tuple[str, int]) -> None:
        begun.append(address[1])
        connection.close()
        if len(begun) == 101:
            last.set()

    clients = await _let_in_101_of_two_addresses(begin, last)
    assert begun.index(clients[100].getsockname()[1]) < 10
    assert sorted(begun) == sorted(client.getsockname()[1] for client in clients)
    for client in clients:
        client.close()


async def test_over_tls_few_of_an_address_are_at_their_handshake_at_a_time() -> None:
    at_it: list[tuple[str, int]] = []
    most, ended, last = 0, 0, asyncio.Event()

    async def begin(connection: socket.socket, address: tuple[str, int]) -> None:
        nonlocal most, ended
        at_it.append(address)
        most = max(most, sum(host == "127.0.0.1" for host, _ in at_it))
        for _ in range(8):
            # The steps of a handshake, each in a round of the loop.
            await asyncio.sleep(0)
        at_it.remove(address)
        connection.close()
        ended += 1
        if ended == 101:
            last.set()

    clients = await _let_in_101_of_two_addresses(begin, last)
    assert 1 < most <= entrance._HANDSHAKES_OF_AN_ADDRESS
    for client in clients:
        client.close()


async def test_a_question_for_the_health_that_is_wholly_there_is_answered_without_a_protocol(tmp_path: Path) -> None:
    """And as any other: by the same rules, over TCP and over the control socket."""

    class Never(SlowClientProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            raise AssertionError

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        assert (scope["path"], scope["client"][0]) == ("/healthz", "127.0.0.1")
        await PlainTextResponse(dict(scope["headers"])[b"host"].decode(), 503)(scope, receive, send)

    async with served(app=answered, protocol=Never) as it:
        reader, writer = await already_asked(it.address, HEALTH)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n") and answer.endswith(b"\r\n\r\nlocalhost")
    async with run_web_api(tmp_path) as web:
        for host, status in ((b"localhost", b"200"), (b"evil.example", b"403")):
            reader, writer = await already_asked(("127.0.0.1", web.port), HEALTH.replace(b"localhost", host))
            assert (await reader.readline()).split()[1] == status
            assert b"connection: close" in await reader.read()
            writer.close()


async def test_a_question_for_the_health_may_be_answered_in_parts() -> None:
    async def parts() -> AsyncIterator[str]:
        yield "al"
        await asyncio.sleep(0)
        yield "ive"

    async def in_parts(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(parts())(scope, receive, send)

    async with served(app=in_parts) as it:
        reader, writer = await already_asked(it.address, HEALTH)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"2\r\nal\r\n3\r\nive\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEALTH + HEALTH, b"200"),
        (HEALTH[:-2] + b"Content-Length: 2\r\n\r\n", b""),
        (HEALTH[:-2] + b"Host: other\r\n\r\n", b"400"),
        (HEALTH[:-2] + b"no header\r\n\r\n", b"400"),
        (HEALTH.replace(b"/healthz", b"/healthz?x"), b"200"),
    ],
)
async def test_a_question_for_the_health_that_is_not_plain_is_read_by_the_protocol(sent: bytes, status: bytes) -> None:
    async with served(protocol=LongRequestTimeout, app=health_alone) as it:
        reader, writer = await already_asked(it.address, sent)
        if not status:
            writer.write(b"ok")
        assert (await reader.readline()).split()[1] == (status or b"200")
        writer.close()


async def health_alone(scope: Scope, receive: Receive, send: Send) -> None:
    await Request(scope, receive).body()
    await PlainTextResponse(scope["path"])(scope, receive, send)


async def test_where_no_file_is_left_for_a_connection_it_is_accepted_once_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entrance, "_RETRY_SECONDS", 0.0)
    async with served() as it:
        asking = socket.create_connection(it.address)
        asking.send(ASKING + b"\r\n")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            for _ in range(3):
                await asyncio.sleep(0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        asking.setblocking(False)
        async with asyncio.timeout(10):
            assert b" 200 " in await asyncio.get_running_loop().sock_recv(asking, 100)
        asking.close()


async def test_what_a_connection_leaves_behind_needs_no_garbage_collection() -> None:
    def transports() -> int:
        return sum(isinstance(one, asyncio.Transport) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        async with served() as it:
            loop, before = asyncio.get_running_loop(), transports()
            for _ in range(20):
                with socket.create_connection(it.address) as asking:
                    asking.setblocking(False)
                    await loop.sock_sendall(asking, ASKING + b"\r\n")
                    assert b" 200 " in await loop.sock_recv(asking, 1000)
            # The last ones may not have ended.
            assert transports() - before <= 3
    finally:
        gc.enable()
