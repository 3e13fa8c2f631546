"""uvicorn on the control socket, inside the daemon's own loop: no signal handlers, no log set-up, no child of its own.

Heavy to import; `web/listener.py` loads it at the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from uvicorn import Config, Server

from assistant.bridges.terminal import TerminalBridge
from assistant.ports import Control
from assistant.web.control import control_app
from assistant.web.listener import Serving

# Requests in flight get this long when the daemon stops; event streams end with the terminal bridge before that.
_GRACE_SECONDS = 1
# A person at a terminal says something every few minutes.
_KEPT_OPEN_SECONDS = 600


def control_server(control: Control, terminal: TerminalBridge) -> Serving:
    """What `serve_control` loads: the control API over one running daemon."""
    return serving(control_app(control, terminal))


def serving(app: FastAPI) -> Serving:
    @asynccontextmanager
    async def serve(listening: socket.socket) -> AsyncIterator[None]:
        config = Config(
            app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, timeout_graceful_shutdown=_GRACE_SECONDS, timeout_keep_alive=_KEPT_OPEN_SECONDS,
        )  # fmt: skip
        config.load()
        server = Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        ticking = asyncio.create_task(server.main_loop(), name="control server")
        try:
            yield
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
            await server.shutdown(sockets=[listening])

    return serve
