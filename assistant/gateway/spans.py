"""What in a run of Markdown text belongs together: links, inline code, bold and the like, escapes. Pure.

markdown-it finds them, but does not tell where in the text they stand. Its rules are the same here, each told what it
took; pairs of bold and the like are noted once they are matched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
)  # fmt: skip

# The link reference definitions of a text, as markdown-it keeps them in its environment: by label.
References = Mapping[str, Mapping[str, Any]]

_Rule = Callable[[StateInline, bool], bool]


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`, of which `text[inner_start:inner_end]` can be parted if it has to be: `closer` then ends what
    stands before, `opener` begins what follows. Nothing can be parted where that is empty."""

    start: int
    end: int
    inner_start: int
    inner_end: int
    opener: str = ""
    closer: str = ""


def spans_of(text: str, references: References) -> list[Span]:
    """The spans of `text`, in the order in which they begin, outer ones first."""
    env: dict[str, Any] = {"references": dict(references), "text": text, "spans": [], "marks": {}}
    _PARSER.inline.parse(text, _PARSER, env, [])
    found: list[Span] = env["spans"]
    return sorted(found, key=lambda span: (span.start, -span.end))


def said(text: str, references: References) -> str:
    """What is read of `text`, without white space."""
    env = {"references": dict(references)}
    tokens = [child for token in _READER.parseInline(text, env) for child in token.children or ()]
    return "".join("".join(token.content.split()) for token in tokens)


def _noting(rule: _Rule, span: Callable[[StateInline, int], Span]) -> _Rule:
    def noted(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, silent):
            return False
        if not silent and state.src == state.env["text"]:
            state.env["spans"].append(span(state, start))
        return True

    return noted


def _whole(state: StateInline, start: int) -> Span:
    return Span(start, state.pos, state.pos, state.pos)


def _code(state: StateInline, start: int) -> Span:
    taken = state.src[start : state.pos]
    marks = len(taken) - len(taken.lstrip("`"))
    if marks == len(taken):
        return _whole(state, start)
    return Span(start, state.pos, start + marks, state.pos - marks, taken[:marks], taken[:marks])


def _link(state: StateInline, start: int) -> Span:
    label_start = state.src.index("[", start) + 1
    end = state.pos
    label_end = state.md.helpers.parseLinkLabel(state, label_start - 1, False)
    state.pos = end
    closer = state.src[label_end:end]
    if closer in ("]", "][]"):
        closer = f"][{state.src[label_start:label_end]}]"
    return Span(start, end, label_start, label_end, state.src[start:label_start], closer)


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
            state.env["spans"].append(Span(start, last + width, start + width, last, marker, marker))


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
