"""What each strategy of a compaction does without a model, and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assistant.core.messages import Message
from sleep.compaction.values import CompactionPolicy
from tests.support.conversation_strategies import apply_plan
from tests.unit.test_fallback import says, user, uses
from tests.unit.test_planner import POLICY, TERMS, chat, finished, kept, planned, ratio


@pytest.mark.parametrize("strategy", ["sliding_window", "deletion", "selective"])
def test_strategies_without_a_summary_leave_a_record_of_where_the_messages_stand(strategy: Any) -> None:
    stored, found = planned(chat(40, 150), policy=replace(POLICY, strategy=strategy))
    assert found.pending_summary is None and found.compaction is not None and found.compaction.tier == strategy
    left = apply_plan(found, stored)
    assert "earlier messages, #10 to #" in left[0].content and ratio(left) <= TERMS.target_pressure
    assert [m.id for m in left[-2:]] == [m.id for m in stored[-2:]]


def test_selective_keeps_what_says_most() -> None:
    rows = chat(40, 150)
    rows[2] = Message("user", "The code of the gate is 4471-Q, Anna Berg has the key")
    stored, found = planned(rows, policy=replace(POLICY, strategy="selective"))
    assert stored[2].id in [m.metadata["carried_from"] for m in kept(found)]
    _, sliding = planned(rows, policy=replace(POLICY, strategy="sliding_window"))
    assert not kept(sliding)


def test_each_strategy_leaves_another_view() -> None:
    """Of one conversation: what the person said stays with a summary, what says most without one, or nothing of it."""
    rows = [*uses_with_output(6), *chat(30, 150)]
    rows[8] = Message("assistant", "The code of the gate is 4471-Q, Anna Berg has the key", model="m")
    views = {}
    for strategy in ("hybrid", "summary", "mask", "sliding_window", "deletion", "selective"):
        policy = replace(CompactionPolicy(), strategy=strategy)  # type: ignore[arg-type]
        stored, found = planned(rows, policy=policy)
        done = finished(found) if found.pending_summary else found
        views[strategy] = apply_plan(done, stored)
    said = {name: [m.role for m in view if "carried_from" in m.metadata] for name, view in views.items()}
    live = {name: sum(m.id is not None for m in view) for name, view in views.items()}
    assert live["mask"] == len(rows) > max(live[name] for name in live if name != "mask")
    # It masks where that is enough, and is a summary where it is not.
    assert views.pop("hybrid") == views["summary"]
    tools = [*uses_with_output(12), *chat(3, 20)]
    (_, hybrid), (_, mask) = (planned(tools, policy=replace(POLICY, strategy=name)) for name in ("hybrid", "mask"))  # type: ignore[arg-type]
    assert hybrid.tier == "mask" and hybrid.shorten == mask.shorten
    assert set(said["summary"]) == {"user"} and set(said["selective"]) == {"user", "assistant"}
    assert said["sliding_window"] == said["deletion"] == [] and live["deletion"] > live["sliding_window"]
    assert len({tuple(m.content for m in view) for view in views.values()}) == len(views)


def uses_with_output(rounds: int) -> list[Message]:
    return [row for n in range(rounds) for row in (user(10, f"look {n} "), *uses(f"c{n}", 1_000), says(20))]


def test_deletion_takes_no_more_than_it_must() -> None:
    stored, deletion = planned(chat(40, 150), policy=replace(POLICY, strategy="deletion", preserve_messages=2))
    _, sliding = planned(chat(40, 150), policy=replace(POLICY, strategy="sliding_window", preserve_messages=2))
    assert len(apply_plan(deletion, stored)) > len(apply_plan(sliding, stored))


def test_mask_never_takes_a_message_out_of_view() -> None:
    stored, found = planned(chat(40, 150), policy=replace(POLICY, strategy="mask"), trigger="overflow")
    assert found.compaction is None and apply_plan(found, stored) == tuple(stored)
