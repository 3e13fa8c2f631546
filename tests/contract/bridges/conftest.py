"""The networks, one after the other, for each test of the conformance suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.contract.bridges.network import Network
from tests.contract.bridges.networks import NETWORKS, SERVERS
from tests.store_home import in_memory


@pytest.fixture(params=NETWORKS)
async def network(request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    servers = [request.getfixturevalue(name) for name in SERVERS.get(request.param, ())]
    async with NETWORKS[request.param](*servers) as opened:
        yield opened


@pytest.fixture
def home() -> Iterator[Path]:
    with in_memory() as directory:
        yield directory
