"""What a compaction is going to do: what is masked, what leaves, what stays word for word, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from assistant.context.build import build_request
from assistant.context.normalise import RETAINED_WORDS_START
from assistant.context.pressure import PromptSize, RequestBudgets, measure_pressure
from assistant.core.checkpoints import Checkpoint, UserRequest
from assistant.core.messages import Media, Message
from sleep.compaction.extractive import select_sentences
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.planner import plan_compaction
from sleep.compaction.prompts import render_heading
from sleep.compaction.values import CompactionInputs, CompactionLimits, CompactionPolicy, Summary
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
    view_of,
)
from tests.support.sentence_tables import every_case
from tests.unit.test_fallback import says, user, uses, words

NOW = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
BUDGETS = RequestBudgets(tokens=16_000, reserve=1_600, bytes=10_000_000, images=20)
TERMS = CompactionLimits(
    BUDGETS, COUNTER, fixed=PromptSize(tokens=500, bytes=2_000), protected_tools=frozenset({PROTECTED})
)
NOTHING_KEPT = CompactionInputs()
POLICY = CompactionPolicy(preserve_messages=4, preserve_share=0.05)
# Where it is still the day before.
THERE = replace(TERMS, zone=ZoneInfo("Pacific/Honolulu"))


def planned(
    rows: Sequence[Message],
    *,
    policy: CompactionPolicy = POLICY,
    keeping: CompactionInputs = NOTHING_KEPT,
    trigger: str = "emergency",
    terms: CompactionLimits = TERMS,
    **view: Any,
) -> tuple[list[Message], CompactionPlan]:
    stored = numbered(rows)
    return stored, plan_compaction(
        view_of(stored, **view), places_of(stored), terms, policy, keeping, NOW, trigger=trigger
    )


def finished(found: CompactionPlan, text: str = "They talked.") -> CompactionPlan:
    """The plan with its summary."""
    assert found.pending_summary is not None
    summary = Summary(text, "full", COUNTER.count_text(text), memories=("Ada likes tea",), model="small", attempts=1)
    return replace(found, compaction=found.pending_summary.complete(summary, NOW))


def chat(exchanges: int, tokens: int = 200) -> list[Message]:
    return [row for n in range(exchanges) for row in (user(tokens, f"request {n} "), says(tokens))]


def ratio(rows: Sequence[Message], terms: CompactionLimits = TERMS) -> float:
    view = view_of(rows, prefix_rev=1)
    return measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding).ratio


def kept(found: CompactionPlan) -> list[Message]:
    assert found.compaction is not None
    return list(found.compaction.prefix[1:])


def request(row: Message, text: str = "") -> UserRequest:
    return UserRequest(row.id or 0, "main", "owner", text or row.content, "open", True, NOW)


def checkpoint(number: int, first: int, last: int, text: str = "earlier", **more: Any) -> Checkpoint:
    return Checkpoint(
        number,
        "main",
        number,
        1,
        first,
        last,
        4,
        text,
        {"since": "2026-03-01", "until": "2026-03-02"},
        400,
        20,
        0.0,
        START,
        "sleep",
        "full",
        "live",
        from_seq=first,
        to_seq=last,
        **more,
    )


# -------------------------------------------------------------------------------------------------------------- masking


def test_old_tool_output_is_masked_where_that_is_enough() -> None:
    rows = [*(m for n in range(6) for m in (user(10), *uses(f"c{n}", 1_500), says(20))), *chat(3, 20)]
    stored, found = planned(rows)
    assert found.tier == "mask" and found.pending_summary is None
    assert {row.role for row in found.shorten} == {"tool"} and len(found.shorten) == 6
    assert found.after.ratio < POLICY.masking_target(TERMS.target_pressure) < found.before.ratio
    line = found.shorten[0].content
    assert line.startswith('[TOOL OUTPUT ARCHIVED: read_file(path="a"), 2026-11-20') and "about 1" in line
    assert f"read_history(message_id={stored[2].id})" in line and "conversation.jsonl bytes 1200-1300" in line


def test_a_mask_names_the_topic_of_what_it_stands_for() -> None:
    text = "harbour authority Bergen mooring fees " * 120
    rows = [user(), uses("c1", 10)[0], Message("tool", text, tool_call_id="c1", name="read_file"), *chat(30)]
    _, found = planned(rows, policy=replace(POLICY, strategy="mask"))
    assert "about: harbour, authority, Bergen, mooring, fees" in found.shorten[0].content


def test_a_mask_tells_the_time_by_the_clock_of_the_home() -> None:
    rows = [*(m for n in range(6) for m in (user(10), *uses(f"c{n}", 1_500), says(20))), *chat(3, 20)]
    _, found = planned(rows, terms=THERE)
    assert ", 2026-11-19 22:02, about" in found.shorten[0].content


def test_what_leaves_is_dated_by_the_clock_of_the_home() -> None:
    _, found = planned([user(20, "My sister Ines moved to Bergen. "), says(20), *chat(40)], terms=THERE)
    assert found.pending_summary is not None
    material = found.pending_summary.summary_input
    assert render_heading(material.rows[0]) == "#10 2026-11-19 22:00 user"
    assert "- #10 2026-11-19 user: My sister Ines" in select_sentences(material, 2_000, COUNTER.count_text)
    compaction = finished(found).compaction
    assert compaction is not None
    assert (compaction.key_facts["since"], compaction.key_facts["until"]) == ("2026-11-19", "2026-11-19")
    assert "to #" in compaction.prefix[0].content and "(2026-11-19)" in compaction.prefix[0].content


def test_f03_identical_calls_are_counted_and_point_at_the_newest_result() -> None:
    rows = [*(m for n in range(5) for m in (user(10), *uses(f"c{n}", 1_800), says(20))), *chat(3, 20)]
    stored, found = planned(rows)
    newest = stored[4 * 4 + 2].id
    assert f"The same call was made 5 times; its newest result is message {newest}." in found.shorten[0].content
    assert "do not repeat it" in found.shorten[-1].content


def test_what_was_masked_is_not_masked_again() -> None:
    rows = [*(m for n in range(6) for m in (user(10), *uses(f"c{n}", 1_500), says(20))), *chat(3, 20)]
    stored, found = planned(rows)
    again = plan_compaction(
        view_of(apply_plan(found, stored), prefix_rev=1),
        places_of(stored),
        TERMS,
        POLICY,
        CompactionInputs(),
        NOW,
        trigger="nap",
    )
    assert again.shorten == ()


def test_verbose_old_answers_are_shortened_by_reference() -> None:
    stored, found = planned([user(), says(6_000), *chat(20, 100)], policy=replace(POLICY, strategy="mask"))
    assert [row.id for row in found.shorten] == [stored[1].id]
    assert f"message {stored[1].id}" in found.shorten[0].content


def test_a_person_who_asks_for_it_gets_a_summary_even_where_masks_would_do() -> None:
    rows = [*(m for n in range(6) for m in (user(10), *uses(f"c{n}", 1_500), says(20))), *chat(3, 20)]
    _, found = planned(rows, trigger="manual")
    assert found.tier == "summary" and found.shorten == ()


# -------------------------------------------------------------------------------------------------------------- cutting


def test_the_target_binds() -> None:
    stored, found = planned(chat(30))
    done = finished(found)
    left = apply_plan(done, stored)
    assert found.before.ratio > 0.8
    assert ratio(left) <= TERMS.target_pressure
    assert left[0].is_summary and left[-1] == stored[-1]


def test_the_view_after_is_summary_then_kept_words_then_protected_results_then_tail() -> None:
    rows = [*chat(8), user(20), *uses("t1", 60, PROTECTED), says(20), *chat(20)]
    stored, found = planned(rows)
    done = finished(found)
    left = apply_plan(done, stored)
    kinds = ["summary" if m.is_summary else "copy" if "carried_from" in m.metadata else "live" for m in left]
    assert kinds == sorted(kinds, key=["summary", "copy", "live"].index)
    roles = [m.role for m in kept(done)]
    assert roles[-2:] == ["assistant", "tool"] and set(roles[:-2]) == {"user"}


def test_users_words_stay_newest_first_within_their_budget() -> None:
    stored, found = planned(chat(40, 150))
    origins = [m.metadata["carried_from"] for m in kept(finished(found))]
    cut = next(n for n, row in enumerate(stored) if row.id == finished(found).compaction.to_message_id)  # type: ignore[union-attr]
    said = [row.id for row in stored[: cut + 1] if row.role == "user"]
    assert origins and origins == said[-len(origins) :] and len(origins) < len(said)
    spent = sum(COUNTER.count_message(m) for m in kept(finished(found)))
    assert spent <= POLICY.user_budget(BUDGETS)


def test_f18_kept_words_are_sent_as_history() -> None:
    stored, found = planned(chat(40, 150))
    left = apply_plan(finished(found), stored)
    sent = build_request(view_of(left), FRAME, LIMITS)
    text = "\n".join(message.content for message in sent.messages)
    assert text.index(RETAINED_WORDS_START) < text.index("request 3") < text.index("The conversation goes on here.")


def test_f18_open_requests_stay_word_for_word_before_newer_ones() -> None:
    stored = numbered(chat(40, 150))
    found = plan_compaction(
        view_of(stored),
        places_of(stored),
        TERMS,
        POLICY,
        CompactionInputs(open_requests=(request(stored[4]),)),
        NOW,
        trigger="sleep",
    )
    assert stored[4].id in [m.metadata["carried_from"] for m in kept(finished(found))]
    assert any(fate.what == "open requests" and not fate.is_removed for fate in found.planned_changes)


def test_f18_the_words_of_open_requests_without_room_are_given_to_the_summary() -> None:
    stored = numbered(chat(40, 150))
    asked = tuple(request(row) for row in reversed(stored) if row.role == "user")
    keeping = CompactionInputs(open_requests=asked, tasks=("water the plants",))
    found = plan_compaction(view_of(stored), places_of(stored), TERMS, POLICY, keeping, NOW, trigger="sleep")
    assert found.pending_summary is not None
    tasks, still = found.pending_summary.summary_input.tasks, found.pending_summary.retained.open_request_ids
    assert still and tasks[-2:] == (stored[0].content, "water the plants")
    assert not {row.content for row in stored if row.id in still} & set(tasks)


def test_marks_of_stopped_turns_stay() -> None:
    rows = [user(), Message("system", "<turn-aborted> stopped."), *chat(40, 150)]
    _, found = planned(rows)
    assert any(m.content.startswith("<turn-aborted>") for m in kept(finished(found)))


def test_f08_a_cut_never_falls_between_a_call_and_its_results() -> None:
    rows = [*chat(10), *(m for n in range(12) for m in (user(30), *uses(f"c{n}", 400), says(30)))]
    for preserve in range(1, 12):
        stored, found = planned(rows, policy=replace(POLICY, strategy="summary", preserve_messages=preserve))
        left = apply_plan(finished(found), stored)
        asked = [call.id for m in left for call in m.tool_calls]
        assert asked == [m.tool_call_id for m in left if m.role == "tool"]


def test_f10_the_newest_request_is_never_cut() -> None:
    rows = [*chat(30), user(3_000, "the newest "), *uses("c1", 2_000)]
    stored, found = planned(rows)
    assert [m.id for m in apply_plan(finished(found), stored)[-3:]] == [m.id for m in stored[-3:]]


def test_the_preserve_window_is_by_number_or_by_weight_whichever_is_more() -> None:
    by_number = finished(planned(chat(60, 60), policy=CompactionPolicy(preserve_messages=20, preserve_share=0.0))[1])
    stored, _ = planned(chat(60, 60))
    assert sum(m.id is not None for m in apply_plan(by_number, stored)) == 20
    weighty = finished(planned(chat(60, 60), policy=CompactionPolicy(preserve_messages=2, preserve_share=0.12))[1])
    live = [m for m in apply_plan(weighty, stored) if m.id is not None]
    assert len(live) > 20 and sum(COUNTER.count_message(m) for m in live) <= 0.13 * BUDGETS.tokens


def test_f17_pictures_that_leave_are_in_the_material_and_told_of() -> None:
    picture = Message("user", "look", media=(Media("image", "image/png", "boat.png", data=PICTURE),))
    _, found = planned([picture, *chat(30)])
    assert found.pending_summary is not None and found.pending_summary.summary_input.rows[0].media[0].name == "boat.png"
    assert any(fate.what == "pictures" for fate in found.planned_changes)
    assert all(medium.data is None for m in kept(finished(found)) for medium in m.media)


def test_earlier_summaries_are_never_counted_as_users_words() -> None:
    earlier = Message("user", "[CONTEXT SUMMARY]\nold", metadata={"type": "compaction"})
    stored = [earlier, *numbered(chat(40, 150))]
    found = plan_compaction(view_of(stored), places_of(stored), TERMS, POLICY, CompactionInputs(), NOW, trigger="sleep")
    assert all("CONTEXT SUMMARY" not in m.content for m in kept(finished(found)))


def test_nothing_is_planned_for_a_short_conversation() -> None:
    _, found = planned(chat(3, 60), trigger="manual")
    assert not found.has_changes and found.after == found.before


@every_case(["manual", "emergency"])
def test_nothing_is_planned_where_the_view_would_grow(trigger: str) -> None:
    """What a person said stays word for word: beside a summary it is more than before."""
    rows = [row for n in range(4) for row in (user(500, f"request {n} "), says(20))]
    _, found = planned(rows, trigger=trigger)
    assert (found.has_changes, found.before) == (False, found.after)
    _, found = planned(rows, trigger="messages")
    assert found.has_changes


def test_a_count_of_messages_calls_for_a_summary_whatever_they_weigh() -> None:
    stored, found = planned(chat(60, 3), trigger="messages")
    assert len(apply_plan(finished(found), stored)) < 60


# ------------------------------------------------------------------------------------------------ checkpoints and facts


def test_the_summary_row_has_a_section_for_each_checkpoint_and_the_metadata_of_all() -> None:
    stored = numbered(chat(40, 150))
    keeping = CompactionInputs(checkpoints=(checkpoint(1, 1, 5, "They met."), checkpoint(2, 6, 9, "They parted.")))
    found = plan_compaction(view_of(stored), places_of(stored), TERMS, POLICY, keeping, NOW, trigger="sleep")
    done = finished(found, "They met again.")
    assert done.compaction is not None
    row = done.compaction.prefix[0]
    assert row.content.index("They met.") < row.content.index("They parted.") < row.content.index("They met again.")
    assert f"## Messages #{done.compaction.from_message_id} to #{done.compaction.to_message_id}" in row.content
    assert row.metadata["type"] == "compaction" and row.metadata["compacted_at"] == NOW.isoformat()
    assert row.metadata["compacted_count"] == 8 + done.compaction.messages_compressed
    assert row.metadata["summary_token_count"] == COUNTER.count_text(row.content)
    assert done.compaction.key_facts["memories"] == ["Ada likes tea"]
    first, last = done.compaction.from_message_id, done.compaction.to_message_id
    assert done.compaction.key_facts["byte_ranges"] == [["log/main/conversation.jsonl", first * 100, last * 100 + 100]]


def test_f25_a_sixth_checkpoint_asks_for_a_merge_of_the_two_oldest() -> None:
    stored = numbered(chat(40, 150))
    live = tuple(checkpoint(n, n, n, "short") for n in range(1, 6))
    roomy = replace(POLICY, summary_max_tokens=100, restored_max_tokens=0)
    found = plan_compaction(
        view_of(stored), places_of(stored), TERMS, roomy, CompactionInputs(checkpoints=live), NOW, trigger="sleep"
    )
    assert found.merge_ids == (1, 2)
    found = plan_compaction(
        view_of(stored), places_of(stored), TERMS, roomy, CompactionInputs(checkpoints=live[:4]), NOW, trigger="sleep"
    )
    assert found.merge_ids == ()


def test_f25_summaries_that_fill_the_room_are_merged_however_few() -> None:
    stored = numbered(chat(40, 150))
    live = (checkpoint(1, 1, 5, words(900)), checkpoint(2, 6, 9, words(900)))
    found = plan_compaction(
        view_of(stored), places_of(stored), TERMS, POLICY, CompactionInputs(checkpoints=live), NOW, trigger="sleep"
    )
    assert found.merge_ids == (1, 2)


def test_what_a_branch_inherited_leaves_with_the_first_summary() -> None:
    inherited = [
        Message("system", "[CONTEXT SUMMARY]\nof the parent", metadata={"type": "compaction", "inherited": True}),
        Message("user", "asked there", metadata={"carried_from": 3, "inherited": True}),
    ]
    live = numbered(chat(40, 150))
    rows = [*inherited, *live]
    found = plan_compaction(view_of(rows), places_of(live), TERMS, POLICY, CompactionInputs(), NOW, trigger="sleep")
    assert found.pending_summary is not None and found.pending_summary.summary_input.rows[:2] == tuple(inherited)
    assert finished(found).compaction.from_message_id == live[0].id  # type: ignore[union-attr]


def test_f25_many_rounds_keep_the_view_near_the_target() -> None:
    """Talk, compact, talk: the summary row does not grow, and the view comes back to the target each time."""
    rows: tuple[Message, ...] = ()
    live: list[Checkpoint] = []
    clock = START
    for round_number in range(8):
        fresh = numbered(chat(40, 150))
        rows = (*rows, *(replace(m, id=(m.id or 0) + 1_000 * round_number, ts=clock) for m in fresh))
        clock += timedelta(days=1)
        found = plan_compaction(
            view_of(rows), places_of(rows), TERMS, POLICY, CompactionInputs(tuple(live)), NOW, trigger="sleep"
        )
        if found.merge_ids:
            first, second = live[:2]
            live[:2] = [replace(first, to_message_id=second.to_message_id, summary=words(150))]
            found = plan_compaction(
                view_of(rows), places_of(rows), TERMS, POLICY, CompactionInputs(tuple(live)), NOW, trigger="sleep"
            )
        done = finished(found, words(200))
        rows = apply_plan(done, rows)
        assert done.compaction is not None
        live.append(
            checkpoint(round_number + 1, done.compaction.from_message_id, done.compaction.to_message_id, words(200))
        )
        assert ratio(rows) <= TERMS.target_pressure
        assert sum(m.is_summary for m in rows) == 1
