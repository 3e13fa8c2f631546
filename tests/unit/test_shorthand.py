"""What people type for short is read as what it stands for."""

from __future__ import annotations

import pytest

from sleep.rules.extract_statements import extract_statements
from sleep.rules.sentences import expand_shorthand


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("im w/ u til 5", "i'm with you until 5"),
        ("dont n cant", "don't and can't"),
        ("its a cat", "it's a cat"),
        ("its tail", "its tail"),
        ("were moving in may", "we're moving in may"),
        ("they were moving", "they were moving"),
        ("R2 and n+1 and x.r", "R2 and n+1 and x.r"),
        ("bday's the 9th", "birthday's the 9th"),
        ("they’re in", "they're in"),
    ],
)
def test_what_is_typed_for_short_is_spelled_out(typed: str, read: str) -> None:
    assert expand_shorthand(typed) == read


@pytest.mark.parametrize(
    "told",
    [
        "im a vet n i work nights",
        "my sis n her bf live in ghent",
        "bday's 9 nov if u ever need it",
        "dont ping me after 6 unless prod is on fire",
        "havent been to the dentist in 3 yrs",
    ],
)
def test_what_is_told_for_short_is_kept_as_it_was_typed(told: str) -> None:
    assert [found.content for found in extract_statements(told)] == [told]


@pytest.mark.parametrize("asked", ["whats the diff between ssd n hdd", "can u fix this pls", "thx u r the best"])
def test_f29_what_is_asked_for_short_is_not_learned(asked: str) -> None:
    assert extract_statements(asked) == []
