"""Memories and journal entries, found by what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange, MemoryHit
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.wire.search import open_memory_search
from sleep.cycle.change_plan import memory_from_entry

OWNER, GUEST = "owner", "peer:matrix:@eve:example.org"
JANUARY, MARCH, JUNE = (datetime(2026, month, 10, 12, tzinfo=UTC) for month in (1, 3, 6))
APRIL, MAY = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)


class JournalAndMemories:
    """A journal, what it became, and the search over both."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.db = Database.open(home / "character.db", character_migrations, JANUARY)
        self.journal = StoredJournal(self.db)
        self.consolidations = StoredConsolidations(self.db)
        self.memories: dict[str, Memory] = {}
        self._open()

    def _open(self) -> None:
        self.search, self.finder = open_memory_search(self._home, self._at_hand)

    def _at_hand(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        return {one: self.memories[one] for one in memory_ids if one in self.memories}

    def restart(self) -> None:
        self.search.close()
        self._open()

    def close(self) -> None:
        self.search.close()
        self.db.close()

    def note(
        self, *texts: str, at: datetime = JANUARY, scope: str = OWNER, weight: float = 0.5, kind: str = "extraction"
    ) -> list[JournalEntry]:
        said = [
            JournalEntry(f"{text} {at}", scope, "main", 1, text, at, kind, weight, ("fact",), (number,))  # type: ignore[arg-type]
            for number, text in enumerate(texts, 1)
        ]
        return self.journal.add(said, at)

    def remember(self, entry: JournalEntry, *, over: JournalEntry | None = None) -> Memory:
        """As consolidation does: a memory of an entry, which is over what an earlier one said."""
        memory = memory_from_entry(entry)
        changes = [MemoryChange("add", memory)]
        if over is not None:
            before = self.memories[memory_from_entry(over).id]
            after = Memory(
                before.id,
                before.scope,
                before.text,
                before.said_at,
                before.kind,
                before.importance,
                before.entries,
                entry.timestamp,
                memory.id,
            )
            changes.append(MemoryChange("update", after, before))
        superseded = ((over.id or 0, entry.id or 0),) if over is not None else ()
        plan = ChangePlan(entry.key, 1, entry.scope, tuple(changes), (entry.id or 0,), superseded)
        self.consolidations.save_plan(plan, entry.timestamp)
        self.consolidations.mark_applied(plan.key, entry.timestamp)
        self.memories |= {change.memory.id: change.memory for change in changes}
        return memory

    def find(self, question: str, scope: str = OWNER, **more: datetime | int) -> list[MemoryHit]:
        return self.search.search(question, scope, **more)  # type: ignore[arg-type]

    def texts(self, question: str, scope: str = OWNER, **more: datetime | int) -> list[str]:
        return [one.memory.text for one in self.find(question, scope, **more)]


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[JournalAndMemories]:
    notes = JournalAndMemories(tmp_path)
    yield notes
    notes.close()


def test_what_was_noted_is_found_in_the_next_call_and_after_a_restart(notes: JournalAndMemories) -> None:
    notes.note("My sister Anna is a nurse.", "The boiler is serviced in the cellar.")
    assert notes.texts("What does my sister do for a living?")[0] == "My sister Anna is a nurse."
    notes.note("My sister Anna works nights.", at=JUNE)
    assert set(notes.texts("Tell me about my sister")[:2]) == {
        "My sister Anna is a nurse.",
        "My sister Anna works nights.",
    }
    notes.restart()
    assert len(notes.texts("Tell me about my sister")) >= 2


def test_an_entry_is_shown_as_the_memory_that_it_went_into_and_that_once(notes: JournalAndMemories) -> None:
    first, second = notes.note("Anna is a nurse.", "My sister Anna is a nurse.")
    memory = notes.remember(first)
    notes.memories[memory.id] = merged = Memory(
        memory.id, OWNER, "My sister Anna is a nurse in Bergen.", JANUARY, entries=(first.id or 0, second.id or 0)
    )
    plan = ChangePlan("merge", 2, OWNER, (MemoryChange("update", merged, memory),), (second.id or 0,))
    notes.consolidations.save_plan(plan, JUNE)
    notes.consolidations.mark_applied("merge", JUNE)
    (found,) = notes.find("Is Anna a nurse?")
    assert (found.memory, found.sources, found.reference) == (merged, (1, 2), memory.id[:8])


def test_where_semantic_memory_cannot_be_read_the_journal_tells_of_it(notes: JournalAndMemories) -> None:
    oslo, bergen = notes.note("I live in Oslo.")[0], notes.note("I moved to Bergen.", at=JUNE)[0]
    before, after = notes.remember(oslo), notes.remember(bergen, over=oslo)
    notes.memories.clear()
    found = {one.memory.text: one.memory for one in notes.find("Where do I live, Oslo or Bergen?")}
    assert (found["I live in Oslo."].until, found["I live in Oslo."].superseded_by) == (JUNE, after.id)
    assert found["I live in Oslo."].id == before.id and found["I moved to Bergen."].is_current


def test_what_holds_stands_above_what_no_longer_does_even_where_its_words_do_not_answer(
    notes: JournalAndMemories,
) -> None:
    notes.note(*(f"Room {number} was painted green." for number in range(30)))
    oslo = notes.note("My home address is Storgata 5.")[0]
    moved = notes.note("It is Lille gate 7 from now on.", at=JUNE)[0]
    notes.remember(oslo)
    notes.remember(moved, over=oslo)
    assert notes.texts("What is my home address?")[:2] == [
        "It is Lille gate 7 from now on.",
        "My home address is Storgata 5.",
    ]


def test_a_time_finds_what_held_then(notes: JournalAndMemories) -> None:
    oslo = notes.note("I live in Oslo.")[0]
    bergen = notes.note("I live in Bergen.", at=JUNE)[0]
    notes.remember(oslo)
    notes.remember(bergen, over=oslo)
    assert notes.texts("Where did I live?", after=MARCH, before=APRIL) == ["I live in Oslo."]
    assert notes.texts("Where did I live?", after=JUNE + timedelta(days=1), before=JUNE + timedelta(days=30)) == [
        "I live in Bergen."
    ]


def test_a_time_finds_what_was_said_then_first_and_later_words_that_name_it(notes: JournalAndMemories) -> None:
    notes.note("The garage painted the car blue.")
    notes.note("The garage painted the car red.", at=APRIL)
    notes.note("The garage painted the car green (12 April 2026).", "The garage painted the car white.", at=JUNE)
    assert notes.texts("Which colour did the garage paint the car?", after=APRIL, before=MAY) == [
        "The garage painted the car red.",
        "The garage painted the car green (12 April 2026).",
        "The garage painted the car blue.",
    ]


def test_what_was_said_at_a_time_comes_by_its_weight(notes: JournalAndMemories) -> None:
    notes.note("Light.", at=APRIL, weight=0.2)
    notes.note("Heavy.", at=APRIL, weight=0.9)
    notes.note("Another day.")
    found = notes.search.search_by_time(OWNER, APRIL, APRIL + timedelta(days=1))
    assert [one.memory.text for one in found] == ["Heavy.", "Light."] and not any(one.is_relevant for one in found)
    assert notes.search.search_by_time(GUEST, APRIL, APRIL + timedelta(days=1)) == []


def test_age_with_little_weight_lowers_a_rank_and_takes_nothing_away(notes: JournalAndMemories) -> None:
    notes.note("The key lies under the pot.", at=datetime(2020, 1, 1, tzinfo=UTC), weight=0.1)
    notes.note("The key lies under the mat.", at=JUNE, weight=0.1)
    assert notes.texts("Where is the key?") == ["The key lies under the mat.", "The key lies under the pot."]
    notes.note("The code lies under the vase.", at=datetime(2020, 1, 1, tzinfo=UTC), weight=1.0)
    notes.note("The code lies under the sofa.", at=datetime(2020, 1, 2, tzinfo=UTC), weight=0.1)
    assert notes.texts("Where is the code?")[:2] == ["The code lies under the vase.", "The code lies under the sofa."]


def test_what_was_worth_nothing_is_not_found(notes: JournalAndMemories) -> None:
    (junk,) = notes.note("The parrot said hello.")
    assert notes.texts("What did the parrot say?") == ["The parrot said hello."]
    plan = ChangePlan("p", 1, OWNER, (), (junk.id or 0,), rejected=((junk.id or 0, "a greeting"),))
    notes.consolidations.save_plan(plan, JUNE)
    notes.consolidations.mark_applied("p", JUNE)
    assert notes.texts("What did the parrot say?") == [] == notes.search.search_by_time(OWNER, JANUARY, JUNE)


def test_with_a_night_goes_what_it_learned_and_not_what_a_person_noted(notes: JournalAndMemories) -> None:
    (own,) = notes.note("The parrot said goodbye.", kind="tool")
    learned = replace(own, key="learned", content="The parrot said hello.", source_type="extraction", cycle=1, id=None)
    (extracted,) = notes.journal.add([learned], JUNE)
    for entry in (own, extracted):
        notes.remember(entry)
    notes.consolidations.mark_undone([own.key, extracted.key], JUNE)
    assert notes.texts("What did the parrot say?") == ["The parrot said goodbye."]


def test_summaries_of_conversations_are_no_memories(notes: JournalAndMemories) -> None:
    notes.note("They talked about the parrot.", kind="context_synthesis")
    assert notes.texts("What about the parrot?") == []
    assert notes.search.search_by_time(OWNER, JANUARY, JUNE) == []


@pytest.mark.parametrize("asking", [OWNER, GUEST])
def test_f33_nothing_of_another_scope_is_found(notes: JournalAndMemories, asking: str) -> None:
    other = GUEST if asking == OWNER else OWNER
    for text, scope in (("The safe opens with 4711.", other), ("The safe is blue.", asking)):
        notes.remember(notes.note(text, scope=scope)[0])
    assert notes.texts("How does the safe open?", asking) == ["The safe is blue."]
    assert notes.texts("How does the safe open?", asking, after=JANUARY, before=JUNE) == ["The safe is blue."]


def test_a_memory_that_names_another_scope_than_its_entry_is_not_shown(notes: JournalAndMemories) -> None:
    (mine,) = notes.note("The safe is blue.")
    memory = notes.remember(mine)
    notes.memories[memory.id] = Memory(memory.id, GUEST, "The safe opens with 4711.", JANUARY)
    assert notes.texts("How does the safe open?") == ["The safe is blue."]


def test_texts_of_every_script_are_found_by_a_part(notes: JournalAndMemories) -> None:
    notes.note("我的姐姐安娜是护士。", "أختي آنا ممرضة.", "Моя сестра Анна медсестра.", "私の猫はミオといいます。")
    assert notes.texts("安娜")[0] == "我的姐姐安娜是护士。" and notes.texts("猫")[0] == "私の猫はミオといいます。"
    assert notes.texts("ممرضة")[0] == "أختي آنا ممرضة." and notes.texts("сестра")[0] == "Моя сестра Анна медсестра."


def test_what_is_asked_in_its_words_is_good_and_what_has_nothing_to_do_with_it_is_not(
    notes: JournalAndMemories,
) -> None:
    notes.note("My sister Anna is a nurse.", "The boiler is serviced every March.", "I never eat peanuts.")
    notes.note(*(f"We walked the dog along path {number}." for number in range(40)))
    good = {
        question: [one.memory.text for one in notes.find(question) if one.is_relevant]
        for question in ("When is the boiler serviced?", "Is my sister a nurse?", "How high is Kilimanjaro?")
    }
    assert good["When is the boiler serviced?"] == ["The boiler is serviced every March."]
    assert good["Is my sister a nurse?"] == ["My sister Anna is a nurse."]
    assert good["How high is Kilimanjaro?"] == []


def test_forgotten_entries_leave_the_index_when_it_is_made_anew(notes: JournalAndMemories) -> None:
    entry = notes.note("The parrot is called Zebulon.", "The dog is called Rex.")[0]
    assert notes.texts("What is the parrot called?")[0] == "The parrot is called Zebulon."
    with notes.db.write() as db:
        db.execute("DELETE FROM journal WHERE id = ?", (entry.id,))
    notes.finder.clear()
    assert "The parrot is called Zebulon." not in notes.texts("What is the parrot called?")
    assert notes.texts("What is the dog called?") == ["The dog is called Rex."]


def test_an_explained_search_finds_the_same_and_says_what_each_score_is_made_of(notes: JournalAndMemories) -> None:
    notes.note("Anna works at the harbour in Bergen.", "The boiler is serviced in October.", "Bergen has two harbours.")
    explained = notes.search.explain("How many harbours does Bergen have?", OWNER)
    assert list(explained.words) == ["many", "harbours", "bergen"] and explained.asks_for == ("a number",)
    assert (explained.entries, explained.by_words, explained.by_meaning) == (3, 2, 1)
    unexplained = [replace(hit, parts={}) for hit in explained.hits]
    assert unexplained == notes.search.search("How many harbours does Bergen have?", OWNER)
    assert "two harbours" in explained.hits[0].memory.text and explained.hits[0].parts["number"] > 0
    for hit in explained.hits:
        assert sum(hit.parts.values()) == pytest.approx(hit.score, abs=0.2)  # the rest is age
