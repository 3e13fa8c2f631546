"""Signed thinking: what the service gave out, and whether it came back unchanged, in its place, after the same prompt.

A signature is bound to the prompt that the thinking answered. A block whose prompt has changed since (the view was
shortened, the tools or the system text are others) is refused, as current models do.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.strict.cache import prefix_hashes
from tests.strict.count import prompt_blocks
from tests.strict.messages_rules import SIGNED, merged

BOUND = (
    "messages.{index}.content.{place}: Invalid `signature` in `thinking` block. The block is bound to a different "
    'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


class Signatures:
    """What was issued: content by tool_use id, and the prompt of each signature."""

    def __init__(self) -> None:
        self.issued: dict[str, list[dict[str, Any]]] = {}
        self._prompts: dict[str, str] = {}

    def sign(self, body: dict[str, Any], thinking: str) -> str:
        prompt = _prompt_hash(body, len(merged(body["messages"])))
        signature = hashlib.sha256(f"{prompt}|{thinking}|{len(self._prompts)}".encode()).hexdigest()
        self._prompts[signature] = prompt
        return signature

    def remember(self, content: list[dict[str, Any]]) -> None:
        for block in content:
            if block["type"] == "tool_use":
                self.issued[block["id"]] = content

    def bound(self, body: dict[str, Any]) -> list[str]:
        """Complaints about thinking whose prompt has changed."""
        for index, (_, blocks) in enumerate(merged(body["messages"])):
            for place, block in enumerate(blocks):
                if block["type"] in SIGNED:
                    signature = block.get("signature") or block.get("data")
                    if self._prompts.get(signature) != _prompt_hash(body, index):
                        return [BOUND.format(index=index, place=place)]
        return []


def _prompt_hash(body: dict[str, Any], turns: int) -> str:
    """Of tools, system and the first `turns` messages, neighbours of one role merged."""
    messages = [{"role": role, "content": blocks} for role, blocks in merged(body["messages"])[:turns]]
    return prefix_hashes("", list(prompt_blocks({**body, "messages": messages})))[-1]
