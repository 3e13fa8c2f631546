"""Streams put together: whatever a server sends, it becomes a reply or is called garbled, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.core.model_api import MAX_CALLS_IN_ANSWER, HiddenProgress, ModelReply
from assistant.models import anthropic_format, openai_format
from assistant.models.encoding import INVALID_JSON, MalformedProviderData, parse_arguments

KEYS = st.sampled_from(
    re.findall(
        r"\S+",
        """
        type index delta content_block message usage text thinking signature partial_json stop_reason stop_details
        id name input data input_tokens output_tokens choices content tool_calls function arguments finish_reason
        refusal reasoning prompt_tokens completion_tokens prompt_tokens_details cached_tokens
        """,
    )
)
WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        """
        message_start content_block_start content_block_delta content_block_stop message_delta message_stop text
        thinking redacted_thinking tool_use text_delta thinking_delta input_json_delta signature_delta end_turn
        refusal stop { x
        """,
    )
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | WORDS
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
EVENTS = st.lists(st.dictionaries(KEYS, ANY, max_size=4), max_size=6)
many = settings(max_examples=150, deadline=None, database=None)

START = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def block(index: int, **opened: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": opened}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": piece}


def claude(events: Sequence[dict[str, Any]]) -> tuple[str, ModelReply]:
    assembly = anthropic_format.AnthropicAnswer("m")
    shown = "".join(assembly.feed(event) for event in events)
    return shown, assembly.reply()


def chat(chunks: Sequence[dict[str, Any]]) -> tuple[str, ModelReply]:
    assembly = openai_format.OpenAIAnswer("m", lambda: 7)
    shown = "".join(assembly.feed(chunk) for chunk in chunks)
    return shown, assembly.reply()


@many
@given(EVENTS)
@example([START, block(0, type="tool_use", id="a", name="b", input=[]), STOP])
@example([START, block(0, type="text", text=3)])
@example([{"type": "message_delta", "delta": {}, "usage": 3}])
@example([{"type": "message_delta", "delta": {"stop_details": []}, "usage": {"input_tokens": True}}])
def test_any_events_of_anthropic_s_make_a_reply_or_are_garbled(events: list[dict[str, Any]]) -> None:
    try:
        shown, reply = claude(events)
    except MalformedProviderData:
        return
    assert reply.stop == "refusal" or shown == reply.message.content


@many
@given(EVENTS)
@example([{"choices": [{"delta": {"tool_calls": 3}}]}])
@example([{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, "finish_reason": "stop"}]}])
@example([{"choices": True, "usage": {}}])
@example([{"choices": None, "usage": {"prompt_tokens": 3, "completion_tokens": 3, "prompt_tokens_details": [1]}}])
@example([{"choices": [{"delta": {"content": ["x"]}}]}])
def test_any_chunks_make_a_reply_or_are_garbled(chunks: list[dict[str, Any]]) -> None:
    try:
        shown, reply = chat(chunks)
    except MalformedProviderData:
        return
    assert reply.stop == "refusal" or shown == reply.message.content


@given(st.text() | st.sampled_from(["NaN", "[1]", "{", '{"a": 1}', '"x"', "[" * 100_000]))
def test_any_written_arguments_are_an_object(written: str) -> None:
    assert isinstance(parse_arguments(written), dict)


@pytest.mark.parametrize("levels", [65, 900, 100_000])
def test_arguments_within_many_others_are_kept_as_they_were_written(levels: int) -> None:
    """Each later step of the conversation would fail at them, with every message that follows."""
    written = '{"a": ' + "[" * levels + "]" * levels + "}"
    assert parse_arguments(written) == {INVALID_JSON: written}
    assert parse_arguments('{"a": [[{"b": 1}]]}') == {"a": [[{"b": 1}]]}


def test_calls_without_end_are_cut_off() -> None:
    call = {"index": 0, "id": "", "function": {"name": "look", "arguments": "{}"}}
    many_calls = [{"choices": [{"delta": {"tool_calls": [call | {"index": at}]}}]} for at in range(20_000)]
    answer = openai_format.OpenAIAnswer("m", lambda: 7)
    taken = sum(not answer.is_endless and answer.feed(chunk) == "" for chunk in many_calls)
    assert taken < 12_000 and answer.is_endless
    assert len(answer.reply().message.tool_calls) == MAX_CALLS_IN_ANSWER
    answer.cut_off()
    assert answer.finished and answer.reply().stop == "max_tokens" and not answer.reply().message.tool_calls
    blocks = [block(at, type="tool_use", id=f"c{at}", name="look") for at in range(200)]
    assert len(claude([START, *blocks, STOP])[1].message.tool_calls) == MAX_CALLS_IN_ANSWER


@pytest.mark.parametrize("thinking", [True, False])
def test_thinking_and_arguments_without_end_are_cut_off_and_billed(thinking: bool) -> None:
    opened = block(0, type="thinking") if thinking else block(0, type="tool_use", id="c", name="look")
    answer = anthropic_format.AnthropicAnswer("m")
    kind = {"type": "thinking_delta", "thinking": "x" * 100_000}
    kind = kind if thinking else {"type": "input_json_delta", "partial_json": "x" * 100_000}
    events = [START, opened, *[delta(0, **kind)] * 30]
    hidden = 0
    for event in events:
        hidden += sum(it.characters for it in answer.progress(answer.feed(event)) if isinstance(it, HiddenProgress))
        if answer.is_endless:
            break
    assert hidden == 2_100_000
    answer.cut_off()
    reply = answer.reply()
    assert (reply.stop, reply.message.tool_calls, reply.message.thinking) == ("max_tokens", (), ())
    assert reply.usage.output == 525_000


def test_two_texts_of_one_answer_are_two_paragraphs() -> None:
    events = [START, block(0, type="text", text=""), delta(0, type="text_delta", text="One."), block(1, type="text")]
    shown, reply = claude([*events, delta(1, type="text_delta", text="Two."), STOP])
    assert shown == reply.message.content == "One.\n\nTwo."


def test_text_that_comes_whole_with_its_block_is_shown() -> None:
    shown, reply = claude([START, block(0, type="text", text="Whole."), STOP])
    assert shown == reply.message.content == "Whole."


def test_events_and_blocks_of_new_types_are_passed_over() -> None:
    events = [START, {"type": "news"}, block(0, type="web_search_result", found=[]), block(1, type="text", text="ok")]
    assert claude([*events, STOP])[1].message.content == "ok"


@pytest.mark.parametrize(
    "event",
    [
        delta(0, type="text_delta", text="lost"),
        block(3, type="text", text=""),
        {"type": "message_start", "message": {}},
        {"no": "type"},
    ],
)
def test_what_has_no_place_is_garbled(event: dict[str, Any]) -> None:
    with pytest.raises(MalformedProviderData):
        claude([START, event])


def test_usage_is_what_was_told_last_and_an_estimate_until_then() -> None:
    assembly = anthropic_format.AnthropicAnswer("m")
    for event in (START, block(0, type="text", text=""), delta(0, type="text_delta", text="x" * 40)):
        assembly.feed(event)
    assert (assembly.usage.input, assembly.usage.output) == (9, 10)
    assembly.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 6}})
    assembly.feed(STOP)
    assert assembly.reply().usage.output == 6


def test_reasoning_that_is_not_shown_counts_in_the_estimate() -> None:
    pieces: list[dict[str, Any]] = [{"reasoning_content": "x" * 40}, {"content": "yes!"}]
    _, reply = chat([{"choices": [{"delta": piece, "finish_reason": "stop"}]} for piece in pieces])
    assert (reply.message.content, reply.usage.output, reply.usage.input) == ("yes!", 11, 7)


def test_arguments_that_come_as_an_object_are_taken() -> None:
    piece = {"tool_calls": [{"id": "c", "function": {"name": "look", "arguments": {"at": "x"}}}]}
    _, reply = chat([{"choices": [{"delta": piece, "finish_reason": "tool_calls"}]}])
    assert dict(reply.message.tool_calls[0].arguments) == {"at": "x"}


def test_a_new_id_at_a_known_index_is_another_call() -> None:
    pieces = [{"index": 0, "id": one, "function": {"name": "look", "arguments": "{}"}} for one in ("a", "b")]
    _, reply = chat([{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces])
    assert [call.id for call in reply.message.tool_calls] == ["a", "b"]
