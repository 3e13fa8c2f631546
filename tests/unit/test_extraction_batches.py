"""Where one call's messages end: with a turn, and not between a question and its answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assistant.core.records import LogRecord
from sleep.cycle.extract import Extractor
from tests.support.scripted import ScriptedModel
from tests.unit.test_extraction import said


def talk(*turns: Sequence[str], with_turns: bool = True) -> list[LogRecord]:
    """Turns of a user's message and what follows it; a text that begins with "tool" is a result."""
    found: list[LogRecord] = []
    for number, texts in enumerate(turns):
        for place, text in enumerate(texts):
            role = "user" if place == 0 else "tool" if text.startswith("tool") else "assistant"
            turn = f"t{number}" if with_turns else None
            found.append(said(len(found) + 1, text, role, turn=turn))
    return found


async def taken(records: Sequence[LogRecord], most: int, batch_tokens: int = 8_000) -> int:
    reader = Extractor(lambda: ScriptedModel(window=100_000), "Write.", batch_tokens=batch_tokens)
    return len(await reader.next_batch(records, most))


FOUR = ("I own a boat.", "Nice."), ("I own a car.", "Nice."), ("I own a bike.", "Nice."), ("I own a kite.", "Nice.")


@pytest.mark.parametrize("with_turns", [True, False])
@pytest.mark.parametrize(("most", "ends"), [(1, 1), (2, 2), (3, 2), (5, 4), (6, 6), (8, 8), (60, 8)])
async def test_a_batch_ends_with_a_turn_where_others_follow(most: int, ends: int, with_turns: bool) -> None:
    assert await taken(talk(*FOUR, with_turns=with_turns), most) == ends


async def test_a_batch_that_is_cut_by_its_tokens_ends_with_a_turn_too() -> None:
    whole = [await taken(talk(*FOUR), 60, tokens) for tokens in range(40, 200)]
    assert set(whole) <= {1, 2, 4, 6, 8} and {4, 6} <= set(whole)


async def test_what_the_assistant_asks_is_read_with_the_answer() -> None:
    asked = talk(*FOUR[:2], ("I moved.", "Where do you live now?"), ("Bergen.", "Nice."))
    assert await taken(asked, 7) == 4
    assert await taken(asked, 6) == 4
    assert await taken(asked, 8) == 8


async def test_a_question_that_would_leave_most_for_later_parts_a_batch_all_the_same() -> None:
    asked = talk(FOUR[0], *[("I moved.", "Where do you live now?")] * 5)
    assert await taken(asked, 9) == 8
    assert await taken(asked, 4) == 2


async def test_a_turn_longer_than_a_batch_is_cut_where_it_has_to_be() -> None:
    assert await taken(talk(("Look it up.", *(f"tool {number}" for number in range(9)), "Done.")), 5) == 5


async def test_nothing_that_is_the_end_of_the_talk_is_left_for_later() -> None:
    assert await taken(talk(*FOUR)[:3], 60) == 3
