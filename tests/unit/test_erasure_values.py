"""Which values a text carries, and that each is known again in the forms that other texts give it."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from assistant.core.erasure_phrases import PhraseMatcher, tells_of
from assistant.core.erasure_values import find_days, find_values, is_written_by_us, value_kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My wifi password is Hunter2-blue", "Hunter2-blue"),
        ("The passphrase is correct horse battery staple.", "correct horse battery staple"),
        ("Mein WLAN-Passwort ist zimtstern und die PIN ist 4711.", "zimtstern"),
        ("Mein WLAN-Passwort ist zimtstern und die PIN ist 4711.", "4711"),
        ("Le mot de passe est azur.", "azur"),
        ("La contraseña es almendra, no la olvides", "almendra"),
        ("Ma carte : 4111 1111 1111 1111, exp 03/29", "4111 1111 1111 1111"),
        ("IBAN DE89 3704 0044 0532 0130 00 bitte", "DE89 3704 0044 0532 0130 00"),
        ("Llámame al +34 612 345 678.", "+34 612 345 678"),
        ("write to ana.ruiz@correo.es!", "ana.ruiz@correo.es"),
        ("J'habite 12 rue des Lilas, 75011 Paris", "12 rue des Lilas"),
        ("Ich wohne in der Lindenstraße 12", "Lindenstraße 12"),
        ("born on 14 March 1987", "14 March 1987"),
        ("Nací el 3 de mayo de 1990.", "3 de mayo de 1990"),
        ("my sister Marguerite Duval called", "Marguerite Duval"),
        ("Dr. Molnar fixed it", "Molnar"),
        ("Das Motto: „Grüner Hering fliegt“.", "Grüner Hering fliegt"),
        ("see https://intra.example.org/x/y?z=1", "https://intra.example.org/x/y?z=1"),
        ("it is in /srv/data/keys.txt", "/srv/data/keys.txt"),
        ("order ZX-4410-Q7", "ZX-4410-Q7"),
    ],
)
def test_the_values_of_a_text_are_found(text: str, value: str) -> None:
    assert value in find_values(text)[0]


@pytest.mark.parametrize("text", ["I like it at 10:30.", "On Monday, the 20th of March", "yes, 3 or 4 of them", "4am"])
def test_what_everybody_says_is_no_value(text: str) -> None:
    assert find_values(text)[0] == []


def test_nouns_of_a_language_that_writes_all_with_a_capital_stand_for_nothing_by_themselves() -> None:
    own, weak = find_values("Ich habe mir das Fenster und die Brücke angesehen.")
    assert own == []
    assert {"Fenster", "Brücke"} <= set(weak)


@pytest.mark.parametrize("other", ["4111111111111111", "4111-1111-1111-1111", "4111\u00a01111\n1111 1111"])
def test_a_number_is_known_with_other_signs_between_its_digits(other: str) -> None:
    matcher = PhraseMatcher((), ("4111 1111 1111 1111",))
    assert matcher.matches(f"card {other}.")
    assert not matcher.matches("card 4111 1111 1111 1112")


@pytest.mark.parametrize(
    ("told", "other"),
    [
        ("+49 151 2345 6789", "0151 23456789"),
        ("0151 2345 6789", "+49 (0)151 234-567-89"),
        ("0049 151 23456789", "0151/23456789"),
        ("+33 6 12 34 56 78", "06.12.34.56.78"),
        ("612 345 678", "+34 612345678"),
        ("(212) 555-0100", "+1 212 555 0100"),
        ("4711 0815", "47110815"),
        ("47110815", "47 11 08 15"),
        ("47 11", "4711"),
        ("123-456", "123 456"),
    ],
)
def test_a_number_is_known_in_its_other_spellings(told: str, other: str) -> None:
    matcher = PhraseMatcher((), (told,))
    assert matcher.matches(f"It is {other}, they say.")
    assert matcher.match_ends(f'{{"content":"so:\\n{other}"}}'.encode()), "at the beginning of a line, too"
    assert not matcher.matches("It is 0151 23456780, +34 612 345 679, 47120815 or 94711.")


def test_digits_in_short_groups_are_met_nowhere_by_chance() -> None:
    matcher = PhraseMatcher((), ("47 11", "123-456"))
    assert not matcher.match_ends(b'{"ts":"2026-11-20T10:47:11.1234567","seq":94711,"at":1123456}')


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("born on 13 June 1987", "1987-06-13"),
        ("on June 13th, 2026", "2026-06-13"),
        ("am 3. M\u00e4rz 1987", "1987-03-03"),
        ("le 1er ao\u00fbt 2001", "2001-08-01"),
        ("el 3 de mayo de 1990", "1990-05-03"),
    ],
)
def test_a_day_that_is_written_out_is_also_known_as_a_machine_writes_it(text: str, day: str) -> None:
    assert find_days(text) == [day]


def test_what_is_no_day_of_the_calendar_is_none() -> None:
    assert find_days("31 February 2026, 12 Angry 1957, room 13 1987") == []


def test_a_short_value_is_a_word_of_its_own() -> None:
    matcher = PhraseMatcher((), ("4711", "Anna"))
    assert matcher.matches("it is 4711.") and matcher.matches("ANNA came")
    assert not matcher.matches("it is 24711") and not matcher.matches("Annapolis")
    assert matcher.match_ends(b'{"content":"It is 4711."}')
    assert matcher.match_ends(b'{"content":"4711"}') and matcher.match_ends(b'{"content":"so:\\nAnna"}')
    assert not matcher.match_ends(b'{"seq":4711,"ts":"2026-11-20T10:00:00.4711"}')


@pytest.mark.parametrize("value", ["Hunter2-blue", "ana.ruiz@correo.es", "Grüner Hering", "/srv/data/keys.txt"])
def test_escapes_of_json_and_of_addresses_hide_no_value(value: str) -> None:
    matcher = PhraseMatcher((), (value,))
    for form in (quote(value, safe=""), quote(value), json.dumps(value), json.dumps(json.dumps(value)), value.upper()):
        assert matcher.match_ends(f"x{form}y".encode()), form


def test_days_of_the_years_that_our_own_texts_speak_of_are_not_looked_for() -> None:
    assert is_written_by_us("2026-11-20", range(2025, 2029)) and is_written_by_us("2027", range(2025, 2029))
    assert is_written_by_us("10 2026-11-20 09", range(2025, 2029))
    assert not is_written_by_us("2026 1234 5678", range(2025, 2029))
    assert not is_written_by_us("1987", range(2025, 2029)) and not is_written_by_us("4711", range(2025, 2029))


def test_kinds_of_values_have_names() -> None:
    values = ("4111 1111", "Hunter2-blue", "Molnar", "Grüner Hering")
    assert [value_kind(value) for value in values] == ["number", "identifier", "name", "phrase"]


def test_the_names_of_fields_in_json_are_no_values() -> None:
    distinctive, _ = find_values('It says {"tool": "Hunter2-blue", "arguments": {"text": 1}}')
    assert "Hunter2-blue" in distinctive and not {"tool", "arguments", "text"} & set(distinctive)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("Marguerite moved to Lindenweg 12 in spring.", True),
        ("Marguerite wohnt im Lindenweg 12.", True),
        ("She has lived with Marguerite for years.", True),
        ("My favourite colour is blue.", True),  # nothing that could tell it apart
        ("Marguerite's door opens with 48213.", False),
        ("My uncle Bertrand keeps bees.", False),
    ],
)
def test_which_of_merged_entries_a_memory_tells_of(entry: str, told: bool) -> None:
    assert tells_of(entry, "My sister Marguerite lives at Lindenweg 12.") is told
