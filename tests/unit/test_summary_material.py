"""What a summary is told that has to survive: words that nobody finished and that it alone will have."""

from __future__ import annotations

from sleep.compaction.values import CompactionInputs, CompactionPolicy
from tests.support.conversation_strategies import numbered
from tests.unit.test_planner import chat, planned, request

# No room for words of the person's beside the summary.
POLICY = CompactionPolicy(preserve_messages=4, preserve_share=0.05, user_messages_max_tokens=0)


def test_a_request_that_leaves_with_its_words_is_a_task_of_the_summary_and_one_that_stays_is_not() -> None:
    rows = chat(60, 220)
    stored = numbered(rows)
    open_ones = [request(stored[-2]), request(stored[-4]), *(request(row) for row in stored[40:-30:2])]
    _, found = planned(rows, policy=POLICY, keeping=CompactionInputs(open_requests=tuple(open_ones)))
    assert found.pending_summary is not None
    told, leaving = found.pending_summary.summary_input.tasks, {row.id for row in found.pending_summary.removed.rows}
    copied = set(found.pending_summary.retained.message_ids)
    assert stored[-2].id not in leaving and stored[-4].id not in leaving and leaving > copied
    assert told == tuple(one.text for one in open_ones if one.message_id in leaving - copied) and told
