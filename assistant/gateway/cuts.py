"""Where a run of Markdown text, such as a paragraph's, can be cut in two. Pure.

What always holds: a link, an inline code, an escape and a character as people see it (a grapheme) stay whole as long as
they fit; bold and the like are cut last, closed before the cut and opened again behind it. What stands before a cut,
and what stands behind it, is still a paragraph by itself. Nothing but white space is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from markdown_it import MarkdownIt
from wcwidth import iter_graphemes

from assistant.core.text import lazy_regex
from assistant.gateway.spans import References, Span, said, spans_of

_Places = Sequence[tuple[int, int]]

_LINE = lazy_regex(r"\\?[ \t]*\n\s*")
_SENTENCE = lazy_regex(r"(?<=[.!?…])[)\]\"'»”’*_~`]*(?P<gap>\s+)|(?<=[。！？])(?P<nothing>)(?=[^。！？）」』\s])")
_WORD = lazy_regex(r"\s+")
_BLOCKS = MarkdownIt("commonmark", {"html": False}).enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
# How much behind a cut tells which kind of block it begins.
_BEGINNING = 400
# How many places are tried where the words have to be read again to see whether they mean the same.
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Room:
    """`fits` tells whether a piece fits, `beside` what is there already (True) or into a part of its own. With `beside`
    the first piece goes there. `most` bounds a piece in characters."""

    fits: Callable[[str, bool], bool]
    most: int
    beside: bool = False

    def within(self, framed: Callable[[str], str]) -> Room:
        """The same room for what is `framed` before it is placed."""
        return Room(lambda piece, beside: self.fits(framed(piece), beside), self.most, self.beside)


@dataclass(frozen=True, slots=True)
class _Cut:
    """What lies between `start` and `end` is left out; `closing` ends the first piece, `opening` begins the next."""

    start: int
    end: int
    closing: str = ""
    opening: str = ""

    @property
    def clean(self) -> bool:
        """At white space and within nothing, nothing that stays can mean something else."""
        return self.end > self.start and not self.closing


class _Text:
    """A text, its spans, and the places where it may be cut, good ones apart from poorer ones."""

    def __init__(self, text: str, references: References) -> None:
        self.text = text
        self._references = references
        self.spans = spans_of(text, references)
        self.lines = [found.span() for found in _LINE.finditer(text)]
        self.sentences = [found.span(found.lastgroup or 0) for found in _SENTENCE.finditer(text)]
        self.words = [found.span() for found in _WORD.finditer(text)]

    def around(self, start: int, end: int) -> list[Span] | None:
        """The spans that a cut would part, outermost first; None where it would fall into what cannot be parted."""
        parted = [span for span in self.spans if span.start < start and end < span.end]
        if any(start < span.inner_start or end > span.inner_end for span in parted):
            return None
        return parted

    def settled(self, place: int) -> int:
        """The first place from `place` on that is within nothing."""
        return max([place, *(span.end for span in self.spans if span.start < place < span.end)])

    def says(self, *pieces: str) -> str:
        """What is read of `pieces` of this text, without white space."""
        return "".join(said(piece, self._references) for piece in pieces)

    def cut(self, start: int, end: int) -> _Cut | None:
        parted = self.around(start, end)
        if parted is None:
            return None
        closing = "".join(span.closer for span in reversed(parted))
        return _Cut(start, end, closing, "".join(span.opener for span in parted))


def pieces(text: str, references: References, room: Room) -> list[str]:
    """`text` in pieces that fit. The first is "" where nothing good fits beside what is there already."""
    whole = _Text(text, references)
    found: list[str] = []
    at, opening = 0, ""
    beside = room.beside
    while at < len(text) and (len(text) - at > room.most or not room.fits(opening + text[at:], beside)):
        cut = _best(whole, at, opening, room, beside)
        found.append(opening + text[at : cut.start] + cut.closing if cut else "")
        if cut is not None:
            at, opening = cut.end, cut.opening
        beside = False
    return [*found, opening + text[at:]] if at < len(text) or not found else found


def graphemes(text: str, fits: Callable[[str], bool]) -> tuple[str, str]:
    """The longest beginning of `text` that fits, and what follows it; one character at least."""
    if fits(text):
        return text, ""
    ends = list(_ends(text))
    taken = bisect_right(ends, 0, key=lambda end: 0 if fits(text[:end]) else 1)
    if taken:
        return text[: ends[taken - 1]], text[ends[taken - 1] :]
    codes = range(1, ends[0] + 1)
    most = max(1, bisect_right(codes, 0, key=lambda end: 0 if fits(text[:end]) else 1))
    return text[:most], text[most:]


def _ends(text: str) -> Iterator[int]:
    end = 0
    for grapheme in iter_graphemes(text):
        end += len(grapheme)
        yield end


def _best(whole: _Text, at: int, opening: str, room: Room, beside: bool) -> _Cut | None:
    """The best cut of what begins at `at`; None where there is no good one beside what is there already."""
    taken, _ = graphemes(whole.text[at : at + room.most], lambda piece: room.fits(opening + piece, beside))
    upper = at + len(taken)

    def fits(cut: _Cut) -> bool:
        return room.fits(opening + whole.text[at : cut.start] + cut.closing, beside)

    def leaves(cut: _Cut) -> bool:
        """Whether both sides of the cut have words, are paragraphs and say the same."""
        words, behind = whole.text[at : cut.start], whole.text[cut.end :]
        before = opening + words + cut.closing
        if not words.strip() or not behind.strip():
            return False
        if not _is_paragraph(before) or not _is_paragraph(cut.opening + behind[:_BEGINNING]):
            return False
        end = whole.settled(cut.end + _BEGINNING)
        together = opening + whole.text[at:end]
        return cut.clean or whole.says(before, cut.opening + whole.text[cut.end : end]) == whole.says(together)

    kinds = (whole.lines, whole.sentences, whole.words)
    little = beside and len(taken) < room.most // 3
    clean = _at_spaces(whole, at, upper, kinds[:2] if little else kinds)
    cut = next(filter(leaves, filter(fits, clean)), None)
    if cut is not None or little:
        return cut
    rough = islice(filter(fits, _at_spaces(whole, at, upper, kinds, parting=True)), _TRIES)
    if beside:
        return next(filter(leaves, rough), None)
    return next(filter(leaves, chain(rough, _between(whole, at, taken, fits))), _Cut(upper, upper))


def _is_paragraph(text: str) -> bool:
    tokens = _BLOCKS.parse(text)
    return len(tokens) == 3 and tokens[0].type == "paragraph_open"


def _at_spaces(whole: _Text, at: int, upper: int, kinds: Sequence[_Places], parting: bool = False) -> Iterator[_Cut]:
    """Cuts at white space, the best first: those that leave half a part or more, lines before words. With `parting`
    those within bold and the like, else those within nothing."""
    half = (at + upper) // 2
    for above, below in ((half, upper), (at, half)):
        for places in kinds:
            low, high = (bisect_right(places, edge, key=lambda place: place[0]) for edge in (above, below))
            cuts = (whole.cut(*places[index]) for index in reversed(range(low, high)))
            yield from (cut for cut in cuts if cut is not None and bool(cut.closing) == parting)


def _between(whole: _Text, at: int, taken: str, fits: Callable[[_Cut], bool]) -> Iterator[_Cut]:
    """Where no white space helps: between two characters, within nothing if that can be had."""
    places = [at + end for end in _ends(taken)]
    cuts = (cut for place in reversed(places) if (cut := whole.cut(place, place)) and fits(cut))
    tried = list(islice(cuts, _TRIES))
    return chain((cut for cut in tried if not cut.closing), (cut for cut in tried if cut.closing))
