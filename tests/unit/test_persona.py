"""The names in PERSONA.md: read, put in, and every other word left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.settings.prompts import PersonaNames, clean_persona_name, parse_persona_names, replace_persona_names
from assistant.settings.settings import shipped_config_dir

SHIPPED = (shipped_config_dir() / "prompts" / "persona.md").read_text(encoding="utf-8")
WORDS = st.text(st.characters(categories=["L", "N"], include_characters="'\\$ -"), min_size=1, max_size=20)
NAME = WORDS.map(clean_persona_name).filter(bool)


def test_the_shipped_persona_has_a_name_and_nothing_of_a_person() -> None:
    assert parse_persona_names(SHIPPED) == PersonaNames("Nocturne", "", "")


@given(assistant=NAME, person=NAME, manner=NAME)
def test_names_that_were_put_in_are_read_again_and_taken_out_again(assistant: str, person: str, manner: str) -> None:
    names = PersonaNames(assistant, person, manner)
    text = replace_persona_names(SHIPPED, names)
    assert parse_persona_names(text) == names
    assert replace_persona_names(text, names) == text
    assert replace_persona_names(text, PersonaNames("Nocturne")).strip() == SHIPPED.strip()


@pytest.mark.parametrize("text", ["", "Be brief.\n", "# Who you are\n\nA pirate.\n"])
def test_a_persona_in_other_words_keeps_them(text: str) -> None:
    made = replace_persona_names(text, PersonaNames("Hal", "Ada"))
    assert parse_persona_names(made) == PersonaNames("Hal", "Ada", "")
    assert text.strip() in made
    assert replace_persona_names(text, PersonaNames()) == text


def test_what_a_person_types_becomes_one_sentence_s_end() -> None:
    assert clean_persona_name("  dry,\n and   patient. ") == "dry, and patient"
    assert len(clean_persona_name("x" * 10_000)) == 300
