"""Inline Markdown of one paragraph: where it can be split. Pure.

Links, inline code, escapes and graphemes are kept whole as long as they fit; emphasis is split only as a last resort,
closed before the cut and reopened after it. Both sides of a cut are valid paragraphs. Only white space is dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice, takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from wcwidth import iter_graphemes

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

Fits = Callable[[str], bool]

PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
PARSER.core.ruler.enableOnly(["normalize", "block"])

_LINE = lazy_regex(r"(?:\\[ \t]*+|(?<![ \t])[ \t]++)?\n\s*")
_SENTENCE = lazy_regex(r"(?<=[.!?…])[)\]\"'»”’]*(?P<gap>\s+)|(?<=[。！？])(?P<nothing>)(?=[^。！？）」』\s])")
_WORD = lazy_regex(r"\s+")
# How much text after a cut is compared to check that its meaning is unchanged.
_LOOKAHEAD = 400
# Number of cuts tried before the last position is taken regardless of the result.
_MAX_TRIES = 48

_Cut = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of the text, with its Markdown delimiters."""

    start: int
    end: int
    opener: str = ""
    closer: str = ""


@dataclass(slots=True)
class InlineText:
    """The parsed Markdown of a paragraph."""

    text: str  # without the delimiters of spans
    spans: list[_Span] = field(default_factory=list)  # by start, outer ones first
    whole: list[_Span] = field(default_factory=list)  # ranges that are never split, such as escapes, in order
    _ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._ends = sorted(span.end for span in self.spans)

    @classmethod
    def parse(cls, markdown: str, references: Mapping[str, Any]) -> InlineText:
        """Parse one paragraph's Markdown; `references` are the link definitions of its document."""
        tokens: list[Token] = []
        PARSER.inline.parse(markdown, PARSER, {"references": dict(references)}, tokens)
        text, opened, spans, whole = "", list[tuple[int, str, str]](), list[_Span](), list[_Span]()
        for token in tokens:
            start = len(text)
            if token.nesting > 0:
                opened.append((start, *_span_marks(token)))
            elif token.nesting < 0:
                start, opener, closer = opened.pop()
                if start < len(text):
                    spans.append(_Span(start, len(text), opener, closer))
                else:
                    text += opener + closer
                    whole.append(_Span(start, len(text)))
            else:
                text += _source(token)
                if token.type == "code_inline":
                    spans.append(_Span(start, len(text), token.markup, token.markup))
                elif token.type in ("text_special", "image"):
                    whole.append(_Span(start, len(text)))
        return cls(text, sorted(spans, key=lambda span: (span.start, -span.end)), whole)

    def write(self, start: int, end: int) -> str:
        """Return `text[start:end]` as Markdown; spans that cross either end are closed and reopened there."""
        written: list[str] = []
        opened: list[tuple[int, str]] = []
        at = start
        for span in [*(span for span in self.spans if span.start < end and span.end > start), None]:
            edge = end if span is None else max(span.start, start)
            while opened and (span is None or opened[-1][0] <= edge):
                stop, closer = opened.pop()
                written += self.text[at:stop], closer
                at = stop
            written.append(self.text[at:edge])
            at = edge
            if span is not None:
                stop = min(span.end, end)
                pad = _code_padding(self.text[edge:stop]) if span.opener.startswith("`") else ""
                written.append(span.opener + pad)
                opened.append((stop, pad + span.closer))
        return "".join(written)

    def cut(self, start: int, fits: Fits, max_size: int, is_beside: bool) -> _Cut | None:
        """Return the end of the best piece from `start` and the start of the next, or None if there is no good cut and
        it `is_beside` other blocks."""
        stop = start + max_size + 3 * _LOOKAHEAD
        spans, whole = (
            [span for span in spans if span.end > start and span.start < stop] for spans in (self.spans, self.whole)
        )
        near = InlineText(self.text, spans, whole)
        return near._cut(start, fits, max_size, is_beside)

    def _cut(self, start: int, fits: Fits, max_size: int, is_beside: bool) -> _Cut | None:
        taken = take_graphemes(
            self.text[start : start + max_size], lambda piece: fits(self.write(start, start + len(piece)))
        )
        upper = start + len(taken)
        cuts = self._at_spaces(start, upper, only_good=is_beside and len(taken) < max_size // 3)
        if not is_beside:
            ends = [start + end for end in _grapheme_ends(taken)][-_MAX_TRIES // 2 :]
            cuts += sorted([(end, end) for end in reversed(ends)], key=lambda cut: self._depth(cut) or 0)
        possible = (cut for cut in cuts if fits(self.write(start, cut[0])))
        good = (cut for cut in islice(possible, _MAX_TRIES) if self._says_the_same(start, *cut))
        return next(good, None if is_beside else (upper, upper))

    def cut_code(self, start: int, fits: Fits) -> _Cut:
        """Cut a line of code, keeping all spaces."""
        piece = take_graphemes(self.text[start:], fits)
        behind_space = piece.rstrip(" ").rfind(" ") + 1
        end = start + (behind_space if behind_space > len(piece) // 2 else len(piece))
        return end, end

    def _depth(self, cut: _Cut) -> int | None:
        """Return how many spans a cut would split, or None if it is not allowed."""
        before = bisect_left(self.whole, cut[0], key=lambda span: span.start)
        if before and cut[1] < self.whole[before - 1].end:
            return None
        begun = bisect_left(self.spans, cut[0], key=lambda span: span.start)
        in_gap = takewhile(lambda span: span.start < cut[1], islice(self.spans, begun, None))
        ended = bisect_right(self._ends, cut[1]) - sum(span.end <= cut[1] for span in in_gap)
        return begun - ended

    def _at_spaces(self, start: int, upper: int, *, only_good: bool) -> list[_Cut]:
        """Return candidate cuts, best first: outside of spans; in the second half; line breaks before sentence ends
        before spaces."""
        ranked = []
        for rank, pattern in enumerate((_LINE, _SENTENCE) if only_good else (_LINE, _SENTENCE, _WORD)):
            for match in pattern.finditer(self.text, start, upper + _LOOKAHEAD):
                end, following = match.span(match.lastgroup or 0)
                depth = self._depth((end, following)) if start < end <= upper else None
                if depth is not None and not (depth and only_good):
                    ranked.append((depth > 0, end <= (start + upper) // 2, rank, -end, following))
        return [(-end, following) for *_, end, following in sorted(ranked)]

    def _says_the_same(self, start: int, end: int, following: int) -> bool:
        """Return whether both sides of a cut have text, are paragraphs, and together read as before."""
        stop = min(following + _LOOKAHEAD, len(self.text))
        stop = max([stop, *(span.end for span in (*self.spans, *self.whole) if span.start < stop < span.end)])
        first, second = self.write(start, end), self.write(following, stop)
        if not self.text[start:end].strip() or not self.text[following:].strip():
            return False
        if not _is_paragraph(first) or not _is_paragraph(second):
            return False
        if following > end and not self._depth((end, following)):
            return True
        return _read(first) + _read(second) == _read(self.write(start, stop))


def _read(markdown: str) -> str:
    """Return the plain text without white space."""
    return "".join(InlineText.parse(markdown, {}).text.split())


def _is_paragraph(markdown: str) -> bool:
    tokens = PARSER.parse(markdown)
    return len(tokens) == 3 and tokens[0].type == "paragraph_open"


def _span_marks(token: Token) -> tuple[str, str]:
    if token.type != "link_open":
        return token.markup, token.markup
    return ("<", ">") if token.markup == "autolink" else ("[", _link_end(token, "href"))


def _source(token: Token) -> str:
    match token.type:
        case "softbreak":
            return "\n"
        case "hardbreak":
            return "\\\n"
        case "text_special":
            return token.markup
        case "image":
            return f"![{token.content}{_link_end(token, 'src')}"
        case _:
            return token.content


def _link_end(token: Token, attribute: str) -> str:
    address, title = str(token.attrs.get(attribute, "")), str(token.attrs.get("title", ""))
    address = address if address and not set(address) & set("()<> ") else f"<{address}>"
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return "](" + (f'{address} "{escaped}")' if title else f"{address})")


def _code_padding(code: str) -> str:
    """Return the padding inline code needs: a space at both ends is stripped by parsers, and a backtick at an end would
    join the delimiter."""
    is_padded = code.strip() and code.startswith(" ") and code.endswith(" ")
    return " " if is_padded or code.startswith("`") or code.endswith("`") else ""


def take_graphemes(text: str, fits: Fits) -> str:
    """Return the longest prefix that fits, in whole graphemes; at least one code point."""
    if fits(text):
        return text
    ends = list(_grapheme_ends(text))
    count = bisect_right(ends, 0, key=lambda end: 0 if fits(text[:end]) else 1)
    return text[: ends[count - 1] if count else 1]


def _grapheme_ends(text: str) -> Iterator[int]:
    end = 0
    for grapheme in iter_graphemes(text):
        end += len(grapheme)
        yield end
