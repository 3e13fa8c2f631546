"""The servers of a running daemon: the control socket, and TCP if configured. Each socket is bound at once, and served
from the first connection on.

Binding is cheap and shows other processes that the data folder is served; the web framework takes a quarter of a second
to import, which a short-lived process never needs. Meanwhile a client waits in the kernel's queue.

Only the owner can open the control socket: its directory is created with mode 0700, the socket with 0600. The serving
process holds the lock of the data folder, so an existing socket belongs to a dead process; it is removed only if
nothing answers on it.

Neither start-up nor shutdown of the daemon waits for the TCP socket. A port in use, a missing address, or an unreadable
certificate is a problem in the status (`problem`) and is retried; the control socket is not affected. A renewed
certificate is used without a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from assistant.core.errors import HomeError, HomeLocked, StoreError
from assistant.core.imports import hidden_modules, stand_in_modules
from assistant.core.logger import get_logger
from assistant.core.plain_files import expand_home
from assistant.core.secret_text import SecretStr
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.service.home_lock import is_listening, short_address
from assistant.settings.secrets import IN_FILE
from assistant.settings.sections import WEB_TOKEN_KEY, WebSettings
from assistant.settings.settings import Settings
from assistant.web.deps import AccessRules, ApiDeps
from assistant.web.request_counter import RequestCounter
from assistant.web.tcp_listener import BACKLOG, ServeSocket, TcpAddress, TcpListener, serve_until

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = get_logger()

_NO_TOKEN = (
    "The web API refuses everybody: it has no token, and one could not be kept in secrets.toml. "
    "`assistant web token --new` makes one."
)


@asynccontextmanager
async def serve_control(load: Callable[[], ServeSocket], path: Path) -> AsyncIterator[None]:
    """Listen at `path`; at the first connection call `load` (in a worker thread) to get the server.

    The caller holds the lock of the data folder. Raises `HomeLocked` if a living process answers there, `HomeError` if
    the socket cannot be created."""
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


def listen_unix(path: Path) -> socket.socket:
    """Return a socket listening at `path`, accessible only to the owner from its creation."""
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
        listening.listen(BACKLOG)
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
    """Remove the socket, unless it was replaced."""
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


def _close_after_failure(task: asyncio.Task[None], listening: socket.socket) -> None:
    """Close the socket after a failure, so that clients do not wait in the kernel's queue forever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        listening.close()
        log.error("control socket failed", error=f"{type(error).__name__}: {error}")


def ensure_web_token(settings: Settings) -> Settings:
    """Return the settings with a token for the web API, created at the first start with a port. If it cannot be stored,
    there is none, and `WebServers.problems` says so."""
    web = settings.values.web
    if not web.port or web.token.get_secret_value():
        return settings
    from assistant.store.home.config_file import create_web_token  # writes TOML, which is rarely needed

    try:
        made = web.changed(token=SecretStr(create_web_token(settings.home.secrets)))
    except StoreError as error:
        log.error("no token could be kept for the web api", error=str(error))
        return settings
    values = settings.values.changed(web=made)
    return replace(settings, values=values, origins={**settings.origins, WEB_TOKEN_KEY: IN_FILE})


class WebServers:
    def __init__(
        self,
        socket: Path,
        settings: WebSettings,
        deps: ApiDeps,
        token: Callable[[], str],
        *,
        listens: bool,
        any_port: bool,
    ) -> None:
        """`token` returns the currently valid one; `listens`: also over TCP, if a port is set; `any_port`: use another
        one if it is in use."""
        self._socket = socket
        self._app: ASGIApp | None = None
        self._building = Lock()
        self._counter: RequestCounter | None = None
        self.deps = deps
        self._rules = AccessRules(token, frozenset(settings.hosts), settings.behind_proxy, deps.browsers)
        certificate, key = settings.certificate, settings.certificate_key
        files = (expand_home(certificate), expand_home(key)) if certificate and key else (None, None)
        address = TcpAddress(settings.host, settings.port, files[0], files[1], any_port)
        self.tcp = TcpListener(self._load_tcp, address) if settings.port and listens else None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve in this context, the control socket independently of TCP. Raises `HomeError`, `HomeLocked` if the
        control socket cannot be created."""
        async with AsyncExitStack() as stack:
            if self.tcp is not None:
                await stack.enter_async_context(self.tcp.serve())
            await stack.enter_async_context(serve_control(self._load_control, self._socket))
            if self.tcp is not None:
                # They shut down concurrently.
                stack.callback(self.tcp.begin_stop)
            yield

    def problems(self) -> list[str]:
        """Return why TCP is not served as configured, or admits nobody."""
        if self.tcp is None:
            return []
        return [problem for problem in (self.tcp.problem, "" if self._rules.token() else _NO_TOKEN) if problem]

    def status(self) -> dict[str, Any] | None:
        """Return where TCP is served ("" while it is not), and its problem; None if it is not configured."""
        if self.tcp is None:
            return None
        return {"address": self.tcp.url, "problems": self.problems(), "taken_port": self.tcp.taken_port or None}

    def is_asked(self) -> bool:
        """Return whether a request runs, or one came since the last call."""
        return self._counter is not None and self._counter.is_asked()

    def is_answering(self) -> bool:
        """Return whether a request runs, or came a moment ago. May be called from any thread."""
        return self._counter is not None and self._counter.is_answering()

    async def wait_until_quiet(self) -> None:
        """Wait until no request has come for a moment; at most two seconds. Background work calls it between its
        steps, so that a page is not painted beside it."""
        if self._counter is not None:
            await self._counter.wait_until_quiet()

    def url(self) -> str:
        """Return the address of the page; "" while nothing listens."""
        return "" if self.tcp is None else self.tcp.url

    async def first_url(self) -> str:
        """Wait until it listens or failed, and return the address."""
        if self.tcp is not None:
            await self.tcp.tried.wait()
        return self.url()

    # The web framework is imported at the first connection, by `_load_app`.

    def _load_control(self) -> ServeSocket:
        app = self._load_app()
        from assistant.web.server import serve_with_uvicorn

        # Everybody who can open the socket is the owner.
        return serve_with_uvicorn(app)

    def _load_tcp(self, tls: ssl.SSLContext | None) -> ServeSocket:
        app = self._load_app()
        from assistant.web.server import build_tcp_server

        return build_tcp_server(app, self._rules, tls, time.monotonic)

    def _load_app(self) -> ASGIApp:
        """Build the application once: it takes a while and some megabytes. Called in worker threads."""
        with self._building:
            if self._app is None:
                with _without_unused_parts():
                    import assistant.web.server  # noqa: F401  # imports uvicorn
                    from assistant.web.app import build_web_app

                    self._app = self._counter = RequestCounter(build_web_app(self.deps), time.monotonic)
            return self._app


@contextmanager
def _without_unused_parts() -> Iterator[None]:
    """Around the import of FastAPI and uvicorn, and what is built with them."""
    # FastAPI looks for models of it in each route. There are none, and it is half as large as pydantic.
    with (
        hidden_modules("pydantic.v1"),
        stand_in_modules(
            # The description of the API is made in a process of its own.
            *("fastapi.openapi.models", "fastapi.security.oauth2"),
            # FastAPI's telemetry is off.
            *("opentelemetry.metrics", "opentelemetry._logs", "opentelemetry.propagate"),
            # uvicorn's command line starts processes, and reads how to log from files.
            *("uvicorn.main", "logging.config", "configparser"),
        ),
    ):
        yield
