"""Searching a large history: the plan gives what an exact score of everything would, and nobody crowds another out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from assistant.core.messages import Message
from assistant.search.likeness import rank_apart
from assistant.search.query import SearchLimits
from assistant.wire.search import open_history
from tests.bench.homes import home as generated_home
from tests.support.imports import import_messages
from tests.support.search_home import GUEST, NOW, OWNER, SearchHome, add_chatter


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path / "home")
    yield room
    room.close()


def test_two_stages_find_what_an_exact_score_of_everything_finds(tmp_path: Path) -> None:
    made = generated_home(2000, facts=30, cache=tmp_path)
    first = {}
    for bounds in (
        SearchLimits(small_collection=10**6),
        SearchLimits(small_collection=0, seed_units=200, scored_units=100),
    ):
        history = open_history(made.path, patient=True, bounds=bounds)[0]
        first[bounds] = [[hit.message_id for hit in history.search(one.question, OWNER)] for one in made.planted]
        history.close()
    whole, staged = first.values()
    answers = [one.answer for one in made.planted]
    assert all(answer in hits for answer, hits in zip(answers, whole, strict=True))
    assert all(answer in hits for answer, hits in zip(answers, staged, strict=True))


def test_one_common_word_alone_finds_the_newest(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=0, seed_units=100, scored_units=150))
    said = room.say(*["We walk the dog."] * 400)
    # The very last have nobody after them, who would say the same again.
    assert set(room.search_ids("walk", limit=60)) >= set(said[-34:-4])
    room.close()


COMMON = ["walk", "kitchen", "garden", "dentist"]


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[SearchHome]:
    """A home of which only a small part is scored exactly."""
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=0, seed_units=60, scored_units=60))
    yield room
    room.close()


def crowd(room: SearchHome) -> None:
    """Each word said often, no two of them near each other."""
    for _ in range(100):
        room.say(*(text for word in COMMON for text in (f"Only the {word} today.", *["Nothing else."] * 5)), *["Well."])


def test_common_words_find_the_message_that_has_two_of_them_near_each_other(crowded: SearchHome) -> None:
    (wanted,) = crowded.say("The dentist stands in my garden.")
    crowd(crowded)
    assert wanted in crowded.search_ids("walk kitchen garden dentist")


def test_common_words_find_the_message_that_has_most_of_them_however_far_apart(crowded: SearchHome) -> None:
    apart = "and so on and so forth " * 8
    (wanted,) = crowded.say(f"A walk, {apart} then the kitchen, {apart} and then the garden.")
    crowd(crowded)
    assert wanted in crowded.search_ids("walk kitchen garden dentist")


def test_of_many_messages_with_a_rare_word_common_words_pick_the_right_one(crowded: SearchHome) -> None:
    crowded.say(*["The zither is old."] * 20)
    (wanted,) = crowded.say("The zither is in the garden.")
    crowded.say(*["The zither is old."] * 30)
    crowd(crowded)
    assert crowded.search_ids("is the zither in the garden")[0] == wanted


def test_words_that_are_common_but_never_together_are_still_found(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=0))
    walks = room.say(*["We walk."] * 100)
    dogs = room.say(*["The dog."] * 100)
    assert set(room.search_ids("walk dog", limit=200)) <= {*walks, *dogs}
    assert len(room.search_ids("walk dog", limit=200)) > 20
    room.close()


def test_a_search_gives_the_same_after_a_restart(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home")
    add_chatter(room, 200)
    room.say("The zither stands in the attic of the old mill.", "Its strings are from Cremona.")
    asked = ("where does the zither stand", "what about the garden", "walking the dog in the rain")
    before = [[(hit.message_id, round(hit.score, 4)) for hit in room.search(question)] for question in asked]
    room.close()
    again = open_history(tmp_path / "home", patient=True)[0]
    found = [[(hit.message_id, round(hit.score, 4)) for hit in again.search(question, OWNER)] for question in asked]
    again.close()
    assert found == before


def test_what_was_said_hours_apart_does_not_answer_one_another(room: SearchHome) -> None:
    asked = Message("user", "Where did we leave the zither?", ts=NOW)
    soon, late = NOW + timedelta(minutes=2), NOW + timedelta(days=2)
    add_chatter(room, 30)
    near = import_messages(room.conversation, "main", OWNER, [asked, Message("user", "In the attic.", ts=soon)], NOW)
    far = import_messages(room.conversation, "peer:a:1", OWNER, [asked, Message("user", "In the attic.", ts=late)], NOW)
    scores = {hit.message_id: hit.score for hit in room.search("where did we leave the zither", limit=60)}
    assert scores[near[1].id or 0] > scores.get(far[1].id or 0, 0.0) + 0.2


def test_a_large_history_of_somebody_else_crowds_nobody_out(tmp_path: Path) -> None:
    """Of the units worth a look none is another scope's."""
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=0, seed_units=40, scored_units=40))
    mine = room.say(*["We walk the dog in the garden."] * 30, session=GUEST, scope=GUEST)
    room.say(*["We walk the dog in the garden, the dog and the garden."] * 400)
    assert set(room.search_ids("walk the dog in the garden", GUEST, limit=30)) == set(mine)
    room.close()


def test_what_a_long_report_repeats_counts_once(room: SearchHome) -> None:
    room.say("The ledger is closed.\n" * 3_000, role="tool", name="read_file")
    (said,) = room.say("The ledger lies in the drawer.")
    assert room.search_ids("where does the ledger lie")[0] == said
    assert room.finder.frequencies(["ledger", "drawer", "zither"]) == ([2, 1, 0], 2)


def test_a_single_letter_counts_each_message_once(room: SearchHome) -> None:
    add_chatter(room, 20)
    room.say("我把钥匙放在花园。", "钥匙在家。")
    room.search_ids("钥匙")
    assert room.finder.frequencies(["钥"])[0] == [2]


def test_what_says_the_same_as_a_better_hit_comes_later_but_not_after_the_last() -> None:
    likeness = np.array([[1, 0.9, 0.2, 0.4], [0.9, 1, 0.2, 0.4], [0.2, 0.2, 1, 0.6], [0.4, 0.4, 0.6, 1]], np.float32)
    ranked = rank_apart([3.0, 2.9, 2.8, 2.7], likeness)
    assert [place for place, _ in ranked] == [0, 2, 1, 3]
    assert [score for _, score in ranked] == pytest.approx([3.0, 2.8, 2.7, 2.7])
    assert rank_apart([3.0, 2.9], np.eye(2, dtype=np.float32)) == [(0, 3.0), (1, 2.9)]


def test_hits_that_say_the_same_leave_room_for_another(room: SearchHome) -> None:
    for number in range(4):
        room.say(f"The kayak club meets at the pier on Friday, bring a towel ({number}).")
    room.say("My sister left the kayak club years ago, as its rules and its dues were too much for her.")
    room.say("Is there a kayak?")
    hits = room.search("kayak club")
    assert "sister" in hits[1].text and len(hits) == 6
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
