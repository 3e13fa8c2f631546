"""What each strategy of a compaction does without a model, and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assistant.core.messages import Message
from tests.support.conversation_strategies import apply_plan
from tests.unit.test_planner import POLICY, TERMS, chat, kept, planned, ratio


@pytest.mark.parametrize("strategy", ["sliding_window", "deletion", "selective"])
def test_strategies_without_a_summary_leave_a_record_of_where_the_messages_stand(strategy: Any) -> None:
    stored, found = planned(chat(40, 150), policy=replace(POLICY, strategy=strategy))
    assert found.pending_summary is None and found.compaction is not None and found.compaction.tier == strategy
    left = apply_plan(found, stored)
    assert "earlier messages, #10 to #" in left[0].content and ratio(left) <= TERMS.target + 0.02
    assert [m.id for m in left[-2:]] == [m.id for m in stored[-2:]]


def test_selective_keeps_what_says_most() -> None:
    rows = chat(40, 150)
    rows[2] = Message("user", "The code of the gate is 4471-Q, Anna Berg has the key")
    stored, found = planned(rows, policy=replace(POLICY, strategy="selective"))
    assert stored[2].id in [m.metadata["carried_from"] for m in kept(found)]
    _, sliding = planned(rows, policy=replace(POLICY, strategy="sliding_window"))
    assert not kept(sliding)


def test_deletion_takes_no_more_than_it_must() -> None:
    stored, deletion = planned(chat(40, 150), policy=replace(POLICY, strategy="deletion", preserve_messages=2))
    _, sliding = planned(chat(40, 150), policy=replace(POLICY, strategy="sliding_window", preserve_messages=2))
    assert len(apply_plan(deletion, stored)) > len(apply_plan(sliding, stored))


def test_mask_never_takes_a_message_out_of_view() -> None:
    stored, found = planned(chat(40, 150), policy=replace(POLICY, strategy="mask"), trigger="overflow")
    assert found.compaction is None and apply_plan(found, stored) == tuple(stored)
