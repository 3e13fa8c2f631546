"""Long texts in the working context: both ends, what is missing, how to read it back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.context.pressure import utf8_length
from assistant.context.tokens import estimate_tokens
from assistant.context.truncate import (
    TruncationPolicy,
    original_words,
    truncate_for_view,
    truncate_to_reference,
    without_image_data,
)
from assistant.core.messages import LOOKUP_TOOLS, LogByteRange, Media, Message, ToolCall
from assistant.core.records import LogLocation

PLACE = LogLocation("main", "log/main/conversation.jsonl", LogByteRange(12_340, 98_700))
TOKENS = TruncationPolicy("tokens", 5000)
LINES = "".join(f"line {n}: something happened here\n" for n in range(3000))


def output(text: str, message_id: int | None = 812) -> Message:
    return Message("tool", text, id=message_id, tool_call_id="call_1", name="read_file")


def test_a_long_result_keeps_both_its_ends_and_counts_what_is_missing() -> None:
    shown = truncate_for_view(output(LINES), PLACE, TOKENS, estimate_tokens)
    lines = shown.content.split("\n")
    assert lines[0] == "Total output lines: 3000"
    assert lines[1] == "line 0: something happened here"
    assert lines[-3] == "line 2999: something happened here"
    marker = next(line for line in lines if "truncated…" in line)
    removed = int(marker.removeprefix("…").removesuffix(" tokens truncated…"))
    kept = estimate_tokens(LINES) - removed
    assert 5000 < kept <= 6000 and estimate_tokens(shown.content) <= 6000
    assert shown.metadata["truncated"] == {"removed": removed, "unit": "tokens", "lines": 3000}


def test_the_reference_says_where_the_rest_is_and_how_to_read_it() -> None:
    reference = truncate_for_view(output(LINES), PLACE, TOKENS, estimate_tokens).content.rsplit("\n", 1)[1]
    assert "message 812" in reference and "read_history(message_id=812)" in reference
    assert "log/main/conversation.jsonl bytes 12340-98700" in reference
    assert 'What is left out begins: "' in reference


def test_a_result_without_an_id_is_read_back_by_its_bytes() -> None:
    shown = truncate_for_view(output(LINES, None), PLACE, TOKENS, estimate_tokens)
    assert 'read_history(session="main", start=12340, end=98700)' in shown.content


def test_the_bytes_policy_counts_bytes_and_names_characters() -> None:
    shown = truncate_for_view(output("é" * 100_000), PLACE, TruncationPolicy("bytes", 20_000), estimate_tokens)
    assert 23_000 < utf8_length(shown.content) <= 24_000
    assert " chars truncated…" in shown.content and shown.metadata["truncated"]["unit"] == "chars"


def test_the_policy_none_leaves_everything() -> None:
    message = output(LINES)
    assert truncate_for_view(message, PLACE, TruncationPolicy("none", 100), estimate_tokens) is message


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_only_tool_results_are_cut_when_they_are_written(role: str) -> None:
    message = Message(role, LINES, id=1)  # type: ignore[arg-type]
    assert truncate_for_view(message, PLACE, TOKENS, estimate_tokens) is message


def test_a_result_within_the_allowance_is_left_whole() -> None:
    message = output("x" * 19_000)
    assert estimate_tokens(message.content) == 5700
    assert truncate_for_view(message, PLACE, TOKENS, estimate_tokens) is message


@pytest.mark.parametrize(
    ("split", "head", "tail"), [(0.0, 0, 6000), (0.5, 3000, 3000), (0.9, 5400, 600), (1.0, 6000, 0)]
)
def test_the_split_is_settable(split: float, head: int, tail: int) -> None:
    shown = truncate_for_view(
        output("a" * 50_000 + "b" * 50_000), PLACE, TruncationPolicy("tokens", 5000, 1.2, split), estimate_tokens
    ).content
    assert estimate_tokens("a" * shown.count("a" * 10) * 10) == pytest.approx(head, abs=160)
    assert estimate_tokens("b" * shown.count("b" * 10) * 10) == pytest.approx(tail, abs=160)


def test_a_fifty_megabyte_result_measures_a_few_times_its_limit_only() -> None:
    measured: list[int] = []

    def count(text: str) -> int:
        measured.append(len(text))
        return estimate_tokens(text)

    shown = truncate_for_view(output("x" * 50_000_000), PLACE, TOKENS, count)
    assert estimate_tokens(shown.content) <= 6000
    whole = [size for size in measured if size > 1_000_000]
    assert len(whole) <= 2 and sum(measured) - sum(whole) < 60 * 24_000


def test_a_cut_never_falls_inside_a_character() -> None:
    family = "👩\u200d👩\u200d👧\u200d👦"
    for cluster in (family, "e\u0301\u0323", "👍\U0001f3fd", "\ud83d\ude00", "ก็", "❤\ufe0f"):
        for limit in range(100, 140):
            shown = truncate_for_view(
                output(cluster * 2000), PLACE, TruncationPolicy("bytes", limit * 10, 1.0), estimate_tokens
            ).content
            kept = "".join(line for line in shown.split("\n") if line and line[0] in cluster)
            assert kept.replace(cluster, "") == ""


def test_f06_a_giant_message_is_shown_by_reference_with_both_its_ends() -> None:
    giant = Message("user", "START " + "word " * 600_000 + " END", id=7)
    shown = truncate_to_reference(giant, PLACE, 2000, estimate_tokens)
    assert estimate_tokens(shown.content) <= 2000
    assert "START word" in shown.content and " END\n[Shortened" in shown.content
    assert "read_history(message_id=7)" in shown.content
    assert (shown.role, shown.id) == ("user", 7)


@pytest.mark.parametrize("tool", sorted(LOOKUP_TOOLS))
def test_the_result_of_a_lookup_keeps_its_beginning_and_says_from_which_character_it_goes_on(tool: str) -> None:
    found = Message("tool", "".join(f"#{n} user: what was said\n" for n in range(900)), id=7, name=tool)
    once = truncate_to_reference(found, PLACE, 400, estimate_tokens)
    for shown in (once, truncate_to_reference(once, PLACE, 200, estimate_tokens)):
        offset = re.search(r"read_history\(message_id=7, offset=(\d+)\)", shown.content)
        assert offset is not None
        kept = found.content[: int(offset[1])]
        assert f"\n{kept}\n…" in shown.content and len(kept) > 100
        assert f'What is left out begins: "{found.content[len(kept) :].split()[0]}' in shown.content


def test_what_was_cut_once_can_be_cut_again_and_still_counts_from_the_whole() -> None:
    once = truncate_for_view(output(LINES), PLACE, TOKENS, estimate_tokens)
    twice = truncate_to_reference(once, PLACE, 200, estimate_tokens)
    assert estimate_tokens(twice.content) <= 200
    assert twice.content.count("Total output lines: 3000") == 1
    assert twice.content.count("truncated…") == 1 and twice.content.count("[Shortened") == 1
    assert twice.metadata["truncated"]["removed"] == pytest.approx(estimate_tokens(LINES), rel=0.01)


def test_a_shortened_answer_loses_its_thinking_which_was_signed_for_the_whole() -> None:
    answer = Message("assistant", LINES, id=3, thinking=({"type": "thinking"},), tool_calls=(ToolCall("a", "b"),))
    shown = truncate_to_reference(answer, PLACE, 400, estimate_tokens)
    assert shown.thinking == () and shown.tool_calls == answer.tool_calls


def test_what_fits_is_not_touched() -> None:
    message = Message("assistant", "short", id=3, thinking=({"type": "thinking"},))
    assert truncate_to_reference(message, PLACE, 400, estimate_tokens) is message


def test_pictures_taken_out_keep_their_names() -> None:
    picture = Media("image", "image/png", "cat.png", 3, data="aGk=")
    assert without_image_data(Message("user", "see", media=(picture,))).media == (
        Media("image", "image/png", "cat.png", 3),
    )


texts = st.one_of(
    st.text(min_size=0, max_size=3000),
    st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=30), st.integers(1, 2000)),
)
policies = st.builds(
    TruncationPolicy,
    st.sampled_from(["tokens", "bytes"]),
    st.integers(1, 3000),
    st.floats(1.0, 2.0),
    st.floats(0.0, 1.0),
)


@settings(max_examples=100, deadline=None, database=None)
@given(texts, policies)
def test_a_result_is_never_longer_than_its_limit(text: str, policy: TruncationPolicy) -> None:
    measure = estimate_tokens if policy.kind == "tokens" else utf8_length
    shown = truncate_for_view(output(text), PLACE, policy, estimate_tokens)
    assert measure(shown.content) <= policy.allowed
    if measure(text) <= policy.allowed:
        assert shown.content == text
    else:
        assert shown.metadata["truncated"]["removed"] > 0


@settings(max_examples=100, deadline=None, database=None)
@given(texts, st.integers(20, 2000), st.integers(20, 2000))
def test_shortening_by_reference_holds_its_bound_however_often(text: str, first: int, second: int) -> None:
    message = truncate_to_reference(output(text), PLACE, first, estimate_tokens)
    again = truncate_to_reference(message, PLACE, second, estimate_tokens)
    assert estimate_tokens(message.content) <= max(first, 0)
    assert estimate_tokens(again.content) <= second


@pytest.mark.parametrize("keep", [60, 300])
def test_of_a_message_that_was_cut_twice_both_ends_are_left_and_no_word_of_the_cut(keep: int) -> None:
    said = Message("user", f"First of all, hello.\n{LINES}Where is the key?", id=812)
    once = truncate_to_reference(said, PLACE, 2_000, estimate_tokens)
    assert original_words(said) == said.content
    for shown in (once, truncate_to_reference(once, PLACE, keep, estimate_tokens)):
        left = original_words(shown)
        assert left.startswith("First of all, hello.") and left.endswith("Where is the key?")
        assert not any(word in left for word in ("truncated", "output lines", "Shortened", "read_history"))
