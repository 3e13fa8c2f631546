"""Whatever a conversation holds, the floor leaves a valid view that is smaller, or says why it cannot (I7)."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.context.build import build_request
from assistant.context.pressure import PromptSize, RequestBudgets, measure_pressure
from assistant.context.structure import newest_request_index
from assistant.core.messages import Message
from assistant.models import anthropic_format, openai_format
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.values import CompactionLimits
from tests.strict.validate import validate_chat, validate_messages
from tests.support.conversation_strategies import (
    COUNTER,
    FRAME,
    LIMITS,
    MODEL,
    PROTECTED,
    apply_plan,
    places_of,
    turns,
    view_of,
)

NOW = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
many = settings(max_examples=100, deadline=None, database=None)


@st.composite
def terms(draw: st.DrawFn) -> CompactionLimits:
    tokens = draw(st.integers(500, 8_000))
    return CompactionLimits(
        RequestBudgets(tokens, tokens // 8, draw(st.sampled_from([4_000, 10_000_000])), 20),
        COUNTER,
        fixed=PromptSize(draw(st.integers(0, tokens)), 500),
        protected_tools=frozenset({PROTECTED}),
    )


conversations = turns(most=6, longest=300)


def planned(rows: list[Message], under: CompactionLimits) -> tuple[CompactionPlan, tuple[Message, ...]]:
    plan = plan_fallback(view_of(rows), places_of(rows), under, NOW)
    return plan, apply_plan(plan, rows)


@many
@given(conversations, terms())
def test_a_plan_lowers_the_pressure_or_changes_nothing(rows: list[Message], under: CompactionLimits) -> None:
    plan, left = planned(rows, under)
    measured = measure_pressure(view_of(left, prefix_rev=1), under.budgets, COUNTER, under.fixed)
    if plan.has_changes:
        assert plan.after.ratio < plan.before.ratio
    else:
        assert list(left) == rows
    # Thinking in the open loop counts before the plan and stays; the plan's own figure leaves it out.
    thinking = sum(COUNTER.count_thinking(row) for row in left)
    assert abs(measured.prompt_tokens - plan.after.prompt_tokens) <= 1.5 * thinking + 1


@many
@given(conversations, terms())
def test_a_plan_never_splits_a_pair(rows: list[Message], under: CompactionLimits) -> None:
    _, left = planned(rows, under)
    called = [call.id for row in left for call in row.tool_calls]
    answered = [row.tool_call_id for row in left if row.role == "tool"]
    assert sorted(called) == sorted(map(str, answered))


@many
@given(conversations, terms())
def test_f10_the_newest_request_and_what_follows_it_stay(rows: list[Message], under: CompactionLimits) -> None:
    _, left = planned(rows, under)
    tail = rows[newest_request_index(rows) :]
    assert [row.id for row in left[-len(tail) :]] == [row.id for row in tail]
    assert newest_request_index(left) == len(left) - len(tail)


@many
@given(conversations, terms())
def test_f11_every_message_is_in_view_once_or_under_the_record(rows: list[Message], under: CompactionLimits) -> None:
    plan, left = planned(rows, under)
    ids = [row.id for row in rows]
    kept = [row.id for row in left if row.id is not None]
    gone = ids[: len(ids) - len(kept)]
    assert gone + kept == ids
    if plan.compaction is not None:
        assert (plan.compaction.from_message_id, plan.compaction.to_message_id) == (gone[0], gone[-1])
        assert plan.compaction.messages_compressed == len(gone)
    else:
        assert gone == []


@many
@given(conversations, terms())
def test_the_last_result_of_a_protected_tool_stays_in_view(rows: list[Message], under: CompactionLimits) -> None:
    _, left = planned(rows, under)
    last = [row.content for row in rows if row.role == "tool" and row.name == PROTECTED][-1:]
    shown = [row.content for row in left if row.role == "tool" and row.name == PROTECTED][-1:]
    assert len(shown) == len(last)
    if last and COUNTER.count_text(last[0]) <= under.budgets.tokens // 10:
        assert shown == last


@many
@given(conversations, terms())
def test_a_context_that_stays_above_the_threshold_is_at_its_floor_and_told(
    rows: list[Message], under: CompactionLimits
) -> None:
    plan, left = planned(rows, under)
    if plan.after.ratio > under.threshold:
        assert plan.stuck_reason
        again, _ = planned(list(left), under)
        assert again.after.ratio >= plan.after.ratio - 0.02
    else:
        assert not plan.stuck_reason


@many
@given(conversations, terms())
def test_what_is_left_makes_a_request_that_both_providers_accept(rows: list[Message], under: CompactionLimits) -> None:
    _, left = planned(rows, under)
    request = build_request(view_of(left), FRAME, LIMITS, volatile="now")
    assert validate_messages(anthropic_format.render_anthropic_request(request, MODEL)) == []
    assert validate_chat(openai_format.render_openai_request(request, MODEL)) == []
