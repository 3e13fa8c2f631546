"""The ways into a house that runs, put together: the control socket, and TCP where that is wanted. One part of the
composition root (`assistant.wire.app`)."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import SecretStr

from assistant.core.errors import StoreError
from assistant.memory.service import MemoryService
from assistant.settings.home import Home
from assistant.settings.network_sections import WebSettings
from assistant.settings.secrets import IN_FILE
from assistant.settings.settings import Settings
from assistant.web.deps import AccessRules, ApiDeps, OwnerReadApi, ReadApiSources
from assistant.web.listeners import ServeSocket, TcpAddress, TcpListener, serve_control
from assistant.wire.sessions import build_session_reader
from assistant.wire.settings import secret_store
from assistant.wire.stores import Stores

log = structlog.get_logger()

WEB_TOKEN_KEY = "web.token"
_TOKEN_BYTES = 32
_NO_TOKEN = (
    "The web API lets nobody in: it has no token, and one could not be kept in secrets.toml. "
    "`assistant web token --new` makes one."
)


def create_web_token(home: Home) -> str:
    """A token, kept with the secrets of the home, in the file: who starts the daemon unlocks no keyring. Raises
    `StoreError`."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    secret_store(home, None).put(WEB_TOKEN_KEY, token, in_file=True)
    return token


def ensure_web_token(settings: Settings) -> Settings:
    """The settings with a token for the web API: made at the first start with a port. Where it cannot be kept there is
    none, and `Web` tells of it."""
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


def build_read_api(
    settings: Settings, stores: Stores, memory: MemoryService, clock: Callable[[], datetime]
) -> OwnerReadApi:
    sessions = build_session_reader(settings, stores)
    sources = ReadApiSources(stores.conversation, stores.history, stores.journal, stores.ledger, sessions, memory)
    return OwnerReadApi(sources, clock, settings.zone)


class WebServers:
    """Both ways to one daemon."""

    def __init__(self, settings: Settings, behind: ApiDeps, token: Callable[[], str]) -> None:
        """`token` gives the one that holds at this moment."""
        self._socket = settings.home.socket
        self.deps = behind
        wanted = settings.values.web
        self._rules = AccessRules(token, frozenset(wanted.hosts), wanted.behind_proxy)
        self.tcp = TcpListener(self._guarded, tcp_place(wanted)) if wanted.port else None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Whoever cannot be served over TCP is served over the socket all the same. Raises `HomeError`, `HomeLocked`
        where there can be no socket."""
        async with AsyncExitStack() as stack:
            if self.tcp is not None:
                await stack.enter_async_context(self.tcp.serve())
            await stack.enter_async_context(serve_control(self._control, self._socket))
            if self.tcp is not None:
                # They end side by side.
                stack.callback(self.tcp.begin_stop)
            yield

    def problems(self) -> list[str]:
        """What keeps it from listening as it should, or those who ask from being let in."""
        if self.tcp is None:
            return []
        return [one for one in (self.tcp.problem, "" if self._rules.token() else _NO_TOKEN) if one]

    def _control(self) -> ServeSocket:
        from assistant.web.server import (
            build_control_server,  # the web framework is loaded when somebody first connects
        )

        return build_control_server(self.deps)

    def _guarded(self, tls: ssl.SSLContext | None) -> ServeSocket:
        from assistant.web.server import build_tcp_server

        return build_tcp_server(self.deps, self._rules, tls, time.monotonic)


def tcp_place(wanted: WebSettings) -> TcpAddress:
    certificate, key = wanted.certificate, wanted.certificate_key
    files = (Path(certificate).expanduser(), Path(key).expanduser()) if certificate and key else (None, None)
    return TcpAddress(wanted.host, wanted.port, *files)
