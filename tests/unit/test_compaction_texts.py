"""What a person reads of a compaction that was made."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assistant.commands.context_parts import context
from assistant.context.pressure import Pressure, RequestBudgets
from assistant.core.checkpoints import Checkpoint, describe_state
from assistant.runtime.compaction_service import describe_compacted
from assistant.runtime.context_parts import ContextPart, ContextReport
from sleep.compaction.values import CompactionResult

AT = datetime(2026, 11, 28, tzinfo=UTC)
FULL = Pressure(900, 0, 0, RequestBudgets(1_000, 100, 0, 0))


def made(messages: int, *, is_merge: bool) -> Checkpoint:
    facts = {"merged": [1, 2]} if is_merge else {}
    return Checkpoint(3, "main", 1, 1, 9, messages, messages, "", facts, 900, 90, 0.0, AT, "manual", "full", "live")


@pytest.mark.parametrize(
    ("checkpoints", "told"),
    [
        ((made(9, is_merge=False),), "Compacted 9 messages"),
        ((made(1, is_merge=False), made(9, is_merge=True)), "Compacted 1 message"),
        ((made(80, is_merge=True),), "Joined earlier summaries"),
    ],
)
def test_a_compaction_that_only_joins_summaries_is_not_said_to_compact_no_messages(
    checkpoints: tuple[Checkpoint, ...], told: str
) -> None:
    assert describe_compacted(CompactionResult(FULL, FULL, checkpoints), "Compacted", "Joined") == told


def test_every_state_is_told_in_words() -> None:
    assert describe_state("absorbed") == "merged into a later one"
    assert describe_state("undone") == "undone"


def test_what_the_next_call_pays_is_no_part_of_the_list_above_it() -> None:
    parts = (ContextPart("tools", "", 600), ContextPart("message", "", 400))
    report = ContextReport("main", "claude", 16_000, 1_000, 0.1, False, 1e-6, 1e-5, parts)
    *listed, blank, paid = context.render(report, UTC).splitlines()
    assert listed[-1] == "- messages: 400"
    assert (blank, paid) == ("", "The next call pays $0.0100 for it.")
