"""F42: what somebody without the token, or a program of the owner's gone wrong, can hold of the web API over TCP, for
how long, and how much; and that nobody else notices. Over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.web import entrance
from assistant.web.deps import AccessRules
from assistant.web.guard import AccessGuard
from assistant.web.routes_chat import MAX_EVENT_STREAMS
from assistant.web.server import ConnectionLimit, SlowClientProtocol, serve_with_uvicorn
from assistant.web.tcp_listener import listen_tcp
from tests.support.web_api import TOKEN, make_certificate, run_web_api

ASKING = b"GET /0 HTTP/1.1\r\nHost: localhost\r\n"
KNOWN = ASKING + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
POSTING = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


class ShortRequestTimeout(SlowClientProtocol):
    request_timeout_seconds = 0.05


class LongRequestTimeout(SlowClientProtocol):
    request_timeout_seconds = 60.0


class ShortWriteTimeout(SlowClientProtocol):
    write_timeout_seconds = 0.05


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads what it is sent, and answers with its size and so much more as the path says."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"read {len(body)}" + "." * int(scope["path"][1:] or 0))(scope, receive, send)


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes) -> bytes:
        """The first line of the answer, "" where there is none; the rest is read too."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(request)
            line = await self.reader.readline()
            while await self.reader.readline() not in (b"\r\n", b""):
                pass
            await self.reader.read(1000)
            return line
        return b""

    async def rest(self) -> bytes:
        """Until the connection ends."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read()
        return b""


@dataclass(frozen=True)
class LimitedServer:
    address: tuple[str, int]
    tls: ssl.SSLContext | None

    async def connect(self) -> RawClient:
        return RawClient(*await asyncio.open_connection(*self.address, ssl=self.tls))

    async def silent(self) -> RawClient:
        """Who says nothing, not even of TLS."""
        return RawClient(*await asyncio.open_connection(*self.address))


@asynccontextmanager
async def served(
    *,
    app: ASGIApp = plain,
    crowd: ConnectionLimit | None = None,
    protocol: type[SlowClientProtocol] = SlowClientProtocol,
    files: tuple[Path, Path] | None = None,
    handshake: float = 10,
) -> AsyncIterator[LimitedServer]:
    ours = theirs = None
    if files is not None:
        ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=files[0])
        ours.load_cert_chain(*files)
    listening = await listen_tcp("127.0.0.1", 0)
    serve = serve_with_uvicorn(
        app, tls=ours, limit=crowd or ConnectionLimit(256), protocol=protocol, handshake_seconds=handshake
    )
    with listening:
        async with asyncio.timeout(20), serve(listening):
            yield LimitedServer(listening.getsockname(), theirs)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "patience")


@pytest.fixture(params=["plain", "tls"])
def secured(request: pytest.FixtureRequest, files: tuple[Path, Path]) -> tuple[Path, Path] | None:
    return files if request.param == "tls" else None


# --------------------------------------------------------------------------------------------------------- for how long


@pytest.mark.parametrize("asked", [b"", ASKING + b"\r\n"])
@pytest.mark.parametrize("begun", [b"", b"G", ASKING])
async def test_f42_who_connects_and_asks_for_nothing_is_told_so_and_let_go(
    asked: bytes, begun: bytes, secured: tuple[Path, Path] | None
) -> None:
    async with served(protocol=ShortRequestTimeout, files=secured) as it:
        caller = await it.connect()
        if asked:
            assert b"200" in await caller.ask(asked)
        caller.writer.write(begun or asked[:1])
        answer = await caller.rest()
        assert answer.startswith(b"HTTP/1.1 408") and answer.endswith(b'too slowly. Nothing was accepted."}')


async def test_f42_who_says_nothing_of_tls_is_let_go(files: tuple[Path, Path]) -> None:
    async with served(files=files, handshake=0.05) as it:
        assert await (await it.silent()).rest() == b""


async def drip(caller: RawClient, words: bytes) -> None:
    """Byte by byte, until the other side has enough of it."""
    with contextlib.suppress(ConnectionError):
        for byte in words * 1000:
            caller.writer.write(bytes([byte]))
            await caller.writer.drain()
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nHost: ", POSTING + b"Content-Length: 99999\r\n\r\n"])
async def test_f42_a_request_that_comes_byte_by_byte_is_refused_in_time(begun: bytes) -> None:
    async with served(protocol=ShortRequestTimeout) as it:
        caller = await it.connect()
        caller.writer.write(begun)
        dripping = asyncio.create_task(drip(caller, b"slow"))
        assert b" 408 " in await caller.reader.readline()
        dripping.cancel()


async def test_a_body_that_comes_at_some_pace_may_take_its_time() -> None:
    class Paced(ShortRequestTimeout):
        min_bytes_per_second = 1.0

    async with served(protocol=Paced) as it:
        caller, idle = await it.connect(), await it.connect()
        caller.writer.write(POSTING + b"Content-Length: 200\r\n\r\n" + b"a" * 100)
        await caller.writer.drain()
        # Both have been there as long as this one was given.
        assert b" 408 " in await idle.rest()
        assert b" 200 " in await caller.ask(b"a" * 100)


async def test_f42_who_does_not_take_its_answers_is_let_go() -> None:
    async with served(protocol=ShortWriteTimeout) as it:
        caller = await it.connect()
        with pytest.raises(ConnectionError):
            while True:
                caller.writer.write(ASKING.replace(b"/0 ", b"/1000000 ") + b"\r\n")
                await caller.writer.drain()
                await asyncio.sleep(0.01)


# ------------------------------------------------------------------------------------------------------------- how much


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (ASKING + b"X: " + b"a" * 200_000 + b"\r\n\r\n", (b"431", b"The headers are longer than 16 KB")),
        (b"\x16\x03\x01 hello\r\n\r\n", (b"400", b"This is no HTTP request")),
    ],
)
async def test_f42_headers_without_end_and_what_is_no_http_are_refused_in_one_line(
    request_: bytes, refusal: tuple[bytes, bytes]
) -> None:
    async with served() as it:
        caller = await it.connect()
        caller.writer.write(request_)
        answer = await caller.reader.readuntil(b"}")
        assert answer.startswith(b"HTTP/1.1 " + refusal[0]) and b'{"error": "' + refusal[1] in answer


async def test_f42_nonsense_after_an_answer_ends_the_connection_and_nothing_is_logged_of_it() -> None:
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))

    async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("no", 401)(scope, receive, send)

    async with served(app=refuses) as it:
        caller = await it.connect()
        assert b" 401 " in await caller.ask(POSTING + b"Transfer-Encoding: chunked\r\n\r\n")
        caller.writer.write(b"no size of a chunk\r\n")
        assert await caller.rest() == b""
    assert troubles == []


async def test_f42_a_body_said_to_be_too_large_is_refused_before_it_comes(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        said = KNOWN.replace(b"GET /0", b"POST /v1/messages").replace(
            b"\r\n\r\n", b"\r\nContent-Length: 70000000\r\n\r\n"
        )
        writer.write(said)
        async with asyncio.timeout(10):
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 413")
        writer.close()


# ------------------------------------------------------------------------------------------------------------- how many


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_f42_a_silent_crowd_keeps_out_nobody_and_turns_out_nobody_who_is_known(
    secured: tuple[Path, Path] | None,
) -> None:
    crowd = ConnectionLimit(4)
    app = AccessGuard(plain, AccessRules(lambda: TOKEN), lambda: 0.0, admit_authenticated=crowd.admit_authenticated)
    before = open_files()
    async with served(app=app, crowd=crowd, protocol=LongRequestTimeout, files=secured, handshake=60) as it:
        known = await it.connect()
        assert b" 200 " in await known.ask(KNOWN)
        silent = [await it.silent() for _ in range(82)]
        new = await it.connect()
        assert b" 200 " in await new.ask(KNOWN)
        assert b" 200 " in await known.ask(KNOWN)
        for one in silent[:-67]:
            await one.rest()
        assert open_files() - before <= len(silent) + 2 + 4 + 64 + 2, "their ends, 68 of ours, and where it listens"
        for one in (known, new, *silent):
            one.writer.close()
            with contextlib.suppress(OSError):
                await one.writer.wait_closed()
    assert open_files() == before


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


async def test_f42_where_everybody_is_known_one_more_is_told_that_there_is_no_room() -> None:
    crowd = ConnectionLimit(2)
    app = AccessGuard(plain, AccessRules(lambda: TOKEN), lambda: 0.0, admit_authenticated=crowd.admit_authenticated)
    async with served(app=app, crowd=crowd) as it:
        callers = [await it.connect() for _ in range(3)]
        assert [(await one.ask(KNOWN)).split()[1] for one in callers] == [b"200", b"200", b"503"]
        assert [(await one.ask(KNOWN)).split()[1:2] for one in callers] == [[b"200"], [b"200"], []]
        callers[0].writer.close()
        assert b" 200 " in await (await it.connect()).ask(KNOWN)


async def test_f42_hundreds_of_idle_connections_leave_the_owners_ways_in_alone(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "hello") as it:
        idle = [await asyncio.open_connection("127.0.0.1", it.port) for _ in range(400)]
        assert (await it.tcp.request("GET", "/v1/status")).status_code == 200
        inbox_id = await it.socket.say("hi")
        await it.wait_idle()
        assert (await it.socket.get(f"/v1/results/{inbox_id}"))["reply"] == "hello"
        for _, writer in idle:
            writer.close()


async def test_f42_hundreds_of_event_streams_leave_room_for_everything_else(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "hello") as it, AsyncExitStack() as streams:
        for _ in range(MAX_EVENT_STREAMS):
            await streams.enter_async_context(it.tcp.events())
        refused = await it.tcp.request("GET", "/v1/events")
        assert refused.status_code == 503 and str(MAX_EVENT_STREAMS) in refused.json()["error"]
        async with it.socket.events() as own:
            await it.tcp.say("hi")
            assert (await own.next_delivery()).data["body"] == "hello"
        await streams.aclose()
        async with asyncio.timeout(10):
            while True:
                async with it.tcp.client.sse("/v1/events") as again:
                    if again.response.status_code == 200:
                        break
