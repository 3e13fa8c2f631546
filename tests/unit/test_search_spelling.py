"""Misspelt words are read as known ones that sound alike or differ by one slip, and as nothing else."""

from __future__ import annotations

import pytest

from assistant.search import spelling
from assistant.search.spelling import nearest_word, sound_of, sounds_of

KNOWN = (
    "spare",
    "pot",
    "llave",
    "arret",
    "lehrerin",
    "anniversaire",
    "password",
    "nephew",
    "phone",
    "geburtstag",
    "anna",
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("spair", "spare"),
        ("yave", "llave"),
        ("aret", "arret"),
        ("lererin", "lehrerin"),
        ("aniversaire", "anniversaire"),
        ("pasword", "password"),
        ("nefew", "nephew"),
        ("fone", "phone"),
        ("geburstag", "geburtstag"),
    ],
)
def test_a_misspelt_word_is_the_known_one_that_it_sounds_like(written: str, meant: str) -> None:
    assert nearest_word(written, KNOWN) == meant


@pytest.mark.parametrize(("written", "other"), [("lunch", "launch"), ("stick", "stock"), ("schule", "schale")])
def test_a_word_with_other_first_vowels_is_another_word(written: str, other: str) -> None:
    assert nearest_word(written, [other]) == ""


@pytest.mark.parametrize(("written", "meant"), [("lanuch", "launch"), ("calender", "calendar"), ("lnuch", "lunch")])
def test_swapped_and_later_vowels_are_slips(written: str, meant: str) -> None:
    assert nearest_word(written, [meant]) == meant


@pytest.mark.parametrize("written", ["pat", "stove", "emma", "spare7", "telephone", ""])
def test_another_word_is_none_of_the_known_ones(written: str) -> None:
    assert nearest_word(written, KNOWN) == ""


def test_many_words_sound_as_each_of_them_alone() -> None:
    words = [*KNOWN, "yes", "easy", "straße", "hh", "sees", "éclair", "class", "cc", "ice", "eyes"]
    alone = [sound_of(word) for word in words]
    spelling._sounds.clear()
    assert sounds_of(words) == alone
    assert (sound_of("sees"), sound_of("boxes"), sound_of("phones")) == ("sis", "box", "fon")
