"""The networks that the conformance suite runs over, each as a context that opens and closes it; every test of the
suite gets them one after the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.networks.discord import open_discord_network
from tests.support.networks.mail import open_mail_network
from tests.support.networks.matrix import open_matrix_network
from tests.support.networks.network import Network
from tests.support.networks.plain import PlainNetwork
from tests.support.networks.slack import open_slack_network
from tests.support.networks.telegram import open_telegram_network
from tests.support.networks.terminal import open_terminal_network
from tests.support.networks.web import open_web_network
from tests.support.store_home import memory_backed_directory

NetworkContext = Callable[..., AbstractAsyncContextManager[Network]]


@asynccontextmanager
async def _able() -> AsyncIterator[Network]:
    yield PlainNetwork(able=True)


@asynccontextmanager
async def _plain() -> AsyncIterator[Network]:
    yield PlainNetwork(able=False)


NETWORKS: dict[str, NetworkContext] = {
    "able": _able,
    "plain": _plain,
    "terminal": open_terminal_network,
    "web": open_web_network,
    "telegram": open_telegram_network,
    "matrix": open_matrix_network,
    "mail": open_mail_network,
    "discord": open_discord_network,
    "slack": open_slack_network,
}
# The fixtures that opening one takes: servers that more than one test uses.
SERVERS: dict[str, tuple[str, ...]] = {"matrix": ("homeserver",), "mail": ("imap_server",)}


@pytest.fixture(params=NETWORKS)
async def network(request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    servers = [request.getfixturevalue(name) for name in SERVERS.get(request.param, ())]
    async with NETWORKS[request.param](*servers) as opened:
        yield opened


@pytest.fixture
def home() -> Iterator[Path]:
    with memory_backed_directory() as directory:
        yield directory
