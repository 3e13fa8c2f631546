"""The names in PERSONA.md: read, put in, and every other word left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.core.persona import Names, fit, names_in, with_names
from assistant.settings.settings import config_dir

SHIPPED = (config_dir() / "prompts" / "persona.md").read_text(encoding="utf-8")
WORDS = st.text(st.characters(categories=["L", "N"], include_characters="'\\$ -"), min_size=1, max_size=20)
NAME = WORDS.map(fit).filter(bool)


def test_the_shipped_persona_has_a_name_and_nothing_of_a_person() -> None:
    assert names_in(SHIPPED) == Names("Nocturne", "", "")


@given(assistant=NAME, person=NAME, manner=NAME)
def test_names_that_were_put_in_are_read_again_and_taken_out_again(assistant: str, person: str, manner: str) -> None:
    names = Names(assistant, person, manner)
    text = with_names(SHIPPED, names)
    assert names_in(text) == names
    assert with_names(text, names) == text
    assert with_names(text, Names("Nocturne")).strip() == SHIPPED.strip()


@pytest.mark.parametrize("text", ["", "Be brief.\n", "# Who you are\n\nA pirate.\n"])
def test_a_persona_in_other_words_keeps_them(text: str) -> None:
    made = with_names(text, Names("Hal", "Ada"))
    assert names_in(made) == Names("Hal", "Ada", "")
    assert text.strip() in made
    assert with_names(text, Names()) == text


def test_what_a_person_types_becomes_one_sentence_s_end() -> None:
    assert fit("  dry,\n and   patient. ") == "dry, and patient"
    assert len(fit("x" * 10_000)) == 300
