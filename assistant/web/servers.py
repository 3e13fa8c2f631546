"""The servers of a running daemon: the control socket, and TCP where the settings ask for it. Each socket is bound at
once and served from the first connection on.

Binding is cheap and shows other processes that the data folder is served; the web framework takes a quarter of a second
to load, and a process that answers one question and ends never needs it. A client waits in the kernel's queue
meanwhile.

Only the owner can open the control socket: the directory has mode 0700 before it exists, the socket 0600. The process
that serves has the lock of the data folder, so a socket that is found there belongs to a process that died; it is
removed only if nothing answers on it.

Neither the daemon's readiness nor its end waits for the TCP socket. A port that is taken, an address that is missing,
or a certificate that cannot be read is a problem in the status (`problem`) and is tried again; the control socket does
not notice. A renewed certificate is used without a restart."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
from pydantic import SecretStr

from assistant.core.errors import HomeError, HomeLocked, StoreError
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.service.home_lock import is_listening, short_address
from assistant.service.malloc import loaded_for_good
from assistant.settings.secrets import IN_FILE
from assistant.settings.sections import WEB_TOKEN_KEY, WebSettings
from assistant.settings.settings import Settings
from assistant.web.deps import AccessRules, ApiDeps

log = structlog.get_logger()

# What serves an open listening socket for as long as the context is open.
ServeSocket = Callable[[socket.socket], AbstractAsyncContextManager[None]]

# Loads the framework and returns what serves a listening socket, over TLS where there is a context for it.
LoadServer = Callable[[ssl.SSLContext | None], ServeSocket]

_BACKLOG = 128
_RETRY_SECONDS = 15.0
_NO_TOKEN = (
    "The web API refuses everybody: it has no token, and one could not be kept in secrets.toml. "
    "`assistant web token --new` makes one."
)


@asynccontextmanager
async def serve_control(load: Callable[[], ServeSocket], path: Path) -> AsyncIterator[None]:
    """Listen at `path`; at the first connection call `load` (in a worker thread) and let what it gives serve.

    The caller has the lock of the data folder. Raises `HomeLocked` when a living process answers there, `HomeError`
    when the socket cannot be made."""
    listening = listen_unix(path)
    own = _file_identity(path)
    end = asyncio.Event()
    server = asyncio.create_task(serve_until(end, load, listening), name="control socket")
    server.add_done_callback(lambda task: _close_after_failure(task, listening))
    try:
        yield
    finally:
        end.set()
        await finish_within(SHUTDOWN_TIMEOUTS.serving, asyncio.wait([server]), "the control socket")
        listening.close()
        _remove(path, own)


async def serve_until(end: asyncio.Event, load: Callable[[], ServeSocket], listening: socket.socket) -> None:
    """Serve from the first connection until `end`; what serves is loaded in a worker thread."""
    await _wait_for_connection(listening, end)
    if end.is_set():
        return
    with loaded_for_good():
        serving = await asyncio.to_thread(load)
    async with serving(listening):
        await end.wait()


def listen_unix(path: Path) -> socket.socket:
    """A socket that listens at `path`, readable and writable by the owner alone from its first moment on."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
        _remove_stale(path)
        with contextlib.suppress(OSError):
            os.fchmod(listening.fileno(), 0o600)
        with short_address(path) as address:
            listening.bind(address)
        path.chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise HomeError(f"The control socket {path} cannot be made ({error.strerror or error}).") from None
    except HomeError:
        listening.close()
        raise
    return listening


def _file_identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _remove(path: Path, own: tuple[int, int]) -> None:
    """Remove the socket, unless another one is there by now."""
    with contextlib.suppress(OSError):
        if _file_identity(path) == own:
            path.unlink()


def _remove_stale(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise HomeError(f"{path} is in the way of the control socket and is not a socket; move it, then start again.")
    if is_listening(path):
        raise HomeLocked()
    path.unlink()


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


def _close_after_failure(task: asyncio.Task[None], listening: socket.socket) -> None:
    """After a failure clients must not wait in the kernel's queue for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        listening.close()
        log.error("control socket failed", error=f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Where to listen."""

    host: str
    port: int
    certificate: Path | None = None  # a PEM file; None for no TLS
    key: Path | None = None  # a PEM file


class TcpListener:
    """`problem` says why it does not listen and what to do; "" while it listens. `opened` is set once it listened."""

    def __init__(self, load: LoadServer, address: TcpAddress, retry_seconds: float = _RETRY_SECONDS) -> None:
        self.problem = ""
        self.address: tuple[str, int] | None = None
        self.opened = asyncio.Event()
        self._load = load
        self._address = address
        self._retry_seconds = retry_seconds
        self._end = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it listens now; "" while it does not."""
        if self.address is None:
            return ""
        scheme = "https" if self._address.certificate else "http"
        return f"{scheme}://{self._address.host}:{self.address[1]}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen, or try to, while the context is open."""
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
                listening = await listen_tcp(self._address.host, self._address.port)
            except HomeError as error:
                self._set_problem(str(error))
                await self._pause()
                continue
            with listening:
                await self._serve(listening, tls)

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

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._set_problem(
                f"The web API failed ({type(error).__name__}: {error}); `assistant service restart` tries again."
            )


async def listen_tcp(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises `HomeError` with what to do."""
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
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise HomeError(
            f"The web API cannot listen at {host}, port {port} ({error.strerror}). It is tried again automatically; "
            "end what uses that port, or set another web.port and restart."
        ) from None
    return listening


class _Certificate:
    """A TLS context that follows its files, in PEM."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises `HomeError`."""
        self._files = (certificate, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._modified: tuple[int, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read the files where they changed: connections from now on get the new ones. Raises `HomeError`."""
        try:
            modified = tuple(file.stat().st_mtime_ns for file in self._files)
            if modified != self._modified:
                # A first context finds out whether the two belong together, before the one in use is changed.
                # Without a password OpenSSL would ask for one on the terminal.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files, password="")
                self.context.load_cert_chain(*self._files, password="")
                self._modified = modified
        except (OSError, ValueError) as error:
            raise HomeError(
                f"The web API's certificate {self._files[0]} cannot be used with {self._files[1]} "
                f"({getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}). Correct "
                "web.certificate and web.certificate_key; it is tried again automatically."
            ) from None


def ensure_web_token(settings: Settings) -> Settings:
    """The settings with a token for the web API: made at the first start with a port. Where it cannot be stored, there
    is none, and `WebServers.problems` says so."""
    web = settings.values.web
    if not web.port or web.token.get_secret_value():
        return settings
    from assistant.store.home.config_file import create_web_token  # writes TOML, which few need

    try:
        made = web.model_copy(update={"token": SecretStr(create_web_token(settings.home.secrets))})
    except StoreError as error:
        log.error("no token could be kept for the web api", error=str(error))
        return settings
    values = settings.values.model_copy(update={"web": made})
    return replace(settings, values=values, origins={**settings.origins, WEB_TOKEN_KEY: IN_FILE})


class WebServers:
    def __init__(self, socket: Path, settings: WebSettings, deps: ApiDeps, token: Callable[[], str]) -> None:
        """`token` gives the one that is valid now."""
        self._socket = socket
        self.deps = deps
        self._rules = AccessRules(token, frozenset(settings.hosts), settings.behind_proxy)
        certificate, key = settings.certificate, settings.certificate_key
        files = (Path(certificate).expanduser(), Path(key).expanduser()) if certificate and key else (None, None)
        address = TcpAddress(settings.host, settings.port, *files)
        self.tcp = TcpListener(self._load_tcp, address) if settings.port else None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """The control socket is served whatever becomes of TCP. Raises `HomeError`, `HomeLocked` where there can be no
        socket."""
        async with AsyncExitStack() as stack:
            if self.tcp is not None:
                await stack.enter_async_context(self.tcp.serve())
            await stack.enter_async_context(serve_control(self._load_control, self._socket))
            if self.tcp is not None:
                # They end side by side.
                stack.callback(self.tcp.begin_stop)
            yield

    def problems(self) -> list[str]:
        """Why TCP is not served as the settings ask for, or lets nobody in."""
        if self.tcp is None:
            return []
        return [problem for problem in (self.tcp.problem, "" if self._rules.token() else _NO_TOKEN) if problem]

    def status(self) -> dict[str, Any] | None:
        """Where TCP is served ("" while it is not), and what keeps it; None where the settings ask for none."""
        if self.tcp is None:
            return None
        return {"address": self.tcp.url, "problems": self.problems()}

    # The web framework is loaded when somebody first connects.

    def _load_control(self) -> ServeSocket:
        from assistant.web.server import build_control_server

        return build_control_server(self.deps)

    def _load_tcp(self, tls: ssl.SSLContext | None) -> ServeSocket:
        from assistant.web.server import build_tcp_server

        return build_tcp_server(self.deps, self._rules, tls, time.monotonic)
