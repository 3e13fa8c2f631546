"""The simulated year: the policies of the runtime, held against each other."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

from tests.economy.year import LENGTHS, Person, compare, lines, messages_of

DAYS = 60


def test_economy_is_cheaper_than_the_thresholds_and_than_a_sliding_window_for_everybody() -> None:
    years = compare("claude-sonnet-4-6", seed=5, days=DAYS)
    for person in get_args(Person):
        off, balanced, thrifty, sliding = (
            years[person, policy].usd for policy in ("off", "balanced", "thrifty", "sliding window")
        )
        assert thrifty < balanced < sliding < off and balanced < off / 2
        # Summaries are a small part of what they save.
        assert years[person, "balanced"].summaries < 0.1 * balanced
    shown = "\n".join(lines(years, 2))
    assert shown.count(" a month ") == 12 and "█" in shown


def test_everything_follows_from_the_seed_and_messages_are_as_long_as_people_write() -> None:
    said = messages_of("evening talker", 3)
    assert said == messages_of("evening talker", 3) != messages_of("evening talker", 4)
    lengths = sorted(tokens for _, tokens, _ in said)
    assert abs(lengths[len(lengths) // 2] - LENGTHS[10] / 4) < 3 and lengths[-1] <= LENGTHS[-1] // 4 + 1
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(said))
