"""The servers of a running daemon: the control socket, and TCP where the settings ask for it."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import structlog
from pydantic import SecretStr

from assistant.core.errors import StoreError
from assistant.settings.home import Home
from assistant.settings.network_sections import WebSettings
from assistant.settings.secrets import IN_FILE
from assistant.settings.settings import Settings
from assistant.web.deps import AccessRules, ApiDeps
from assistant.web.listeners import ServeSocket, TcpAddress, TcpListener, serve_control

log = structlog.get_logger()

WEB_TOKEN_KEY = "web.token"
_TOKEN_BYTES = 32
_NO_TOKEN = (
    "The web API lets nobody in: it has no token, and one could not be kept in secrets.toml. "
    "`assistant web token --new` makes one."
)


def create_web_token(home: Home) -> str:
    """A new token, stored in secrets.toml: no keyring has to be unlocked to start the daemon. Raises `StoreError`."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    from assistant.store.home.secrets import HomeSecretStore  # writes TOML, which few need

    HomeSecretStore(home.secrets, None).put(WEB_TOKEN_KEY, token, in_file=True)
    return token


def ensure_web_token(settings: Settings) -> Settings:
    """The settings with a token for the web API: made at the first start with a port. Where it cannot be stored, there
    is none, and `WebServers.problems` says so."""
    web = settings.values.web
    if not web.port or web.token.get_secret_value():
        return settings
    try:
        made = web.model_copy(update={"token": SecretStr(create_web_token(settings.home))})
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
        self.tcp = TcpListener(self._load_tcp, tcp_address(settings)) if settings.port else None

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

    # The web framework is loaded when somebody first connects.

    def _load_control(self) -> ServeSocket:
        from assistant.web.server import build_control_server

        return build_control_server(self.deps)

    def _load_tcp(self, tls: ssl.SSLContext | None) -> ServeSocket:
        from assistant.web.server import build_tcp_server

        return build_tcp_server(self.deps, self._rules, tls, time.monotonic)


def tcp_address(settings: WebSettings) -> TcpAddress:
    certificate, key = settings.certificate, settings.certificate_key
    files = (Path(certificate).expanduser(), Path(key).expanduser()) if certificate and key else (None, None)
    return TcpAddress(settings.host, settings.port, *files)
