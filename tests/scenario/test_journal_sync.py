"""What finished compactions leave for the journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from sleep.cycle.cycle import sync_journal, sync_journal_or_log
from tests.support.compactions import plan_compaction, plan_merge, summary_message
from tests.support.sleep_home import FACTS, LATER, JournalHome, say_facts
from tests.support.store_home import NOW, CrashingStore, StoreHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[JournalHome]:
    home = JournalHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def compacted(home: StoreHome, count: int, **changes: object) -> int:
    made = replace(plan_compaction(home, 0, count, summary_message()), **changes)  # type: ignore[arg-type]
    return home.conversation.commit_compaction(made, NOW).id


def test_a_summary_and_its_memories_become_entries_with_their_sources(home: JournalHome) -> None:
    say_facts(home)
    made = compacted(home, 5, summary="They talked.", key_facts={"memories": ["Likes boats.", "Has an allergy."]})
    assert sync_journal(home.conversation, home.journal, LATER).written_count == 3
    found = [(one.key, one.content, one.source_type, one.tags, one.sources) for one in home.entries()]
    assert found == [
        (f"synthesis:{made}", "They talked.", "context_synthesis", ("summary",), (1, 6)),
        (f"memories:{made}:1", "Likes boats.", "compaction", ("fact",), (1, 6)),
        (f"memories:{made}:2", "Has an allergy.", "compaction", ("fact",), (1, 6)),
    ]
    assert all((one.scope, one.session, one.timestamp) == ("owner", "main", NOW) for one in home.entries())
    again = sync_journal(home.conversation, home.journal, LATER)
    assert (again.read_count, again.written_count) == (0, 0)


def test_f29_what_only_refers_to_the_log_or_says_it_again_is_no_entry(home: JournalHome) -> None:
    say_facts(home, *FACTS, *FACTS)
    compacted(home, 1, tier="floor", summary="2 messages left the view.")
    compacted(home, 1, tier="deletion", summary="2 messages left the view.")
    compacted(home, 1, tier="full", summary="  ")
    live = [one for one in home.conversation.checkpoints("main") if one.state == "live"]
    merged = replace(
        plan_merge(home, live[:2], summary_message()), key_facts={"merged": [1, 2], "memories": ["Likes boats."]}
    )
    home.conversation.commit_compaction(merged, NOW)
    assert sync_journal(home.conversation, home.journal, LATER).read_count == 4
    assert home.entries() == []


def test_what_was_taken_back_before_it_settled_is_not_learned(home: JournalHome) -> None:
    say_facts(home)
    compacted(home, 5, summary="They talked.")
    home.conversation.undo_compaction(home.conversation.plan_uncompact("main"), "main", NOW)
    sync_journal(home.conversation, home.journal, LATER)
    assert home.entries() == []


def test_any_number_of_checkpoints_is_settled_at_once(home: JournalHome) -> None:
    say_facts(home, *(f"I own boat {number}." for number in range(130)))
    for number in range(120):
        compacted(home, 1, summary=f"Boat {number}.")
    assert len(home.conversation.list_unjournaled_checkpoints()) == 100
    assert len(home.conversation.list_unjournaled_checkpoints(limit=3)) == 3
    assert sync_journal(home.conversation, home.journal, LATER).written_count == 120


def test_a_compaction_stands_though_the_journal_cannot_be_written(home: JournalHome) -> None:
    say_facts(home)
    compacted(home, 5, summary="They talked.")
    sync_journal_or_log(home.conversation, CrashingStore(home.journal, "add", error=StoreError("full")), NOW)  # type: ignore[arg-type]
    assert len(home.conversation.list_unjournaled_checkpoints()) == 1
    sync_journal_or_log(home.conversation, home.journal, NOW)
    assert home.entry_texts() == ["They talked."]
