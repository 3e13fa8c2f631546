"""What the rules found in a sentence, kept while the same text is gone through again and again.

A compaction, and what prepares it, asks several times about each of some thousand sentences. Once they have left the
view nobody asks about them any more, and what is kept of them would take five megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

# Results to keep: of what a long text is gone through for again, and of what is only asked while one sentence is read.
IN_A_TEXT, WITHIN_A_SENTENCE = 512, 256

Function = TypeVar("Function", bound=Callable[..., Any])
_forget: list[Callable[[], None]] = []


def cached_by_sentence(kept: int) -> Callable[[Function], Function]:
    """Remember the last `kept` results of a function of a sentence or a clause, until `forget_sentences`."""

    def remember(function: Function) -> Function:
        cached = lru_cache(maxsize=kept)(function)
        _forget.append(cached.cache_clear)
        return cast(Function, cached)

    return remember


def call_when_forgotten(forget: Callable[[], None]) -> None:
    """Let `forget_sentences` free something else as well."""
    _forget.append(forget)


def forget_sentences() -> None:
    """Free what is remembered. Harmless while another thread uses it."""
    for forget in _forget:
        forget()
