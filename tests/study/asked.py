"""What a request to the Messages API says: which purpose it has, and where in it some words stand. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from assistant.runtime.recall import HISTORY_MARK
from tests.strict.count import as_blocks, without_marks

Purpose = Literal["chat", "summary", "extraction"]
Place = Literal["summary", "view", "recalled", "searched"]

Body = dict[str, Any]


def purpose_of(body: Body) -> Purpose:
    """By what the prompt asks for: a summary, a list of memories, or an answer."""
    asking = _first_system_text(body) + _last_text(body)
    if "<summary>" in asking and "</summary>" in asking:
        return "summary"
    return "extraction" if "</memories>" in asking else "chat"


def all_text(body: Body) -> str:
    """Every word of the messages and the system blocks."""
    blocks = [*as_blocks(body.get("system", "")), *(block for _, block in _blocks(body))]
    return "\n".join(text for block in blocks for text in _texts(block))


def results(body: Body) -> str:
    """The words of the tool results that the newest message brings; "" where the person has the last word."""
    last = as_blocks(body["messages"][-1]["content"])
    return "\n".join(text for block in last if block["type"] == "tool_result" for text in _texts(block))


def place_of(words: str, body: Body) -> Place | None:
    """Where words stand in a request: in the history, in a summary, among what was recalled for the newest message, or
    in what a tool just brought."""
    system = as_blocks(body.get("system", ""))
    if any(words in text for block in system for text in _texts(block)):
        return "summary"
    found = [block for _, block in _blocks(body) if any(words in text for text in _texts(block))]
    if not found:
        return None
    if words in results(body) and len(found) == 1:
        return "searched"
    return "recalled" if all(HISTORY_MARK in text for block in found for text in _texts(block)) else "view"


def settled(body: Body) -> list[tuple[str, Any]]:
    """What the next request of the conversation sends again as it is unless the view was changed: the system blocks,
    and all messages before the newest one of the person."""
    messages = body["messages"]
    spoken = [n for n, message in enumerate(messages) if message["role"] == "user" and not _brings_results(message)]
    asked = max(spoken, default=0)
    system = [("system", without_marks(block)) for block in as_blocks(body.get("system", ""))]
    return [*system, *((role, without_marks(block)) for role, block in _blocks({"messages": messages[:asked]}))]


def _brings_results(message: Body) -> bool:
    return any(block["type"] == "tool_result" for block in as_blocks(message["content"]))


def _blocks(body: Body) -> Iterator[tuple[str, Any]]:
    for message in body["messages"]:
        yield from ((message["role"], block) for block in as_blocks(message["content"]))


def _texts(block: Any) -> Iterator[str]:
    if block["type"] == "text":
        yield block["text"]
    elif block["type"] == "tool_result":
        yield from (text for part in as_blocks(block.get("content", "")) for text in _texts(part))


def _first_system_text(body: Body) -> str:
    return next((block["text"] for block in as_blocks(body.get("system", ""))), "")


def _last_text(body: Body) -> str:
    last = as_blocks(body["messages"][-1]["content"])
    return last[-1]["text"] if last and last[-1]["type"] == "text" else ""
