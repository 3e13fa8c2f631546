"""Splits Markdown that is too long for one message, at natural places and so that each part is valid by itself. Pure.

The text is parsed once into a tree of blocks. Blocks are packed in order, each whole if it fits into a part; otherwise
it is split into its children, down to paragraphs, lines of code and table rows. Paragraphs are split by `InlineText`,
which closes open spans before a cut and reopens them after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, groupby, takewhile
from typing import Any, Literal

from markdown_it.tree import SyntaxTreeNode

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.gateway.markdown_inline import PARSER, Fits, InlineText, take_graphemes

# Blocks nested deeper are split as plain text: the parser drops their content.
_MAX_LEVEL = 18
_TICKS = lazy_regex("`{3,}")
# A line that would turn the preceding line into a heading (setext).
_UNDERLINE = lazy_regex(r"(?<=\n)[ ]*(?=(=+|-+)[ ]*(\n|$))")
# Fewer lines of code than this are not left before a cut.
_MIN_CODE_LINES = 3


def split_markdown(body: str, max_size: int, size: Callable[[str], int]) -> tuple[str, ...]:
    """Split Markdown into texts of at most `max_size`, measured by `size`."""

    def fits(text: str) -> bool:
        return len(text) <= max_size and size(text) <= max_size

    text = body.replace("\r\n", "\n").replace("\r", "\n")
    packer = _Packer(fits, max_size)
    packer.pack(_BlockParser(text).nodes)
    packer.end_part()
    parts = [part for part in packer.parts if part.strip()] or [body]
    return tuple(piece for part in parts for piece in _split_anywhere(part, fits))


def _split_anywhere(part: str, fits: Fits) -> Iterator[str]:
    """Split by graphemes where not even the delimiters around one character fit."""
    while not fits(part) and len(part) > 1:
        piece = take_graphemes(part, fits)
        yield piece
        part = part[len(piece) :]
    if part:
        yield part


# --------------------------------------------------------------------------------------------------------------- blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Container:
    """A quotation, list item, heading, code block or table: the markup around its blocks."""

    kind: Literal["quote", "item", "heading", "code", "table"]
    head: str  # prefix of the first line
    indent: str = ""  # prefix of the other lines
    foot: str = ""

    def wrap(self, text: str) -> str:
        return self.head + text.replace("\n", "\n" + self.indent) + self.foot


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """A paragraph, heading, rule, line of code or table row."""

    text: str
    gap: str  # separator from the preceding block
    containers: tuple[_Container, ...]  # outermost first
    opens: int  # how many of the innermost containers start with it

    def is_in(self, kind: str) -> bool:
        return bool(self.containers) and self.containers[-1].kind == kind


# A block or a group of blocks: a list, an item, a quotation, a table, code.
_Node = _Block | list["_Node"]


def _blocks_of(node: _Node) -> Iterator[_Block]:
    if isinstance(node, _Block):
        yield node
    else:
        for child in node:
            yield from _blocks_of(child)


class _BlockParser:
    """Parses a text into blocks. Reference links are inlined, since their definition may end up in another part."""

    def __init__(self, text: str) -> None:
        env: dict[str, Any] = {}
        tokens = PARSER.parse(text, env)
        self._references: Mapping[str, Any] = env.get("references", {})
        self._end = 0  # line after the preceding block
        is_readable = all(token.level < _MAX_LEVEL for token in tokens)
        root: list[_Node] = self._build(SyntaxTreeNode(tokens).children, (), 0) if is_readable else []
        self.nodes = root if is_readable else [_Block(text, "", (), 0)]

    def _build(self, nodes: Sequence[SyntaxTreeNode], around: tuple[_Container, ...], opens: int) -> list[_Node]:
        """Build nodes; `opens` of the containers `around` start with the first one."""
        return [self._build_node(node, around, 0 if number else opens) for number, node in enumerate(nodes)]

    def _build_node(self, node: SyntaxTreeNode, around: tuple[_Container, ...], opens: int) -> _Node:
        match node.type:
            case "blockquote":
                return self._build(node.children, (*around, _Container("quote", "> ", "> ")), opens + 1)
            case "bullet_list" | "ordered_list":
                first = int(node.attrs.get("start", 1))
                markers = [f"{first + n if node.type == 'ordered_list' else ''}" for n in range(len(node.children))]
                items = zip(node.children, [f"{marker}{node.children[0].markup} " for marker in markers], strict=True)
                return [
                    self._build_item(item, marker, around, 0 if number else opens)
                    for number, (item, marker) in enumerate(items)
                ]
            case "heading":
                heading = _Container("heading", f"{'#' * int(node.tag[1:])} ")
                return self._make(self._inline(node).replace("\n", " "), node, (*around, heading), opens + 1)
            case "paragraph":
                return self._make(_UNDERLINE.sub(r"\\", self._inline(node)), node, around, opens)
            case "fence" | "code_block":
                ticks = max((len(run) for run in _TICKS.findall(node.content)), default=2) + 1
                marks = node.markup or "`" * ticks
                code = _Container("code", f"{marks}{node.info}\n", foot=f"\n{marks}")
                return self._make_lines(node.content.removesuffix("\n").split("\n"), node, (*around, code), opens)
            case "table":
                return self._build_table(node, around, opens)
            case _:
                return self._make("***" if node.type == "hr" else "", node, around, opens)

    def _build_item(self, item: SyntaxTreeNode, marker: str, around: tuple[_Container, ...], opens: int) -> _Node:
        inside = (*around, _Container("item", marker, " " * len(marker)))
        if not item.children:
            return self._make("", item, inside, opens + 1)
        return self._build(item.children, inside, opens + 1)

    def _build_table(self, table: SyntaxTreeNode, around: tuple[_Container, ...], opens: int) -> _Node:
        rows = [
            f"| {' | '.join(self._inline(cell).replace('|', chr(92) + '|') for cell in row.children)} |"
            for part in table.children
            for row in part.children
        ]
        names = table.children[0].children[0].children
        rule = "|".join(_ALIGNMENTS.get(str(name.attrs.get("style", "")), "---") for name in names)
        head = _Container("table", f"{rows[0]}\n|{rule}|\n")
        return self._make_lines(rows[1:] or [""], table, (*around, head), opens)

    def _make_lines(
        self, lines: list[str], node: SyntaxTreeNode, around: tuple[_Container, ...], opens: int
    ) -> list[_Node]:
        first = self._make(lines[0], node, around, opens + 1)
        return [first, *(replace(first, text=line, gap="\n", opens=0) for line in lines[1:])]

    def _make(self, text: str, node: SyntaxTreeNode, around: tuple[_Container, ...], opens: int) -> _Block:
        start, end = node.map or (self._end, self._end)
        gap, self._end = "\n\n" if start > self._end else "\n", end
        return _Block(text, gap, around, opens)

    def _inline(self, node: SyntaxTreeNode) -> str:
        markdown = node.children[0].content
        if not self._references:
            return markdown
        text = InlineText.parse(markdown, self._references)
        return text.write(0, len(text.text))


_ALIGNMENTS = {"text-align:left": ":---", "text-align:right": "---:", "text-align:center": ":---:"}


def _write(blocks: Sequence[_Block], depth: int = 0) -> str:
    """Write blocks as Markdown. Continued list items get no marker."""
    written, was_continued = "", False
    for container, group in groupby(blocks, lambda block: (*block.containers, None)[min(depth, len(block.containers))]):
        members = list(group)
        first = members[0]
        is_continued = False
        if container is None:
            text = first.text + "".join(block.gap + block.text for block in members[1:])
        else:
            text = _write(members, depth + 1)
            is_continued = container.kind == "item" and depth < len(first.containers) - first.opens
            text = text if is_continued else container.wrap(text)
        gap = "\n\n" if was_continued or is_continued else first.gap
        written += gap + text if written else text
        was_continued = is_continued
    return written


@dataclass(slots=True)
class _Packer:
    """Packs blocks into parts."""

    fits: Fits
    max_size: int
    part: list[_Block] = field(default_factory=list)  # the current part
    parts: list[str] = field(default_factory=list)

    def pack(self, nodes: Sequence[_Node]) -> None:
        waiting = [list(_blocks_of(node)) for node in nodes]
        position = 0
        while position < len(nodes):
            position += self._add_all_that_fit(waiting[position : position + self.max_size])
            if position == len(nodes):
                break
            node, blocks = nodes[position], waiting[position]
            if self._has_room(blocks):
                self._begin_part(blocks)
            elif isinstance(node, _Block):
                self._pack_pieces(node)
            else:
                self._pack_opened(node, blocks)
            position += 1

    def _add_all_that_fit(self, waiting: Sequence[list[_Block]]) -> int:
        """Add as many as fit to the part and return their number. Binary search, since code may have many lines."""

        def is_too_long(count: int) -> bool:
            return not self._has_room([*self.part, *chain.from_iterable(waiting[:count])])

        count = bisect_left(range(1, len(waiting) + 1), True, key=is_too_long)
        self.part += chain.from_iterable(waiting[:count])
        return count

    def _pack_opened(self, nodes: list[_Node], blocks: list[_Block]) -> None:
        first = blocks[0]
        if nodes != blocks:
            pass
        elif first.is_in("code") and not self._has_room([*self.part, *blocks[:_MIN_CODE_LINES]]):
            self.end_part()
        elif first.is_in("table") and not self._has_room([max(blocks, key=lambda block: len(block.text))]):
            # If a row does not fit below the table head, all rows become text.
            names = first.containers[-1].head.split("\n")[0]
            rows = [replace(row, gap="\n", containers=row.containers[:-1], opens=0) for row in blocks]
            nodes = [replace(rows[0], text=names, gap=first.gap, opens=first.opens - 1), *rows]
        self.pack(nodes)

    def _pack_pieces(self, block: _Block) -> None:
        """Split a block that is longer than a part."""
        is_code = block.is_in("code")
        text = InlineText(block.text) if is_code else InlineText.parse(block.text, {})
        start, rest = 0, block
        while start < len(text.text) and not self._has_room([*self.part, rest]):

            def fits(piece: str, block: _Block = rest) -> bool:
                return self._has_room([*self.part, replace(block, text=piece)])

            if not is_code:
                cut = text.cut(start, fits, self.max_size, bool(self.part))
            else:
                cut = None if self.part else text.cut_code(start, fits)
            if cut is not None:
                self.part.append(replace(rest, text=text.write(start, cut[0])))
                start = cut[1]
                # Where even the words do not fit, the rest is not written: that would take time by its square.
                is_long = len(text.text) - start > self.max_size
                left = text.text[start:] if is_long else text.write(start, len(text.text))
                rest = replace(rest, text=left, opens=0)
            self.end_part()
        self.part.append(rest)

    def _has_room(self, blocks: Sequence[_Block]) -> bool:
        return sum(len(block.text) for block in blocks) <= self.max_size and self.fits(_write(blocks))

    def _begin_part(self, blocks: list[_Block]) -> None:
        """Start a new part with the blocks, moving headings at the end of the current part along."""
        headings = list(takewhile(lambda block: block.is_in("heading"), reversed(self.part)))[::-1]
        if headings and self._has_room([*headings, *blocks]):
            del self.part[-len(headings) :]
            blocks = [*headings, *blocks]
        self.end_part()
        self.part = blocks

    def end_part(self) -> None:
        if self.part:
            self.parts.append(_write(self.part))
        self.part = []
