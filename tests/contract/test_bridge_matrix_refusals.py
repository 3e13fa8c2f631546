"""What the answers of a Matrix server, or of a proxy before it, mean for a message: the bridge against a server that
answers one thing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from assistant.bridges.matrix.bridge import MatrixBridge
from assistant.core.bridge_api import DeviceLogin
from assistant.core.errors import BridgeError
from tests.support.matrix_bot import outgoing_part

_LATER = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 7000}


def coded(code: str) -> str:
    return json.dumps({"errcode": code, "error": "no"})


@asynccontextmanager
async def answering(status: int, body: str) -> AsyncIterator[str]:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status, text=body)

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site.name
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "body", "what", "retry_after"),
    [
        (403, coded("M_FORBIDDEN"), "refused", None),
        (413, coded("M_TOO_LARGE"), "refused", None),
        (413, "<html>Too large</html>", "refused", None),
        (400, coded("M_BAD_JSON"), "refused", None),
        (404, coded("M_UNRECOGNIZED"), "", None),
        (404, "<html>Not found</html>", "", None),
        (403, "", "", None),
        (403, coded("M_RESOURCE_LIMIT_EXCEEDED"), "", None),
        (401, coded("M_UNKNOWN_TOKEN"), "", None),
        (429, json.dumps(_LATER), "", 7.0),
        (500, coded("M_UNKNOWN"), "ambiguous", None),
        (502, "<html>Bad gateway</html>", "ambiguous", None),
        (200, "<html>Welcome</html>", "ambiguous", None),
    ],
)
async def test_a_message_is_refused_only_by_the_servers_own_word_about_it(
    tmp_path: Path, status: int, body: str, what: str, retry_after: Any
) -> None:
    async with answering(status, body) as url:
        bridge = MatrixBridge(
            url,
            DeviceLogin("@nocturne:test.example", "HERE", "token"),
            store=tmp_path,
            encryption=False,
            invites=(),
            is_owners=lambda account: False,
        )
        with pytest.raises(BridgeError) as caught:
            await bridge.send(outgoing_part("!room:test.example", "hello"))
        await bridge.aclose()
    assert (caught.value.ambiguous, caught.value.refused) == (what == "ambiguous", what == "refused")
    assert caught.value.retry_after == retry_after
