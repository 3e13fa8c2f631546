"""A TCP socket that is retried if it cannot listen, and served from the first connection on.

A renewed certificate is used without a restart (`docs/web-api.md`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import HomeError
from assistant.core.logger import get_logger
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.service.malloc import loaded_for_good

log = get_logger()

# Serves an open listening socket while the context is open.
ServeSocket = Callable[[socket.socket], AbstractAsyncContextManager[None]]

# Imports the framework and returns the server for a listening socket, over TLS if there is a context for it.
LoadServer = Callable[[ssl.SSLContext | None], ServeSocket]

# Length of the accept queue. Beyond it the system drops connection requests, and clients retry after a second,
# including health checks, however idle the daemon is.
BACKLOG = 1024
_RETRY_SECONDS = 15.0


async def serve_until(end: asyncio.Event, load: Callable[[], ServeSocket], listening: socket.socket) -> None:
    """Serve from the first connection until `end`; the server is loaded in a worker thread."""
    await _wait_for_connection(listening, end)
    if end.is_set():
        return
    with loaded_for_good():
        serving = await asyncio.to_thread(load)
    async with serving(listening):
        await end.wait()


async def _wait_for_connection(listening: socket.socket, end: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    connected = asyncio.Event()
    loop.add_reader(listening.fileno(), connected.set)
    tasks = [asyncio.create_task(event.wait()) for event in (connected, end)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(listening.fileno())
        for task in tasks:
            task.cancel()


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Where to listen."""

    host: str
    port: int
    certificate: Path | None = None  # a PEM file; None for no TLS
    key: Path | None = None  # a PEM file
    any_port: bool = False  # use a free port if this one is in use


class TcpListener:
    """`problem` says why it does not listen and what to do; "" while it listens. `opened` is set once it listened,
    `tried` once it listened or failed."""

    def __init__(self, load: LoadServer, address: TcpAddress, retry_seconds: float = _RETRY_SECONDS) -> None:
        self.problem = ""
        self.address: tuple[str, int] | None = None
        self.opened, self.tried = asyncio.Event(), asyncio.Event()
        self._load = load
        self._address = address
        self._retry_seconds = retry_seconds
        self._end = asyncio.Event()

    @property
    def taken_port(self) -> int:
        """Return the configured port if another one is used; 0 otherwise."""
        port = self._address.port
        return port if self.address is not None and self.address[1] != port else 0

    @property
    def url(self) -> str:
        """Return where it listens now; "" while it does not."""
        if self.address is None:
            return ""
        scheme = "https" if self._address.certificate else "http"
        return f"{scheme}://{self._address.host}:{self.address[1]}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen, or retry, while the context is open."""
        task = asyncio.create_task(self._keep_open(), name="web api")
        task.add_done_callback(self._on_ended)
        try:
            yield
        finally:
            self.begin_stop()
            await finish_within(SHUTDOWN_TIMEOUTS.serving, asyncio.wait([task]), "the web API")

    def begin_stop(self) -> None:
        """Begin to stop; `serve` waits for the end."""
        self._end.set()

    async def _keep_open(self) -> None:
        while not self._end.is_set():
            self.address = None
            try:
                certificate, key = self._address.certificate, self._address.key
                tls = _Certificate(certificate, key) if certificate and key else None
                listening = await self._listen()
            except HomeError as error:
                self._set_problem(str(error))
                await self._pause()
                continue
            with listening:
                await self._serve(listening, tls)

    async def _listen(self) -> socket.socket:
        """Raises `HomeError`."""
        try:
            return await listen_tcp(self._address.host, self._address.port)
        except HomeError:
            if not self._address.any_port:
                raise
            return await listen_tcp(self._address.host, 0)

    async def _serve(self, listening: socket.socket, tls: _Certificate | None) -> None:
        self.address = listening.getsockname()[:2]
        self._set_problem("")
        self.opened.set()
        log.info("web api listens", host=self.address[0], port=self.address[1], tls=tls is not None)
        context = None if tls is None else tls.context
        renewing = None if tls is None else asyncio.create_task(self._renew(tls), name="web certificate")
        try:
            await serve_until(self._end, lambda: self._load(context), listening)
        finally:
            if renewing is not None:
                renewing.cancel()

    async def _renew(self, tls: _Certificate) -> None:
        while not self._end.is_set():
            await self._pause()
            problem = ""
            try:
                tls.reload()
            except HomeError as error:
                problem = f"{error} The certificate that was read before is still used."
            self._set_problem(problem)

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._retry_seconds):
                await self._end.wait()

    def _set_problem(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("web api does not listen as it should", error=problem)
        self.problem = problem
        self.tried.set()

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._set_problem(
                f"The web API failed ({type(error).__name__}: {error}); `assistant service restart` tries again."
            )


async def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `HomeError` with what to do."""
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise HomeError(
            f"The web API cannot listen: {host} is not an address of this machine ({error.strerror}). Correct web.host."
        ) from None
    family, kind, protocol, _, address = addresses[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise HomeError(
            f"The web API cannot listen at {host}, port {port} ({error.strerror}). It is tried again automatically; "
            "end what uses that port, or set another web.port and restart."
        ) from None
    return listening


class _Certificate:
    """A TLS context that follows its PEM files."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises `HomeError`."""
        self._files = (certificate, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._modified: tuple[int, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read the files if they changed, for connections from now on. Raises `HomeError`."""
        try:
            modified = tuple(file.stat().st_mtime_ns for file in self._files)
            if modified != self._modified:
                # A first context checks whether the two belong together, before the one in use is changed.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files, password="")
                self.context.load_cert_chain(*self._files, password="")
                self._modified = modified
        except (OSError, ValueError) as error:
            raise HomeError(
                f"The web API's certificate {self._files[0]} cannot be used with {self._files[1]} "
                f"({getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}). Correct "
                "web.certificate and web.certificate_key; it is tried again automatically."
            ) from None
