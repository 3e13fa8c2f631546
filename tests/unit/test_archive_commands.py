"""`/archive` in a conversation: it looks, in the scope of who types, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.core.text import format_bytes
from assistant.wire.search import open_history
from tests.support.archive_storage import open_archive
from tests.support.commands import run_line
from tests.support.store_home import NOW, StoreHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    opened = StoreHome(tmp_path).open()
    yield opened
    opened.close()


async def run(home: StoreHome, rest: str, session: str = "main") -> str:
    history, finder = open_history(home.path, patient=True)
    while finder.index_next_batch():
        continue
    try:
        return await run_line(f"archive {rest}", session, NOW, archive=open_archive(home), history=history)
    finally:
        history.close()


def archived(home: StoreHome, turns: int = 2, session: str = "main") -> None:
    home.chat(turns, session)
    open_archive(home).store(session, 1, NOW, handover="", summary="", reason="manual")


async def test_it_lists_shows_and_finds(home: StoreHome) -> None:
    assert (await run(home, "")).startswith("Nothing is archived yet.")
    archived(home)
    size = format_bytes((home.path / "archive/main/1.jsonl.gz").stat().st_size)
    assert await run(home, "list") == (
        f"- `main 1` — Fri 2026-11-20 11:00 to Fri 2026-11-20 11:00, 4 records, {size}, archive/main/1.jsonl.gz"
    )
    assert (await run(home, "show main")).splitlines()[0] == "- Fri 2026-11-20 11:00 user: question 0"
    assert await run(home, "show main 1") == await run(home, "show main")
    assert "`main 1` Fri 2026-11-20 11:00 user: question 1" in await run(home, "search question 1")
    assert (await run(home, "search zanzibar")).startswith("No archived message has these words.")


async def test_it_shows_the_end_of_what_is_long(home: StoreHome) -> None:
    archived(home, 20)
    lines = (await run(home, "show main")).splitlines()
    assert len(lines) == 11
    assert lines[-2].endswith("answer 19")
    assert lines[-1] == "`assistant archive show main 1` prints all 40 messages."


@pytest.mark.parametrize("rest", ["remove main 1", "show", "search", "list all extra", "show main 2", "show nobody"])
async def test_what_is_not_understood_or_not_there_is_told(home: StoreHome, rest: str) -> None:
    archived(home)
    with pytest.raises(UsageError) as refused:
        await run(home, rest)
    assert ("Nothing was changed" in str(refused.value)) != rest.startswith("show "), "what only reads changes nothing"


async def test_i10_only_the_scope_of_who_types_is_shown(home: StoreHome) -> None:
    archived(home)
    for guest in ("peer:telegram:7", "room:matrix:a"):
        assert (await run(home, "list", guest)).startswith("Nothing is archived yet.")
        assert (await run(home, "search question", guest)).startswith("No archived message has these words.")
        with pytest.raises(UsageError, match="Nothing of"):
            await run(home, "show main 1", guest)
