"""F42: what somebody without the token, or a program of the owner's gone wrong, can hold of the web API over TCP, for
how long, and how much; and that nobody else notices. Over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from assistant.web.deps import AccessRules
from assistant.web.guard import AccessGuard
from assistant.web.routes_chat import MAX_EVENT_STREAMS
from assistant.web.server import ConnectionLimit, SlowClientProtocol
from tests.support.limited_server import ASKING, LongRequestTimeout, RawClient, plain, served
from tests.support.web_api import TOKEN, make_certificate, run_web_api

KNOWN = ASKING + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
POSTING = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


class ShortRequestTimeout(SlowClientProtocol):
    request_timeout_seconds = 0.05


class ShortWriteTimeout(SlowClientProtocol):
    write_timeout_seconds = 0.05


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


async def drip(caller: RawClient, words: bytes, count: int = 4000) -> None:
    """So many bytes, one by one, until the other side has enough of them."""
    with contextlib.suppress(ConnectionError):
        for byte in (words * count)[:count]:
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


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nHost: ", POSTING + b"Content-Length: 99999\r\n\r\n"])
async def test_f42_what_comes_byte_by_byte_is_not_read_byte_by_byte(
    begun: bytes, secured: tuple[Path, Path] | None
) -> None:
    """Hundreds of such clients kept the health check waiting on a busy machine."""
    reads: list[int] = []
    has_come = asyncio.Event()

    class Counted(SlowClientProtocol):
        interval_seconds = 0.2

        def data_received(self, data: bytes) -> None:
            reads.append(len(data))
            if sum(reads) == len(begun) + 200:
                has_come.set()
            super().data_received(data)

    async with served(protocol=Counted, files=secured) as it:
        caller = await it.connect()
        caller.writer.write(begun)
        await drip(caller, b"s", 200)
        caller.writer.close()
        await has_come.wait()
        assert len(reads) < 60


async def test_a_body_in_many_pieces_arrives_whole(secured: tuple[Path, Path] | None) -> None:
    class Often(SlowClientProtocol):
        prompt_pieces, interval_seconds = 2, 0.01

    async with served(protocol=Often, files=secured) as it:
        caller = await it.connect()
        caller.writer.write(POSTING + b"Content-Length: 300\r\n\r\n")
        for _ in range(2):
            await drip(caller, b"abc", 50)
            # What follows a small piece at once is a large one.
            caller.writer.write(b"d" * 100)
            await caller.writer.drain()
        assert b" 200 " in await caller.ask(b"")


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
