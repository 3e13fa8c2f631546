"""Splits Markdown that is too long for one message: cut where a reader would, each part valid Markdown by itself. Pure.

What always holds for parts is written in `splitter`. This module and its parser are loaded for the first long text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from assistant.core.text import lazy_regex
from assistant.gateway.markdown_inline import LinkReferences, PartSpace, split_inline, take_graphemes

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
_PARSER.core.ruler.enableOnly(["normalize", "block"])

_MARKER = lazy_regex(r" {0,3}([-+*]|(\d{1,9})([.)]))( {1,4}(?! )| (?= )|$)")
_QUOTE = lazy_regex(r"^ {0,3}> ?", re.MULTILINE)
_LABEL = lazy_regex(r"\[((?:[^\[\]\\]|\\.)+)\]")
_TICKS = lazy_regex("`{3,}")
# Fewer lines of code than these do not stand alone before a cut.
_FEW = 3
# Blocks within blocks, this deep and no deeper, are taken apart; what is deeper is cut as mere text.
_DEEPEST = 12


def split_markdown(body: str, max_size: int, size: Callable[[str], int]) -> tuple[str, ...]:
    """The texts of messages of `most` at most, as `size` counts, that together are `body`, Markdown."""
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    env: dict[str, Any] = {}
    _PARSER.parse(text, env)
    taking = _Taking(env.get("references", {}))

    def fits(piece: str, beside: bool) -> bool:
        return len(piece) <= max_size and size(piece + taking.definitions(piece)) <= max_size

    found = [piece.strip("\n") for piece in taking.document(text, PartSpace(fits, max_size)) if piece.strip()]
    whole = [piece + taking.definitions(piece) for piece in found] or [body]
    return tuple(part for piece in whole for part in _bounded(piece, lambda text: size(text) <= max_size))


def _bounded(piece: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Where not even the marks around a character fit."""
    while not fits(piece) and len(piece) > 1:
        part, piece = take_graphemes(piece, fits)
        yield part
    if piece:
        yield piece


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a text: what stands between it and the one before, its source, and how it is taken apart where it
    does not fit."""

    gap: str
    text: str
    apart: Callable[[PartSpace], list[str]]
    heading: bool = False


class _Taking:
    """Takes a text apart. Every method returns pieces that fit; the first is "" where nothing fits behind what is there
    already."""

    def __init__(self, references: LinkReferences) -> None:
        self._references = references

    def definitions(self, piece: str) -> str:
        """What the links of `piece` need that are defined elsewhere."""
        if not self._references:
            return ""
        labels = dict.fromkeys(normalizeReference(found) for found in _LABEL.findall(piece))
        used = [(label, self._references[label]) for label in labels if label in self._references]
        lines = (f"[{label}]: <{it['href']}>{_title(it['title'])}" for label, it in used)
        return "\n\n" + "\n".join(lines) if used else ""

    def document(self, text: str, room: PartSpace, depth: int = 0) -> list[str]:
        return _flow(self._blocks(text, depth), room) if depth <= _DEEPEST else self._text(text, room)

    def _blocks(self, text: str, depth: int) -> list[_Block]:
        lines, tokens = text.split("\n"), _PARSER.parse(text)
        found: list[_Block] = []
        end = 0
        for index, token in enumerate(tokens):
            if token.level or token.nesting < 0 or token.map is None:
                continue
            source, gap = _source(lines, token), _gap(end, token)
            end = token.map[0] + source.count("\n") + 1
            apart = partial(self._apart, tokens[index:], source, depth)
            found.append(_Block(gap, source, apart, token.type == "heading_open"))
        return found

    def _apart(self, tokens: Sequence[Token], source: str, depth: int, room: PartSpace) -> list[str]:
        token = tokens[0]
        match token.type:
            case "fence" | "code_block":
                return _code(token, room)
            case "table_open":
                return self._table(source, room)
            case "blockquote_open":
                return self._quote(source, room, depth)
            case "bullet_list_open" | "ordered_list_open":
                return _flow(self._items(tokens, source, depth), room)
            case "heading_open":
                return _framed(partial(self._text, tokens[1].content), partial(_headed, token.tag), room)
            case _:
                return self._text(tokens[1].content if token.type == "paragraph_open" else source, room)

    def _text(self, text: str, room: PartSpace) -> list[str]:
        return split_inline(text, self._references, room)

    # ------------------------------------------------------------------------------------------ blocks that hold others

    def _quote(self, source: str, room: PartSpace, depth: int) -> list[str]:
        inner = _QUOTE.sub("", source)
        return _framed(lambda room: self.document(inner, room, depth + 1), _quoted, room)

    def _items(self, tokens: Sequence[Token], source: str, depth: int) -> list[_Block]:
        base = tokens[0]
        assert base.map is not None
        lines = source.split("\n")
        number = int(base.attrGet("start") or 1) if base.type == "ordered_list_open" else None
        found: list[_Block] = []
        end = base.map[0]
        for token in tokens:
            if token.type == "list_item_open" and token.level == base.level + 1 and token.map:
                text, gap = _source(lines, token, base.map[0]), _gap(end, token)
                end = token.map[0] + text.count("\n") + 1
                if number is not None:
                    text, number = _numbered(text, number), number + 1
                found.append(_Block(gap, text, partial(self._item, text, depth)))
            elif token.type == base.type.replace("open", "close") and token.level == base.level:
                break
        return found

    def _item(self, text: str, depth: int, room: PartSpace) -> list[str]:
        """The item's marker stands before its first piece; what is continued stands without."""
        found = _MARKER.match(text)
        if found is None:
            return self._text(text, room)
        marker = found[0] if found[0].endswith(" ") else found[0] + " "
        inner = _dedented(text, len(found[0]), len(marker))

        def marked(piece: str) -> str:
            return marker + piece.replace("\n", "\n" + " " * len(marker))

        got = self.document(inner, room.with_frame(marked), depth + 1)
        first = 1 if len(got) > 1 and not got[0] else 0
        return [*got[:first], marked(got[first]), *got[first + 1 :]]

    def _table(self, source: str, room: PartSpace) -> list[str]:
        """Rows in tables of their own, each with the head; a row that does not fit under it becomes text."""
        names, rule, *rows = source.split("\n")
        head = f"{names}\n{rule}"
        blocks = [_Block("\n", row, partial(self._text, row)) for row in rows]
        widest = max(rows, key=len, default="")
        if not room.fits(f"{head}\n{widest}", False):
            return _flow([_Block("", names, partial(self._text, names)), *blocks], room)
        return _framed(partial(_flow, blocks), lambda piece: f"{head}\n{piece}", room)


def _framed(apart: Callable[[PartSpace], list[str]], framed: Callable[[str], str], room: PartSpace) -> list[str]:
    """What is taken apart within a frame that every piece has."""
    return [framed(piece) if piece else "" for piece in apart(room.with_frame(framed))]


def _flow(blocks: Sequence[_Block], room: PartSpace) -> list[str]:
    """Blocks one behind the other, as many as fit in each piece."""
    done: list[str] = []
    current, kept, parted = "", 0, False
    for block in blocks:
        gap = ("\n\n" if parted else block.gap) if current else ""
        beside, parted = room.appending and not done, False
        if room.fits(current + gap + block.text, beside):
            kept = kept if block.heading and current else len(current + gap + block.text)
            current += gap + block.text
        elif room.fits(block.text, False):
            heading = current[kept:].strip("\n")
            moved = f"{heading}{block.gap}{block.text}"
            if heading and kept and room.fits(moved, False):
                done, current = [*done, current[:kept].rstrip("\n")], moved
            else:
                done, current = [*done, current], block.text
            kept = len(current)
        else:
            found = block.apart(_behind(current + gap, room, beside))
            head = current + gap + found[0] if found[0] else current
            *before, current = [head, *found[1:]]
            done += before
            kept, parted = len(current), True
    return [*done, current]


def _behind(before: str, room: PartSpace, beside: bool) -> PartSpace:
    """The room behind `before`, which itself may be beside something."""

    def fits(piece: str, at_once: bool) -> bool:
        return room.fits(before + piece, beside) if at_once else room.fits(piece, False)

    return PartSpace(fits, room.max_characters, bool(before) or beside)


# ------------------------------------------------------------------------------------------------------------ of blocks


def _source(lines: Sequence[str], token: Token, base: int = 0) -> str:
    """The lines of a block, without empty ones behind it."""
    assert token.map is not None
    return "\n".join(lines[token.map[0] - base : token.map[1] - base]).rstrip("\n")


def _gap(end: int, token: Token) -> str:
    assert token.map is not None
    return "\n\n" if token.map[0] > end else "\n"


def _code(token: Token, room: PartSpace) -> list[str]:
    """Lines of code, in fences of their own."""
    ticks = max((len(run) for run in _TICKS.findall(token.content)), default=2) + 1
    fence = token.markup or "`" * ticks
    lines = token.content.removesuffix("\n").split("\n")
    return _framed(partial(_lines, lines), lambda code: f"{fence}{token.info}\n{code}\n{fence}", room)


def _lines(lines: Sequence[str], room: PartSpace) -> list[str]:
    """As many lines as fit in each piece; beside what is there already not a few alone."""
    done: list[str] = []
    current: list[str] = []
    for line in lines:
        beside = room.appending and not done
        if room.fits("\n".join([*current, line]), beside):
            current.append(line)
            continue
        if beside and len(current) < _FEW:
            done, current, beside = [""], current, False
            if room.fits("\n".join([*current, line]), beside):
                current.append(line)
                continue
        *more, last = _line(line, room)
        done += ["\n".join(current)] if current else []
        done += more
        current = [last]
    return [*done, "\n".join(current)]


def _line(line: str, room: PartSpace) -> list[str]:
    """Within a line of code every space counts: none is left out where it is cut."""
    found: list[str] = []
    while not room.fits(line, False) and len(line) > 1:
        piece, _ = take_graphemes(line, lambda text: room.fits(text, False))
        words = piece.rstrip(" ").rfind(" ") + 1
        end = words if words > len(piece) // 2 else len(piece)
        found.append(line[:end])
        line = line[end:]
    return [*found, line]


def _headed(tag: str, piece: str) -> str:
    return "#" * int(tag.removeprefix("h")) + " " + piece


def _quoted(piece: str) -> str:
    return "> " + piece.replace("\n", "\n> ")


def _numbered(item: str, number: int) -> str:
    """With its own number, where all were written alike."""
    found = _MARKER.match(item)
    if found is None or found[2] is None or int(found[2]) == number:
        return item
    before, behind = item[: found.start(2)], item[found.end(2) :]
    wider = " " * (len(str(number)) - len(found[2]))
    return f"{before}{number}{behind}".replace("\n", "\n" + wider)


def _dedented(text: str, marker: int, width: int) -> str:
    first, *others = text.split("\n")
    lines = [_without_margin(line.expandtabs(4), width) for line in others]
    return "\n".join([first[marker:], *lines])


def _without_margin(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" "))) :]


def _title(title: str) -> str:
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return f' "{escaped}"' if title else ""
