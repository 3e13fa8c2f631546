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
    await home.run_sleep()
    say_facts(home, ANNA, BERGEN)
    before = home.snapshot()
    await home.run_sleep(1, compact=home.compact_session)
    assert all(home.snapshot()[name] != value for name, value in before.items())
    return before


# ----------------------------------------------------------------------------------------------------------- taken back


async def test_a_night_is_taken_back_and_not_learned_again(home: SleepHome) -> None:
    before = await two_nights(home)
    done = await home.undo_service().undo_last_sleep(MORNING)
    assert (done.cycle.id, done.memory_count, done.entry_count, done.sessions, done.not_undone) == (
        2,
        3,
        3,
        ("main",),
        (),
    )
    assert {target.partition(":")[0] for target in done.edits} == {"file", "profile"}
    assert home.snapshot() == before
    report = await home.run_sleep(2)
    assert (report.phases["extract"]["read"], report.phases["consolidate"]["read"]) == (0, 0)
    assert home.snapshot() == before


async def test_what_is_said_again_the_same_day_is_learned(home: SleepHome) -> None:
    await two_nights(home)
    await home.undo_service().undo_last_sleep(MORNING)
    say_facts(home, ANNA)
    await home.run_sleep(2)
    assert ANNA in home.entry_texts() and ANNA in [text for text, _ in home.snapshot()["memories"]]


async def test_the_entries_stay_with_their_sources(home: SleepHome) -> None:
    await two_nights(home)
    taken = home.consolidations.entries_of_cycle(2)
    await home.undo_service().undo_last_sleep(MORNING)
    assert home.consolidations.entries_of_cycle(2) == []
    assert {entry.cycle for entry in home.journal.entries("owner")} == {1}
    rows = home.character_db.rows("SELECT content, sources FROM journal WHERE cycle = 2 ORDER BY id")
    assert [row["content"] for row in rows] == [entry.content for entry in taken] and rows[0]["sources"] != "[]"


async def test_asked_for_again_the_night_before_is_taken_back_and_then_nothing_is_left(home: SleepHome) -> None:
    await two_nights(home)
    undoing = home.undo_service()
    assert [(await undoing.undo_last_sleep(MORNING)).cycle.id for _ in range(2)] == [2, 1]
    assert home.snapshot()["memories"] == [] and home.snapshot()["curated"] == "" and home.entry_texts() == []
    with pytest.raises(UsageError, match="no sleep to undo"):
        await undoing.undo_last_sleep(MORNING)
    assert [cycle.state for cycle in home.journal.list_cycles()] == ["undone", "undone"]


async def test_a_sleep_that_changed_nothing_is_passed_over(home: SleepHome) -> None:
    before = await two_nights(home)
    await home.run_sleep(2)
    assert (await home.undo_service().undo_last_sleep(MORNING)).cycle.id == 2
    assert home.snapshot() == before


async def test_what_waits_because_the_store_was_down_is_taken_back_too(home: SleepHome) -> None:
    say_facts(home, OSLO)
    home.memories.unavailable = "no answer"
    await home.run_sleep()
    assert len(home.consolidations.pending_entries()) == 1
    home.memories.unavailable = ""
    assert (await home.undo_service().undo_last_sleep(MORNING)).entry_count == 1
    await home.run_sleep(1)
    assert home.memories.by_id == {}


async def test_what_a_person_noted_stays_in_the_journal(home: SleepHome) -> None:
    """The night made a memory of it; that it was said is no work of the night."""
    say_facts(home, OSLO)
    await home.run_sleep(phase="extract", trigger="phase")
    (entry,) = home.entries()
    await home.run_sleep(1)
    assert (await home.undo_service().undo_last_sleep(MORNING)).cycle.id == 2
    assert home.memories.by_id == {} and home.entries() == [entry]


# ----------------------------------------------------------------------------------------------------------------- left


async def test_files_that_a_person_changed_since_are_left_and_named(home: SleepHome) -> None:
    before = await two_nights(home)
    memory, mine = home.path / "MEMORY.md", "Mine now.\n"
    memory.write_text(mine)
    done = await home.undo_service().undo_last_sleep(MORNING)
    assert [line.partition(":")[0] for line in done.not_undone] == ["MEMORY.md"]
    assert memory.read_text() == mine
    assert home.snapshot() == {**before, "curated": mine}


async def test_a_compaction_that_later_ones_stand_upon_is_left_and_named(home: SleepHome) -> None:
    await two_nights(home)
    say_facts(home, "One more thing.", "And another.")
    home.compact_view()
    view = home.view_contents()
    done = await home.undo_service().undo_last_sleep(MORNING)
    assert done.sessions == () and "main: it was compacted again since" in done.not_undone[0]
    assert home.view_contents() == view


async def test_a_compaction_that_was_taken_back_by_hand_is_no_trouble(home: SleepHome) -> None:
    before = await two_nights(home)
    home.conversation.undo_compaction(home.conversation.plan_uncompact("main"), "main", NOW)
    done = await home.undo_service().undo_last_sleep(MORNING)
    assert (done.sessions, done.not_undone) == ((), ())
    assert home.snapshot() == before


async def test_where_a_later_change_stands_upon_a_memory_nothing_is_taken_back(home: SleepHome) -> None:
    await two_nights(home)
    bergen = next(one for one in home.memories.by_id.values() if "Bergen" in one.text)
    await home.memories.apply([MemoryChange("delete", bergen, bergen)])
    changed = next(one for one in home.memories.by_id.values() if one.text == ANNA)
    reworded = replace(changed, text="My sister Anna is a doctor.")
    await home.memories.apply([MemoryChange("update", reworded, changed)])
    before = home.snapshot()
    with pytest.raises(UsageError, match="changed again since"):
        await home.undo_service().undo_last_sleep(MORNING)
    assert home.snapshot() == before
    assert home.journal.list_cycles()[0].state == "done"


# --------------------------------------------------------------------------------------------------------------- killed

CUTS: dict[str, Callable[[SleepHome], dict[str, Any]]] = {
    "before it is noted": lambda home: {"journal": CrashingStore(home.journal, "save_cycle")},
    "after it is noted": lambda home: {"journal": CrashingStore(home.journal, "save_cycle", after=True)},
    "before the memories": lambda home: {"memories": CrashingMemories(home.memories, "apply")},
    "after the memories": lambda home: {"memories": CrashingMemories(home.memories, "apply", after=True)},
    "before the plans": lambda home: {"consolidations": CrashingStore(home.consolidations, "mark_undone")},
    "after the plans": lambda home: {"consolidations": CrashingStore(home.consolidations, "mark_undone", after=True)},
    "before the compactions": lambda home: {"conversation": CrashingStore(home.conversation, "plan_uncompact")},
    "before the entries": lambda home: {"consolidations": CrashingStore(home.consolidations, "withdraw_entries")},
    "after the entries": lambda home: {
        "consolidations": CrashingStore(home.consolidations, "withdraw_entries", after=True)
    },
    "before an edit": lambda home: {"files": CrashingStore(home.files, "undo_edit", call=2)},
    "after the edits": lambda home: {"files": CrashingStore(home.files, "undo_edit", call=3, after=True)},
    "before the end": lambda home: {"journal": CrashingStore(home.journal, "save_cycle", call=2)},
}


@pytest.mark.parametrize("cut", CUTS)
async def test_f15_killed_anywhere_and_asked_for_again_it_goes_on(home: SleepHome, cut: str) -> None:
    before = await two_nights(home)
    with pytest.raises(SimulatedCrash):
        await home.undo_service(**CUTS[cut](home)).undo_last_sleep(MORNING)
    home.restart()
    assert (await home.undo_service().undo_last_sleep(MORNING)).cycle.id == 2
    assert home.snapshot() == before
    assert (await home.undo_service().undo_last_sleep(MORNING)).cycle.id == 1


async def test_f30_with_the_store_down_it_goes_on_later(home: SleepHome) -> None:
    before = await two_nights(home)
    home.memories.unavailable = "no answer"
    with pytest.raises(MemoryUnavailable):
        await home.undo_service().undo_last_sleep(MORNING)
    assert home.journal.list_cycles()[0].state == "undoing"
    home.memories.unavailable = ""
    assert (await home.undo_service().undo_last_sleep(MORNING)).cycle.id == 2
    assert home.snapshot() == before


# ------------------------------------------------------------------------------------------------------ single changes


def _texts(home: SleepHome) -> set[tuple[str, bool]]:
    return {(memory.text, memory.is_current) for memory in home.memories.by_id.values()}


def _id_of(home: SleepHome, text: str) -> str:
    return next(memory.id for memory in home.memories.by_id.values() if memory.text == text)


async def test_one_change_is_undone_with_what_it_replaced_and_the_others_stay(home: SleepHome) -> None:
    await two_nights(home)
    assert {(OSLO, False), (ANNA, True)} < _texts(home)
    undone = await home.undo_service().undo_memory(_id_of(home, BERGEN), "owner", MORNING)
    assert undone == 2 and _texts(home) == {(OSLO, True), (ANNA, True)}
    # Nothing is learned from it again, and the rest of that night can be undone after it.
    await home.run_sleep(2)
    assert _texts(home) == {(OSLO, True), (ANNA, True)}
    await home.undo_service().undo_last_sleep(MORNING)
    assert _texts(home) == {(OSLO, True)}


async def test_one_change_undone_and_killed_anywhere_is_undone_when_asked_again(home: SleepHome) -> None:
    await two_nights(home)
    bergen = _id_of(home, BERGEN)
    for name, after in (("split_plan", False), ("split_plan", True), ("mark_undone", False)):
        store = CrashingStore(home.consolidations, name, after=after)
        with pytest.raises(SimulatedCrash):
            await home.undo_service(consolidations=store).undo_memory(bergen, "owner", MORNING)
    await home.undo_service().undo_memory(bergen, "owner", MORNING)
    assert _texts(home) == {(OSLO, True), (ANNA, True)}


async def test_what_somebody_put_right_since_is_not_undone_and_what_was_not_known_before_stays_known(
    home: SleepHome,
) -> None:
    await two_nights(home)
    service, bergen = home.undo_service(), _id_of(home, BERGEN)
    known = home.consolidations.known_as_of("owner", MORNING)
    assert service.accept_memory(bergen, "owner", MORNING) == 2
    assert home.consolidations.known_as_of("owner", MORNING) == known
    (accepted,) = home.consolidations.accepted_keys(2)
    assert accepted.endswith(bergen)
    memory = home.memories.by_id[bergen]
    await home.memories.apply([MemoryChange("update", replace(memory, text="I live in Bergen now."), memory)])
    with pytest.raises(UsageError, match="changed again since"):
        await service.undo_memory(bergen, "owner", MORNING)
    with pytest.raises(UsageError, match="not from a sleep"):
        await service.undo_memory(bergen, "peer:telegram:7", MORNING)
