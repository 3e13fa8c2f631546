"""The prompt cache as Anthropic's API describes it, by prefix, with usage numbers.

A breakpoint writes an entry for the prompt up to and including its block. A later request reads the longest entry that
lies at one of its own breakpoints or at most 20 blocks before one. An entry lives five minutes, or one hour where its
breakpoint asks for that (`ttl`), and reading it renews its life. Prompts below the least cacheable length are not
cached. Time is injected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.strict.count import block_tokens, prompt_blocks, without_marks

LIFE_SECONDS: Mapping[str, float] = {"5m": 300.0, "1h": 3600.0}
LEAST_TOKENS = 512
LOOK_BACK = 20


class PromptCache:
    """Entries by hash of their prefix. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], *, least_tokens: int = LEAST_TOKENS) -> None:
        self._clock = clock
        self._least_tokens = least_tokens
        self.paid_in_full: list[Any] = []  # the blocks of the last request that were neither read nor written
        self._expires: dict[str, tuple[float, float]] = {}  # when it ends, and how long it lives from each reading on

    def use(self, body: dict[str, Any]) -> dict[str, Any]:
        """Read and write the entries of a request; its usage as the API reports it."""
        now = self._clock()
        blocks = list(prompt_blocks(body))
        sizes = [block_tokens(block) for _, block in blocks]
        hashes = prefix_hashes(body["model"], blocks)
        marks = [index for index, (_, block) in enumerate(blocks) if _marked(block)]
        read_to = self._longest(hashes, marks, now)
        if read_to >= 0:
            _, life = self._expires[hashes[read_to]]
            self._expires[hashes[read_to]] = (now + life, life)
        written = {"5m": 0, "1h": 0}
        end = read_to
        for mark in marks:
            if sum(sizes[: mark + 1]) >= self._least_tokens:
                ttl = lifetime_of(blocks[mark][1])
                life = max(LIFE_SECONDS[ttl], self._expires.get(hashes[mark], (0.0, 0.0))[1])
                self._expires[hashes[mark]] = (now + life, life)
                written[ttl] += sum(sizes[end + 1 : mark + 1])
                end = max(end, mark)
        self.paid_in_full = [without_marks(block) for _, block in blocks[end + 1 :]]
        read = sum(sizes[: read_to + 1])
        return {
            "input_tokens": sum(sizes) - read - sum(written.values()),
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": count for ttl, count in written.items()},
        }

    def _longest(self, hashes: list[str], marks: list[int], now: float) -> int:
        """Index of the last block of the longest live entry within reach; -1 for none."""
        within = {index for mark in marks for index in range(max(0, mark - LOOK_BACK), mark + 1)}
        return max((index for index in within if self._expires.get(hashes[index], (0.0, 0.0))[0] > now), default=-1)


def lifetime_of(block: dict[str, Any]) -> str:
    """What a breakpoint asks for: "5m" or "1h"."""
    return str(block["cache_control"].get("ttl", "5m"))


def _marked(block: Any) -> bool:
    return isinstance(block, dict) and bool(block.get("cache_control"))


def prefix_hashes(model: str, blocks: list[tuple[str, Any]]) -> list[str]:
    """For each block the hash of the prompt up to and including it."""
    running = hashlib.sha256(model.encode())
    hashes: list[str] = []
    for place, block in blocks:
        running.update(json.dumps([place, without_marks(block)], sort_keys=True).encode())
        hashes.append(running.hexdigest())
    return hashes
