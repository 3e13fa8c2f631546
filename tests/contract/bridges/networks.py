"""The networks that the conformance suite runs over, each as a context that makes it and takes it down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.contract.bridges.matrix_network import matrix
from tests.contract.bridges.network import Network
from tests.contract.bridges.plain_network import PlainNetwork
from tests.contract.bridges.telegram_network import telegram
from tests.contract.bridges.terminal_network import terminal
from tests.contract.bridges.web_network import web

Opened = Callable[..., AbstractAsyncContextManager[Network]]


@asynccontextmanager
async def _able() -> AsyncIterator[Network]:
    yield PlainNetwork(able=True)


@asynccontextmanager
async def _plain() -> AsyncIterator[Network]:
    yield PlainNetwork(able=False)


NETWORKS: dict[str, Opened] = {
    "able": _able,
    "plain": _plain,
    "terminal": terminal,
    "web": web,
    "telegram": telegram,
    "matrix": matrix,
}
# The fixtures that opening one takes: servers that more than one test uses.
SERVERS: dict[str, tuple[str, ...]] = {"matrix": ("homeserver",)}
