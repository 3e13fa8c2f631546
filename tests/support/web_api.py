"""An app that runs, with a scripted model, and its web API as callers reach it: over the control socket and TCP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from assistant.core.bridge_api import Bridge
from assistant.service.home_lock import short_address
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.support.scripted import ScriptedModel, SteppingClock

TOKEN = "a-token-of-enough-characters"
# Far above what anything takes: a machine with other work ends no test.
_SECONDS = 60


@dataclass(frozen=True)
class StreamEvent:
    """One event of a stream; `id` is "" where it has none."""

    name: str
    data: Mapping[str, Any]
    id: str


class EventStream:
    """An event stream as a client reads it."""

    def __init__(self, events: AsyncIterator[StreamEvent]) -> None:
        self._events = events
        self.hello: StreamEvent | None = None

    async def next_event(self) -> StreamEvent:
        async with asyncio.timeout(_SECONDS):
            return await anext(self._events)

    async def next_delivery(self) -> StreamEvent:
        """The next delivery, whatever else is told before it."""
        while (event := await self.next_event()).name != "deliver":
            pass
        return event

    async def remaining_events(self) -> list[StreamEvent]:
        """Until it ends."""
        async with asyncio.timeout(_SECONDS):
            return [event async for event in self._events]


class ApiClient:
    """Somebody who talks to the web API, and what they got."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self._said = 0

    async def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        return await self.client.request(method, path, **request)

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.request("GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def say(self, text: str, session: str = "main") -> int:
        self._said += 1
        body = {"text": text, "external_id": f"{id(self)}-{self._said}", "session": session}
        answer = await self.request("POST", "/v1/messages", json=body)
        assert answer.status_code == 202, answer.text
        return int(answer.json()["inbox_id"])

    async def confirm(self, event: StreamEvent) -> bool:
        answer = await self.request("POST", "/v1/deliveries/ack", json={"key": event.data["key"]})
        return bool(answer.json()["acknowledged"])

    @asynccontextmanager
    async def events(self, last: str | int | None = None, **params: Any) -> AsyncIterator[EventStream]:
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        async with self.client.sse("/v1/events", params=params, headers=headers) as stream:
            assert stream.response.status_code == 200, await stream.response.aread()

            async def events() -> AsyncIterator[StreamEvent]:
                async for event in stream:
                    yield StreamEvent(event.event, json.loads(event.data), event.id or "")

            found = EventStream(events())
            found.hello = await found.next_event()
            yield found


@dataclass(frozen=True)
class LiveApi:
    """`tcp` shows the token; `socket` is the owner's own way."""

    app: App
    model: ScriptedModel
    tcp: ApiClient
    socket: ApiClient
    port: int
    clock: SteppingClock

    async def wait_idle(self) -> None:
        """Everything is answered, and what follows a turn is done."""
        await self.app.runtime.wait_until_idle()
        await self.app.background_compaction.wait_until_idle()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def run_web_api(
    home: Path,
    *script: Any,
    scheme: str = "http",
    trusting: ssl.SSLContext | bool = False,
    listening: bool = True,
    bridges: Mapping[str, Bridge] | None = None,
    **environ: str,
) -> AsyncIterator[LiveApi]:
    """`bridges` are beside the terminal's; `environ` are settings, as in WEB__HOSTS, "" for one that is not set;
    `listening`: wait until it does."""
    port = free_port()
    given = {f"ASSISTANT_{name}": value for name, value in environ.items()}
    mine = {"ASSISTANT_HOME": str(home), "ASSISTANT_WEB__PORT": str(port), "ASSISTANT_WEB__TOKEN": TOKEN}
    environment = {name: value for name, value in {**mine, **given}.items() if value}
    load = partial(load_settings, None, environment, ring=None)
    model, clock = ScriptedModel(*script), SteppingClock()
    app = build_app(load(), clock, bridges=bridges, model=model, reread=load)
    token = app.settings.values.web.token.get_secret_value()
    try:
        await app.start()
        worker = asyncio.create_task(app.runtime.run())
        async with app.serve(), _callers(app, f"{scheme}://127.0.0.1:{port}", token, trusting) as (tcp, own):
            if listening and app.web.tcp is not None:
                async with asyncio.timeout(_SECONDS):
                    await app.web.tcp.opened.wait()
            yield LiveApi(app, model, tcp, own, port, clock)
            await app.stop(5)
        await worker
    finally:
        app.close()


@asynccontextmanager
async def _callers(
    app: App, address: str, token: str, trusting: ssl.SSLContext | bool
) -> AsyncIterator[tuple[ApiClient, ApiClient]]:
    async with contextlib.AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {token}"}
        tcp = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=address, headers=headers, verify=trusting, timeout=_SECONDS)
        )
        path = stack.enter_context(short_address(app.settings.home.socket))
        transport = httpx2.AsyncHTTPTransport(uds=path)
        own = await stack.enter_async_context(
            httpx2.AsyncClient(base_url="http://assistant", transport=transport, timeout=_SECONDS)
        )
        yield ApiClient(tcp), ApiClient(own)


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            files[1],
            "-out",
            files[0],
        ],
        check=True,
        capture_output=True,
    )
    return files
