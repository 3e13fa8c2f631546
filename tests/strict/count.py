"""How the strict server counts tokens: four characters of text are one, each message and block costs a little, an
image costs a fixed number. Deterministic, and additive over the blocks of a prompt, so that cached parts add up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

IMAGE_TOKENS = 1_500
BLOCK_TOKENS = 3


def count_tokens(body: dict[str, Any]) -> int:
    """Tokens of the prompt of a Messages or a Chat Completions body."""
    return sum(block_tokens(block) for _, block in prompt_blocks(body))


def prompt_blocks(body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The prompt in the order in which it is cached: tools, system, messages; each block with its place."""
    for tool in body.get("tools", ()):
        yield "tool", tool
    yield from (("system", block) for block in as_blocks(body.get("system", "")))
    for message in body["messages"]:
        role = str(message["role"])
        yield from ((role, block) for block in as_blocks(message.get("content") or ""))
        yield from ((role, call) for call in message.get("tool_calls") or ())


def as_blocks(content: Any) -> list[Any]:
    """Content as blocks: a string is one text block, an empty one is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def block_tokens(block: Any) -> int:
    if isinstance(block, dict) and block.get("type") in ("image", "image_url"):
        return IMAGE_TOKENS
    if isinstance(block, dict) and block.get("type") == "text":
        return BLOCK_TOKENS + (len(block["text"]) + 3) // 4
    if isinstance(block, dict) and block.get("type") == "tool_result":
        return BLOCK_TOKENS + sum(block_tokens(part) for part in as_blocks(block.get("content", "")))
    return BLOCK_TOKENS + (len(json.dumps(without_marks(block), ensure_ascii=False)) + 3) // 4


def without_marks(block: Any) -> Any:
    """A block without its cache breakpoint: marks are no part of what is cached."""
    return {key: value for key, value in block.items() if key != "cache_control"} if isinstance(block, dict) else block
