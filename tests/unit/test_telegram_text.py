"""Markdown as Telegram shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.bridges.telegram.render import keep_tail, render_markdown, utf16_length
from tests.strict.telegram_rules import entities_complaint

MARKS = ["*", "**", "_", "~~", "`", "```\n", "> ", "- ", "1. ", "  ", "\n", "\n\n", "# ", "|", "|-|\n", "[", "](", ")"]
WORDS = ["word", "😀", "é", "\ud83d", "<b>", "&", "\t", "![", "---\n", "\\", "https://a.b"]


def shown(markdown: str) -> tuple[str, list[tuple[str, str]]]:
    """The text, and each entity with what it marks."""
    text, entities = render_markdown(markdown)
    raw = text.encode("utf-16-le")
    marked = [raw[2 * one.offset : 2 * (one.offset + one.length)].decode("utf-16-le") for one in entities]
    return text, [(str(one.type), words) for one, words in zip(entities, marked, strict=True)]


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("a **b _c_**", "a b c", [("bold", "b c"), ("italic", "c")]),
        ("one\n\ntwo\nthree", "one\n\ntwo\nthree", []),
        ("## Plan", "Plan", [("bold", "Plan")]),
        ("- a\n  - b\n    c\n- d", "• a\n  • b\n    c\n• d", []),
        ("9. a\n10. b\n    1. c", "9. a\n10. b\n    1. c", []),
        ("- a\n\n  ```py\n  x = 1\n    y\n  ```", "• a\n\n  x = 1\n  y", [("pre", "x = 1\n  y")]),
        ("> a\n> > b\n> > c", "a\n\n> b\n> c", [("blockquote", "a\n\n> b\n> c")]),
        ("| a | b |\n|---|---|\n| 10 | **x** |", "a   b\n10  x", [("pre", "a   b\n10  x")]),
        (f"| {'a' * 40} | b |\n|---|---|\n| c | d |", f"{'a' * 40} | b\nc | d", []),
        ("[x](src/a.py) [y](https://y.z)", "x (src/a.py) y", [("text_link", "y")]),
        ("![owl](https://o.w)", "owl", [("text_link", "owl")]),
        ("<me@x.org> <script>", "me@x.org <script>", []),
        ("a\n\n***\n\n~~b~~ `c*d*`", "a\n\n———\n\nb c*d*", [("strikethrough", "b"), ("code", "c*d*")]),
        ("😀 **😀é**", "😀 😀é", [("bold", "😀é")]),
    ],
)
def test_markdown_is_shown_as_what_it_means(markdown: str, text: str, entities: list[tuple[str, str]]) -> None:
    assert shown(markdown) == (text, entities)


@given(st.lists(st.sampled_from(MARKS + WORDS), max_size=40).map("".join))
def test_whatever_is_written_telegram_takes_its_entities(markdown: str) -> None:
    text, entities = render_markdown(markdown)
    assert entities_complaint(text, [one.to_dict() for one in entities]) == ""


def test_half_a_character_is_not_sent() -> None:
    assert render_markdown("a\ud83d")[0] == "a?"


def test_the_end_of_a_long_text_fits_and_breaks_no_character() -> None:
    assert keep_tail("short", 5) == "short"
    assert keep_tail("a" * 20, 10) == "…" + "a" * 9
    assert keep_tail("😀" * 20, 10) == "…" + "😀" * 4
    assert utf16_length(keep_tail("x" + "😀" * 20, 10)) <= 10
