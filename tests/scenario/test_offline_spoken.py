"""Offline mode does what people say in four languages, or says plainly that it can't: hundreds of utterances, each in a
home of its own, against what must hold in the stores afterwards (`tests/data/utterances`)."""

from __future__ import annotations

import pytest

from assistant.models.offline.carry_out import readers_by_intent
from assistant.models.offline.intents import read_weights
from tests.support.utterances import TABLES, play_table, read_table

# What the patterns and weights were made with. `python -m tests.support.utterances FILE` plays a table whole.
LEAST_SHARES = {
    "seen.jsonl": 0.95,
    "remarks.jsonl": 0.92,
    "variants.jsonl": 0.95,
    "constructions.jsonl": 0.9,
    "everyday.jsonl": 0.94,
    "colloquial.jsonl": 0.92,
    "daily_life.jsonl": 0.93,
    "developed.jsonl": 0.88,
    "fresh.jsonl": 0.92,
    "parallel.jsonl": 0.9,
    "plain_households.jsonl": 0.93,
    "regional_speech.jsonl": 0.95,
    "reminder_changes.jsonl": 0.95,
    "neighbours.jsonl": 0.95,
    "kitchen_table.jsonl": 0.93,
    "long_queue.jsonl": 0.93,
    "turns_of_phrase.jsonl": 0.95,
    "households.jsonl": 0.85,
    "many_voices.jsonl": 0.9,
    "mixed_households.jsonl": 0.85,
    "ordinary_days.jsonl": 0.95,
    "other_words.jsonl": 0.95,
    "changed_minds.jsonl": 0.95,
    "siblings.jsonl": 0.95,
    "second_siblings.jsonl": 0.95,
    "terse_households.jsonl": 0.95,
    "busy_weeks.jsonl": 0.95,
    "late_changes.jsonl": 0.9,
    "known_events.jsonl": 1.0,
    "close_siblings.jsonl": 0.95,
    "long_voices.jsonl": 0.9,
    "asides.jsonl": 0.85,
    "other_homes.jsonl": 0.9,
    "later_homes.jsonl": 0.8,
}
# Every so many lines, of each table some ten: each has a home and an app of its own, which cost 80 ms of CPU.
STEPS = {
    "changed_minds.jsonl": 48,
    "constructions.jsonl": 68,
    "colloquial.jsonl": 56,
    "daily_life.jsonl": 6,
    "developed.jsonl": 144,
    "everyday.jsonl": 18,
    "fresh.jsonl": 42,
    "households.jsonl": 16,
    "many_voices.jsonl": 52,
    "mixed_households.jsonl": 12,
    "ordinary_days.jsonl": 24,
    "other_words.jsonl": 58,
    "parallel.jsonl": 30,
    "plain_households.jsonl": 69,
    "regional_speech.jsonl": 40,
    "reminder_changes.jsonl": 9,
    "neighbours.jsonl": 30,
    "kitchen_table.jsonl": 16,
    "long_queue.jsonl": 6,
    "remarks.jsonl": 48,
    "seen.jsonl": 24,
    "siblings.jsonl": 31,
    "second_siblings.jsonl": 26,
    "terse_households.jsonl": 20,
    "busy_weeks.jsonl": 18,
    "late_changes.jsonl": 9,
    "known_events.jsonl": 2,
    "asides.jsonl": 28,
    "other_homes.jsonl": 12,
    "later_homes.jsonl": 6,
    "close_siblings.jsonl": 40,
    "long_voices.jsonl": 16,
    "turns_of_phrase.jsonl": 19,
    "variants.jsonl": 8,
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("table", sorted(LEAST_SHARES))
async def test_what_people_say_is_done_or_refused_plainly(table: str) -> None:
    result = await play_table(TABLES / table, step=STEPS.get(table, 1))
    print(f"{table}: {result.shares}", *result.wrong, sep="\n")
    assert result.noted == ()
    assert result.right >= LEAST_SHARES[table] * result.rows, result.shares


def test_every_table_has_its_least_share() -> None:
    assert {path.name for path in TABLES.glob("*.jsonl")} == set(LEAST_SHARES)


def test_every_intent_that_a_table_names_is_carried_out() -> None:
    """Weights that are fitted to another one would stop the answer of every sentence that is likeliest of it."""
    named = {row["intent"] for path in TABLES.glob("*.jsonl") for row in read_table(path) if "intent" in row}
    assert named - {"statement", "question", "undo"} <= set(readers_by_intent())


def test_the_shipped_weights_are_of_the_intents_that_are_carried_out() -> None:
    assert {intent for intent in read_weights().intents if intent not in ("statement", "question")} == set(
        readers_by_intent()
    )
