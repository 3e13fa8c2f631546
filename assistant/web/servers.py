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
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from assistant.core.errors import HomeError, HomeLocked, StoreError
from assistant.core.logger import get_logger
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.service.home_lock import is_listening, short_address
from assistant.settings.secrets import IN_FILE
from assistant.settings.sections import WEB_TOKEN_KEY, WebSettings
from assistant.settings.settings import Settings
from assistant.web.deps import AccessRules, ApiDeps
from assistant.web.tcp_listener import BACKLOG, ServeSocket, TcpAddress, TcpListener, serve_until

log = get_logger()

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


def _close_after_failure(task: asyncio.Task[None], listening: socket.socket) -> None:
    """After a failure clients must not wait in the kernel's queue for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        listening.close()
        log.error("control socket failed", error=f"{type(error).__name__}: {error}")


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
        """`token` gives the one that is valid now; `listens`: over TCP as well, if there is a port; `any_port`: another
        one will do where that is taken."""
        self._socket = socket
        self.deps = deps
        self._rules = AccessRules(token, frozenset(settings.hosts), settings.behind_proxy, deps.browsers)
        certificate, key = settings.certificate, settings.certificate_key
        files = (Path(certificate).expanduser(), Path(key).expanduser()) if certificate and key else (None, None)
        address = TcpAddress(settings.host, settings.port, files[0], files[1], any_port)
        self.tcp = TcpListener(self._load_tcp, address) if settings.port and listens else None

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
        return {"address": self.tcp.url, "problems": self.problems(), "taken_port": self.tcp.taken_port or None}

    def url(self) -> str:
        """Where the page is; "" while nothing listens."""
        return "" if self.tcp is None else self.tcp.url

    async def first_url(self) -> str:
        """The same, once it listened or could not."""
        if self.tcp is not None:
            await self.tcp.tried.wait()
        return self.url()

    # The web framework is loaded when somebody first connects.

    def _load_control(self) -> ServeSocket:
        from assistant.web.server import build_control_server

        return build_control_server(self.deps)

    def _load_tcp(self, tls: ssl.SSLContext | None) -> ServeSocket:
        from assistant.web.server import build_tcp_server

        return build_tcp_server(self.deps, self._rules, tls, time.monotonic)
