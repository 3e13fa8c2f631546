"""A wire between a program and a PostgreSQL server that can be cut: no byte passes, and nothing breaks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Literal

SOCKET = ".s.PGSQL.5432"
Direction = Literal["there", "back", "both"]


class Wire:
    """A socket in front of a server's. While a direction is cut, no byte passes in it."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self._passing = {"there": asyncio.Event(), "back": asyncio.Event()}
        self._tasks: set[asyncio.Task[None]] = set()
        self.mend()

    def cut(self, direction: Direction = "both") -> None:
        for name, passing in self._passing.items():
            if direction in (name, "both"):
                passing.clear()

    def mend(self) -> None:
        for passing in self._passing.values():
            passing.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(str(self._upstream))
        except OSError:
            writer.close()
            return
        for name, source, target in (("there", reader, back), ("back", there, writer)):
            task = asyncio.create_task(self._pass_on(self._passing[name], source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self, passing: asyncio.Event, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                await passing.wait()
                target.write(data)
        target.close()


class WireThread(Thread):
    """Wires to several servers, each through a socket in a folder of its own below `folder`, in a thread of their
    own."""

    def __init__(self, folder: Path, servers: Sequence[Path]) -> None:
        super().__init__(name=f"wires in {folder}", daemon=True)
        self.sockets = [folder / str(number) for number in range(len(servers))]
        self._servers, self._listens = servers, Event()
        self._loop = asyncio.new_event_loop()
        self._wires: list[Wire] = []
        self.start()
        self._listens.wait()

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            for socket, server in zip(self.sockets, self._servers, strict=True):
                socket.mkdir(parents=True)
                self._wires.append(Wire(server / SOCKET))
                serving = await asyncio.start_unix_server(self._wires[-1].connect, str(socket / SOCKET))
                await stack.enter_async_context(serving)
            self._listens.set()
            await asyncio.Event().wait()

    def cut(self, direction: Direction) -> None:
        for wire in self._wires:
            self._loop.call_soon_threadsafe(wire.cut, direction)

    def mend(self) -> None:
        for wire in self._wires:
            self._loop.call_soon_threadsafe(wire.mend)
