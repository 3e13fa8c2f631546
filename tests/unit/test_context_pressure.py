"""How full the context is, and which budget says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assistant.context.pressure import (
    Pressure,
    PromptSize,
    RequestBudgets,
    answer_token_limit,
    effective_budgets,
    estimate_prompt_tokens,
    measure_pressure,
    message_bytes,
    message_images,
    message_size,
)
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ModelLimits
from assistant.core.records import TokenCalibration
from tests.support.conversation_strategies import COUNTER, PICTURE, signed, view_of

LIMITS = ModelLimits(window=200_000, max_output=8_192, max_bytes=32_000_000, max_images=100)
BUDGETS = RequestBudgets(tokens=10_000, reserve=1_000, bytes=1_000_000, images=20)
FIXED = PromptSize(tokens=500, bytes=2_000)


def settled(limits: ModelLimits = LIMITS, **changes: int) -> RequestBudgets:
    configured = {"max_context_tokens": 0, "reserve_tokens": 20_000, "max_request_bytes": 0, "max_images": 0}
    return effective_budgets(limits, **{**configured, **changes})


# -------------------------------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize(
    ("window", "configured", "tokens", "reserve"),
    [
        (1_000_000, 0, 160_000, 20_000),
        (200_000, 0, 160_000, 20_000),
        (32_000, 0, 32_000, 4_000),
        (200_000, 16_000, 16_000, 2_000),
        (8_000, 16_000, 8_000, 1_000),
        (1_000_000, 400_000, 400_000, 20_000),
    ],
)
def test_the_effective_context_is_the_smaller_of_window_and_setting_and_the_reserve_its_share(
    window: int, configured: int, tokens: int, reserve: int
) -> None:
    effective = settled(replace(LIMITS, window=window), max_context_tokens=configured)
    assert (effective.tokens, effective.reserve) == (tokens, reserve)


def test_bytes_and_images_are_what_the_provider_allows_or_less() -> None:
    assert (settled().bytes, settled().images) == (32_000_000, 100)
    smaller = settled(max_request_bytes=1_000, max_images=2)
    assert (smaller.bytes, smaller.images) == (1_000, 2)
    assert settled(max_images=500).images == 100


def test_after_an_overflow_the_window_is_taken_to_be_what_was_refused() -> None:
    smaller = BUDGETS.after_overflow(4_000)
    assert (smaller.tokens, smaller.reserve, smaller.bytes) == (4_000, 400, BUDGETS.bytes)
    assert BUDGETS.after_overflow(50_000) == BUDGETS


# ------------------------------------------------------------------------------------------------------------- pressure


def test_pressure_counts_the_frame_the_view_what_is_added_and_the_room_for_the_answer() -> None:
    view = view_of([], tokens=3_000, bytes=9_000)
    pressure = measure_pressure(view, BUDGETS, COUNTER, FIXED, PromptSize(tokens=700, bytes=70, images=1))
    assert pressure.prompt_tokens == 500 + 3_000 + 700
    assert pressure.ratio == pytest.approx((4_200 + 1_000) / 10_000)
    assert (pressure.bytes, pressure.images, pressure.source) == (11_070, 1, "estimated")


@pytest.mark.parametrize(
    ("tokens", "size", "images", "binding"),
    [(8_000, 0, 0, "tokens"), (100, 900_000, 0, "bytes"), (100, 0, 19, "images")],
)
def test_f17_the_fullest_of_three_budgets_binds(tokens: int, size: int, images: int, binding: str) -> None:
    pressure = measure_pressure(view_of([], tokens=tokens, bytes=size, images=images), BUDGETS, COUNTER, PromptSize())
    assert pressure.fullest_budget == binding and pressure.ratio >= 0.9
    assert binding in pressure.describe()


def test_a_model_that_takes_no_pictures_cannot_have_too_many() -> None:
    pressure = measure_pressure(view_of([], images=50), replace(BUDGETS, images=0), COUNTER, PromptSize())
    assert pressure.shares["images"] == 0.0


def test_thinking_counts_within_the_open_loop_only() -> None:
    thought = {"type": "thinking", "thinking": "x" * 1000, "signature": "s"}
    call = Message("assistant", "", tool_calls=(ToolCall("a", "b"),), thinking=(thought,), id=2)
    loop = [Message("user", "a", id=1), call, Message("tool", "r", tool_call_id="a", id=3)]
    closed = [*loop, Message("assistant", "done", id=4), Message("user", "next", id=5)]
    assert estimate_prompt_tokens(view_of(loop), COUNTER, PromptSize()) == view_of(loop).tokens + 300
    assert estimate_prompt_tokens(view_of(closed), COUNTER, PromptSize()) == view_of(closed).tokens


# ------------------------------------------------------------------------------------------------------------- reported


def reported(rev: int, tokens: int, last: int) -> tuple[int, int, int]:
    return rev, tokens, last


def test_what_the_provider_counted_is_used_and_what_came_since_is_added() -> None:
    rows = [Message("user", "x" * 400, id=1), Message("assistant", "y" * 40, id=2), Message("user", "z" * 40, id=3)]
    view = view_of(rows, prefix_rev=7, reported=reported(7, 6_000, 1))
    pressure = measure_pressure(view, BUDGETS, COUNTER, FIXED)
    since = COUNTER.count_message(rows[1]) + COUNTER.count_message(rows[2])
    assert pressure.source == "reported" and pressure.prompt_tokens == 6_000 + since


def test_f04_a_count_of_another_view_says_nothing_about_this_one() -> None:
    view = view_of([Message("user", "hi", id=9)], prefix_rev=8, reported=reported(7, 9_900, 5))
    pressure = measure_pressure(view, BUDGETS, COUNTER, FIXED)
    assert pressure.source == "estimated" and pressure.prompt_tokens < 600
    assert pressure.ratio < 0.2


def test_thinking_that_came_since_is_added_too() -> None:
    answer = Message("assistant", "ok", id=2, thinking=(signed(1),), tool_calls=(ToolCall("a", "b"),))
    view = view_of([Message("user", "x", id=1), answer], reported=reported(0, 100, 1))
    expected = 100 + COUNTER.count_message(answer) + COUNTER.count_thinking(answer)
    assert measure_pressure(view, BUDGETS, COUNTER, FIXED).prompt_tokens == expected


def test_the_learned_factor_corrects_estimates_and_not_what_was_reported() -> None:
    counter = COUNTER.with_calibration(TokenCalibration("m", 1.5, 9))
    rows = [Message("user", "x" * 4000, id=1)]
    assert measure_pressure(view_of(rows, tokens=1_000), BUDGETS, counter, FIXED).prompt_tokens == 2_250
    assert measure_pressure(view_of(rows, reported=reported(0, 700, 1)), BUDGETS, counter, FIXED).prompt_tokens == 700


# ---------------------------------------------------------------------------------------------------------------- sizes


def test_a_message_has_bytes_of_its_words_its_arguments_and_its_pictures() -> None:
    picture = Media("image", "image/png", data=PICTURE)
    message = Message("user", "é" * 10, media=(picture, Media("file", "application/pdf", path="a.pdf")))
    assert message_bytes(message) == 20 + len(PICTURE) and message_images(message) == 1
    call = Message("assistant", "", tool_calls=(ToolCall("a", "read_file", {"path": "x" * 100}),))
    assert 100 < message_bytes(call) < 150
    assert message_bytes(Message("user", "\ud800")) == 3
    assert message_size(message, COUNTER) == PromptSize(COUNTER.count_message(message), message_bytes(message), 1)


def test_the_answer_gets_what_the_window_leaves() -> None:
    def room(prompt: int, wanted: int) -> int:
        return answer_token_limit(LIMITS, Pressure(prompt, 0, 0, BUDGETS), wanted)

    assert room(10_000, 4_096) == 4_096
    assert room(10_000, 100_000) == LIMITS.max_output
    assert room(199_000, 4_096) == 1_000
    assert room(250_000, 4_096) == 256
