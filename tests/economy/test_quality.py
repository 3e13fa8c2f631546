"""A small life, with economy and without: nothing is forgotten for it, nobody waits for it, and it is cheaper."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.bench.figures import percentile
from tests.economy.quality import KINDS, LifeQuality, a_life, find_losses, lines, live
from tests.study.flow import FLOW_KINDS


@pytest.mark.timeout(600)
def test_with_economy_as_much_is_remembered_as_without_and_nobody_waits_longer() -> None:
    life = a_life(130, 10, 2, seed=7)
    lives = {policy: live(life, policy, keep=3) for policy in ("off", "balanced")}
    off, balanced = lives.values()
    assert find_losses(lives) == []
    assert balanced.failed == 0 and balanced.compactions > 3
    assert balanced.usd < off.usd
    assert percentile(balanced.waits, 0.99) <= percentile(off.waits, 0.99)


def test_a_life_has_so_many_stories_of_each_kind_told_in_their_order_and_asked_for_at_its_end() -> None:
    life = a_life(300, 20, 6, seed=3)
    assert life == a_life(300, 20, 6, seed=3) != a_life(300, 20, 6, seed=4)
    stories = [fact for fact in life.facts if fact.kind in FLOW_KINDS]
    assert Counter(fact.kind for fact in stories) == dict.fromkeys(FLOW_KINDS, 6)
    for fact in stories:
        told = [turn for turn in life.turns if fact.value in turn.text + turn.reply]
        assert told[-1].kind == "question" and told[-1].number >= 300 and len(told) == 2
        assert fact.value not in fact.question
        if fact.stale:
            stale = [turn.number for turn in life.turns if fact.stale in turn.text + turn.reply]
            assert min(stale) != told[0].number, "what is out of date stands elsewhere by itself"
    assert all(wish.value in life.turns[wish.since].text for wish in life.wishes)


def test_where_economy_answers_less_is_said() -> None:
    def quality(right: int) -> LifeQuality:
        counts = dict.fromkeys(KINDS, right)
        return LifeQuality(counts, dict.fromkeys(KINDS, 4), (right, 4), 1.0, (2.0, 4.0), 3, 0, ())

    lives = {"off": quality(3), "balanced": quality(3), "thrifty": quality(2)}
    assert len(find_losses(lives)) == len(KINDS) and all(loss.startswith("thrifty, ") for loss in find_losses(lives))
    assert "2 of 4" in "\n".join(lines(lives))
