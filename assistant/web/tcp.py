"""The web API's TCP socket: bound as soon as it can be, served from the first connection on.

What always holds: nobody waits for it, neither the daemon's readiness nor its end, and no framework is loaded before
somebody connects. A port that is taken, an address that is not there yet, or a certificate that cannot be read turn
the status red (`problem`) and are tried again; the control socket does not notice. A certificate that was renewed is
taken up without a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from assistant.core.errors import HomeError
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.web.listener import Serving, serve_until

log = structlog.get_logger()

# Loads the framework and gives what serves a listening socket, over TLS where there is a context for it.
Load = Callable[[ssl.SSLContext | None], Serving]

_BACKLOG = 128
_LOOK_AGAIN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class TcpPlace:
    """Where to listen. `certificate` and `key` are PEM files; None for no TLS."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


class TcpListener:
    """`problem` says why it does not listen as it should and what to do; "" while it does. `opened` is set once it
    listened, `changed` whenever `problem` becomes another."""

    def __init__(self, load: Load, place: TcpPlace, again_seconds: float = _LOOK_AGAIN_SECONDS) -> None:
        self.problem = ""
        self.address: tuple[str, int] | None = None
        self.opened = asyncio.Event()
        self.changed = asyncio.Event()
        self._load = load
        self._place = place
        self._again_seconds = again_seconds
        self._end = asyncio.Event()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen, or try to, while the context is open."""
        keeping = asyncio.create_task(self._keep_open(), name="web api")
        keeping.add_done_callback(self._ended)
        try:
            yield
        finally:
            self.end()
            await finish_within(SHUTDOWN_TIMEOUTS.serving, asyncio.wait([keeping]), "the web API")

    def end(self) -> None:
        """Begin to end; `serve` waits for it."""
        self._end.set()

    async def _keep_open(self) -> None:
        while not self._end.is_set():
            try:
                tls = _Certificate.of(self._place)
                listening = await listen_at(self._place.host, self._place.port)
            except HomeError as error:
                self._tell(str(error))
                await self._pause()
                continue
            with listening:
                await self._serve(listening, tls)

    async def _serve(self, listening: socket.socket, tls: _Certificate | None) -> None:
        self.address = listening.getsockname()[:2]
        self._tell("")
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
            try:
                tls.look()
            except HomeError as error:
                self._tell(f"{error} The one that was read before is still used.")
            else:
                self._tell("")

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._again_seconds):
                await self._end.wait()

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("web api does not listen as it should", error=problem)
        if problem != self.problem:
            self.problem = problem
            self.changed.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(
                f"The web API failed ({type(error).__name__}: {error}); `assistant service restart` tries again."
            )


async def listen_at(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises `HomeError` with what to do."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise HomeError(
            f"The web API cannot listen: {host} is no address of this machine ({error.strerror}). Correct web.host."
        ) from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise HomeError(
            f"The web API cannot listen at {host}, port {port} ({error.strerror}). It is tried again by itself; end "
            "what uses that port, or set another web.port and restart."
        ) from None
    return listening


class _Certificate:
    """A TLS context that follows its files."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._seen: tuple[int, ...] = ()
        self.look()

    @classmethod
    def of(cls, place: TcpPlace) -> _Certificate | None:
        """Raises `HomeError`."""
        return cls(place.certificate, place.key) if place.certificate and place.key else None

    def look(self) -> None:
        """Read the files where they changed: connections from now on get the new ones. Raises `HomeError`."""
        try:
            seen = tuple(file.stat().st_mtime_ns for file in self._files)
            if seen != self._seen:
                # A first context finds out whether the two belong together, before the one in use is changed.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files, password=_no_password)
                self.context.load_cert_chain(*self._files, password=_no_password)
                self._seen = seen
        except (OSError, ValueError) as error:
            raise HomeError(
                f"The web API's certificate {self._files[0]} cannot be used with {self._files[1]} "
                f"({getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}). Correct "
                "web.certificate and web.certificate_key; it is tried again by itself."
            ) from None


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    return ""
