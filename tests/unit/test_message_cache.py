"""What was found in each message before equals what is found when a summary is made; how much of it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assistant.core.messages import Message
from assistant.core.records import ContextView
from sleep.compaction.extractive import summarise_without_model
from sleep.compaction.key_facts import _stated_in, collect_key_facts
from sleep.compaction.message_cache import FOUND_IN_MESSAGES, MessageCache
from sleep.compaction.prepared_messages import PreparedMessages, prepare_message
from sleep.compaction.validate import restore_missing_values
from sleep.rules.sentence_cache import forget_sentences
from tests.support.month_texts import month_texts
from tests.support.summaries import alternating_messages, count_text_tokens, long_conversation, summary_material

Summary = tuple[object, ...]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    FOUND_IN_MESSAGES.clear()
    yield
    FOUND_IN_MESSAGES.clear()


def summary_of(rows: tuple[Message, ...], budget: int) -> Summary:
    material = summary_material(rows, budget)
    text, tier = summarise_without_model(material, 1_000_000, count_text_tokens)
    restored = restore_missing_values(text, material, count_text_tokens, 800, 400)
    return text, tier, collect_key_facts(material), restored


def summary_from_nothing(rows: tuple[Message, ...], budget: int) -> Summary:
    FOUND_IN_MESSAGES.clear()
    forget_sentences()
    return summary_of(rows, budget)


def conversation() -> tuple[Message, ...]:
    return (*long_conversation(24), *alternating_messages(*month_texts()[:160], first=49))


@pytest.mark.parametrize("budget", [40, 300, 1_500])
def test_a_summary_of_prepared_messages_equals_one_from_nothing(budget: int) -> None:
    rows = conversation()
    from_nothing = summary_from_nothing(rows, budget)
    FOUND_IN_MESSAGES.clear()
    for row in rows:
        prepare_message(row)
        forget_sentences()
    assert summary_of(rows, budget) == from_nothing


def test_a_summary_of_a_conversation_that_grew_and_was_changed_equals_one_from_nothing() -> None:
    rows = conversation()
    for row in rows[:100]:
        prepare_message(row)
    first = summary_of(rows[:100], 300)
    changed = (*rows[:10], replace(rows[10], content="My sister Ines moved to Tromsø, flat K4-99."), *rows[11:])
    assert summary_of(changed[4:], 300) == summary_from_nothing(changed[4:], 300)
    assert summary_of(rows[:100], 300) == first == summary_from_nothing(rows[:100], 300)


def test_the_same_words_of_another_speaker_are_another_message() -> None:
    words = "I never eat nuts. From now on answer me in short sentences, please."
    of_person, of_model = Message("user", words, id=1), Message("assistant", words, id=1)
    for row in (of_person, of_model):
        prepare_message(row)
    assert [summary_of((row,), 300) for row in (of_person, of_model)] == [
        summary_from_nothing((row,), 300) for row in (of_person, of_model)
    ]


def test_a_prepared_message_is_not_gone_through_again() -> None:
    read: list[str] = []
    cache = MessageCache(1_000)

    @cache.cached
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    assert [length("said"), length("said"), length("told"), length("said")] == [4] * 4
    assert read == ["said", "told"]


def test_what_was_not_asked_for_longest_leaves_first_and_a_very_long_text_is_not_kept() -> None:
    read: list[str] = []
    cache = MessageCache(1_000)

    @cache.cached
    def first_character(text: str) -> str:
        read.append(text[0])
        return text[0]

    for text in (*"abcadea", "xx", "xx", "b"):
        first_character(text * 200)
    assert read == ["a", "b", "c", "d", "e", "x", "x", "b"]


def test_each_message_of_a_session_is_prepared_once_and_again_when_its_view_was_changed() -> None:
    prepared = PreparedMessages()
    rows = alternating_messages(*(f"Walk {n} went over the hill." for n in range(6)))
    view = ContextView("main", 1, "owner", 0, rows[:4], 50_000, 0, 0)
    assert prepared.take_new(view) == rows[:4]
    assert prepared.take_new(view) == ()
    assert prepared.take_new(replace(view, messages=rows)) == rows[4:]
    assert prepared.take_new(replace(view, messages=rows[2:], prefix_rev=1)) == rows[2:]
    assert prepared.take_new(replace(view, session="other")) == rows[:4]


def test_preparation_ends_where_it_is_not_wanted_any_more() -> None:
    rows = alternating_messages("My sister Ines lives in Bergen.", "Noted.", "She likes the sea.")
    answers = iter([True, False])
    PreparedMessages().prepare(rows, lambda: next(answers))
    assert [_stated_in.is_known(rows[number].content) for number in (0, 2)] == [True, False]
