"""Words without a verb stand beside the sentence that they belong to."""

from __future__ import annotations

import pytest

from sleep.rules.clauses import join_fragments
from sleep.rules.extract_statements import extract_statements
from sleep.rules.sentences import split_sentences


def texts(said: str) -> list[str]:
    return [one.words for one in join_fragments(split_sentences(said))]


@pytest.mark.parametrize(
    "said",
    [
        "The clinic has moved me to a Friday. The 29th, half past nine.",
        "My sister had the baby! A girl. Aino.",
        "The dentist! That's Mr Sandhu in Corve Street.",
        "emacs. been on it since uni",
    ],
)
def test_a_fragment_belongs_to_the_sentence_beside_it(said: str) -> None:
    assert texts(said) == [said]


@pytest.mark.parametrize(
    "said",
    [
        "We moved in May. The flat has two rooms.",
        "Can you find a train? Tuesday, before noon.",
        "We came last. Goodness me.",
        "I live in Bath. What a day!",
        "She lives in Bonn. Thanks!",
    ],
)
def test_a_sentence_a_question_and_an_outcry_stand_by_themselves(said: str) -> None:
    assert len(texts(said)) == 2


def test_no_end_of_fragments_makes_a_text_without_end() -> None:
    said = "We moved. " + "Blue door, brass bell. " * 100
    assert all(len(text) <= 400 for text in texts(said))
    assert " ".join(texts(said)) == said.strip()


def test_what_is_learned_has_its_fragment_with_it() -> None:
    (found,) = extract_statements("The hospital has moved my appointment to a Friday. The 29th, half past nine.")
    assert found.content.endswith("The 29th, half past nine.")
