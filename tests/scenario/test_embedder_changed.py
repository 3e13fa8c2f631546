"""Another embedder is chosen: memories are embedded again, the former one answers until that is done, whatever cuts it
off and however often somebody changes their mind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import Memory
from assistant.mem0.client import Mem0Client, MemoryStoreSettings
from assistant.wire.memories import open_mem0_client
from tests.support.consolidation_home import open_consolidation_home
from tests.support.semantic_memory import (
    EmbedderServer,
    add_changes,
    delete_changes,
    make_memory,
    open_memories,
    run_embedder_server,
    update_changes,
)
from tests.support.warm_memory_child import warm_child_command

KEPT = [
    make_memory(f"{what} is what I like.", number=number) for number, what in enumerate(("Cake", "Tea", "Rain", "Sun"))
]


@pytest.fixture
def letters() -> Iterator[EmbedderServer]:
    with run_embedder_server() as one:
        yield one


async def nearest(app: Mem0Client, text: str) -> list[tuple[Memory, float]]:
    return (await app.nearest([text], "main", limit=10))[0]


async def answers_by_letters(app: Mem0Client, one: Memory) -> bool:
    """The letters of a text turned round are the same, its words are not."""
    best, cosine = (await nearest(app, one.text[::-1]))[0]
    return best == one and cosine == pytest.approx(1, abs=2e-3)


async def test_embedding_again_that_is_killed_goes_on_where_it_was_and_the_former_answers_until_then(
    tmp_path: Path, letters: EmbedderServer
) -> None:
    before = MemoryStoreSettings(tmp_path)
    after = replace(before, embedder=letters.settings())
    async with open_memories(before, warm_child_command()) as app:
        await app.apply(add_changes(*KEPT))
        by_words = await nearest(app, "dessert")
    # The real command: killing a warm one kills its messenger first, and the child may still answer one question.
    async with open_memories(after) as app:
        assert await app.reembed(2) == 2
        letters.next_answers = [500]
        with pytest.raises(MemoryUnavailable):
            await app.reembed(1)
        os.kill(app.child.pid or 0, signal.SIGKILL)
        with pytest.raises(MemoryUnavailable):
            await app.reembed(1)
        assert await nearest(app, "dessert") == by_words
        asked = len(letters.request_bodies)
        assert await app.reembed(10) == 0
        # Only what was left is embedded again.
        again = [text for one in letters.request_bodies[asked:] for text in one["input"]]
        assert [text for text in again if text != "dimensions"] == [one.text for one in KEPT[2:]]
        assert await answers_by_letters(app, KEPT[0])
        assert await app.all() == KEPT


async def test_back_to_the_former_embedder_half_way_and_on_to_the_new_one_again(
    tmp_path: Path, letters: EmbedderServer
) -> None:
    before = MemoryStoreSettings(tmp_path)
    after = replace(before, embedder=letters.settings())
    pie, snow = replace(KEPT[0], text="Pie is what I like."), make_memory("Snow is what I like.", number=9)
    async with open_memories(before, warm_child_command()) as app:
        await app.apply(add_changes(*KEPT))
        by_words = await nearest(app, "dessert")
    async with open_memories(after, warm_child_command()) as app:
        assert await app.reembed(3) == 1
    async with open_memories(before, warm_child_command()) as app:
        assert await nearest(app, "dessert") == by_words
        assert await app.reembed() == 0
        # What the new one has embedded already is changed, taken out and added to meanwhile.
        await app.apply([*update_changes(pie), *delete_changes(KEPT[1]), *add_changes(snow)])
        assert (await nearest(app, pie.text))[0] == (pie, pytest.approx(1, abs=2e-3))
    async with open_memories(after, warm_child_command()) as app:
        while await app.reembed(1):
            """Goes on."""
        for one in (pie, snow, KEPT[2], KEPT[3]):
            assert await answers_by_letters(app, one)
        assert await app.all() == [pie, KEPT[2], KEPT[3], snow]


async def test_f30_a_night_whose_new_embedder_is_down_changes_nothing_and_a_later_one_catches_up(
    tmp_path: Path, letters: EmbedderServer
) -> None:
    async with open_consolidation_home(tmp_path) as home:
        home.add_entries("My sister Anna is a nurse.")
        await home.consolidate()
        await home.memories.aclose()
        home.memories = open_mem0_client(MemoryStoreSettings(tmp_path, embedder=letters.settings()), home.memory_db)
        home.add_entries("The boiler is serviced every March.")
        letters.next_answers = [503] * 20
        with pytest.raises(MemoryUnavailable):
            await home.consolidate()
        assert [entry.content for entry in home.consolidations.pending_entries()] == [
            "The boiler is serviced every March."
        ]
        assert await home.current_texts() == {"My sister Anna is a nurse."}
        letters.next_answers = []
        await home.consolidate()
        assert await home.current_texts() == {"My sister Anna is a nurse.", "The boiler is serviced every March."}
