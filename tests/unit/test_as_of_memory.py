"""What was known at a time: when the assistant came to know it decides, and whatever was undone or forgotten since."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from assistant.commands.memory_text import NOTHING_REMEMBERED, AsOfItem, render_as_of
from assistant.core.errors import ToolError, UsageError
from assistant.core.memories import MemoriesAsOf, UndoableEdit
from assistant.core.ports import ToolContext
from assistant.memory.as_of import parse_as_of, split_as_of
from assistant.store.character.consolidations import KnowledgeAsOf, StoredConsolidations
from assistant.store.character.edits import file_text_as_of
from assistant.store.database import Database
from assistant.store.erasure.character_rows import erase_in_character_db
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.schema.migrations import character_migrations
from tests.support.memories_home import GUEST, Timeline, open_timeline
from tests.support.store_home import NOW
from tools.memory import search_memory_tool

HOUR = timedelta(hours=1)
OSLO, BERGEN, ANNA = "I live in Oslo.", "I moved from Oslo to Bergen.", "My sister Anna is a nurse."
TAIPEI = ZoneInfo("Asia/Taipei")
ZONE = ZoneInfo("Europe/Oslo")


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Timeline]:
    with open_timeline(tmp_path / "home") as life:
        yield life


# ------------------------------------------------------------------------------------------------------- what was known


async def test_a_thing_is_known_from_when_it_was_noted_whenever_it_was_said(life: Timeline) -> None:
    said = life.say(OSLO)
    slept = await life.sleep()
    assert life.texts_at(said) == [] and life.texts_at(slept - HOUR / 2) == []
    assert life.texts_at(slept) == [OSLO]
    (found,) = life.search.search("Where do I live?", "owner", as_of=slept)
    assert found.memory.said_at == said < slept
    assert life.search.search("Where do I live?", "owner", as_of=said) == []


async def test_what_was_replaced_since_held_then_with_the_words_it_had(life: Timeline) -> None:
    life.say(OSLO)
    oslo = await life.sleep()
    life.say(BERGEN)
    bergen = await life.sleep()
    put_right = await life.correct("I live in Bergen, near the harbour.", 0)
    (held,) = life.memory.list_as_of("owner", oslo).memories
    assert (held.memory.text, held.memory.until, held.replaced_by) == (OSLO, None, "")
    former, now = life.memory.list_as_of("owner", bergen, include_former=True).memories[::-1]
    assert former.memory.until == now.memory.said_at and former.replaced_by == now.reference
    assert "near the harbour" in life.texts_at(put_right)[-1] and "near the harbour" not in "".join(
        life.texts_at(bergen)
    )
    (found,) = life.search.search("Where do I live?", "owner", as_of=oslo)
    assert (found.memory.text, found.memory.superseded_by) == (OSLO, "")


async def test_what_merged_later_was_known_by_its_first_words(life: Timeline) -> None:
    life.note("Anna is a nurse.")
    first = await life.sleep()
    life.note("My sister Anna is a nurse.")
    second = await life.sleep()
    assert (life.texts_at(first), life.texts_at(second)) == (["Anna is a nurse."], ["My sister Anna is a nurse."])


async def test_what_a_night_found_worth_nothing_was_known_until_then(life: Timeline) -> None:
    noted = life.note("…")
    assert life.texts_at(noted) == ["…"]
    assert life.texts_at(await life.sleep()) == [] and life.texts_at(noted) == ["…"]


async def test_a_night_that_was_taken_back_was_known_while_it_stood(life: Timeline) -> None:
    life.note("My cat is called Mio.")
    life.say(OSLO)
    slept = await life.sleep()
    undone = await life.undo()
    assert life.texts_at(slept) == ["My cat is called Mio.", OSLO] and life.texts_at(undone) == []
    found = life.search.search("Where do I live? What is my cat called?", "owner", as_of=undone)
    assert [one.reference for one in found] == ["entry 1"]


async def test_two_nights_taken_back_each_stood_until_its_own_time(life: Timeline) -> None:
    life.say(OSLO)
    learned = await life.sleep(memory_unavailable=True)
    consolidated = await life.sleep()
    first, second = await life.undo(), await life.undo()
    assert [life.texts_at(at) for at in (learned, consolidated, first, second)] == [[OSLO], [OSLO], [], []]
    found = [
        [one.reference for one in life.search.search("Where do I live?", "owner", as_of=at)]
        for at in (learned, consolidated, first, second)
    ]
    assert found == [
        ["entry 1"],
        [next(iter(life.memory.list_as_of("owner", consolidated).memories)).reference],
        ["entry 1"],
        [],
    ]


async def test_a_correction_whose_night_was_taken_back_took_a_place_until_then(life: Timeline) -> None:
    life.note(OSLO)
    await life.sleep()
    life.home.memories.unavailable = "no answer"
    put_right = await life.correct("I live in Bergen.")
    slept = await life.sleep()
    undone = await life.undo()
    by_now = life.search.search("Oslo or Bergen?", "owner")
    then = life.search.search("Oslo or Bergen?", "owner", as_of=undone)
    assert {(one.memory.text, one.memory.until) for one in then} == {
        (one.memory.text, one.memory.until) for one in by_now
    }
    assert [life.texts_at(at) for at in (put_right, slept, undone)] == [["I live in Bergen."]] * 2 + [[OSLO]]


async def test_what_waits_in_the_journal_holds_in_the_place_of_a_memory_at_once(life: Timeline) -> None:
    life.note(OSLO)
    slept = await life.sleep()
    life.home.memories.unavailable = "no answer"
    put_right = await life.correct("I live in Bergen.")
    former, now = life.memory.list_as_of("owner", put_right, include_former=True).memories[::-1]
    assert (former.memory.text, former.memory.until, former.replaced_by) == (OSLO, now.memory.said_at, "entry 2")
    assert life.texts_at(slept) == [OSLO]
    found = {one.memory.text: one.memory for one in life.search.search("Oslo or Bergen?", "owner", as_of=put_right)}
    assert found[OSLO].until == now.memory.said_at and found["I live in Bergen."].is_current


async def test_of_one_who_was_put_right_twice_the_first_correction_held_in_between(life: Timeline) -> None:
    life.note(OSLO)
    first = await life.correct("I live in Bergen.")
    second = await life.correct("I live in Tromsø.")
    assert life.texts_at(first) == ["I live in Bergen."] and life.texts_at(second) == ["I live in Tromsø."]
    with life.home.character_db.write() as db:
        # As if the first were put right once more, after its correction was taken back.
        db.execute("INSERT INTO replacements (entry_id, by_entry) VALUES (1, 3)")
    assert life.texts_at(first) == ["I live in Bergen."]


async def test_f33_what_is_anothers_was_not_known(life: Timeline) -> None:
    life.note(OSLO)
    noted = life.note("I live in Rome.", scope=GUEST)
    slept = await life.sleep()
    for at in (noted, slept):
        assert (life.texts_at(at), life.texts_at(at, GUEST)) == ([OSLO], ["I live in Rome."])
        found = life.search.search("Where do I live?", GUEST, as_of=at)
        assert [one.memory.text for one in found] == ["I live in Rome."]
    assert life.home.consolidations.first_noted_at(GUEST) == noted
    assert life.home.consolidations.first_noted_at("peer:nobody") is None
    then, mine = KnowledgeAsOf(life.home.character_db), next(iter(life.home.memories.by_id.values()))
    assert then.memories_by_entry([1, 2], GUEST, slept).keys() == {2}
    assert then.find_memory(mine.id, GUEST, slept) is None and then.find_memory(mine.id, "owner", slept) == mine


async def test_a_search_finds_what_was_known_among_much_that_came_later(life: Timeline) -> None:
    noted = life.note("The boiler is in the cellar.")
    for _ in range(4):
        life.note(*(f"The boiler was serviced, visit {life.hours}-{number}." for number in range(60)))
    found = life.search.search("At which visit was the boiler serviced?", "owner", limit=3, as_of=noted)
    assert [one.memory.text for one in found] == ["The boiler is in the cellar."]


# ------------------------------------------------------------------------------------------------------------ forgotten


def forget(life: Timeline, *words: str, memories: tuple[str, ...] = (), entries: tuple[int, ...] = ()) -> None:
    with life.home.character_db.write() as db:
        erase_in_character_db(db, ErasurePlan("owner", words, memories=memories, entries=entries))


async def test_what_was_forgotten_since_was_never_known(life: Timeline) -> None:
    life.note(ANNA)
    life.note("My sister Anna is a nurse at the secret harbour.")
    slept = await life.sleep()
    (memory,) = life.home.memories.by_id.values()
    assert "secret" in memory.text
    forget(life, "secret harbour", memories=(memory.id,), entries=(2,))
    del life.home.memories.by_id[memory.id]
    for at in (slept - HOUR, slept):
        assert life.texts_at(at) == [ANNA]
        found = life.search.search("What does my sister do at the secret harbour?", "owner", as_of=at)
        assert [(one.reference, one.memory.text) for one in found] == [("entry 1", ANNA)]
    assert (
        life.home.character_db.rows("SELECT 1 FROM plan_subjects WHERE subject IN (?, 'entry 2')", (memory.id,)) == []
    )


# ---------------------------------------------------------------------------------------------------------- its page


def edit(number: int, before: str, after: str, undone: int | None = None) -> UndoableEdit:
    back = None if undone is None else NOW + undone * HOUR
    return UndoableEdit(
        "file:MEMORY.md", "owner", "user", before, after, NOW + number * HOUR, undone_at=back, id=number
    )


@pytest.mark.parametrize(
    ("edits", "hours", "text", "sure"),
    [
        ([edit(2, "", "a"), edit(4, "a", "ab")], 1, "", True),
        ([edit(2, "", "a"), edit(4, "a", "ab")], 2, "a", True),
        ([edit(2, "", "a"), edit(4, "a", "ab")], 5, "ab", True),
        ([edit(2, "", "a", 3)], 2.5, "a", True),
        ([edit(2, "", "a", 3), edit(4, "", "ab")], 3, "", True),
        ([edit(2, "", "a"), edit(4, "by hand", "ab")], 3, "a", False),
        ([edit(4, "by hand", "ab")], 3, "by hand", False),
        ([edit(2, "", "a")], 3, "a", False),
        ([edit(2, "", "a")], 9, "ab", True),
        ([], 3, "", False),
        ([], 9, "ab", True),
    ],
)
def test_a_page_stood_as_its_edits_tell(edits: list[UndoableEdit], hours: float, text: str, sure: bool) -> None:
    """By now it says "ab", last written after eight hours."""
    then = file_text_as_of(edits[::-1], NOW + hours * HOUR, "ab", NOW + 8 * HOUR)
    assert (then.text, then.is_certain) == (text, sure)


# --------------------------------------------------------------------------------------------------------------- asking

_NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "local", "rest"),
    [
        ("2026-03-01", "2026-03-01 23:59", ""),
        ("2026-03-01 14:00 where do I live", "2026-03-01 14:00", "where do I live"),
        ("2026-03-01T9:30 Anna", "2026-03-01 09:30", "Anna"),
        ("last monday", "2026-03-16 23:59", ""),
        ("3 weeks ago Anna and Bob", "2026-02-25 23:59", "Anna and Bob"),
        ("a month ago", "2026-02-18 23:59", ""),
        ("February 2026", "2026-02-28 23:59", ""),
        ("2025", "2025-12-31 23:59", ""),
        ("yesterday at 5pm", "2026-03-17 17:00", ""),
        ("2 hours ago", "2026-03-18 11:00", ""),
        ("today tea", "2026-03-18 13:00", "tea"),
        ("March 2026", "2026-03-18 13:00", ""),
    ],
)
def test_a_time_is_read_as_people_write_it(words: str, local: str, rest: str) -> None:
    at, left = split_as_of(words, _NOW, ZONE)
    assert (f"{at.astimezone(ZONE):%Y-%m-%d %H:%M}", left) == (local, rest)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("2026-03-19", "2026-03-19 00:00 is in the future"),
        ("tomorrow", "2026-03-19 00:00 is in the future"),
        ("2026-03-18 13:01", "2026-03-18 13:01 is in the future"),
        ("2026-02-30", "not a time that I understand"),
        ("9999-12-31", "not a time that I understand"),
        ("where do I live", "not a time that I understand"),
        ("x" * 100_000, "not a time that I understand"),
        ("01/02/2026", "may be read two ways"),
    ],
)
def test_what_is_no_time_of_the_past_is_told(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        split_as_of(words, _NOW, ZONE)
    assert len(str(refused.value)) < 200


def test_hours_ago_are_hours_in_the_night_in_which_the_clocks_change() -> None:
    now = datetime(2026, 10, 25, 6, tzinfo=UTC)
    assert parse_as_of("8 hours ago", now, ZONE) == now - 8 * HOUR
    assert parse_as_of("2026-10-24", now, ZONE) == datetime(2026, 10, 24, 22, tzinfo=UTC) - timedelta(microseconds=1)


async def test_a_person_is_told_what_was_known_and_since_when(life: Timeline) -> None:
    life.note(OSLO)
    await life.sleep()
    await life.correct("I live in Bergen.")
    later = NOW + timedelta(days=2)

    async def then(words: str) -> MemoriesAsOf:
        at, text = split_as_of(words, later, UTC)
        if text:
            return await life.memory.search_as_of(text, "owner", at, limit=50)
        return life.memory.list_as_of("owner", at, limit=50)

    async def told(words: str) -> str:
        return render_as_of(await then(words), UTC)

    (oslo, *_) = life.memory.list_as_of("owner", NOW + 2 * HOUR).memories
    assert (await told("2026-11-20 12:30")).split("\n") == [
        "As it was known on Fri 2026-11-20 12:30:",
        f'- [{oslo.reference}] 2026-11-20, fact: "I live in Oslo."',
    ]
    assert "Bergen" not in await told("2026-11-20 12:30 where do I live") and "Bergen" in await told("2026-11-20")
    assert "noted from Fri 2026-11-20 11:00 on" in await told("2026-11-19")
    assert "matches that" in await told("2026-11-20 zebra")
    assert (
        AsOfItem.model_validate(await then("2026-11-20 12:30")).model_dump(mode="json")["as_of"]
        == "2026-11-20T12:30:00Z"
    )


def test_before_anything_is_remembered_that_is_said(life: Timeline) -> None:
    then = life.memory.list_as_of("owner", NOW)
    assert render_as_of(then, UTC).splitlines()[1:] == [NOTHING_REMEMBERED]


async def test_the_tool_asks_for_the_end_of_a_day_of_the_home() -> None:
    asked: list[dict[str, Any]] = []

    class Search:
        def search(self, question: str, scope: str, **how: Any) -> list[Any]:
            asked.append(how)
            return []

        def search_by_time(self, scope: str, after: datetime, before: datetime, *, limit: int = 8) -> list[Any]:
            return []

    tool = search_memory_tool(Search(), TAIPEI, 2_000)
    context = ToolContext("main", "owner", "t", "k", NOW)
    said = await tool.run({"query": "Anna", "as_of": "2026-03-01"}, context)
    end = datetime.combine(date(2026, 3, 1), time.max, TAIPEI)
    assert asked[-1]["as_of"] == end and said.startswith('Nothing noted by 2026-03-01 for "Anna"')
    await tool.run({"query": "Anna", "as_of": str(NOW.date())}, context)
    await tool.run({"query": "Anna"}, context)
    assert [one["as_of"] for one in asked[1:]] == [NOW, None]
    with pytest.raises(ToolError, match="2026-11-21 is still to come"):
        await tool.run({"query": "Anna", "as_of": "2026-11-21"}, context)


def test_a_search_reads_only_the_plans_that_it_needs(tmp_path: Path) -> None:
    db = Database.open(tmp_path / "character.db", character_migrations, NOW)
    for sql in ("SELECT s.plan FROM plan_subjects s WHERE s.subject IN (SELECT value FROM json_each('[]'))",):
        steps = " ".join(row["detail"] for row in db.rows(f"EXPLAIN QUERY PLAN {sql}"))
        assert "SEARCH s" in steps and "SCAN s" not in steps
    assert (
        KnowledgeAsOf(db).first_noted_at("owner") is None
        and StoredConsolidations(db).known_as_of("owner", NOW).memories == ()
    )
    db.close()
