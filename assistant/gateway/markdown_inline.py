"""Where a run of Markdown text, such as a paragraph's, can be cut in two, and what in it belongs together. Pure.

What always holds: a link, an inline code, an escape and a character as people see it (a grapheme) stay whole as long as
they fit; bold and the like are cut last, closed before the cut and opened again after it. What stands before a cut, and
what stands after it, is still a paragraph by itself. Nothing but white space is left out.

markdown-it finds the spans, but does not tell where in the text they stand. Its rules are the same here, each wrapped
to note what it took; pairs of bold and the like are noted once they are matched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import (
    StateInline,
    autolink,
    backtick,
    emphasis,
    entity,
    escape,
    image,
    link,
    strikethrough,
)
from wcwidth import iter_graphemes

from assistant.core.text import lazy_regex

# The link reference definitions of a text, as markdown-it keeps them in its environment: by label.
LinkReferences = Mapping[str, Mapping[str, Any]]

_Rule = Callable[[StateInline, bool], bool]


@dataclass(frozen=True, slots=True)
class InlineSpan:
    """`text[start:end]`, of which `text[inner_start:inner_end]` can be parted if it has to be: `closer` then ends what
    stands before, `opener` begins what follows. Nothing can be parted where that is empty."""

    start: int
    end: int
    inner_start: int
    inner_end: int
    opener: str = ""
    closer: str = ""


def find_inline_spans(text: str, references: LinkReferences) -> list[InlineSpan]:
    """The spans of `text`, in the order in which they begin, outer ones first."""
    env: dict[str, Any] = {"references": dict(references), "text": text, "spans": [], "marks": {}}
    _PARSER.inline.parse(text, _PARSER, env, [])
    found: list[InlineSpan] = env["spans"]
    return sorted(found, key=lambda span: (span.start, -span.end))


def visible_text(text: str, references: LinkReferences) -> str:
    """What is read of `text`, without white space."""
    env = {"references": dict(references)}
    tokens = [child for token in _READER.parseInline(text, env) for child in token.children or ()]
    return "".join("".join(token.content.split()) for token in tokens)


def _noting(rule: _Rule, span: Callable[[StateInline, int], InlineSpan]) -> _Rule:
    def noted(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, silent):
            return False
        if not silent and state.src == state.env["text"]:
            state.env["spans"].append(span(state, start))
        return True

    return noted


def _whole(state: StateInline, start: int) -> InlineSpan:
    return InlineSpan(start, state.pos, state.pos, state.pos)


def _code(state: StateInline, start: int) -> InlineSpan:
    taken = state.src[start : state.pos]
    marks = len(taken) - len(taken.lstrip("`"))
    if marks == len(taken):
        return _whole(state, start)
    return InlineSpan(start, state.pos, start + marks, state.pos - marks, taken[:marks], taken[:marks])


def _link(state: StateInline, start: int) -> InlineSpan:
    label_start = state.src.index("[", start) + 1
    end = state.pos
    label_end = state.md.helpers.parseLinkLabel(state, label_start - 1, False)
    state.pos = end
    closer = state.src[label_end:end]
    if closer in ("]", "][]"):
        closer = f"][{state.src[label_start:label_end]}]"
    return InlineSpan(start, end, label_start, label_end, state.src[start:label_start], closer)


def _marking(rule: _Rule, width: int) -> _Rule:
    """A rule of markers that are matched later: notes where those that it found stand, by their token."""

    def marked(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.delimiters)
        if not rule(state, silent):
            return False
        if state.src == state.env["text"]:
            for number, delimiter in enumerate(reversed(state.delimiters[known:]), 1):
                state.env["marks"][delimiter.token] = (state.pos - number * width, width)
        return state.pos > start

    return marked


def _note_pairs(state: StateInline) -> None:
    if state.src != state.env["text"]:
        return
    levels = [state.delimiters, *(meta["delimiters"] for meta in state.tokens_meta if meta and "delimiters" in meta)]
    marks = state.env["marks"]
    for delimiters in levels:
        for delimiter in delimiters:
            if delimiter.end < 0 or delimiter.token not in marks:
                continue
            (start, width), (last, _) = marks[delimiter.token], marks[delimiters[delimiter.end].token]
            marker = state.src[start : start + width]
            state.env["spans"].append(InlineSpan(start, last + width, start + width, last, marker, marker))


_READER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    rules = parser.inline.ruler
    for name, rule in (("escape", escape), ("autolink", autolink), ("entity", entity)):
        rules.at(name, _noting(rule, _whole))
    rules.at("backticks", _noting(backtick, _code))
    for name, rule in (("link", link), ("image", image)):
        rules.at(name, _noting(rule, _link))
    rules.at("emphasis", _marking(emphasis.tokenize, 1))
    rules.at("strikethrough", _marking(strikethrough.tokenize, 2))
    parser.inline.ruler2.after("balance_pairs", "note_pairs", _note_pairs)
    return parser


_PARSER = _parser()


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
class PartSpace:
    """`fits` tells whether a piece fits, `beside` what is there already (True) or into a part of its own. With `beside`
    the first piece goes there. `most` bounds a piece in characters."""

    fits: Callable[[str, bool], bool]
    max_characters: int
    appending: bool = False

    def with_frame(self, framed: Callable[[str], str]) -> PartSpace:
        """The same room for what is `framed` before it is placed."""
        return PartSpace(lambda piece, beside: self.fits(framed(piece), beside), self.max_characters, self.appending)


@dataclass(frozen=True, slots=True)
class _InlineCut:
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

    def __init__(self, text: str, references: LinkReferences) -> None:
        self.text = text
        self._references = references
        self.spans = find_inline_spans(text, references)
        self.lines = [found.span() for found in _LINE.finditer(text)]
        self.sentences = [found.span(found.lastgroup or 0) for found in _SENTENCE.finditer(text)]
        self.words = [found.span() for found in _WORD.finditer(text)]

    def around(self, start: int, end: int) -> list[InlineSpan] | None:
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
        return "".join(visible_text(piece, self._references) for piece in pieces)

    def cut(self, start: int, end: int) -> _InlineCut | None:
        parted = self.around(start, end)
        if parted is None:
            return None
        closing = "".join(span.closer for span in reversed(parted))
        return _InlineCut(start, end, closing, "".join(span.opener for span in parted))


def split_inline(text: str, references: LinkReferences, room: PartSpace) -> list[str]:
    """`text` in pieces that fit. The first is "" where nothing good fits beside what is there already."""
    whole = _Text(text, references)
    found: list[str] = []
    at, opening = 0, ""
    beside = room.appending
    while at < len(text) and (len(text) - at > room.max_characters or not room.fits(opening + text[at:], beside)):
        cut = _best(whole, at, opening, room, beside)
        found.append(opening + text[at : cut.start] + cut.closing if cut else "")
        if cut is not None:
            at, opening = cut.end, cut.opening
        beside = False
    return [*found, opening + text[at:]] if at < len(text) or not found else found


def take_graphemes(text: str, fits: Callable[[str], bool]) -> tuple[str, str]:
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


def _best(whole: _Text, at: int, opening: str, room: PartSpace, beside: bool) -> _InlineCut | None:
    """The best cut of what begins at `at`; None where there is no good one beside what is there already."""
    taken, _ = take_graphemes(
        whole.text[at : at + room.max_characters], lambda piece: room.fits(opening + piece, beside)
    )
    upper = at + len(taken)

    def fits(cut: _InlineCut) -> bool:
        return room.fits(opening + whole.text[at : cut.start] + cut.closing, beside)

    def leaves(cut: _InlineCut) -> bool:
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
    little = beside and len(taken) < room.max_characters // 3
    clean = _at_spaces(whole, at, upper, kinds[:2] if little else kinds)
    cut = next(filter(leaves, filter(fits, clean)), None)
    if cut is not None or little:
        return cut
    rough = islice(filter(fits, _at_spaces(whole, at, upper, kinds, parting=True)), _TRIES)
    if beside:
        return next(filter(leaves, rough), None)
    return next(filter(leaves, chain(rough, _between(whole, at, taken, fits))), _InlineCut(upper, upper))


def _is_paragraph(text: str) -> bool:
    tokens = _BLOCKS.parse(text)
    return len(tokens) == 3 and tokens[0].type == "paragraph_open"


def _at_spaces(
    whole: _Text, at: int, upper: int, kinds: Sequence[_Places], parting: bool = False
) -> Iterator[_InlineCut]:
    """Cuts at white space, the best first: those that leave half a part or more, lines before words. With `parting`
    those within bold and the like, else those within nothing."""
    half = (at + upper) // 2
    for above, below in ((half, upper), (at, half)):
        for places in kinds:
            low, high = (bisect_right(places, edge, key=lambda place: place[0]) for edge in (above, below))
            cuts = (whole.cut(*places[index]) for index in reversed(range(low, high)))
            yield from (cut for cut in cuts if cut is not None and bool(cut.closing) == parting)


def _between(whole: _Text, at: int, taken: str, fits: Callable[[_InlineCut], bool]) -> Iterator[_InlineCut]:
    """Where no white space helps: between two characters, within nothing if that can be had."""
    places = [at + end for end in _ends(taken)]
    cuts = (cut for place in reversed(places) if (cut := whole.cut(place, place)) and fits(cut))
    tried = list(islice(cuts, _TRIES))
    return chain((cut for cut in tried if not cut.closing), (cut for cut in tried if cut.closing))
