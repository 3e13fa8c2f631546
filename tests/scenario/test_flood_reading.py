"""What waits for other threads is not done on the loop: of what an import or a flood leaves by the thousand it reads
few rows at a time, each of which lets another thread take the interpreter, and it searches nothing, which waits for
whoever indexes or loads. Counted, not timed."""

from __future__ import annotations

import threading
from pathlib import Path
from sqlite3 import Row

import pytest

from assistant.core.messages import Message, ToolCall
from assistant.search.finder import SourceFinder
from assistant.store.database import Database, SqlParameters
from assistant.store.script import checkpoints
from tests.support.compaction_app import SMALL_CONTEXT
from tests.support.imports import import_messages
from tests.support.memory_files_home import person_profile
from tests.support.running_app import run_app

MOST_ROWS = 60
RAIN = "It rained on the hills, and nobody came. " * 100

SEARCHES = (
    "/memory search boat",
    "/memory search boat --explain",
    "/memory as-of today boat",
    "/memory connections Ada",
    "/search boat",
    "/files search boat",
)


async def test_no_command_and_no_tool_searches_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    with_engine = SourceFinder._with_engine

    def noted(self: SourceFinder, use: object) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        return with_engine(self, use)  # type: ignore[arg-type]

    calls = [ToolCall(name, name, {"query": "boat"}) for name in ("search_memory", "search_history", "search_files")]
    async with run_app(tmp_path, *calls, "Nothing.") as it:
        it.app.stores.profiles.save(person_profile("Ada"), "model", it.clock())
        monkeypatch.setattr(SourceFinder, "_with_engine", noted)
        for line in SEARCHES:
            before = len(threads)
            await it.app.commands.run(line, "main")
            assert len(threads) > before, line
        await it.say("Where is the boat?")
        await it.wait_idle()
    assert len(threads) >= len(SEARCHES) + len(calls) and not any(threads)


async def test_a_compaction_after_an_import_reads_its_checkpoints_in_one_row_and_once_for_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many: dict[str, int] = {}
    made: list[object] = []
    read, make = Database.rows, checkpoints.read_checkpoint_row

    def noted(self: Database, sql: str, parameters: SqlParameters = ()) -> list[Row]:
        rows = read(self, sql, parameters)
        if (
            len(rows) > MOST_ROWS
            and "checkpoints" in sql
            and "LIMIT" not in sql
            and threading.current_thread() is threading.main_thread()
        ):
            many[sql] = len(rows)
        return rows

    def made_one(row: Row) -> object:
        made.append(row)
        return make(row)

    async with run_app(tmp_path, *["ok"] * 3, **SMALL_CONTEXT) as it:
        conversation = it.app.stores.conversation
        for number in range(150):
            said = [Message("user", f"Chapter {number}."), Message("assistant", f"Read {number}.")]
            import_messages(conversation, "main", "owner", said, it.clock(), keep=1)
        said = [Message("user" if number % 2 == 0 else "assistant", f"{number}. {RAIN}") for number in range(12)]
        import_messages(conversation, "main", "owner", said, it.clock())
        generation = conversation.load_view("main").generation
        live = conversation.live_checkpoints("main", generation)
        monkeypatch.setattr(Database, "rows", noted)
        monkeypatch.setattr(checkpoints, "read_checkpoint_row", made_one)
        await it.app.commands.run("/compact", "main")
        left = conversation.live_checkpoints("main", generation)
    assert (len(live) > 2 * MOST_ROWS, len(left) < MOST_ROWS, many) == (True, True, {})
    # A few times at most, however often a compaction asks.
    assert len(made) <= 4 * len(live)
