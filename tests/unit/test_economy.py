"""Compaction by economy: when it pays, to which size, and how long a prompt is cached. Against sums by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assistant.context.economy import (
    UNKNOWN_PRICES,
    CallForecast,
    CallPrices,
    ContextState,
    EconomyMode,
    choose_cache_lifetime,
    decide,
    economic_size,
)
from assistant.context.rhythm import Rhythm, learn_rhythm
from assistant.core.model_api import CacheLifetime

# Sonnet answers, Haiku writes summaries; dollars a token.
PRICES = CallPrices(3e-6, 15e-6, 0.3e-6, 3.75e-6, 0.1e-6, 0.5e-6)
FORECAST = CallForecast(calls=24, cold_share=1 / 6, added=300)
STATE = ContextState(prompt=20_000, frame=3_000, recent=3_000, window=160_000, target=0.30, summary=700)
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_cold_it_pays_at_the_first_call_and_what_is_expected_is_what_a_day_carries_less_its_cost() -> None:
    decision = decide(STATE, PRICES, FORECAST, "balanced", is_cold=True)
    assert decision.step == "compact"
    assert decision.removed == 20_000 - int(0.30 * decision.size)
    cost = 0.1e-6 * decision.removed + 0.5e-6 * 700
    carried = (0.3e-6 + (3.75e-6 - 0.3e-6) / 6) * decision.removed * 24
    assert decision.cost == pytest.approx(cost)
    assert decision.saving == pytest.approx(carried - cost)


def test_cold_it_waits_where_the_summary_costs_more_than_the_next_call_saves() -> None:
    # The answering model writes its own summaries: D(wP - p) > os is D > 20 s, here 14,000 tokens.
    dear = replace(PRICES, summary_input=3e-6, summary_output=15e-6)
    kept = int(0.30 * economic_size(STATE, "balanced"))
    few = replace(STATE, prompt=kept + 13_000)
    assert decide(few, dear, FORECAST, "balanced", is_cold=True).step == "wait"
    many = replace(STATE, prompt=kept + 16_000)
    assert decide(many, dear, FORECAST, "balanced", is_cold=True).step == "compact"


def test_warm_it_only_prepares_unless_more_calls_are_expected_than_the_break_even() -> None:
    assert decide(STATE, PRICES, FORECAST, "balanced", is_cold=False).step == "prepare"
    # D = 13,000: (pD + os + (w - r)PS) / (rPD) is 6 calls; a burst of ten is longer.
    assert decide(STATE, PRICES, replace(FORECAST, cold_share=1 / 11), "balanced", is_cold=False).step == "compact"
    assert decide(STATE, PRICES, replace(FORECAST, cold_share=1 / 4), "balanced", is_cold=False).step == "prepare"


def test_few_tokens_are_left_alone_however_cheap_their_summary_is() -> None:
    kept = int(0.30 * economic_size(STATE, "balanced"))
    for prompt in (kept - 1, kept + 1_000):
        assert decide(replace(STATE, prompt=prompt), PRICES, FORECAST, "balanced", is_cold=True).step == "wait"


def test_the_newest_messages_have_room_whole_and_thrifty_has_room_for_half_of_them() -> None:
    heavy = replace(STATE, recent=12_000)
    assert 0.30 * economic_size(heavy, "balanced") >= 3_000 + 12_000
    assert economic_size(heavy, "thrifty") < economic_size(heavy, "balanced")
    assert economic_size(replace(heavy, recent=60_000), "balanced") == 160_000


@pytest.mark.parametrize("is_cold", [True, False])
def test_off_and_a_window_that_is_small_already_change_nothing(is_cold: bool) -> None:
    assert decide(STATE, PRICES, FORECAST, "off", is_cold=is_cold).step == "wait"
    small = replace(STATE, window=16_000, prompt=12_000)
    assert decide(small, PRICES, FORECAST, "balanced", is_cold=is_cold).step == "wait"


@pytest.mark.parametrize("mode", ["balanced", "thrifty"])
def test_without_prices_the_same_is_decided_by_tokens(mode: EconomyMode) -> None:
    full = replace(STATE, prompt=60_000)
    assert decide(full, UNKNOWN_PRICES, FORECAST, mode, is_cold=True).step == "compact"


# --------------------------------------------------------------------------------------------------------------- rhythm


def test_a_rhythm_is_the_prior_until_something_was_seen_and_then_what_was_seen() -> None:
    assert Rhythm().share_longer(300) == pytest.approx(0.2, abs=0.01)
    assert Rhythm().share_longer(3600) == pytest.approx(0.1, abs=0.01)
    seen = Rhythm(tuple((9, 30.0) for _ in range(400)), 10)
    assert seen.share_longer(300) < 0.01
    assert seen.calls_a_day == pytest.approx((400 + 40) / 12)


def test_hours_differ_where_the_person_does() -> None:
    morning, evening = [(9, 7200.0)] * 40, [(21, 40.0)] * 40
    rhythm = Rhythm((*morning, *evening), 14)
    assert rhythm.share_longer(300, hour=9) > 0.8
    assert rhythm.share_longer(300, hour=21) < 0.2
    assert 0.4 < rhythm.share_longer(300, hour=3) < 0.6


def test_a_clock_that_jumps_leaves_no_gap_and_no_share_outside_of_0_and_1() -> None:
    times = [NOW - timedelta(hours=3), NOW + timedelta(days=400), NOW - timedelta(hours=5), NOW - timedelta(hours=1)]
    rhythm = learn_rhythm(times, UTC, NOW)
    assert all(seconds >= 0 for _, seconds in rhythm.gaps)
    for idle in (0, 299, 300, 1e9):
        assert 0 <= rhythm.share_longer(300, idle=idle) <= 1


def test_what_is_older_than_14_days_says_nothing() -> None:
    old = [NOW - timedelta(days=15, minutes=n) for n in range(50, 0, -1)]
    assert learn_rhythm(old, UTC, NOW).gaps == ()


HOUR_PRICES: dict[CacheLifetime, CallPrices] = {"5m": PRICES, "1h": replace(PRICES, cache_write=6e-6)}


@pytest.mark.parametrize(
    ("gap", "lifetime"),
    [(40.0, "5m"), (900.0, "1h"), (4 * 3600.0, "5m")],
    ids=["one sitting", "every quarter of an hour", "hours apart"],
)
def test_an_hour_is_chosen_where_the_gaps_make_it_cheaper(gap: float, lifetime: CacheLifetime) -> None:
    rhythm = Rhythm(tuple((9, gap) for _ in range(200)), 14)
    assert choose_cache_lifetime(rhythm, HOUR_PRICES, 8_000, 300) == lifetime


def test_nobody_who_is_not_known_pays_for_an_hour() -> None:
    assert choose_cache_lifetime(Rhythm(), HOUR_PRICES, 8_000, 300) == "5m"


def test_a_person_whose_rhythm_changes_is_followed_within_14_days() -> None:
    """Four times a day until two weeks ago; since then through the working day, every quarter of an hour."""
    before = [NOW - timedelta(days=28) + timedelta(hours=6 * n) for n in range(56)]
    since = [NOW - timedelta(days=14 - day, minutes=15 * n) for day in range(14) for n in range(32, 0, -1)]
    changed_at = NOW - timedelta(days=14)
    followed = []
    for day in (0, 14):
        now = changed_at + timedelta(days=day)
        rhythm = learn_rhythm([at for at in (*before, *since) if at <= now], UTC, now)
        followed.append((choose_cache_lifetime(rhythm, HOUR_PRICES, 8_000, 300), rhythm.share_longer(3600) > 0.5))
    assert followed == [("5m", True), ("1h", False)]
    assert learn_rhythm(since, UTC, NOW).calls_a_day > 4 * learn_rhythm(before, UTC, changed_at).calls_a_day
