"""A night taken back: all that it changed, nothing that anybody changed since; killed anywhere and asked for again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import MemoryChange
from tests.support.sleep_home import SleepHome, say_facts
from tests.support.store_home import NOW, CrashingMemories, CrashingStore, SimulatedCrash

OSLO, ANNA, BERGEN = "I live in Oslo.", "My sister Anna is a nurse in Rome.", "I moved from Oslo to Bergen."
MORNING = NOW + timedelta(days=3)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SleepHome]:
    home = SleepHome(tmp_path).open()
    home.model.provider = "offline"
    yield home
    home.close()


async def two_nights(home: SleepHome) -> dict[str, Any]:
    """The picture after the first; the second supersedes, learns, writes files and compacts."""
    say_facts(home, OSLO)
    await home.night()
    say_facts(home, ANNA, BERGEN)
    before = home.picture()
    await home.night(1, compact=home.compacted)
    assert all(home.picture()[name] != value for name, value in before.items())
    return before


# ----------------------------------------------------------------------------------------------------------- taken back


async def test_a_night_is_taken_back_and_not_learned_again(home: SleepHome) -> None:
    before = await two_nights(home)
    done = await home.undoing().take_back(MORNING)
    assert (done.of.id, done.memories, done.entries, done.sessions, done.left) == (2, 3, 3, ("main",), ())
    assert {target.partition(":")[0] for target in done.edits} == {"file", "profile"}
    assert home.picture() == before
    report = await home.night(2)
    assert (report.phases["extract"]["read"], report.phases["consolidate"]["read"]) == (0, 0)
    assert home.picture() == before


async def test_what_is_said_again_the_same_day_is_learned(home: SleepHome) -> None:
    await two_nights(home)
    await home.undoing().take_back(MORNING)
    say_facts(home, ANNA)
    await home.night(2)
    assert ANNA in home.remembered() and ANNA in [text for text, _ in home.picture()["memories"]]


async def test_the_entries_stay_with_their_sources(home: SleepHome) -> None:
    await two_nights(home)
    taken = home.consolidations.learned(2)
    await home.undoing().take_back(MORNING)
    assert home.consolidations.learned(2) == [] and home.journal.search("Bergen Anna", "owner") == []
    rows = home.people.rows("SELECT content, sources FROM journal WHERE cycle = 2 ORDER BY id")
    assert [row["content"] for row in rows] == [entry.content for entry in taken] and rows[0]["sources"] != "[]"


async def test_asked_for_again_the_night_before_is_taken_back_and_then_nothing_is_left(home: SleepHome) -> None:
    await two_nights(home)
    undoing = home.undoing()
    assert [(await undoing.take_back(MORNING)).of.id for _ in range(2)] == [2, 1]
    assert home.picture()["memories"] == [] and home.picture()["curated"] == "" and home.remembered() == []
    with pytest.raises(UsageError, match="no sleep to take back"):
        await undoing.take_back(MORNING)
    assert [cycle.state for cycle in home.journal.cycles()] == ["undone", "undone"]


async def test_a_sleep_that_changed_nothing_is_passed_over(home: SleepHome) -> None:
    before = await two_nights(home)
    await home.night(2)
    assert (await home.undoing().take_back(MORNING)).of.id == 2
    assert home.picture() == before


async def test_what_waits_because_the_store_was_down_is_taken_back_too(home: SleepHome) -> None:
    say_facts(home, OSLO)
    home.memories.down = "no answer"
    await home.night()
    assert len(home.consolidations.pending()) == 1
    home.memories.down = ""
    assert (await home.undoing().take_back(MORNING)).entries == 1
    await home.night(1)
    assert home.memories.held == {}


async def test_what_a_person_noted_stays_in_the_journal(home: SleepHome) -> None:
    """The night made a memory of it; that it was said is no work of the night."""
    say_facts(home, OSLO)
    await home.night(phase="extract", trigger="phase")
    (entry,) = home.entries()
    await home.night(1)
    assert (await home.undoing().take_back(MORNING)).of.id == 2
    assert home.memories.held == {} and home.entries() == [entry]


# ----------------------------------------------------------------------------------------------------------------- left


async def test_files_that_a_person_changed_since_are_left_and_named(home: SleepHome) -> None:
    before = await two_nights(home)
    memory, mine = home.path / "MEMORY.md", "Mine now.\n"
    memory.write_text(mine)
    done = await home.undoing().take_back(MORNING)
    assert [line.partition(":")[0] for line in done.left] == ["MEMORY.md"]
    assert memory.read_text() == mine
    assert home.picture() == {**before, "curated": mine}


async def test_a_compaction_that_later_ones_stand_upon_is_left_and_named(home: SleepHome) -> None:
    await two_nights(home)
    say_facts(home, "One more thing.", "And another.")
    home.compact_now()
    view = home.shown()
    done = await home.undoing().take_back(MORNING)
    assert done.sessions == () and "main: it was compacted again since" in done.left[0]
    assert home.shown() == view


async def test_a_compaction_that_was_taken_back_by_hand_is_no_trouble(home: SleepHome) -> None:
    before = await two_nights(home)
    home.conversation.uncompact(home.conversation.restorable("main"), "main", NOW)
    done = await home.undoing().take_back(MORNING)
    assert (done.sessions, done.left) == ((), ())
    assert home.picture() == before


async def test_where_a_later_change_stands_upon_a_memory_nothing_is_taken_back(home: SleepHome) -> None:
    await two_nights(home)
    bergen = next(one for one in home.memories.held.values() if "Bergen" in one.text)
    await home.memories.apply([MemoryChange("delete", bergen, bergen)])
    changed = next(one for one in home.memories.held.values() if one.text == ANNA)
    reworded = replace(changed, text="My sister Anna is a doctor.")
    await home.memories.apply([MemoryChange("update", reworded, changed)])
    before = home.picture()
    with pytest.raises(UsageError, match="changed again since"):
        await home.undoing().take_back(MORNING)
    assert home.picture() == before
    assert home.journal.cycles()[0].state == "done"


# --------------------------------------------------------------------------------------------------------------- killed

CUTS: dict[str, Callable[[SleepHome], dict[str, Any]]] = {
    "before it is noted": lambda home: {"journal": CrashingStore(home.journal, "note_cycle")},
    "after it is noted": lambda home: {"journal": CrashingStore(home.journal, "note_cycle", after=True)},
    "before the memories": lambda home: {"memories": CrashingMemories(home.memories, "apply")},
    "after the memories": lambda home: {"memories": CrashingMemories(home.memories, "apply", after=True)},
    "before the plans": lambda home: {"consolidations": CrashingStore(home.consolidations, "undone")},
    "after the plans": lambda home: {"consolidations": CrashingStore(home.consolidations, "undone", after=True)},
    "before the compactions": lambda home: {"conversation": CrashingStore(home.conversation, "restorable")},
    "before the entries": lambda home: {"consolidations": CrashingStore(home.consolidations, "take_back")},
    "after the entries": lambda home: {"consolidations": CrashingStore(home.consolidations, "take_back", after=True)},
    "before an edit": lambda home: {"files": CrashingStore(home.files, "undo", call=2)},
    "after the edits": lambda home: {"files": CrashingStore(home.files, "undo", call=3, after=True)},
    "before the end": lambda home: {"journal": CrashingStore(home.journal, "note_cycle", call=2)},
}


@pytest.mark.parametrize("cut", CUTS)
async def test_f15_killed_anywhere_and_asked_for_again_it_goes_on(home: SleepHome, cut: str) -> None:
    before = await two_nights(home)
    with pytest.raises(SimulatedCrash):
        await home.undoing(**CUTS[cut](home)).take_back(MORNING)
    home.restart()
    assert (await home.undoing().take_back(MORNING)).of.id == 2
    assert home.picture() == before
    assert (await home.undoing().take_back(MORNING)).of.id == 1


async def test_f30_with_the_store_down_it_goes_on_later(home: SleepHome) -> None:
    before = await two_nights(home)
    home.memories.down = "no answer"
    with pytest.raises(MemoryUnavailable):
        await home.undoing().take_back(MORNING)
    assert home.journal.cycles()[0].state == "undoing"
    home.memories.down = ""
    assert (await home.undoing().take_back(MORNING)).of.id == 2
    assert home.picture() == before
