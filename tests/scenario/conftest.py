"""What several files of this folder are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.scenario.summary_desk import Desk, at
from tests.strict.server import StrictServer


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
async def desk(shared: StrictServer) -> AsyncIterator[Desk]:
    async with at(shared.play()) as made:
        yield made
