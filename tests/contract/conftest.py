"""What several files about bridges are given. Those about other servers have fixtures of these names of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assistant.bridges.telegram.bridge import TelegramBridge
from tests.contract.telegram_alone import made
from tests.matrix_bot import Bot
from tests.matrix_person import Person
from tests.strict.telegram import StrictTelegram
from tests.synapse import Synapse


@pytest.fixture
async def server() -> AsyncIterator[StrictTelegram]:
    async with StrictTelegram() as server:
        yield server


@pytest.fixture
async def bridge(server: StrictTelegram) -> AsyncIterator[TelegramBridge]:
    bridge = made(server)
    yield bridge
    await bridge.aclose()


@pytest.fixture
async def bot(homeserver: Synapse, tmp_path: Path) -> Bot:
    return Bot(homeserver, *homeserver.device("nocturne"), tmp_path / "matrix")


@pytest.fixture
async def erik(homeserver: Synapse) -> AsyncIterator[Person]:
    person = await Person(homeserver, "erik").log_in()
    yield person
    await person.aclose()


@pytest.fixture
async def zoe(homeserver: Synapse) -> AsyncIterator[Person]:
    person = await Person(homeserver, "zoe").log_in()
    yield person
    await person.aclose()
