"""A line that somebody types is told apart into what it is about and when that is."""

from __future__ import annotations

import pytest

from assistant.core.time_split import split_due, split_reminder


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("remind me to call mum tomorrow at 9", ("call mum", "tomorrow at 9")),
        ("call mum in 20 minutes", ("call mum", "in 20 minutes")),
        ("remind me tomorrow at 9 to call mum", ("call mum", "tomorrow at 9")),
        ("remind me every weekday at 8:30 to stretch", ("stretch", "every weekday at 8:30")),
        ("call mum about Monday meeting tomorrow at 9", ("call mum about Monday meeting", "tomorrow at 9")),
        ("pay rent on the 1st of each month", ("pay rent", "on the 1st of each month")),
        ("read the paper about the weekend", ("read the paper about the weekend", "")),
        ("call mum in 20 minutes and dad in 30", ("call mum in 20 minutes and dad in 30", "")),
        ("remind me to call mum", ("call mum", "")),
        ("tomorrow at 9 call Ada", ("call Ada", "tomorrow at 9")),
        ("every monday at 10: water plants", ("water plants", "every monday at 10")),
        ("monday meeting tomorrow at 9", ("monday meeting", "tomorrow at 9")),
        ("2 eggs for breakfast", ("2 eggs for breakfast", "")),
        ("tomorrow", ("tomorrow", "")),
        ("Mama anrufen morgen um 9", ("Mama anrufen", "morgen um 9")),
        ("morgen um 9 Mama anrufen", ("Mama anrufen", "morgen um 9")),
        ("arroser les plantes tous les lundis", ("arroser les plantes", "tous les lundis")),
        ("llamar a Ana mañana a las 9", ("llamar a Ana", "mañana a las 9")),
        ("read the paper about Monday", ("read the paper about Monday", "")),
    ],
)
def test_what_is_told_apart_from_when(text: str, parts: tuple[str, str]) -> None:
    assert split_reminder(text) == parts


@pytest.mark.parametrize(
    ("text", "what", "when"),
    [
        ("call mum tomorrow at half past eight", "call mum", "tomorrow at half past eight"),
        ("remind me tomorrow at quarter to nine to call mum", "call mum", "tomorrow at quarter to nine"),
        ("remind me on monday to go to 5 shops", "go to 5 shops", "on monday"),
    ],
)
def test_an_hour_in_words_is_told_apart_from_what_it_is_about(text: str, what: str, when: str) -> None:
    assert split_reminder(text) == (what, when)


@pytest.mark.parametrize(
    ("text", "what", "day"),
    [
        ("call Ann by Friday", "call Ann", "by Friday"),
        ("milk tomorrow", "milk", "tomorrow"),
        ("tomorrow: buy milk", "buy milk", "tomorrow"),
        ("taxes due 31 March", "taxes", "due 31 March"),
        ("Mama anrufen bis Freitag", "Mama anrufen", "bis Freitag"),
        ("acheter du pain demain", "acheter du pain", "demain"),
        ("comprar pan mañana", "comprar pan", "mañana"),
        ("oil change in 3 weeks", "oil change", "in 3 weeks"),
        ("finish the report tomorrow at 5pm", "finish the report", "tomorrow at 5pm"),
        ("pay rent on the 1st", "pay rent", "on the 1st"),
    ],
)
def test_the_day_of_a_to_do_is_told_apart(text: str, what: str, day: str) -> None:
    assert split_due(text) == (what, day)


@pytest.mark.parametrize(
    "text",
    [
        "buy milk",
        "read 1984",
        "plan Christmas",
        "watch Friday Night Lights",
        "book a table for Saturday",
        "learn the song of Sunday",
        "tidy up at 9",
        "water the plants every day",
        "tomorrow",
        "2 eggs",
    ],
)
def test_a_to_do_that_has_no_day_is_as_it_was_typed(text: str) -> None:
    assert split_due(text) == (text, "")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tea in 5m", ("tea", "in 5 min")),
        ("in 1h30m stretch", ("stretch", "in 1 h 30 min")),
        ("call Ann in 3d", ("call Ann", "in 3 days")),
        ("swim 50m", ("swim 50m", "")),
    ],
)
def test_times_are_read_as_timers_write_them(text: str, parts: tuple[str, str]) -> None:
    assert split_reminder(text) == parts
