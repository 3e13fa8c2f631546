"""A port in front of a server that several tests share, which can be shut for one of them: then nothing connects, and
what was connected breaks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass
class TcpGate:
    upstream: int
    port: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for writer in self._writers:
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        there, back = await asyncio.open_connection("127.0.0.1", self.upstream)
        self._writers.add(back)
        try:
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
        except asyncio.CancelledError:
            return  # the gate is shut
        finally:
            self._tasks.discard(task)
            for one in (writer, back):
                self._writers.discard(one)
                one.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(2**16):
            target.write(data)
            await target.drain()
        target.write_eof()
    except (ConnectionError, RuntimeError):
        target.transport.abort()
