"""The piece of a text that answers a question best, in its own words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assistant.core.text import lazy_regex

EXCERPT = 240
"""About how many characters an excerpt has; never more than a third above."""

_SLACK = EXCERPT // 3
_SENTENCE = lazy_regex(r"(?<=[.!?…:;])\s+|\s*\n\s*|(?<=[。！？])")
_SPACE = lazy_regex(r"\s+")


@dataclass(frozen=True, slots=True)
class Spot:
    """A word of the question at characters [start, end) of a text."""

    start: int
    end: int
    word: int


def best_passage(spots: Sequence[Spot], idf: Sequence[float], width: int) -> tuple[float, int, int]:
    """(worth, first, last) of the run of spots within `width` characters that has the most of the question."""
    best = (0.0, 0, -1)
    counts: dict[int, int] = {}
    worth = 0.0
    first = 0
    for last, spot in enumerate(spots):
        seen = counts.get(spot.word, 0)
        counts[spot.word] = seen + 1
        worth += idf[spot.word] * (1.0 if not seen else 0.1)
        while spot.end - spots[first].start > width and first < last:
            out = spots[first].word
            counts[out] -= 1
            worth -= idf[out] * (1.0 if not counts[out] else 0.1)
            first += 1
        if worth > best[0]:
            best = (worth, first, last)
    return best


def excerpt(text: str, spots: Sequence[Spot], idf: Sequence[float]) -> str:
    """About 300 characters of `text` around the passage with the most of the question's words, from the start of a
    sentence to the end of one where that fits; runs of white space become one space. "…" stands where text was left
    out. A text without any of the words gives its beginning."""
    _, first, last = best_passage(spots, idf, EXCERPT)
    core = (spots[first].start, spots[last].end) if last >= first else (0, 0)
    start, end = _widened(text, *core)
    piece = _SPACE.sub(" ", text[start:end]).strip()
    before = "… " if text[:start].strip() else ""
    after = " …" if text[end:].strip() else ""
    return f"{before}{piece}{after}"


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """The passage with the rest of its sentences, as far as there is room."""
    end = min(end, start + EXCERPT + _SLACK)
    room = max(0, EXCERPT - (end - start))
    begin = _sentence_start(text, start, room + _SLACK // 2)
    finish = _sentence_end(text, end, max(0, EXCERPT - (end - begin)) + _SLACK // 2)
    return begin, finish


def _sentence_start(text: str, at: int, room: int) -> int:
    """The earliest start of a sentence within `room` characters before `at`, but rather not so early that nothing is
    left for what follows; else the start of a word."""
    low = max(0, at - room)
    if low == 0:
        return 0
    starts = [match.end() for match in _SENTENCE.finditer(text, low, at) if match.end() <= at]
    if starts:
        # The answer tends to follow the words of the question: of several sentences before, only the nearest.
        return starts[-1]
    space = text.find(" ", max(low, at - _SLACK // 2), at)
    return space + 1 if space >= 0 else max(low, at - _SLACK // 2)


def _sentence_end(text: str, at: int, room: int) -> int:
    """The last end of a sentence within `room` characters after `at`, else the end of a word."""
    high = min(len(text), at + room)
    if high == len(text):
        return high
    ends = [match.start() for match in _SENTENCE.finditer(text, at, high)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", at, high)
    return space if space > at else high
