"""What time a question is about."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.context.question import find_past_period, names_date_within

OSLO = ZoneInfo("Europe/Oslo")
# A Saturday.
NOW = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "first", "behind"),
    [
        ("Where did I live in March?", (2026, 3, 1), (2026, 4, 1)),
        ("Where did I live in December?", (2025, 12, 1), (2026, 1, 1)),
        ("What did I read last November?", (2025, 11, 1), (2025, 12, 1)),
        ("Who did I meet in early May?", (2026, 5, 1), (2026, 5, 12)),
        ("What did I buy in late February 2024?", (2024, 2, 19), (2024, 3, 1)),
        ("What did I do last spring?", (2026, 3, 1), (2026, 6, 1)),
        ("Where was I last winter?", (2025, 12, 1), (2026, 3, 1)),
        ("Where did we go in the summer of 2024?", (2024, 6, 1), (2024, 9, 1)),
        ("What did we talk about yesterday?", (2026, 11, 20), (2026, 11, 21)),
        ("What did I promise last night?", (2026, 11, 20), (2026, 11, 22)),
        ("What did I decide last week?", (2026, 11, 9), (2026, 11, 16)),
        ("What did I buy last weekend?", (2026, 11, 14), (2026, 11, 16)),
        ("What happened on Tuesday?", (2026, 11, 17), (2026, 11, 18)),
        ("What did I say three days ago?", (2026, 11, 18), (2026, 11, 19)),
        ("What did I say about the car two weeks ago?", (2026, 11, 3), (2026, 11, 12)),
        ("What have I learned in the last few days?", (2026, 11, 18), (2026, 11, 22)),
        ("What was on the 14th of March?", (2026, 3, 14), (2026, 3, 15)),
        ("What did I tell you on March 14, 2025?", (2025, 3, 14), (2025, 3, 15)),
        ("What did I note on 2026-03-14?", (2026, 3, 14), (2026, 3, 15)),
        ("Where did I work in 2024?", (2024, 1, 1), (2025, 1, 1)),
        ("What did I eat since June?", (2026, 6, 1), (2026, 11, 22)),
    ],
)
def test_time_words_are_a_time_of_the_calendar(
    question: str, first: tuple[int, int, int], behind: tuple[int, int, int]
) -> None:
    found = find_past_period(question, NOW, OSLO)
    assert found is not None
    assert (found.after.date(), found.before.date()) == (date(*first), date(*behind))
    assert found.matched_words in question and found.after.tzinfo is OSLO


@pytest.mark.parametrize(
    "question",
    [
        "What will I do in March?",
        "What do I have on Friday?",
        "When is the boiler due in May?",
        "What is planned for next week?",
        "May I ask you something?",
        "Can you march in step?",
        "What is my sister called?",
        "What did I say on the 31st of February?",
    ],
)
def test_a_time_to_come_or_none_is_none(question: str) -> None:
    assert find_past_period(question, NOW, OSLO) is None


def test_a_day_is_that_of_the_person() -> None:
    late = datetime(2026, 3, 9, 23, 30, tzinfo=UTC)
    found = find_past_period("What did I say yesterday?", late, OSLO)
    assert found is not None and found.after == datetime(2026, 3, 9, tzinfo=OSLO)


@given(st.text(max_size=60), st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))
def test_whatever_is_asked_a_period_has_begun_and_has_an_end(text: str, now: datetime) -> None:
    for question in (text, f"what did I say {text} weeks ago", f"what was in {text}", f"on {text} March, did I"):
        found = find_past_period(question, now.replace(tzinfo=UTC), OSLO)
        assert found is None or (
            found.after < found.before and found.after <= now.replace(tzinfo=UTC) + timedelta(days=1)
        )


def test_a_text_names_days_by_their_year_alone() -> None:
    march, april = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    assert names_date_within("We moved (14 March 2026).", march, april)
    assert names_date_within("Signed in March 2026.", march, april) and names_date_within(
        "Signed 2026-03-30", march, april
    )
    assert not names_date_within("We moved in March.", march, april)
    assert not names_date_within("We moved (14 May 2026).", march, april)
    assert names_date_within("We moved (14 May 2026).", march, None) and not names_date_within(
        "31 February 2026", None, None
    )
