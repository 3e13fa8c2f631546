"""Fixtures: the tables of a fleet of two hosts in a PostgreSQL without a standby."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from assistant.fleet.tables import FleetTables
from assistant.replica.postgres import ReplicaDatabase
from tests.support.postgres import Postgres, run_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with run_postgres() as running:
        yield running


@pytest.fixture
def url(server: Postgres) -> str:
    return server.new_database()


@pytest.fixture
async def hosts(url: str) -> AsyncIterator[tuple[FleetTables, FleetTables]]:
    """Two connections, as of two hosts: m1 and m2. The fleet has the home alice."""
    first, second = FleetTables(url), FleetTables(url)
    database = ReplicaDatabase(url, "alice")
    await database.prepare()
    await database.aclose()
    await first.prepare()
    await first.announce("m1", "10.0.0.1")
    await first.announce("m2", "10.0.0.2")
    assert await first.add("alice") and not await first.add("alice")
    yield first, second
    await first.aclose()
    await second.aclose()
