"""Renders Markdown for Telegram: plain text, and entities that mark its parts. Pure.

Entities are used instead of HTML or Telegram's own Markdown: nothing needs escaping, so no text of a model can be
rejected as malformed, and the length that Telegram counts (UTF-16 units without markup) is known in advance. What
Telegram does not support is written out: headings are bold, lists have bullets, small tables are aligned in columns,
and addresses of links it would not open follow their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from telegram import MessageEntity

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_LINK_SCHEMES = ("http://", "https://", "tg://")
_INLINE_KINDS = {
    "strong": MessageEntity.BOLD,
    "em": MessageEntity.ITALIC,
    "s": MessageEntity.STRIKETHROUGH,
}
# A phone shows about this many monospaced characters per line.
_TABLE_WIDTH = 44


def render_markdown(markdown: str) -> tuple[str, tuple[MessageEntity, ...]]:
    """Return the text and its entities; "" if there is nothing to read."""
    writer = _Writer()
    writer.blocks(_MARKDOWN.parse(replace_surrogates(markdown)))
    text = writer.text.rstrip()
    return text, tuple(_clip_entities(utf16_length(text), writer.entities))


def replace_surrogates(text: str) -> str:
    """Replace every lone surrogate in `text` by "?", since networks reject them."""
    return text.encode("utf-8", "replace").decode()


def utf16_length(text: str) -> int:
    """Return the length of `text` as Telegram counts it."""
    return len(text.encode("utf-16-le", "replace")) // 2


def keep_tail(text: str, max_units: int) -> str:
    """Return the end of `text`, at most `max_units` long."""
    if len(text) <= max_units and utf16_length(text) <= max_units:
        return text
    end = text[-max_units:].encode("utf-16-le", "replace")[-2 * (max_units - 1) :]
    return "…" + end.decode("utf-16-le", "ignore")


class _Writer:
    """Processes tokens in order."""

    def __init__(self) -> None:
        self.text = ""
        self.entities: list[MessageEntity] = []
        self._length = 0
        self._gap = 0  # line ends before the next text
        self._after_marker = False  # a bullet was written, and its text follows
        self._indents: list[str] = []  # prefix of every new line
        self._open: list[int] = []
        self._numbers: list[int | None] = []
        self._quotes = 0

    # ---------------------------------------------------------------------------------------------------------- blocks

    def blocks(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "table_open":
                end = next(at for at in range(position, len(tokens)) if tokens[at].type == "table_close")
                self._table(tokens[position:end])
                position = end
            elif token.type == "inline":
                self._inline(token.children or ())
            else:
                self._block(token)
            position += 1

    def _block(self, token: Token) -> None:
        match token.type:
            case "paragraph_open":
                self._request_gap(1 if token.hidden else 2)
            case "heading_open":
                self._request_gap(2)
                self._open_entity()
            case "heading_close":
                self._close_entity(MessageEntity.BOLD)
            case "bullet_list_open" | "ordered_list_open":
                self._request_gap(1 if self._numbers else 2)
                self._numbers.append(int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None)
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._request_gap(1)
                self._write_marker()
            case "list_item_close":
                self._indents.pop()
                self._after_marker = False
            case "blockquote_open":
                self._quote()
            case "blockquote_close":
                self._unquote()
            case "fence" | "code_block":
                self._request_gap(2)
                self._code(token.content.rstrip("\n"), token.info.split(maxsplit=1)[0] if token.info.strip() else None)
            case "hr":
                self._request_gap(2)
                self._write("———")

    def _write_marker(self) -> None:
        number = self._numbers[-1]
        mark = "• " if number is None else f"{number}. "
        if number is not None:
            self._numbers[-1] = number + 1
        self._write(mark)
        self._indents.append("  " if number is None else " " * len(mark))
        self._after_marker = True

    def _quote(self) -> None:
        """Write a quotation. Telegram has no nested ones: these get a ">" before each line."""
        self._request_gap(2)
        self._quotes += 1
        if self._quotes == 1:
            self._open_entity()
        else:
            self._write("> ")
            self._indents.append("> ")
        self._after_marker = True

    def _unquote(self) -> None:
        self._quotes -= 1
        self._after_marker = False
        if self._quotes == 0:
            self._close_entity(MessageEntity.BLOCKQUOTE)
        else:
            self._indents.pop()

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[str]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_plain_text(token.children or ()))
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        self._request_gap(2)
        if sum(widths) + 2 * len(widths) <= _TABLE_WIDTH:
            lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
            self._code("\n".join(line.rstrip() for line in lines), None)
        else:
            self._write("\n".join(" | ".join(row) for row in rows))

    def _code(self, code: str, language: str | None) -> None:
        """Write code, unindented, so that it can be copied."""
        self._open_entity()
        self._append(code)
        self._close_entity(MessageEntity.PRE, language=language)

    # ---------------------------------------------------------------------------------------------------------- inline

    def _inline(self, tokens: Sequence[Token]) -> None:
        links: list[str] = []
        for token in tokens:
            kind = token.type.removesuffix("_open").removesuffix("_close")
            if kind in _INLINE_KINDS and token.nesting:
                if token.nesting > 0:
                    self._open_entity()
                else:
                    self._close_entity(_INLINE_KINDS[kind])
            elif token.type == "link_open":
                links.append(str(token.attrs.get("href", "")))
                self._open_entity()
            elif token.type == "link_close":
                self._link(links.pop())
            elif token.type == "image":
                self._open_entity()
                self._write(_plain_text(token.children or ()) or "image")
                self._link(str(token.attrs.get("src", "")))
            elif token.type == "code_inline":
                self._open_entity()
                self._append(token.content)
                self._close_entity(MessageEntity.CODE)
            else:
                self._write("\n" if token.type in ("softbreak", "hardbreak") else token.content)

    def _link(self, address: str) -> None:
        label = _text_since(self.text, self._length, self._open[-1])
        if address.startswith(_LINK_SCHEMES):
            self._close_entity(MessageEntity.TEXT_LINK, url=address)
            return
        self._open.pop()
        if address and address.removeprefix("mailto:") != label:
            self._write(f" ({address})")

    # --------------------------------------------------------------------------------------------------------- writing

    def _request_gap(self, lines: int) -> None:
        if not self._after_marker:
            self._gap = max(self._gap, lines)

    def _open_entity(self) -> None:
        self._write_gap()
        self._open.append(self._length)

    def _close_entity(self, kind: str, *, url: str | None = None, language: str | None = None) -> None:
        start = self._open.pop()
        if self._length > start:
            self.entities.append(MessageEntity(kind, start, self._length - start, url=url, language=language))

    def _write(self, text: str) -> None:
        if text:
            self._write_gap()
            self._append(text.replace("\n", "\n" + "".join(self._indents)))

    def _write_gap(self) -> None:
        if self._gap and self.text:
            self._append("\n" * self._gap + "".join(self._indents))
        self._gap = 0
        self._after_marker = False

    def _append(self, text: str) -> None:
        self.text += text
        self._length += utf16_length(text)


def _clip_entities(length: int, entities: list[MessageEntity]) -> Iterator[MessageEntity]:
    """Return entities in order, outer ones first, none beyond the end of the text."""
    for entity in sorted(entities, key=lambda entity: (entity.offset, -entity.length)):
        length_left = min(entity.length, length - entity.offset)
        if length_left > 0:
            yield MessageEntity(entity.type, entity.offset, length_left, url=entity.url, language=entity.language)


def _plain_text(tokens: Sequence[Token]) -> str:
    return "".join(" " if token.type.endswith("break") else token.content for token in tokens)


def _text_since(text: str, length: int, start: int) -> str:
    """Return `text`, which is `length` units long, from unit `start` on."""
    tail = text.encode("utf-16-le")[2 * start - 2 * length :] if length > start else b""
    return tail.decode("utf-16-le", "replace")
