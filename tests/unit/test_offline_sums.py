"""Sums that offline mode does, and what looks like one and is none."""

from __future__ import annotations

import pytest

from assistant.models.offline.sums import answer_sum
from tests.unit.test_offline_utterances import first_reply


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("what's 12*7", "12 × 7 = 84"),
        ("What is 12 x 7?", "12 × 7 = 84"),
        ("12*7", "12 × 7 = 84"),
        ("12 + 7 =", "12 + 7 = 19"),
        ("what is 15% of 80", "15% of 80 = 12"),
        ("15 percent of 80", "15% of 80 = 12"),
        ("how much is 19.99 plus 5", "19.99 + 5 = 24.99"),
        ("what's 2 + 3 * 4 - 1", "2 + 3 × 4 - 1 = 13"),
        ("what is 1,250 minus 50", "1250 - 50 = 1200"),
        ("what is 10 / 4", "10 ÷ 4 = 2.5"),
        ("what is 10 divided by 3", "10 ÷ 3 ≈ 3.33333333333"),
        ("what is 7 / 0", "7 ÷ 0 has no result: nothing can be divided by zero."),
        ("Was ist 12 mal 7?", "12 × 7 = 84"),
        ("Wie viel sind 15 Prozent von 80?", "15% of 80 = 12"),
        ("Wie viel ist 1.250 geteilt durch 2,5", "1250 ÷ 2.5 = 500"),
        ("Wie viel ist 19,99 plus 5?", "19.99 + 5 = 24.99"),
        ("Combien font 12 fois 7 ?", "12 × 7 = 84"),
        ("Combien font 15 % de 80 ?", "15% of 80 = 12"),
        ("19,99 plus 5, ça fait combien ?", "19.99 + 5 = 24.99"),
        ("¿Cuánto es 12 por 7?", "12 × 7 = 84"),
        ("¿Cuánto es el 15 % de 80?", "15% of 80 = 12"),
        ("¿Cuánto es 19,99 más 5?", "19.99 + 5 = 24.99"),
    ],
)
async def test_a_sum_is_done(asked: str, answer: str) -> None:
    assert answer_sum(asked) == answer
    assert (await first_reply(asked)).content.startswith(answer)


@pytest.mark.parametrize(
    "text",
    [
        *("24/7", "10-12", "3/4", "call 555-1234", "the code is 12*7", "milk and 2 eggs", "what is 12", "on 24/12"),
        *("what is 20% of my salary", "2 + 2 makes four", "9" * 300, "what is 1e9*2", "remind me at 12:30", "", "12:7"),
    ],
)
def test_what_is_no_sum_is_left_to_be_read_otherwise(text: str) -> None:
    assert answer_sum(text) == ""


def test_huge_numbers_end() -> None:
    assert answer_sum("what is " + "*".join(["999999999999"] * 10)) == ""
