"""Markdown in the page: what it becomes, and that no text makes anything else of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from assistant.web.markdown_html import StreamedHtml, render_html
from tests.support.hostile_texts import KINDS, hostile_text

# With what follows from each: what is loaded, and what runs.
_HARMFUL_ATTRIBUTES = {"src", "srcset", "style", "action", "formaction", "data", "poster", "background", "ping"}
_ELEMENT = re.compile(
    r"h[1-6]|p|a|pre|code|span|table|thead|tbody|tr|th|td|ul|ol|li|blockquote|em|strong|s|hr|br|div|math|mn|mi|mo|ms"
    r"|mtext|mspace|mrow|mfrac|msqrt|mroot|m(?:sub|sup|subsup|under|over|underover)|mtable|mtr|mtd|mpadded|mphantom"
)


class _Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def expect_harmless(html: str) -> None:
    for tag, attributes in _Elements(html).found:
        assert _ELEMENT.fullmatch(tag), (tag, html)
        assert not _HARMFUL_ATTRIBUTES & attributes.keys(), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("href", "https://").startswith(("http://", "https://", "mailto:")), attributes


_SCRIPTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![picture](http://elsewhere.example/a.png)",
    '![a" onerror="alert(1)](https://elsewhere.example/a.png "b\\" onload=\\"x")',
    "[j](javascript:alert(1)) [d](data:text/html,x) [f](file:///etc/passwd) [v](vbscript:x)",
    '[t](https://a.example/"onmouseover="alert(1))',
    "<https://a.example/><b onclick=x>",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$$\href{javascript:alert(1)}{x}$$",
    r"$\text{&lt;script&gt;}</math><script>alert(1)</script>$",
    "| a |\n|-|\n| <iframe src=//elsewhere.example> |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]


@pytest.mark.parametrize("text", [*_SCRIPTS, *(hostile_text(kind, 3000) for kind in KINDS)])
def test_f42_no_text_makes_an_element_that_runs_or_loads_anything(text: str) -> None:
    expect_harmless(render_html(text))


@pytest.mark.parametrize("text", _SCRIPTS)
def test_f42_no_text_that_comes_in_pieces_does_either(text: str) -> None:
    stream = StreamedHtml()
    for piece in text:
        for block in stream.add(piece)[1]:
            expect_harmless(block)


def test_tables_code_lists_and_mathematics_are_shown_as_such() -> None:
    html = render_html("| a |\n|-|\n| 1 |\n\n```python\nx = 1\n```\n\n- one\n\n$x^2$")
    assert "<table>" in html and '<span class="mi">1</span>' in html and "<li>one</li>" in html and "<msup>" in html


def test_columns_are_aligned_without_a_style_that_the_page_refuses() -> None:
    html = render_html("| a | b | c |\n|-|-:|:-:|\n| 1 | 2 | 3 |")
    assert '<th align="right">b</th>' in html and '<td align="center">3</td>' in html and "<td>1</td>" in html
    assert "style" not in html


def test_prices_are_no_mathematics() -> None:
    assert "<math" not in render_html("It costs $5 and $6 a day.")


def test_what_comes_in_pieces_is_in_the_end_what_it_is_at_once() -> None:
    text = "# Title\n\nOne **two**\nthree.\n\n- a\n- b\n\n```py\nx = 1\n\ny = 2\n```\n\n> said\n\nThe end."
    stream, blocks = StreamedHtml(), []
    for piece in text:
        first, changed = stream.add(piece)
        blocks[first:] = changed
    assert "".join(blocks) == render_html(text)
