"""Splits the text of a file into passages for search, each with its page, slide or sheet. Pure.

Passages are adjacent and leave out only blank lines; `start` is the byte offset at which `read_file` shows the passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.core.dataclass import dataclass
from assistant.documents.kinds import DocumentKind

MAX_PASSAGE = 4_000
"""Characters of one piece: what stands on a page of a book."""

_MARK = re.compile(r"^\[((?:page|slide) (\d{1,9}) of (\d{1,9})|part (\d{1,9})|sheet [^\n]{1,200})\]$", re.MULTILINE)
_WITH_PLACES: frozenset[DocumentKind] = frozenset(("pdf", "office"))


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text."""

    place: str  # as in "page 3"; "" if the text has no pages
    start: int  # in bytes of the text, as UTF-8
    text: str


def split_passages(text: str, kind: DocumentKind) -> list[Passage]:
    """Split a document in the format of `extract.py`, or a plain text."""
    marks = list(_MARK.finditer(text)) if kind in _WITH_PLACES else []
    bounds = [0, *(mark.start() for mark in marks), len(text)]
    places = ["", *(mark[1].partition(" of ")[0] if mark[2] else mark[1] for mark in marks)]
    bodies = [0, *(mark.end() for mark in marks)]
    passages: list[Passage] = []
    at_character = at_byte = 0
    for place, begin, body, end in zip(places, bounds, bodies, bounds[1:], strict=False):
        for first, last in _pieces(text, body, end):
            # The first passage of a page begins with the page mark, for readers.
            first_shown = begin if first == body else first
            at_byte += len(text[at_character:first_shown].encode("utf-8", "replace"))
            at_character = first_shown
            if text[first:last].strip():
                passages.append(Passage(place, at_byte, text[first:last].strip()))
    return passages


def count_places(passages: Sequence[Passage]) -> int:
    """Return how many pages, slides, sheets or parts have text."""
    return len({passage.place for passage in passages if passage.place})


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of a long text, cut at paragraphs, else at lines, else at words."""
    while end - start > MAX_PASSAGE:
        limit = start + MAX_PASSAGE
        half = start + MAX_PASSAGE // 2
        cut = next((place for gap in ("\n\n", "\n", " ") if (place := text.rfind(gap, half, limit)) >= 0), limit)
        yield start, cut
        start = cut
    yield start, end
