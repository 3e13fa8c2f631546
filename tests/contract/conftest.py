"""What several files about bridges, archives and the replica are given. Those about other servers have fixtures of
these names of their own."""

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


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a bucket on a server of this process."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "AKIAKEY",
            "AWS_SECRET_ACCESS_KEY": "thesecretkey",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(tmp_path_factory.mktemp("aws") / "none"),
            "no_proxy": "127.0.0.1",
        }.items():
            environment.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="shelf")
        yield "s3://shelf/of/this home"
        server.stop()
