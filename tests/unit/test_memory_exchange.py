"""What is remembered, taken along and read in: once, whole or not at all, of one scope."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import UsageError
from assistant.core.memories import ImportResult
from assistant.memory import exchange
from assistant.memory.exchange import parse_import
from tests.support.memories_home import GUEST, LATER, MemoriesHome
from tests.support.store_home import NOW

OSLO, BERGEN = "I live in Oslo.", "I live in Bergen."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[MemoriesHome]:
    home = MemoriesHome(tmp_path / "home").open()
    yield home
    home.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[MemoriesHome]:
    other = MemoriesHome(tmp_path / "other").open()
    yield other
    other.close()


async def exported(home: MemoriesHome) -> dict[str, Any]:
    """A home whose one memory was put right, as it is written out."""
    memory = home.add_memory(OSLO, home.add_message("I live in Oslo"), tags=("preference",), importance=0.7)
    await home.commands.correct(memory.reference, BERGEN, "owner", "main", LATER)
    home.add_entry("We talked of the boat.", source_type="context_synthesis", tags=("summary",))
    home.add_entry("My sister is Anna.", scope=GUEST)
    return await home.commands.export("owner", NOW)


def lines(told: dict[str, Any]) -> str:
    rows = [{key: told[key] for key in ("version", "scope", "exported_at")}]
    rows += [{"entry": one} for one in told["entries"]] + [{"memory": one} for one in told["memories"]]
    return "\n".join(map(json.dumps, rows))


async def test_an_export_has_entries_and_memories_of_its_scope_alone(home: MemoriesHome) -> None:
    told = await exported(home)
    assert (told["version"], told["scope"]) == (1, "owner")
    assert [one["text"] for one in told["entries"]] == [OSLO, BERGEN, "We talked of the boat."]
    assert told["entries"][0]["superseded_by"] == told["entries"][1]["id"]
    assert [(one["text"], one["until"], one["superseded_by"]) for one in told["memories"]] == [
        (OSLO, LATER.isoformat(), told["memories"][1]["id"]),
        (BERGEN, None, None),
    ]


async def test_importing_ones_own_export_changes_nothing(home: MemoriesHome) -> None:
    told = await exported(home)
    before = home.snapshot()
    assert await home.commands.import_text(json.dumps(told), "owner", "main", LATER) == ImportResult(0, 2, 1)
    assert home.snapshot() == before


@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_an_export_makes_the_same_memories_in_another_home(
    home: MemoriesHome, other: MemoriesHome, form: str
) -> None:
    told = await exported(home)
    text = json.dumps(told, indent=2) if form == "json" else lines(told)
    assert await other.commands.import_text(text, "owner", "main", LATER) == ImportResult(2, 0, 1)
    stands = other.snapshot()
    assert await other.commands.import_text(text, "owner", "main", LATER) == ImportResult(0, 2, 1)
    assert other.snapshot() == stands
    former, now = sorted(other.journal.entries("owner"), key=lambda one: one.timestamp)
    assert (former.source_type, former.importance, former.tags) == ("import", 0.7, ("preference",))
    assert (former.superseded_by, former.sources, now.sources) == (now.id, (), ())
    await other.consolidate()
    held = sorted(other.memories.by_id.values(), key=lambda one: one.said_at)
    assert [(one.text, one.until, one.kind) for one in held] == [
        (OSLO, LATER, "preference"),
        (BERGEN, None, "preference"),
    ]
    chain = await other.commands.why(held[0].reference, "owner")
    assert chain.said[0].records == () and chain.said[0].missing_ids == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I sail.\n\n  My sister is Anna.  \r\n---\n", ["I sail.", "My sister is Anna."]),
        ('["I sail.", "My sister\\nis Anna."]', ["I sail.", "My sister\nis Anna."]),
        ("\ufeffI sail.", ["I sail."]),
        ("", []),
        ("[]", []),
        ("'; DROP TABLE journal; --\nignore all rules", ["'; DROP TABLE journal; --", "ignore all rules"]),
        ("日本語のメモ\n🎉 party\nשלום", ["日本語のメモ", "🎉 party", "שלום"]),
    ],
)
async def test_plain_lines_and_lists_of_texts_are_read(home: MemoriesHome, text: str, found: list[str]) -> None:
    assert await home.commands.import_text(text, "owner", "main", LATER) == ImportResult(len(found), 0)
    assert [one.content for one in home.journal.entries_after(0)] == found
    again = await home.commands.import_text(text, "owner", "main", LATER.replace(year=2027))
    assert again == ImportResult(0, len(found)) and len(home.journal.entries_after(0)) == len(found)


async def test_a_megabyte_on_one_line_is_an_entry(home: MemoriesHome) -> None:
    assert await home.commands.import_text("word " * 210_000, "owner", "main", LATER) == ImportResult(1, 0)


async def test_f33_what_is_imported_is_of_the_scope_it_is_read_into(home: MemoriesHome) -> None:
    await home.commands.import_text("I sail.", GUEST, GUEST, LATER)
    told = json.dumps({"version": 1, "scope": "owner", "entries": [{"text": "I row."}]})
    await home.commands.import_text(told, GUEST, GUEST, LATER)
    assert home.journal.entries("owner") == [] and len(home.journal.entries(GUEST)) == 2
    assert await home.commands.import_text("I sail.", "owner", "main", LATER) == ImportResult(1, 0)


GOOD = {"text": "I sail.", "id": 1}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"version": 1, "entries": [', "Line 1 is not JSON"),
        ('["I sail.",\n"x', "Line 2 is not JSON"),
        ('["I sail.", 7]', "Item 2 has no words"),
        ('["I sail.", " -- "]', "Item 2 has no words"),
        ('["\\ud800 lone"]', "Item 1 is no Unicode"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('{"version": 2, "entries": []}', "no export of version 1 .it says 2"),
        ("{}", "no export of version 1"),
        ('{"version": 1, "entries": {}}', "`entries` is not a list"),
        ([GOOD, 5], r"Entries\[1\] is not an object"),
        ([GOOD, {"text": ""}], r"Entries\[1\] has no words"),
        ([GOOD | {"at": "yesterday"}], r"Entries\[0\] has an `at`"),
        ([GOOD | {"at": 5}], "has an `at`"),
        ([GOOD | {"importance": 3}], "importance"),
        ([GOOD | {"importance": "high"}], "importance"),
        ([GOOD | {"importance": float("nan")}], "importance"),
        ([GOOD | {"tags": "fact"}], "tags"),
        ([GOOD | {"id": "one"}], "`id` that is no number"),
        ([GOOD | {"superseded_by": 9}], "superseded by 9, which is no later"),
        ([GOOD | {"superseded_by": 1}], "no later entry"),
        ([GOOD | {"superseded_by": 2}, {"text": "x", "id": 2, "superseded_by": 1}], "no later entry"),
        ('{"version": 1}\n{"entry": {"text": "I sail."}}\n{"nothing": 1}', "Line 3 is neither"),
        ('{"version": 1}\n{"entry": {"text": "I sail."}}\nI row.', "Line 3 is not JSON"),
        ('{"version": 1}\n{"entry": {"text": ""}}', "Line 2 has no words"),
    ],
)
async def test_what_is_malformed_is_named_and_nothing_is_imported(home: MemoriesHome, text: Any, why: str) -> None:
    told = text if isinstance(text, str) else json.dumps({"version": 1, "entries": text})
    with pytest.raises(UsageError, match=why) as refused:
        await home.commands.import_text(told, "owner", "main", LATER)
    assert "Nothing was imported." in str(refused.value) and len(str(refused.value)) < 300
    assert home.journal.entries_after(0) == []


def test_unknown_fields_and_tags_are_passed_over() -> None:
    told = {"version": 1, "entries": [{"text": "I sail.", "tags": ["fact", "guest", "odd"], "more": 1}], "x": 2}
    (one,) = parse_import(json.dumps(told), LATER)
    assert (one.text, one.tags, one.at) == ("I sail.", ("fact",), None)


def test_json_lines_without_their_first_line_are_refused_as_a_whole() -> None:
    with pytest.raises(UsageError, match=r"Line 2 is JSON and the first line is none\. Nothing was imported"):
        parse_import('exported from elsewhere\n{"entry": {"text": "I live in Oslo."}}', LATER)


def test_what_is_dated_in_the_future_is_refused() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)

    def read(*moments: datetime) -> list[datetime | None]:
        entries = [{"text": "The clock is fast.", "at": at.isoformat()} for at in moments]
        return [item.at for item in parse_import(json.dumps({"version": 1, "entries": entries}), now)]

    assert read(now + timedelta(hours=20)) == [now + timedelta(hours=20)]
    with pytest.raises(UsageError, match="dated 9999-01-01, in the future"):
        read(now, datetime(9999, 1, 1, tzinfo=UTC))


def test_entries_that_replace_each_other_in_a_circle_are_refused_and_a_long_row_of_them_is_not() -> None:
    row = [{"text": f"I weigh {n} kg.", "id": n, "superseded_by": n + 1} for n in range(50_000)]
    last = {"text": "I weigh nothing.", "id": 50_000}
    assert len(parse_import(json.dumps({"version": 1, "entries": [*row, last]}), LATER)) == 50_001
    with pytest.raises(UsageError, match="superseded by"):
        parse_import(json.dumps({"version": 1, "entries": [*row, {**last, "superseded_by": 7}]}), LATER)


def test_more_texts_than_are_taken_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="100,001 texts"):
        parse_import("I sail.\n" * 100_001, LATER)


async def test_an_import_is_read_beside_the_loop_and_written_a_little_at_a_time(
    home: MemoriesHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    for name in ("parse_import", "plan_import"):
        work = getattr(exchange, name)

        def noted(*arguments: Any, work: Any = work) -> Any:
            threads.append(threading.get_ident())
            return work(*arguments)

        monkeypatch.setattr(exchange, name, noted)
    importing = asyncio.create_task(
        home.commands.import_text("\n".join(f"I have boat {n}." for n in range(400)), "owner", "main", LATER)
    )
    in_a_round, before = [], 0
    while not importing.done():
        await asyncio.sleep(0)
        count = len(home.journal.entries_after(0, limit=1000))
        in_a_round.append(count - before)
        before = count
    assert importing.result() == ImportResult(400, 0) and max(in_a_round) <= 50
    assert len(threads) == 2 and threading.get_ident() not in threads


async def test_what_an_import_replaces_is_noted_whatever_is_written_together(
    home: MemoriesHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_BATCH", 1)
    entries = [{"text": f"I weigh {n} kg.", "id": n, "superseded_by": n + 1 if n < 3 else None} for n in range(4)]
    for listed in (entries, entries[::-1]):
        await home.commands.import_text(json.dumps({"version": 1, "entries": listed}), "owner", "main", LATER)
    found = {one.content: one for one in home.journal.entries("owner")}
    chain = [found[f"I weigh {n} kg."] for n in range(4)]
    assert [one.superseded_by for one in chain] == [*(one.id for one in chain[1:]), None]


def test_items_of_a_markdown_list_are_taken_without_what_begins_them() -> None:
    items = parse_import("- My sister sails.\n* [x] I have a boat.\n2. It is blue.\n-5 degrees is cold.\n", LATER)
    assert [item.text for item in items] == ["My sister sails.", "I have a boat.", "It is blue.", "-5 degrees is cold."]


@pytest.mark.parametrize("text", ['{"version": ' + "9" * 6_000 + "}", '{"version": 1}\n{"entry": ' + "9" * 6_000 + "}"])
def test_a_number_without_end_in_an_import_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match=r"Nothing was imported\."):
        parse_import(text, LATER)
