"""Renders Markdown of messages, reports and summaries as HTML that is safe to show in the page.

Text cannot create elements that Markdown does not have (HTML in it is shown as text), run anything, or load anything:
images become links, and links show their target (http, https, mailto) and send no referrer. Code is highlighted with
classes; mathematics is MathML without links.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import Element

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin

_SCHEMES = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
# Longer code is not highlighted, and longer mathematics is shown as source.
_MAX_COLOURED = 50_000
_MAX_MATH = 2_000
_MATHML_NAME = re.compile(
    r"math|m(?:n|i|o|s|text|space|row|frac|sqrt|root|sub|sup|subsup|under|over|underover|table|tr|td|padded|phantom)"
    r"|m(?:style|multiscripts|enclose)"
)
_MATHML_ATTRIBUTES = re.compile(
    r"display|mathvariant|stretchy|fence|form|linethickness|columnalign|rowspacing|columnspacing|columnlines|accent"
    r"|movablelimits|minsize|maxsize|width|height|depth|lspace|rspace|separator|displaystyle|scriptlevel|notation"
)
_Environment = MutableMapping[str, Any]


def render_html(text: str) -> str:
    """Return HTML that is safe to show: HTML in the text is escaped, links lead to permitted schemes only."""
    return str(_parser().render(text))


class StreamedHtml:
    """A growing text as HTML of its blocks (paragraphs, lists, code): only the last one may still change, so an
    addition only costs as much as the last block."""

    def __init__(self) -> None:
        self._first = 0  # number of the first block that may still change
        self._text = ""  # the text from there on

    def add(self, text: str) -> tuple[int, list[str]]:
        """Return the number of the first changed block, and the HTML from there on."""
        self._text += text
        parser = _parser()
        environment: _Environment = {}
        tokens = parser.parse(self._text, environment)
        blocks = list(_blocks(tokens))
        rendered = [str(parser.renderer.render(block, parser.options, environment)) for block in blocks]
        first = self._first
        if len(blocks) > 1 and (lines := blocks[-1][0].map) is not None:
            self._text = "".join(self._text.splitlines(keepends=True)[lines[0] :])
            self._first += len(blocks) - 1
        return first, rendered


def _blocks(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split the tokens into blocks of the top level."""
    blocks: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            blocks.append([])
        blocks[-1].append(token)
        depth += token.nesting
    return blocks


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
    parser.enable(["table", "strikethrough"])
    # With spaces or digits around its signs it is a price.
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True, renderer=_math)
    parser.validateLink = lambda url: _SCHEMES.match(url) is not None  # type: ignore[method-assign] # it asks for that
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("th_open", _cell_open)
    parser.add_render_rule("td_open", _cell_open)
    return parser


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: _Environment
) -> str:
    tokens[number].attrSet("rel", "noopener noreferrer")
    tokens[number].attrSet("target", "_blank")
    return renderer.renderToken(tokens, number, options, env)


def _cell_open(
    renderer: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: _Environment
) -> str:
    """Align a cell by an attribute of its own: the page's policy refuses styles."""
    attributes = tokens[number].attrs
    if style := attributes.pop("style", None):
        attributes["align"] = str(style).removeprefix("text-align:")
    return renderer.renderToken(tokens, number, options, env)


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: _Environment
) -> str:
    """Render an image as a link: loading it would tell its site that this was read."""
    token = tokens[number]
    source = escape(str(token.attrGet("src") or ""))
    text = escape(renderer.renderInlineAsText(token.children, options, env)) or source
    return f'<a href="{source}" rel="noopener noreferrer" target="_blank">{text}</a>'


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Return "" if the language is unknown: the code is then only escaped."""
    if not language or len(code) > _MAX_COLOURED:
        return ""
    from pygments import highlight  # only if there is code
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _safe_mathml(element: Element) -> str:
    """Serialize MathML. The library's own way leaves text that looks like an element unescaped, and makes links. Raises
    `ValueError` for any element that is not mathematics."""
    if not _MATHML_NAME.fullmatch(element.tag):
        raise ValueError(element.tag)
    attributes = "".join(
        f' {name}="{escape(value)}"' for name, value in element.attrib.items() if _MATHML_ATTRIBUTES.fullmatch(name)
    )
    inner = "".join(f"{_safe_mathml(child)}{escape(unescape(child.tail or ''))}" for child in element)
    return f"<{element.tag}{attributes}>{escape(unescape(element.text or ''))}{inner}</{element.tag}>"


def _math(content: str, options: Mapping[str, Any]) -> str:
    display = "block" if options.get("display_mode") else "inline"
    if len(content) <= _MAX_MATH:
        from latex2mathml.converter import convert_to_element  # only if there is mathematics

        # It raises arbitrary errors for invalid mathematics.
        with contextlib.suppress(Exception):
            return _safe_mathml(convert_to_element(content, display=display))
    return f"<code>{escape(content)}</code>"
