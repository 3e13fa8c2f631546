"""What people type at `assistant setup`, and what is made of it."""

from __future__ import annotations

import pytest

from assistant.cli.prompts import read_choice_answer
from assistant.cli.setup.answers import (
    read_address_answer,
    read_clock_answer,
    read_dollars_answer,
    read_manner_answer,
    read_model_answer,
    read_name_answer,
    read_zone_answer,
)
from assistant.cli.setup.model import ALIASES, CHOICES
from assistant.core.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "clock"),
    [
        ("4am", "04:00"),
        ("4:30", "04:30"),
        ("4 AM", "04:00"),
        ("4:30 a.m.", "04:30"),
        ("at 4", "04:00"),
        ("12am", "00:00"),
        ("12 pm", "12:00"),
        ("11pm", "23:00"),
        ("3.30", "03:30"),
        ("3h30", "03:30"),
        ("4 Uhr", "04:00"),
        ("4h", "04:00"),
        ("4 o'clock", "04:00"),
        ("4 in the morning", "04:00"),
        ("11 at night", "23:00"),
        ("12 at night", "00:00"),
        ("4 at night", "04:00"),
        ("around 9:30 in the evening", "21:30"),
        ("a las 4", "04:00"),
        ("midnight", "00:00"),
        ("never", ""),
        ("Off", ""),
        ("25:00", "25:00"),
        ("13pm", "13pm"),
        ("when I sleep", "when I sleep"),
    ],
)
def test_a_time_of_the_day_is_understood_as_people_write_it(typed: str, clock: str) -> None:
    assert read_clock_answer(typed) == clock


@pytest.mark.parametrize(
    ("typed", "dollars"),
    [
        ("$3", "3"),
        ("3", "3"),
        ("3 dollars", "3"),
        ("3$", "3"),
        ("$ 2.50", "2.50"),
        ("2,50", "2.50"),
        ("USD 3", "3"),
        ("US$3", "3"),
        ("3 usd", "3"),
        ("1 dollar", "1"),
        ("$1,000", "1000"),
        ("3 bucks", "3"),
        ("$3 a day", "3"),
        ("$40/month", "40"),
        ("no limit", "0"),
        ("-1", "-1"),
        ("a lot", "a lot"),
    ],
)
def test_an_amount_is_understood_as_people_write_it(typed: str, dollars: str) -> None:
    assert read_dollars_answer(typed) == dollars


@pytest.mark.parametrize("typed", ["3€", "3 euro", "£3", "3 CHF"])
def test_other_money_is_refused_with_what_to_type(typed: str) -> None:
    with pytest.raises(UsageError, match="number of dollars"):
        read_dollars_answer(typed)


@pytest.mark.parametrize(
    ("typed", "zone"),
    [
        ("Berlin", "Europe/Berlin"),
        ("europe/oslo", "Europe/Oslo"),
        ("new york", "America/New_York"),
        ("New York City", "America/New_York"),
        ("Oslo, Norway", "Europe/Oslo"),
        ("CET", "CET"),
        ("Munich", "Europe/Berlin"),
        ("München, Germany", "Europe/Berlin"),
        ("san francisco", "America/Los_Angeles"),
        ("Mexico City", "America/Mexico_City"),
        ("Genève", "Europe/Zurich"),
        ("utc", "UTC"),
        ("Atlantis", "Atlantis"),
    ],
)
def test_a_time_zone_is_found_by_its_city(typed: str, zone: str) -> None:
    assert read_zone_answer(typed) == zone


@pytest.mark.parametrize(
    "typed", ["Ada", "I'm Ada", "my name is Ada.", "Hi, I am Ada!", "call me Ada", "Ich heiße Ada"]
)
def test_a_name_is_kept_without_what_introduces_it(typed: str) -> None:
    assert read_name_answer(typed) == "Ada"


@pytest.mark.parametrize("typed", ["yes please", "Yes!", "no thanks", "No.", "none", "ja, bitte", "nein danke", "skip"])
def test_a_yes_or_no_is_no_name(typed: str) -> None:
    with pytest.raises(UsageError, match="Type a name"):
        read_name_answer(typed)


def test_a_manner_is_what_it_says_and_no_thanks_is_none() -> None:
    assert [read_manner_answer(it) for it in ("dry, no jokes", "no thanks", "Nein, danke.")] == [
        "dry, no jokes",
        "",
        "",
    ]
    with pytest.raises(UsageError, match="a few words"):
        read_manner_answer("yes please")


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("localhost:11434", "http://localhost:11434/v1"),
        ("localhost", "http://localhost/v1"),
        ("192.168.1.5:8080", "http://192.168.1.5:8080/v1"),
        ("my-box.lan:8080/api/v1", "http://my-box.lan:8080/api/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("https://api.example.org/openai", "https://api.example.org/openai"),
        ("claude", "claude"),
        ("", ""),
    ],
)
def test_an_address_is_understood_without_what_every_address_has(typed: str, address: str) -> None:
    assert read_address_answer(typed) == address


@pytest.mark.parametrize("typed", ["sk-proj-1234", "sk-ant-1234"])
def test_a_key_is_neither_an_address_nor_a_model_and_is_not_repeated(typed: str) -> None:
    for read in (read_address_answer, read_model_answer):
        with pytest.raises(UsageError, match="looks like a key") as refused:
            read(typed)
        assert typed not in str(refused.value)


def test_a_yes_is_no_model() -> None:
    assert read_model_answer("qwen3") == "qwen3" and read_model_answer("") == ""
    with pytest.raises(UsageError, match="name of a model"):
        read_model_answer("yep")


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("claude", "anthropic"),
        ("Claude", "anthropic"),
        ("ANTHROPIC", "anthropic"),
        ("claude please", "anthropic"),
        ("I use claude", "anthropic"),
        ("openai", "openai"),
        ("OpenAI", "openai"),
        ("open ai", "openai"),
        ("gpt", "openai"),
        ("chatgpt", "openai"),
        ("ollama", "local"),
        ("llama.cpp", "local"),
        ("lm studio", "local"),
        ("none", "offline"),
        ("off", "offline"),
        ("claude or gpt", None),
        ("gemini", None),
    ],
)
def test_a_provider_is_understood_by_the_names_that_people_know(typed: str, choice: str | None) -> None:
    assert read_choice_answer(typed, CHOICES, ALIASES) == choice


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("y", "yes"),
        ("yes please", "yes"),
        ("Yes!", "yes"),
        ("sure", "yes"),
        ("not now", "no"),
        ("n", "no"),
        ("eh", None),
    ],
)
def test_yes_and_no_are_understood_as_people_say_them(typed: str, choice: str | None) -> None:
    assert read_choice_answer(typed, ("yes", "no"), {}) == choice
