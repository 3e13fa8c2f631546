"""A proxy before a Matrix server that has troubles: it refuses, breaks connections, or is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from aiohttp import ClientSession, web

CutMoment = Literal["before", "after"]
_MOST_BYTES = 60_000_000


class FaultyMatrixProxy:
    """On a loopback port of its own, which stays the same while it is gone. `on_request` is told of each request's
    method and path with its query before it goes on, `on_answer` may change what is answered."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.on_request: Callable[[str, str], None] = lambda method, path: None
        self.on_answer: Callable[[str, bytes], bytes] = lambda path, body: body
        self.send_attempts = 0
        self.url = ""
        self._refusals: list[float | None] = []
        self._cuts: list[tuple[str, CutMoment]] = []
        self._broken_last = ""
        self._session: ClientSession
        self._runner: web.ServerRunner
        self._site: web.TCPSite
        self._handling: set[asyncio.Task[Any]] = set()
        self._port = 0

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        """The next answers that go out are refused, for so many seconds or (None) for ever."""
        self._refusals += [retry_after] * calls

    def cut_connections(self, when: CutMoment, calls: int = 1, path: str = "/answer-") -> None:
        """The connections of the next calls with `path` in theirs break; without more said, of answers that go out.
        aiohttp asks once more by itself, so that each breaks twice."""
        self._cuts += [(path, when)] * calls * 2

    async def start(self) -> None:
        self._session = ClientSession(auto_decompress=False)
        await self.go_online()

    async def go_online(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await self._site.start()
        self.url = self._site.name
        self._port = int(self.url.rpartition(":")[2])

    async def go_offline(self) -> None:
        if self._runner.server is None:
            return
        await self._site.stop()
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        for task in list(self._handling):
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        await self._runner.cleanup()

    async def aclose(self) -> None:
        await self.go_offline()
        await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        try:
            return await self._answer(request)
        finally:
            self._handling.discard(task)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        self.on_request(request.method, request.path_qs)
        body = await request.read()
        if "/answer-" in path and path != self._broken_last:
            self.send_attempts += 1
            if self._refusals:
                return self._refused(self._refusals.pop(0))
        cut = next((one for one in self._cuts if one[0] in path), None)
        self._broken_last = path if cut is not None and path != self._broken_last else ""
        if cut is not None:
            self._cuts.remove(cut)
            if cut[1] == "before":
                return self._broken(request)
        answer = await self._pass_on(request, body)
        return answer if cut is None else self._broken(request)

    @staticmethod
    def _refused(retry_after: float | None) -> web.Response:
        if retry_after is None:
            return web.json_response({"errcode": "M_FORBIDDEN", "error": "You are not in this room."}, status=403)
        wait = int(retry_after * 1000)
        error = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": wait}
        return web.json_response(error, status=429)

    async def _pass_on(self, request: web.BaseRequest, body: bytes) -> web.Response:
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        async with self._session.request(
            request.method, self.upstream + request.raw_path, data=body, headers=headers
        ) as got:
            kept = {name: got.headers[name] for name in ("Content-Type", "Content-Disposition") if name in got.headers}
            return web.Response(status=got.status, body=self.on_answer(request.path, await got.read()), headers=kept)

    def _broken(self, request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        raise asyncio.CancelledError
