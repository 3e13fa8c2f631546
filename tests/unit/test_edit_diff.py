"""A change shown as lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.core.memories import UndoableEdit
from tools.profile import render_diff

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def shown(before: str, after: str, target: str = "file:MEMORY.md") -> str:
    return render_diff(UndoableEdit(target, "owner", "model", before, after, NOW))


def test_lines_that_went_and_came_stand_among_those_around_them() -> None:
    before, after = "a\nb\nc\nd\n", "a\nb\nC\nd\ne\n"
    assert shown(before, after) == "--- MEMORY.md\n+++ MEMORY.md\n@@ -1,4 +1,5 @@\n a\n b\n-c\n+C\n d\n+e"


@pytest.mark.parametrize(("before", "after"), [("", "a\n"), ("a\n", ""), ("a", "a\n"), ("a\r\n", "a\n")])
def test_what_changed_is_seen(before: str, after: str) -> None:
    assert shown(before, after).count("\n") >= 3


def test_nothing_changed_shows_nothing() -> None:
    assert shown("a", "a") == ""


def test_very_long_texts_are_told_by_their_number_of_lines() -> None:
    assert shown("a\n" * 5000, "b\n" * 6000) == "file:MEMORY.md: 5,000 lines became 6,000"


@given(st.text(max_size=80), st.text(max_size=80))
def test_every_line_that_went_or_came_is_shown(before: str, after: str) -> None:
    lines = shown(before, after).split("\n")
    gone = [line for line in before.split("\n") if line and line not in after.split("\n")]
    came = [line for line in after.split("\n") if line and line not in before.split("\n")]
    assert all(f"-{line}" in lines for line in gone) and all(f"+{line}" in lines for line in came)
