"""Long answers in a conversation, page by page: nobody reads, and no network takes, ten thousand lines at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assistant.core.errors import UsageError

PAGE_LINES = 120


def page_of(text: str, number: int, line: str) -> str:
    """The page of an answer to `line`, and how to get the next one. Raises `UsageError` for one behind the last."""
    lines = text.split("\n")
    pages = max(1, math.ceil(len(lines) / PAGE_LINES))
    if number > pages:
        raise UsageError(f"There are {pages} pages, and no page {number}.")
    if pages == 1:
        return text
    shown = lines[(number - 1) * PAGE_LINES : number * PAGE_LINES]
    more = f"; `/{line} --page {number + 1}` shows the next" if number < pages else ""
    return "\n".join([*shown, "", f"Page {number} of {pages}{more}."])


def without_page(words: Sequence[str]) -> str:
    """A typed line without its slash and the page that it names."""
    kept = [word for n, word in enumerate(words) if not (word.startswith("--page") or words[n - 1 : n] == ["--page"])]
    return " ".join(kept)
