"""What several files of this folder are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.strict.server import StrictServer
from tests.support.browser import Browser, run_browser
from tests.support.summaries import SummariserSetup, summariser_at


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with run_browser() as started:
        yield started


@pytest.fixture
async def desk(shared: StrictServer) -> AsyncIterator[SummariserSetup]:
    async with summariser_at(shared.play()) as made:
        yield made
