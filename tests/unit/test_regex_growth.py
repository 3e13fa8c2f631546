"""No regular expression of the program takes more than a time in proportion to the length of a text, however hostile.

The times are compared with each other, not with a clock: of a text twice as long, at most 2.5 times as long. Those that
are quadratic take four times as long, by processor time, and are measured again before they are told. Here each has a
part of its texts, as some have a thousand; `make attack` has all of them.
"""

from __future__ import annotations

import re

import pytest

from tests.support.regex_growth import GIVEN_LITTLE, measure
from tests.support.regex_sources import Expression, find_expressions

SHARDS = 2
MOST_TEXTS = 20


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_text_twice_as_long_takes_twice_the_time(shard: int) -> None:
    expressions = [one for one in find_expressions() if not one.place.startswith(GIVEN_LITTLE)]

    assert len(expressions) > 400
    grown = [growth for one in expressions[shard::SHARDS] if (growth := measure(one, MOST_TEXTS))]
    assert [str(growth) for growth in grown] == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s*\n+\s*", "finditer"),
        (r"\s+$", "finditer"),
        (r"[^.!?\n]*\?", "finditer"),
        (r"\b[\w-]*password\b", "finditer"),
        (r"\bfoo\b.*\bbar\b", "finditer"),
        (r"(?:[\w']+ ?){1,5}!", "match"),
        (r"\w+\s*\w+,", "fullmatch"),
        (r"(?:a|ab|b)*c", "match"),
    ],
)
def test_what_takes_longer_is_seen(pattern: str, method: str) -> None:
    assert measure(Expression(pattern, 0, "here", frozenset({method}))) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"(?<!\s)\s++$", "finditer"), (r"\w+\s+\w+,", "fullmatch"), (r"\bfoo\b.{0,40}\bbar\b", "finditer")],
)
def test_what_follows_the_length_is_let_be(pattern: str, method: str) -> None:
    assert measure(Expression(pattern, re.IGNORECASE, "here", frozenset({method}))) is None


def test_expressions_are_found_wherever_they_are_made() -> None:
    places = {expression.place for expression in find_expressions()}

    assert "assistant/core/text.py _MEASURE" in places  # at import
    assert "sleep/rules/sentences.py _MARK" in places
    assert "sleep/rules/pattern_files.py read_classifier" in places  # of a TOML file, by a function that caches
    assert "assistant/models/errors.py read_error_table" in places
    assert any(place.startswith("sleep/compaction/answer.py:") for place in places)  # within a function
