"""What several files about bridges and the replica are given. Those about other servers have fixtures of these names of
their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from assistant.bridges.telegram.bridge import TelegramBridge
from tests.strict.telegram import StrictTelegram
from tests.support.matrix_bot import MatrixBot
from tests.support.matrix_users import MatrixUser
from tests.support.postgres import PostgresPair, run_postgres_pair
from tests.support.synapse import Synapse
from tests.support.telegram_bridge import make_telegram_bridge


@pytest.fixture
async def server() -> AsyncIterator[StrictTelegram]:
    async with StrictTelegram() as server:
        yield server


@pytest.fixture
async def bridge(server: StrictTelegram) -> AsyncIterator[TelegramBridge]:
    bridge = make_telegram_bridge(server)
    yield bridge
    await bridge.aclose()


@pytest.fixture
async def bot(homeserver: Synapse, tmp_path: Path) -> MatrixBot:
    return MatrixBot(homeserver, *homeserver.register_device("nocturne"), tmp_path / "matrix")


@pytest.fixture
async def erik(homeserver: Synapse) -> AsyncIterator[MatrixUser]:
    person = await MatrixUser(homeserver, "erik").log_in()
    yield person
    await person.aclose()


@pytest.fixture
async def zoe(homeserver: Synapse) -> AsyncIterator[MatrixUser]:
    person = await MatrixUser(homeserver, "zoe").log_in()
    yield person
    await person.aclose()


@pytest.fixture(scope="session")
def pair() -> Iterator[PostgresPair]:
    with run_postgres_pair() as servers:
        yield servers


@pytest.fixture
def url(pair: PostgresPair) -> str:
    return pair.new_database()
