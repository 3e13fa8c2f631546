"""Which of the things that a person has the words of a sentence name."""

from __future__ import annotations

import re

import pytest

from assistant.models.offline.cues import fold
from assistant.models.offline.matching import ListedItem, each_named, matching, subject_words
from assistant.models.offline.order_spelling import read_forms, spell_order

BANK = ListedItem("reminder", 1, "call the bank")


@pytest.mark.parametrize(
    "question",
    [
        "when do I take out the trash",
        "what day does the garbage go out",
        "when is the rubbish collected",
        "when does the bin have to go out",
        "wann muss der Müll raus",
        "quand est-ce que je sors les poubelles",
        "cuándo saco la basura",
    ],
)
@pytest.mark.parametrize("text", ["put the bins out", "take out the trash", "Müll rausbringen", "sacar la basura"])
def test_words_for_one_thing_name_it_in_four_languages(question: str, text: str) -> None:
    bins = ListedItem("reminder", 2, text)
    assert matching(subject_words(question), [BANK, bins]) == [bins]


@pytest.mark.parametrize("text", ["bin ich morgen frei", "ich bin Freitag beim Arzt"])
def test_the_german_verb_is_no_bin(text: str) -> None:
    assert matching(subject_words(text), [ListedItem("reminder", 2, "put the bins out")]) == []


def test_the_french_oven_is_no_number() -> None:
    oven = ListedItem("reminder", 2, "éteindre le four")
    assert matching(subject_words("redis-le moi dans dix minutes pour le four"), [BANK, oven]) == [oven]
    assert subject_words("remind me in four days") == []


@pytest.mark.parametrize("join", ["and", "n", "as well as", "along with", "sowie", "ainsi que"])
def test_each_of_several_things_is_named(join: str) -> None:
    milk, bread = ListedItem("todo", 2, "milk"), ListedItem("todo", 3, "bread")
    assert each_named(f"milk {join} bread", [BANK, milk, bread]) == [milk, bread]


def test_a_single_word_is_compared_only_with_wordings_of_one() -> None:
    forms = read_forms()
    texts = [row.pattern.pattern for row in (*forms.wordings, *forms.forms)]
    words = sorted({fold(word) for text in texts for word in re.findall(r"[^\W\d_]{2,}", text)} | {"hi", "danke"})
    of_more = [wording for wording in forms.wordings if not wording.of_one_word]
    assert [word for word in words for row in (*of_more, *forms.forms) if row.pattern.fullmatch(word)] == []
    assert spell_order("Déjalo") == "cancela eso"
