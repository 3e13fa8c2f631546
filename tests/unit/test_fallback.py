"""The deterministic floor: what is shortened, what leaves the view, what never does, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from assistant.context.build import build_request
from assistant.context.pressure import PromptSize, RequestBudgets, measure_pressure
from assistant.context.structure import block_starts, newest_request_index, turn_start
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.records import ContextView
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.values import CompactionLimits
from tests.support.conversation_strategies import (
    COUNTER,
    FRAME,
    LIMITS,
    PICTURE,
    PROTECTED,
    START,
    apply_plan,
    numbered,
    places_of,
    signed,
    view_of,
)

NOW = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
BUDGETS = RequestBudgets(tokens=10_000, reserve=1_000, bytes=10_000_000, images=20)
TERMS = CompactionLimits(
    BUDGETS, COUNTER, fixed=PromptSize(tokens=500, bytes=2_000), protected_tools=frozenset({PROTECTED})
)


def words(tokens: int) -> str:
    """A text that costs about so many tokens."""
    return "word " * (tokens * 10 // 3 // 5)


def user(tokens: int = 10, text: str = "") -> Message:
    return Message("user", text + words(tokens))


def says(tokens: int = 10, **rest: Any) -> Message:
    return Message("assistant", words(tokens), model="m", **rest)


def uses(call_id: str, tokens: int, tool: str = "read_file", **rest: Any) -> list[Message]:
    call = ToolCall(call_id, tool, {"path": "a"})
    return [
        Message("assistant", "", tool_calls=(call,), model="m", **rest),
        Message("tool", words(tokens), tool_call_id=call_id, name=tool),
    ]


def plan_for(
    rows: Sequence[Message], terms: CompactionLimits = TERMS, **view: Any
) -> tuple[list[Message], CompactionPlan]:
    stored = numbered(rows)
    return stored, plan_fallback(view_of(stored, **view), places_of(stored), terms, NOW)


def after(rows: Sequence[Message], plan: CompactionPlan) -> ContextView:
    return view_of(apply_plan(plan, rows), prefix_rev=2)


# ----------------------------------------------------------------------------------------------------- nothing, shorten


def test_nothing_is_done_at_the_target() -> None:
    _, plan = plan_for([user(), says(1000), user()])
    assert not plan.has_changes and plan.before == plan.after and plan.notices == ()
    _, empty = plan_for([])
    assert not empty.has_changes


def test_the_largest_old_tool_outputs_are_shortened_first_and_no_more_than_needed() -> None:
    rows = [user(), *uses("a", 900), says(), user(), *uses("b", 5500), says(), user()]
    stored, plan = plan_for(rows)
    assert [message.id for message in plan.shorten] == [stored[6].id]
    assert plan.compaction is None and plan.after.ratio <= TERMS.target_pressure
    shown = plan.shorten[0].content
    assert "read_history(message_id=16)" in shown and COUNTER.count_text(shown) <= 200


def test_long_old_messages_come_after_tool_outputs() -> None:
    rows = [user(3000), says(3000), user(), *uses("b", 800), says(), user()]
    stored, plan = plan_for(rows)
    assert {message.id for message in plan.shorten} == {stored[0].id, stored[1].id, stored[4].id}
    assert plan.compaction is None and plan.after.ratio <= TERMS.target_pressure


def test_what_the_plan_says_is_what_measuring_its_view_says() -> None:
    stored, plan = plan_for([user(3000), *uses("a", 4000), says(900), user(), says(700), user()])
    measured = measure_pressure(after(stored, plan), BUDGETS, COUNTER, TERMS.fixed)
    assert plan.after.prompt_tokens == pytest.approx(measured.prompt_tokens, abs=1)


def test_a_message_of_unknown_place_is_never_shortened() -> None:
    stored = numbered([user(), *uses("a", 9000), says(), user()])
    plan = plan_fallback(view_of(stored), {}, TERMS, NOW)
    assert plan.shorten == () and plan.compaction is not None


# ------------------------------------------------------------------------------------------------------------- dropping


def many_exchanges(count: int, tokens: int = 150) -> list[Message]:
    return [row for _ in range(count) for row in (user(tokens), says(tokens))]


def test_the_oldest_leave_in_one_large_step_down_to_the_target() -> None:
    stored, plan = plan_for([*many_exchanges(30), user(text="now")])
    assert plan.compaction is not None
    assert 0.35 < plan.after.ratio <= TERMS.target_pressure
    assert plan.compaction.from_message_id == stored[0].id
    gone = plan.compaction.messages_compressed
    assert plan.compaction.to_message_id == stored[gone - 1].id and stored[gone].role == "user"
    assert apply_plan(plan, stored)[1:] == tuple(stored[gone:])


def test_the_record_that_remains_says_how_many_which_when_and_how_to_read_them() -> None:
    stored, plan = plan_for([*many_exchanges(30), user(text="now")])
    assert plan.compaction is not None
    record = plan.compaction.prefix[0]
    gone = plan.compaction.messages_compressed
    assert record.role == "system" and record.is_summary and record.content.startswith("[CONTEXT SUMMARY]\n")
    assert f"{gone} earlier messages, #10 to #{9 + gone} (2026-11-20)" in record.content
    assert f"log/main/conversation.jsonl bytes 1000-{(9 + gone) * 100 + 100}" in record.content
    assert "search_history" in record.content and "read_history(message_id=10)" in record.content
    assert plan.compaction.summary == record.content and plan.compaction.tier == "floor"
    assert record.metadata["compacted_count"] == gone and record.metadata["compacted_at"] == NOW.isoformat()
    assert record.metadata["original_token_count"] == sum(COUNTER.count_message(row) for row in stored[:gone])
    assert COUNTER.count_text(record.content) <= 130


def test_f11_a_second_floor_merges_its_record_with_the_first_and_keeps_summaries() -> None:
    stored, first = plan_for([*many_exchanges(30), user(text="now")])
    assert first.compaction is not None
    summary = Message(
        "system", "[CONTEXT SUMMARY]\nAda moved.", ts=START, metadata={"type": "compaction", "tier": "full"}
    )
    more = [replace(row, id=(row.id or 0) + 100) for row in numbered([*many_exchanges(30), user(text="later")])]
    rows = (summary, *apply_plan(first, stored), *more)
    second = plan_fallback(view_of(rows, prefix_rev=1), places_of(rows), TERMS, NOW + timedelta(days=1))
    assert second.compaction is not None
    assert second.compaction.from_message_id == stored[first.compaction.messages_compressed].id
    earlier, record = [row for row in second.compaction.prefix if row.is_summary]
    assert earlier.content == summary.content
    count = first.compaction.messages_compressed + second.compaction.messages_compressed
    assert f"{count} earlier messages, #10 to #{second.compaction.to_message_id}" in record.content


def test_the_record_of_what_leaves_tells_its_days_by_the_clock_of_the_home() -> None:
    _, plan = plan_for([*many_exchanges(30), user()], terms=replace(TERMS, zone=ZoneInfo("Pacific/Honolulu")))
    assert plan.compaction is not None
    assert "(2026-11-19)" in plan.compaction.summary
    assert plan.compaction.key_facts["since"] == "2026-11-19"


def test_f11_a_summary_that_tells_what_was_said_stays_before_the_record_of_what_leaves_now() -> None:
    summary = Message("system", "[CONTEXT SUMMARY]\nAda moved.", ts=START, metadata={"type": "compaction"})
    stored = numbered([*many_exchanges(30), user(text="now")])
    plan = plan_fallback(view_of([summary, *stored]), places_of(stored), TERMS, NOW)
    assert plan.compaction is not None
    assert plan.compaction.prefix[0] is summary and plan.compaction.summary == plan.compaction.prefix[1].content
    assert plan.compaction.messages_compressed < 60 and plan.compaction.from_message_id == stored[0].id


def test_pairs_leave_together() -> None:
    rows = [row for n in range(20) for row in (user(60), *uses(f"c{n}", 190), *uses(f"d{n}", 150), says(60))]
    stored, plan = plan_for([*rows, user()])
    assert plan.compaction is not None
    kept = apply_plan(plan, stored)
    called = {call.id for row in kept for call in row.tool_calls}
    assert called == {row.tool_call_id for row in kept if row.role == "tool"} != set()


def test_the_last_result_of_a_protected_tool_stays_whole_and_is_a_copy() -> None:
    rows = [*uses("t1", 300, PROTECTED), *uses("t2", 900, PROTECTED), says()]
    stored, plan = plan_for([user(), *rows, *many_exchanges(30), user(text="now")])
    assert plan.compaction is not None
    _, call, result = plan.compaction.prefix
    assert [c.id for c in call.tool_calls] == ["t2"] and result.content == stored[4].content
    assert (call.id, result.id) == (None, None) and result.metadata["carried_from"] == stored[4].id
    assert stored[4].id not in {message.id for message in plan.shorten}


def test_a_protected_result_that_would_fill_the_context_keeps_a_tenth_of_it() -> None:
    stored, plan = plan_for([user(), *uses("t", 5000, PROTECTED), *many_exchanges(30), user(text="now")])
    assert plan.compaction is not None
    result = plan.compaction.prefix[-1]
    assert result.role == "tool" and COUNTER.count_text(result.content) <= 1000
    assert f"read_history(message_id={stored[2].id})" in result.content


def test_a_protected_result_that_is_still_in_view_is_not_copied() -> None:
    rows = [user(), *uses("t1", 300, PROTECTED), *many_exchanges(30), user(), *uses("t2", 50, PROTECTED)]
    _, plan = plan_for(rows)
    assert plan.compaction is not None and len(plan.compaction.prefix) == 1


def test_the_last_exchange_stays_unless_the_threshold_needs_it() -> None:
    gentle = [*many_exchanges(10), user(350), says(350), says(350), says(350), says(350), user(2500)]
    stored, plan = plan_for(gentle)
    assert plan.compaction is not None and apply_plan(plan, stored)[1] is stored[20]
    stored, plan = plan_for([*gentle[:-1], user(6000)])
    assert plan.compaction is not None and apply_plan(plan, stored)[1:] == (stored[-1],)


def test_in_a_turn_that_is_steered_the_request_that_opened_it_stays() -> None:
    rows = [*many_exchanges(30), user(text="open"), *uses("a", 50), user(text="steer"), user(text="more")]
    stored, plan = plan_for(rows)
    kept = [row.id for row in apply_plan(plan, stored) if row.role == "user"]
    assert kept[-3:] == [stored[n].id for n in (60, 63, 64)]
    assert turn_start(stored) == 60 and newest_request_index(stored) == 64


# ----------------------------------------------------------------------------------------------- the newest turn, floor


def test_f06_a_request_that_is_itself_too_large_fills_the_window_with_both_its_ends_and_the_user_is_told() -> None:
    stored, plan = plan_for([user(), says(), Message("user", "BEGIN " + words(50_000) + " THE-END")])
    [shown] = plan.shorten
    assert shown.id == stored[2].id and "BEGIN" in shown.content and "THE-END" in shown.content
    assert f"read_history(message_id={shown.id})" in shown.content
    assert plan.compaction is None and 0.78 < plan.after.ratio <= TERMS.threshold
    assert re.fullmatch(
        r"Your message has about 50,0\d\d tokens, more than the model can take at once\. It sees about 6,\d\d\d of "
        r"them, from the beginning and the end, and can look up the rest\.",
        *(notice.text for notice in plan.notices),
    )


def test_a_request_that_fills_the_window_makes_room_for_what_is_looked_up_in_one_step() -> None:
    stored, first = plan_for([Message("user", "BEGIN " + words(50_000) + " THE-END")])
    request = apply_plan(first, stored)[0]
    rows = [request, *numbered([user(), *uses("a", 1_500), *uses("b", 1_500)])[1:]]
    plan = plan_fallback(view_of(rows), places_of(rows), TERMS, NOW)
    assert [row.id for row in plan.shorten] == [request.id] and plan.notices == ()
    shown = plan.shorten[0].content
    assert "BEGIN" in shown and "THE-END" in shown and shown.count("truncated…") == 1
    assert COUNTER.count_text(shown) > 1_500 and plan.after.ratio < TERMS.threshold - 0.1


def test_a_large_request_that_fits_is_left_whole() -> None:
    stored, plan = plan_for([*many_exchanges(10), user(5500)])
    assert apply_plan(plan, stored)[-1] is stored[-1] and plan.notices == ()


def test_earlier_rounds_of_the_open_loop_are_shortened_before_what_the_model_has_not_seen() -> None:
    stored, plan = plan_for([user(), *uses("a", 4000), *uses("b", 4500, thinking=(signed(1),))])
    assert [message.id for message in plan.shorten] == [stored[2].id]
    assert apply_plan(plan, stored)[3].thinking == (signed(1),)
    stored, plan = plan_for([user(), *uses("a", 4000), *uses("b", 8000)])
    assert {message.id for message in plan.shorten} == {stored[2].id, stored[4].id}


def test_what_the_model_has_not_seen_yet_is_shortened_no_more_than_needed() -> None:
    _, plan = plan_for([user(), *uses("a", 300), *uses("b", 9000)])
    seen, unseen = plan.shorten
    assert COUNTER.count_text(seen.content) <= 200
    assert COUNTER.count_text(unseen.content) > 5000
    assert 0.78 <= plan.after.ratio <= TERMS.threshold


def test_f17_old_pictures_are_hidden_when_pictures_bind() -> None:
    picture = Media("image", "image/png", "p.png", 12, PICTURE)
    rows = [row for _ in range(18) for row in (Message("user", "see", media=(picture,)), says())]
    terms = replace(TERMS, budgets=replace(BUDGETS, tokens=1_000_000))
    stored, plan = plan_for([*rows, Message("user", "and?", media=(picture,))], terms)
    assert plan.before.fullest_budget == "images" and plan.after.ratio <= TERMS.target_pressure
    assert len(plan.shorten) == 13 and plan.compaction is None
    assert apply_plan(plan, stored)[-1].media[0].data == PICTURE


def test_f17_more_pictures_in_one_request_than_the_model_takes_are_named_and_the_user_is_told() -> None:
    media = tuple(Media("image", "image/png", f"p{n}.png", 12, PICTURE) for n in range(30))
    terms = replace(TERMS, budgets=replace(BUDGETS, tokens=1_000_000))
    stored, plan = plan_for([Message("user", "see", media=media)], terms)
    shown = [medium.name for medium in apply_plan(plan, stored)[0].media if medium.data]
    assert shown == [f"p{n}.png" for n in range(16)]
    assert "does not see 14 of them" in plan.notices[0].text


def test_f02_where_the_frame_alone_is_too_large_the_floor_is_told_and_nothing_changes() -> None:
    terms = replace(TERMS, fixed=PromptSize(tokens=9_000))
    stored, plan = plan_for([user(50)], terms)
    assert not plan.has_changes and plan.after.ratio > terms.threshold
    told = plan.stuck_reason
    assert "rules and tools take 9,000" in told and "with 1,000 kept for the answer" in told
    assert plan.minimum.ratio == pytest.approx((9_000 + COUNTER.count_message(stored[0]) + 1_000) / 10_000)


def test_f02_a_plan_made_again_at_the_floor_changes_nothing_more() -> None:
    terms = replace(TERMS, fixed=PromptSize(tokens=8_000))
    stored, plan = plan_for([*many_exchanges(20), user(3000)], terms)
    assert plan.has_changes and plan.after.ratio > terms.threshold
    view = after(stored, plan)
    again = plan_fallback(view, places_of(view.messages), terms, NOW)
    assert not again.has_changes and again.after.ratio > terms.threshold


def test_f10_the_newest_request_is_in_what_is_sent_after_the_harshest_plan() -> None:
    terms = replace(TERMS, budgets=RequestBudgets(2_000, 250, 10_000_000, 20))
    stored, plan = plan_for([*many_exchanges(40), user(3000, "newest "), *uses("z", 3000)], terms)
    sent = build_request(after(stored, plan), FRAME, LIMITS).messages
    assert "newest" in sent[newest_request_index(sent)].content


# ----------------------------------------------------------------------------------------------------------- committing


def test_a_plan_after_the_providers_own_count_reckons_in_its_tokens() -> None:
    rows = [*many_exchanges(30), user()]
    stored = numbered(rows)
    view = view_of(stored, prefix_rev=3, reported=(3, 18_000, stored[-1].id))
    plan = plan_fallback(view, places_of(stored), TERMS, NOW)
    assert plan.before.prompt_tokens == 18_000 and plan.after.ratio <= TERMS.target_pressure
    _, plain = plan_for(rows)
    assert plan.compaction is not None and plain.compaction is not None
    assert plan.compaction.messages_compressed > plain.compaction.messages_compressed


def test_what_is_shortened_and_what_leaves_are_one_compaction() -> None:
    stored = numbered([*many_exchanges(30), user(text="a"), *uses("a", 5000), says(), user()])
    plan = plan_fallback(view_of(stored, prefix_rev=4), places_of(stored), TERMS, NOW)
    assert plan.prefix_rev == 4 and [row.id for row in plan.shorten] == [stored[62].id]
    committed = plan.as_compaction()
    assert committed is not None and committed.prefix_rev == 4 and committed.shortened == plan.shorten


def test_rows_that_leave_are_not_shortened_first() -> None:
    stored, plan = plan_for([*uses("a", 1500), *many_exchanges(40), user()])
    assert plan.compaction is not None and stored[1].id not in {message.id for message in plan.shorten}
    replaced = stored[: plan.compaction.messages_compressed]
    assert plan.compaction.original_tokens == sum(COUNTER.count_message(row) for row in replaced)


def test_a_view_without_any_request_keeps_its_last_block() -> None:
    stored, plan = plan_for([says(3000), says(3000), says(3000), *uses("a", 100)])
    assert apply_plan(plan, stored)[-2:] == tuple(stored[-2:])


def test_blocks_hold_calls_and_all_their_results_together() -> None:
    late = Message("tool", "late", tool_call_id="a")
    rows = [user(), *uses("a", 1)[:1], user(), late, *uses("b", 1), says()]
    assert block_starts(rows) == [0, 1, 4, 6]
    assert block_starts([late, user()]) == [1]
