"""What comes in the place of a Matrix server's answer: pages of proxies, half an answer, one without end. Each is a
`BridgeError` that says so, and nothing of it is taken for a yes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from assistant.bridges.matrix.client import MatrixClient
from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.matrix.receiver import MatrixReceiver
from assistant.core.errors import BridgeError
from tests.support.matrix_bot import MatrixInboundRecorder

PAGE = b"<html><body><h1>Bad Gateway</h1></body></html>"
USER = "@assistant:test.example"
ENDLESS = object()
POSITION = '{"since": "s1", "unread": [], "drafts": {}}'


@dataclass
class FixedAnswer:
    """A server that answers everything so, `sent` bytes of it; byte by byte where it drips."""

    status: int
    body: bytes | object
    kind: str = "application/json"
    drips: bool = False
    sent: int = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        if isinstance(self.body, bytes):
            return web.Response(status=self.status, body=self.body, headers={"Content-Type": self.kind})
        answer = web.StreamResponse(status=self.status, headers={"Content-Type": self.kind})
        await answer.prepare(request)
        while True:
            size = 1 if self.drips else 1_000_000
            await answer.write(b" " * size)
            self.sent += size
            await asyncio.sleep(0.005 if self.drips else 0)


@asynccontextmanager
async def asking(server: FixedAnswer) -> AsyncIterator[MatrixClient]:
    runner = web.ServerRunner(web.Server(server.answer), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    client = MatrixClient(site.name, None)
    client.restore_session(USER, "DEVICE", "token")
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


NO_ANSWERS = {
    "a proxy's page": FixedAnswer(502, PAGE, "text/html"),
    "a proxy's page, said to be JSON": FixedAnswer(502, PAGE),
    "a page that says all is well": FixedAnswer(200, PAGE, "text/html"),
    "nothing": FixedAnswer(503, b""),
    "nothing, and all is well": FixedAnswer(200, b""),
    "a page that refuses": FixedAnswer(403, PAGE, "text/html"),
    "half an answer": FixedAnswer(200, b'{"event_id": "$1'),
    "a list": FixedAnswer(200, b"[]"),
    "no object of Matrix": FixedAnswer(500, b'{"message": "upstream"}'),
    "no words": FixedAnswer(200, b"\xff\xfe\x80"),
    "without bottom": FixedAnswer(200, b"[" * 100_000),
    "a charset that nobody has": FixedAnswer(200, b"{", "application/json; charset=nonsense"),
}


@pytest.mark.parametrize("server", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
async def test_what_is_no_answer_of_matrix_is_trouble_of_the_server_and_never_a_yes(server: FixedAnswer) -> None:
    async with asking(server) as client:
        for request in (
            client.request_json("GET", "/_matrix/client/v3/account/whoami"),
            client.room_typing("!room:test.example", True, 1000),
            client.sync(1000),
            client.room_send("!room:test.example", "m.room.message", {"body": "hi"}, "t1"),
        ):
            with pytest.raises(BridgeError, match=f"has a problem: what it answers with {server.status} ") as trouble:
                await request
            # What a proxy refuses went nowhere; of the rest nobody knows.
            assert trouble.value.ambiguous == (server.status != 403)
            assert not trouble.value.refused and "\n" not in str(trouble.value)


async def test_what_the_server_itself_says_is_read_whatever_it_says_it_is() -> None:
    async with asking(FixedAnswer(200, b'{"user_id": "@a:b"}', "text/plain")) as client:
        assert await client.request_json("GET", "/_matrix/client/v3/account/whoami") == {"user_id": "@a:b"}


async def test_an_answer_without_end_is_given_up_before_it_fills_the_memory() -> None:
    server = FixedAnswer(200, ENDLESS)
    async with asking(server) as client:
        with pytest.raises(BridgeError, match="larger than 50 MB") as trouble:
            await client.sync(1000)
        assert trouble.value.ambiguous
        assert server.sent < 60_000_000


class ShortTimeoutInbound(MatrixReceiver):
    sync_timeout_seconds = 0.1


async def unused(*arguments: Any) -> Any:
    raise AssertionError("no draft is shown here")


async def test_an_answer_that_does_not_come_to_its_end_is_given_up() -> None:
    """nio waits for ever for the first one after a start."""
    async with asking(FixedAnswer(200, ENDLESS, drips=True)) as client, asyncio.timeout(10):
        with pytest.raises(BridgeError, match="no answer in time"):
            await ShortTimeoutInbound(
                client,
                MatrixInboundRecorder(stored_position=POSITION),
                MatrixDrafts(unused, unused, unused, 0),
                lambda moved: None,
                (),
                lambda account: False,
            ).run()
