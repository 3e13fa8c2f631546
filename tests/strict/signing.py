"""Signed thinking: what the service gave out, and whether it came back unchanged, in its place, after the same prompt.

A signature is bound to the prompt that the thinking answered. A block whose prompt has changed since (the view was
shortened, the tools or the system text are others) is refused, as current models do; without any thinking such a
message is accepted. While the prompt is the same, blocks may neither be changed nor left out of the open tool loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.strict.cache import prefix_hashes
from tests.strict.count import prompt_blocks
from tests.strict.messages_rules import SIGNED, merged

FORGED = "messages.{index}.content.{place}: Invalid `signature` in `thinking` block"
BOUND = (
    FORGED + ". The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
MODIFIED = (
    "messages.{index}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)

Block = dict[str, Any]


class Signatures:
    """What was issued: each signed block with the prompt it answered, and whole answers by their tool calls."""

    def __init__(self) -> None:
        self._signed: dict[str, tuple[Block, str]] = {}
        self._answers: dict[str, tuple[list[Block], str]] = {}

    def thinking(self, body: dict[str, Any], text: str) -> Block:
        return self._sign(body, {"type": "thinking", "thinking": text}, "signature")

    def redacted(self, body: dict[str, Any], text: str) -> Block:
        return self._sign(body, {"type": "redacted_thinking"}, "data", text)

    def remember(self, body: dict[str, Any], content: list[Block]) -> None:
        prompt = _prompt(body, len(merged(body["messages"])))
        for block in content:
            if block["type"] == "tool_use":
                self._answers[block["id"]] = (content, prompt)

    def complaints(self, body: dict[str, Any]) -> list[str]:
        turns = merged(body["messages"])
        for index, (_, blocks) in enumerate(turns):
            for place, block in enumerate(blocks):
                if block["type"] not in SIGNED:
                    continue
                issued, prompt = self._signed.get(_signature(block), (None, ""))
                if issued != block:
                    return [FORGED.format(index=index, place=place)]
                if prompt != _prompt(body, index):
                    return [BOUND.format(index=index, place=place)]
        return _loop_changed(turns, self._still_bound(body, turns))

    def _sign(self, body: dict[str, Any], block: Block, key: str, hidden: str = "") -> Block:
        prompt = _prompt(body, len(merged(body["messages"])))
        signature = hashlib.sha256(f"{prompt}|{block}|{hidden}|{len(self._signed)}".encode()).hexdigest()
        block[key] = signature
        self._signed[signature] = (block, prompt)
        return block

    def _still_bound(self, body: dict[str, Any], turns: list[tuple[str, list[Block]]]) -> dict[str, list[Block]]:
        """Answers, by their tool calls, that stand behind the prompt they were given to."""
        kept: dict[str, list[Block]] = {}
        for index, (_, blocks) in enumerate(turns):
            for call_id in (block["id"] for block in blocks if block["type"] == "tool_use"):
                content, prompt = self._answers.get(call_id, ([], ""))
                if prompt == _prompt(body, index):
                    kept[call_id] = content
        return kept


def unchanged(messages: list[dict[str, Any]], issued: Mapping[str, list[Block]]) -> list[str]:
    """Complaints about thinking that is not what was issued, prompts aside. `issued`: content by the id of a tool call
    in it."""
    turns = merged(messages)
    signed = [block for content in issued.values() for block in content if block["type"] in SIGNED]
    for index, (_, blocks) in enumerate(turns):
        for place, block in enumerate(blocks):
            if block["type"] in SIGNED and block not in signed:
                return [FORGED.format(index=index, place=place)]
    return _loop_changed(turns, issued)


def _loop_changed(turns: list[tuple[str, list[Block]]], issued: Mapping[str, list[Block]]) -> list[str]:
    """Whether signed blocks of the open tool loop were changed, moved or left out: backwards from the end, while the
    user only gives results. Words of the user open a new turn."""
    for index in range(len(turns) - 2, -1, -2):
        if any(block["type"] != "tool_result" for block in turns[index + 1][1]):
            break
        blocks = turns[index][1]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if calls and calls[0] in issued and _order(blocks) != _order(issued[calls[0]]):
            return [MODIFIED.format(index=index)]
    return []


def _signature(block: Block) -> str:
    return str(block.get("signature") or block.get("data"))


def _order(blocks: list[Block]) -> list[Any]:
    """The order of blocks, signed ones whole; neighbouring texts are one."""
    kinds = [block if block["type"] in SIGNED else block["type"] for block in blocks]
    return [kind for index, kind in enumerate(kinds) if kind != "text" or index == 0 or kinds[index - 1] != "text"]


def _prompt(body: dict[str, Any], turns: int) -> str:
    """Hash of tools, system and the first `turns` messages, neighbours of one role merged."""
    messages = [{"role": role, "content": blocks} for role, blocks in merged(body["messages"])[:turns]]
    return prefix_hashes("", list(prompt_blocks({**body, "messages": messages})))[-1]
