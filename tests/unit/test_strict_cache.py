"""The strict server's prompt cache: what is written, read and forgotten, in tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.strict.cache import LIFE_SECONDS, PromptCache


class SettableSeconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> SettableSeconds:
    return SettableSeconds()


@pytest.fixture
def cache(seconds: SettableSeconds) -> PromptCache:
    return PromptCache(seconds, least_tokens=50)


def text(words: str, *, edge: bool = False) -> dict[str, Any]:
    """A block of 103 tokens."""
    block: dict[str, Any] = {"type": "text", "text": words.ljust(400, ".")}
    return {**block, "cache_control": {"type": "ephemeral"}} if edge else block


def body(*blocks: dict[str, Any], system: dict[str, Any] | None = None) -> dict[str, Any]:
    messages = [
        {"role": "user" if index % 2 == 0 else "assistant", "content": [block]} for index, block in enumerate(blocks)
    ]
    return {"model": "m", "system": [system] if system else [], "messages": messages}


def usage(cache: PromptCache, asked: dict[str, Any]) -> tuple[int, int, int]:
    """(input, read, written)"""
    used = cache.use(asked)
    return used["input_tokens"], used["cache_read_input_tokens"], used["cache_creation_input_tokens"]


def test_without_a_breakpoint_nothing_is_cached(cache: PromptCache) -> None:
    assert usage(cache, body(text("a"))) == (103, 0, 0)
    assert usage(cache, body(text("a"))) == (103, 0, 0)


def test_what_is_written_up_to_a_breakpoint_is_read_next_time(cache: PromptCache) -> None:
    assert usage(cache, body(text("a", edge=True), text("b"), text("c"))) == (206, 0, 103)
    assert usage(cache, body(text("a", edge=True), text("b"), text("d"))) == (206, 103, 0)


def test_a_breakpoint_further_on_reads_the_entry_before_it_and_writes_the_rest(cache: PromptCache) -> None:
    usage(cache, body(text("a", edge=True)))
    assert usage(cache, body(text("a"), text("b"), text("c", edge=True))) == (0, 103, 206)
    assert usage(cache, body(text("a"), text("b"), text("c", edge=True), text("d"))) == (103, 309, 0)


def test_a_change_before_the_breakpoint_misses(cache: PromptCache) -> None:
    usage(cache, body(text("a"), text("b", edge=True), system=text("s")))
    assert usage(cache, body(text("A"), text("b", edge=True), system=text("s")))[1] == 0
    assert usage(cache, body(text("a"), text("b", edge=True), system=text("S")))[1] == 0
    assert usage(cache, {**body(text("a"), text("b", edge=True), system=text("s")), "model": "other"})[1] == 0


def test_an_entry_dies_after_its_life_and_reading_renews_it(cache: PromptCache, seconds: SettableSeconds) -> None:
    asked = body(text("a", edge=True))
    usage(cache, asked)
    seconds.now += LIFE_SECONDS["5m"] - 1
    assert usage(cache, asked)[1] == 103
    seconds.now += LIFE_SECONDS["5m"] - 1
    assert usage(cache, asked)[1] == 103
    seconds.now += LIFE_SECONDS["5m"]
    assert usage(cache, asked) == (0, 0, 103)


def test_an_entry_that_was_asked_for_an_hour_lives_an_hour_and_is_counted_apart(
    cache: PromptCache, seconds: SettableSeconds
) -> None:
    asked = body(text("a", edge=True), text("b", edge=True))
    asked["messages"][0]["content"][0]["cache_control"]["ttl"] = "1h"
    assert cache.use(asked)["cache_creation"] == {"ephemeral_5m_input_tokens": 103, "ephemeral_1h_input_tokens": 103}
    seconds.now += LIFE_SECONDS["5m"]
    assert usage(cache, asked) == (0, 103, 103)
    seconds.now += LIFE_SECONDS["1h"]
    assert usage(cache, asked) == (0, 0, 206)


def test_an_entry_is_found_at_most_twenty_blocks_before_a_breakpoint(cache: PromptCache) -> None:
    usage(cache, body(text("start", edge=True)))
    within = [text("start"), *(text(str(n)) for n in range(19)), text("end", edge=True)]
    assert usage(cache, body(*within))[1] == 103
    beyond = [text("start"), *(text(f"x{n}") for n in range(20)), text("end", edge=True)]
    assert usage(cache, body(*beyond))[1] == 0


def test_a_prompt_that_is_too_short_is_not_cached(seconds: SettableSeconds) -> None:
    cache = PromptCache(seconds, least_tokens=104)
    asked = body(text("a", edge=True))
    assert usage(cache, asked) == usage(cache, asked) == (103, 0, 0)
