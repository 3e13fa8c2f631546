"""F42: requests that a proxy and this server could read differently, by raw sockets against the server that runs: each
is refused with a reason, the connection ends, and nothing of it is done."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from assistant.service.home_lock import short_address
from assistant.web.strict_http import MAX_HEAD_BYTES, find_head_fault
from tests.support.web_api import TOKEN, LiveApi, run_web_api

KNOWN = f"Authorization: Bearer {TOKEN}\r\n"
SAID = json.dumps({"text": "hi", "external_id": "smuggled"})
BODY = f"Content-Type: application/json\r\nContent-Length: {len(SAID)}\r\n"
CHUNKED = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def it(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveApi]:
    async with run_web_api(tmp_path_factory.mktemp("home")) as live:
        yield live


async def answers(it: LiveApi, request: str, *, over: str = "tcp") -> bytes:
    """All that is answered until the server ends the connection."""
    if over == "tcp":
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    else:
        with short_address(it.app.settings.home.socket) as address:
            reader, writer = await asyncio.open_unix_connection(address)
    writer.write(request.replace("PORT", str(it.port)).encode("latin-1"))
    answer = b""
    # Where it ends before it has read all, the network says so after the answer.
    async with asyncio.timeout(8):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                answer += piece
    writer.close()
    return answer


def check_refused(answer: bytes, *statuses: int) -> None:
    assert answer.count(b"HTTP/1.1 ") == 1, answer
    assert int(answer.split()[1]) in statuses, answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"], "a reason in words"


def post(headers: str, body: str, *, host: str = "Host: 127.0.0.1:PORT\r\n") -> str:
    return f"POST /v1/messages HTTP/1.1\r\n{host}{KNOWN}{headers}\r\n{body}"


HOSTS = [
    "127.0.0.1:PORT, evil.com",
    "127.0.0.1:PORT,evil.com",
    "127.0.0.1 evil.com",
    "evil.com@127.0.0.1:PORT",
    "127.0.0.1:PORT@evil.com",
    "127.0.0.1:80:evil.com",
    "127.0.0.1:evil",
    "127.0.0.1:-1",
    "127.0.0.1:99999",
    "127.0.0.1:",
    "127.0.0.1/evil.com",
    "127.0.0.1?evil.com",
    "localhost.",
    "127.0.0.1.",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "::1",
    "[::1",
    "[::1]evil.com",
    "[::1]]:PORT",
    "[::1%25lo]",
    "[::ffff:127.0.0.1]",
    "localhost\x00",
    "loc\xe4lhost",
    '"localhost"',
]


@pytest.mark.parametrize("host", HOSTS)
async def test_f42_a_host_that_only_begins_like_its_own_is_refused(it: LiveApi, host: str) -> None:
    answer = await answers(it, f"GET /v1/status HTTP/1.1\r\nHost: {host}\r\n{KNOWN}Connection: close\r\n\r\n")
    check_refused(answer, 400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost", "LocalHost:443", "[::1]:PORT", " 127.0.0.1 "])
async def test_f42_its_own_names_are_answered_to_as_before(it: LiveApi, host: str) -> None:
    answer = await answers(it, f"GET /v1/status HTTP/1.1\r\nHost: {host}\r\n{KNOWN}Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 "), answer


@pytest.mark.parametrize(
    "head",
    [
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nhost: evil.com\r\n",
        "GET http://evil.com/v1/status HTTP/1.1\r\nHost: localhost\r\n",
        "GET http://localhost/v1/status HTTP/1.1\r\nHost: evil.com\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n",
        "CONNECT evil.com:443 HTTP/1.1\r\nHost: localhost\r\n",
        "PRI * HTTP/2.0\r\nHost: localhost\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost2:\r\n\tx\r\n",
        "GET /v1/status HTTP/1.1\r\n Host: localhost\r\n",
        "GET /v1/status HTTP/1.1\r\nHost : localhost\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nno colon\r\n",
        "GET /v1/status HTTP/1.1\r\n",
        "GET  /v1/status HTTP/1.1\r\nHost: localhost\r\n",
        f"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{KNOWN.strip()}x\r\n",
    ],
)
@pytest.mark.parametrize("over", ["tcp", "control socket"])
async def test_f42_a_head_that_could_be_read_in_two_ways_is_refused(it: LiveApi, head: str, over: str) -> None:
    check_refused(await answers(it, f"{head}{KNOWN}\r\n", over=over), 400)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (BODY + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n" + BODY, f"{len(SAID):x}\r\n{SAID}\r\n0\r\n\r\n"),
        (BODY + BODY, SAID),
        (BODY + "Content-Length: 5\r\n", SAID),
        (f"Content-Length: {len(SAID)}, {len(SAID)}\r\n", SAID),
        ("Content-Length: 5, 6\r\n", SAID),
        ("Content-Length: -1\r\n", SAID),
        ("Content-Length: +5\r\n", SAID),
        ("Content-Length: 0x10\r\n", SAID),
        ("Content-Length: 5 5\r\n", SAID),
        ("Content-Length:\r\n", SAID),
        ("Content-Length: " + "9" * 5000 + "\r\n", SAID),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
        ("Transfer_Encoding : chunked\r\n" + BODY, SAID),
    ],
)
@pytest.mark.parametrize("over", ["tcp", "control socket"])
async def test_f42_a_body_whose_length_could_be_read_in_two_ways_is_refused(
    it: LiveApi, headers: str, body: str, over: str
) -> None:
    smuggled = f"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{KNOWN}\r\n"
    check_refused(await answers(it, post(headers, body + smuggled), over=over), 400)


@pytest.mark.parametrize(
    "chunks",
    ["-1\r\n", "0x5\r\nhello\r\n", " 5\r\nhello\r\n", "+5\r\nhello\r\n", "5 5\r\nhello\r\n", "f" * 30 + "\r\n"],
)
@pytest.mark.parametrize("over", ["tcp", "control socket"])
async def test_f42_a_chunk_whose_size_is_none_is_refused(it: LiveApi, chunks: str, over: str) -> None:
    check_refused(await answers(it, post(CHUNKED, chunks), over=over), 400)
    assert it.app.stores.conversation.list_sessions() == []


@pytest.mark.parametrize("over", ["tcp", "control socket"])
@pytest.mark.parametrize("size", [MAX_HEAD_BYTES, 40_000, 200_000])
@pytest.mark.parametrize("many", [False, True])
async def test_f42_headers_above_the_documented_size_are_refused(it: LiveApi, over: str, size: int, many: bool) -> None:
    more = "X: y\r\n" * (size // 6 + 1) if many else f"X: {'y' * size}\r\n"
    check_refused(await answers(it, f"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{KNOWN}{more}\r\n", over=over), 431)


async def test_f42_headers_of_the_documented_size_are_taken(it: LiveApi) -> None:
    head = f"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{KNOWN}Connection: close\r\nX: "
    head += "y" * (MAX_HEAD_BYTES - len(head) - 4) + "\r\n\r\n"
    assert (await answers(it, head)).startswith(b"HTTP/1.1 200 ")


async def test_f42_what_comes_after_a_request_is_looked_at_as_sharply(it: LiveApi) -> None:
    good = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{KNOWN}\r\n"
    answer = await answers(it, good + "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")
    first, second = answer.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"200") and second.startswith(b"400")


async def test_a_head_is_judged_alike_however_it_is_cut() -> None:
    bad = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert {find_head_fault(bad[:cut]) for cut in range(len(bad))} == {None}
    fault = find_head_fault(bad)
    assert fault and fault[0] == 400


# ------------------------------------------------------------------------------------------------------- wrong tokens


async def test_f42_wrong_tokens_lock_nobody_out_who_has_the_right_one(it: LiveApi) -> None:
    def asking(token: str) -> str:
        shown = f"Authorization: Bearer {token}\r\n"
        return f"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{shown}Connection: close\r\n\r\n"

    wrong = [(await answers(it, asking(f"wrong-{number}"))).split()[1] for number in range(12)]
    assert wrong == [b"401"] * 10 + [b"429"] * 2
    assert (await answers(it, asking(TOKEN))).startswith(b"HTTP/1.1 200 ")
    assert (await answers(it, asking("wrong again"))).startswith(b"HTTP/1.1 429 "), "the right one clears nobody"
