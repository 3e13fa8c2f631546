"""The strict server is strict: what the real services refuse, it refuses, in their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.strict.validate import RequestLimits, validate_chat, validate_messages

Change = Callable[[dict[str, Any]], Any]

TEXT = {"type": "text", "text": "hi"}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def conversation() -> dict[str, Any]:
    """A body that is accepted: a user, a call, its result."""
    return {
        "model": "m",
        "max_tokens": 100,
        "system": [dict(TEXT)],
        "tools": [dict(TOOL)],
        "messages": [
            {"role": "user", "content": [dict(TEXT)]},
            {"role": "assistant", "content": [dict(TEXT), dict(USE)]},
            {"role": "user", "content": [dict(RESULT), dict(TEXT)]},
        ],
    }


MESSAGES_REFUSALS: dict[str, tuple[Change, str]] = {
    "no model": (lambda b: b.pop("model"), "model: Field required"),
    "no cap": (lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
    "cap of zero": (lambda b: b.update(max_tokens=0), "max_tokens: Input should be"),
    "cap too high": (lambda b: b.update(max_tokens=10**6), "maximum allowed number of output tokens"),
    "no messages": (lambda b: b.update(messages=[]), "at least one message is required"),
    "temperature": (lambda b: b.update(temperature=1.0), "`temperature` is not supported"),
    "unknown parameter": (lambda b: b.update(frequency=1), "frequency: Extra inputs are not permitted"),
    "manual thinking": (lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 2000}), "thinking:"),
    "system role": (lambda b: b["messages"][0].update(role="system"), "Unexpected role"),
    "first role": (lambda b: b["messages"].pop(0), 'first message must use the "user" role'),
    "prefill": (lambda b: b["messages"].append({"role": "assistant", "content": "So "}), "assistant message prefill"),
    "orphan result": (lambda b: b["messages"].pop(1), "unexpected `tool_use_id` found in `tool_result` blocks: t1"),
    "missing result": (lambda b: b["messages"][2]["content"].pop(0), "`tool_use` ids were found without"),
    "result after text": (lambda b: b["messages"][2]["content"].reverse(), "`tool_use` ids were found without"),
    "result of another id": (lambda b: b["messages"][2]["content"][0].update(tool_use_id="t2"), "t2"),
    "two results": (lambda b: b["messages"][2]["content"].insert(0, dict(RESULT)), "must have a single result"),
    "one id twice": (lambda b: b["messages"][1]["content"].append(dict(USE)), "`tool_use` ids must be unique"),
    "empty text": (lambda b: b["messages"][0]["content"].append({"type": "text", "text": ""}), "must be non-empty"),
    "blank text": (lambda b: b["messages"][0].update(content=" \n"), "must contain non-whitespace text"),
    "empty content": (lambda b: b["messages"][0].update(content=[]), "must have non-empty content"),
    "empty system block": (lambda b: b["system"].append({"type": "text", "text": ""}), "must be non-empty"),
    "field of its own": (lambda b: b["messages"][0]["content"][0].update(name="x"), "Extra inputs are not permitted"),
    "field of a message": (lambda b: b["messages"][0].update(name="x"), "Extra inputs are not permitted"),
    "call by the user": (lambda b: b["messages"][0]["content"].append(dict(USE)), "does not match any of the expected"),
    "name with a space": (lambda b: b["messages"][1]["content"][1].update(name="look at"), "should match pattern"),
    "id with a dot": (lambda b: b["messages"][1]["content"][1].update(id="t.1"), "should match pattern"),
    "input as text": (lambda b: b["messages"][1]["content"][1].update(input="{}"), "valid dictionary"),
    "schema of no object": (lambda b: b["tools"][0].update(input_schema={"type": "string"}), "should be 'object'"),
    "one tool twice": (lambda b: b["tools"].append(dict(TOOL)), "Tool names must be unique"),
    "five breakpoints": (
        lambda b: (
            [x.update(MARK) for x in (*b["system"], *b["tools"], *b["messages"][2]["content"])]
            + [b["messages"][i]["content"][0].update(MARK) for i in (0, 1)]
        ),
        "A maximum of 4 blocks with cache_control may be provided. Found 6",
    ),
    "image type": (
        lambda b: b["messages"][0]["content"].append(
            {"type": "image", "source": {**IMAGE["source"], "media_type": "image/tiff"}}  # type: ignore[dict-item]
        ),
        "media_type",
    ),
    "image that is none": (
        lambda b: b["messages"][0]["content"].append(
            {"type": "image", "source": {**IMAGE["source"], "data": "???"}}  # type: ignore[dict-item]
        ),
        "invalid base64",
    ),
    "image too large": (
        lambda b: b["messages"][0]["content"].append(
            {"type": "image", "source": {**IMAGE["source"], "data": "A" * 7_000_000}}  # type: ignore[dict-item]
        ),
        "image exceeds 5 MB maximum",
    ),
    "thinking at the end": (
        lambda b: (
            b["messages"].insert(
                1, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]}
            )
            or b["messages"].insert(2, {"role": "user", "content": "go on"})
        ),
        "cannot be `thinking`",
    ),
    "breakpoint on thinking": (
        lambda b: b["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "", "signature": "s", **MARK}),
        "Extra inputs are not permitted",
    ),
    "lone surrogate": (lambda b: b["messages"][0].update(content="a\ud800"), "not valid JSON"),
    "window": (lambda b: b["messages"][0].update(content="word " * 4000), "prompt is too long: "),
    "images": (lambda b: b["messages"][0]["content"].extend([IMAGE] * 4), "Too much media"),
}

CHAT_REFUSALS: dict[str, tuple[Change, str]] = {
    "no model": (lambda b: b.pop("model"), "model parameter"),
    "no messages": (lambda b: b.update(messages=[]), "empty array"),
    "unknown parameter": (lambda b: b.update(top_k=1), "Unrecognized request argument supplied: top_k"),
    "cap too high": (lambda b: b.update(max_tokens=10**6), "too large"),
    "unknown role": (lambda b: b["messages"][1].update(role="robot"), "Supported values"),
    "field of its own": (lambda b: b["messages"][1].update(refs=[]), "Additional properties"),
    "empty text": (lambda b: b["messages"][1].update(content=""), "may not be empty"),
    "no content": (lambda b: b["messages"][1].update(content=None), "expected a string"),
    "system later": (lambda b: b["messages"].append({"role": "system", "content": "x"}), "at the beginning"),
    "first role": (lambda b: b["messages"].__delitem__(slice(1, 4)), "first message must be from the user"),
    "same role twice": (lambda b: b["messages"].extend([{"role": "user", "content": "x"}] * 2), "must alternate"),
    "ends with the assistant": (
        lambda b: b["messages"].append({"role": "assistant", "content": "So"}),
        "Cannot continue from an assistant message",
    ),
    "orphan result": (lambda b: b["messages"].pop(2), "must be a response to a preceeding message"),
    "missing result": (lambda b: b["messages"].pop(3), "did not have response messages: c1"),
    "arguments that are no JSON": (
        lambda b: b["messages"][2]["tool_calls"][0]["function"].update(arguments='{"a": '),
        "Failed to parse tool call arguments",
    ),
    "id too long": (lambda b: b["messages"][2]["tool_calls"][0].update(id="x" * 41), "too long"),
    "name with a space": (
        lambda b: b["messages"][2]["tool_calls"][0]["function"].update(name="look at"),
        "function.name",
    ),
    "no calls": (lambda b: b["messages"][2].update(tool_calls=[]), "empty array"),
    "schema of no object": (lambda b: b["tools"][0]["function"].update(parameters={}), "must be of type 'object'"),
    "stream options without stream": (lambda b: b.update(stream_options={}), "only allowed when 'stream'"),
    "lone surrogate": (lambda b: b["messages"][1].update(content="a\ud800"), "no low surrogate"),
    "window": (lambda b: b["messages"][1].update(content="word " * 4000), "maximum context length is"),
}


def chat_conversation() -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    return {
        "model": "m",
        "max_tokens": 100,
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "more"},
        ],
    }


BOUNDS = RequestLimits(window=3000, max_output=1000, max_images=3)


def test_well_formed_bodies_are_accepted() -> None:
    assert validate_messages(conversation(), BOUNDS) == []
    assert validate_chat(chat_conversation(), BOUNDS) == []


@pytest.mark.parametrize(("change", "complaint"), MESSAGES_REFUSALS.values(), ids=MESSAGES_REFUSALS.keys())
def test_the_messages_api_refuses(change: Change, complaint: str) -> None:
    body = conversation()
    change(body)
    assert any(complaint in found for found in validate_messages(body, BOUNDS)), validate_messages(body, BOUNDS)


@pytest.mark.parametrize(("change", "complaint"), CHAT_REFUSALS.values(), ids=CHAT_REFUSALS.keys())
def test_chat_completions_refuses(change: Change, complaint: str) -> None:
    body = chat_conversation()
    change(body)
    found = validate_chat(body, BOUNDS)
    assert any(complaint in said for said in found), found


def test_neighbours_of_one_role_are_taken_as_one_message() -> None:
    body = conversation()
    body["messages"].insert(2, {"role": "user", "content": [dict(RESULT)]})
    body["messages"][3]["content"].pop(0)
    assert validate_messages(body, BOUNDS) == []


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    assert validate_messages(body)
    assert validate_chat(body)
