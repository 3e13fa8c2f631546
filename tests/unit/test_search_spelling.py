"""Misspelt words are read as known ones that sound alike or differ by one slip, and as nothing else."""

from __future__ import annotations

import pytest

from assistant.search.spelling import nearest_word

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


@pytest.mark.parametrize("written", ["pat", "stove", "emma", "spare7", "telephone", ""])
def test_another_word_is_none_of_the_known_ones(written: str) -> None:
    assert nearest_word(written, KNOWN) == ""
