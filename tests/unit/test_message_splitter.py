"""A long text as several messages (`assistant.gateway.markdown_splitter`): each valid, none too long, together
everything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from wcwidth import iter_graphemes

from assistant.core.bridge_api import BridgeCapabilities
from assistant.gateway.parts import split_text

_READER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_FAMILY = "👨‍👩‍👧‍👦"


def parts(body: str, most: int, **about: Any) -> tuple[str, ...]:
    return split_text(body, BridgeCapabilities(max_length=most, **about))


def flat(markdown: str) -> list[Token]:
    """Every token, those within text too."""
    env: dict[str, Any] = {}
    return [child for token in _READER.parse(markdown, env) for child in [token, *(token.children or [])]]


def said(markdown: str) -> str:
    """What is read of it, white space apart."""
    kinds = ("text", "code_inline", "fence", "code_block")
    return re.sub(r"\s", "", "".join(token.content for token in flat(markdown) if token.type in kinds))


def kinds(markdown: str) -> set[str]:
    return {token.type for token in flat(markdown)}


# ---------------------------------------------------------------------------------------------------------- named cases


def test_what_fits_is_left_as_it_is() -> None:
    assert parts("  *as*  it\r\n\r\nis ", 100) == ("  *as*  it\r\n\r\nis ",)
    assert split_text("long " * 5000, BridgeCapabilities()) == ("long " * 5000,)


def test_paragraphs_stay_whole_where_they_fit() -> None:
    first, second, third = "One, two, three." * 3, "Four, five, six." * 3, "Seven." * 3
    assert parts(f"{first}\n\n{second}\n\n{third}", 75) == (first, f"{second}\n\n{third}")


def test_a_long_paragraph_is_cut_behind_a_sentence() -> None:
    body = "The first sentence is here. The second sentence is a little longer than that. And a third."
    assert parts(body, 80) == (
        "The first sentence is here. The second sentence is a little longer than that.",
        "And a third.",
    )


def test_lines_come_before_sentences_and_words_before_characters() -> None:
    assert parts("Some words on a line, no end\nother words. And on another line", 50) == (
        "Some words on a line, no end",
        "other words. And on another line",
    )
    assert parts("nothing but words stands here", 12) == ("nothing but", "words stands", "here")
    assert parts("x" * 25, 10) == ("x" * 10, "x" * 10, "x" * 5)


def test_a_fence_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(20))
    found = parts(f"Look:\n\n~~~python title=x\n{code}\n~~~\n\nDone.", 120)
    assert len(found) > 2
    for part in found:
        assert part.count("~~~") in (0, 2) and len(part) <= 120
        assert part.count("~~~python title=x\n") == part.count("~~~") / 2
    assert said("\n".join(found)) == said(f"Look:\n\n~~~\n{code}\n~~~\n\nDone.")


def test_a_fence_within_code_does_not_end_it() -> None:
    code = "\n".join(["```", "inner", "```"] * 10)
    for part in parts(f"````md\n{code}\n````", 60):
        assert part.startswith("````md\n") and part.endswith("\n````")
        assert kinds(part) == {"fence"}


def test_spaces_in_code_are_kept_where_its_line_is_cut() -> None:
    line = "    x  =  " + "f( a,  b )" * 20
    found = parts(f"```\n{line}\n```", 50)
    assert "".join(part.removeprefix("```\n").removesuffix("\n```") for part in found) == line


def test_indented_code_becomes_a_fence_that_its_own_ticks_do_not_end() -> None:
    body = "\n".join(f"    ```` {number}" for number in range(20))
    assert all(kinds(part) == {"fence"} for part in parts(body, 60))


def test_every_part_of_a_table_has_its_head() -> None:
    rows = [f"| {number} | name {number} |" for number in range(12)]
    head = "| no | name |\n|---:|---|"
    found = parts("\n".join([head, *rows]), 120)
    assert len(found) > 1 and all(part.startswith(head) and "table_open" in kinds(part) for part in found)
    assert [line for part in found for line in part.split("\n")[2:]] == rows


def test_a_table_of_rows_that_never_fit_becomes_text_and_says_all() -> None:
    body = f"| a | b |\n|---|---|\n| one | {'word ' * 30}|\n| two | three |"
    found = parts(body, 60)
    assert all(len(part) <= 60 for part in found)
    assert "".join(found).count("word") == 30 and "three" in found[-1]


def test_a_list_is_cut_between_its_items_and_counts_on() -> None:
    body = "\n".join("1. " + f"item {number} " + "x" * 20 for number in range(1, 13))
    found = parts(body, 100)
    numbers = [int(line.split(".")[0]) for part in found for line in part.split("\n")]
    assert numbers == list(range(1, 13))
    assert all("ordered_list_open" in kinds(part) for part in found)


def test_what_an_item_holds_stays_within_it_when_its_number_grows() -> None:
    body = "\n".join(f"1. item {number}\n\n   more of {number}" for number in range(1, 15))
    for part in parts(body, 110):
        tops = [token.type for token in _READER.parse(part) if token.level == 0]
        assert tops == ["ordered_list_open", "ordered_list_close"]


def test_an_item_longer_than_a_part_goes_on_without_its_mark() -> None:
    body = "- " + "Many words are in it. " * 8 + "\n  - nested one\n  - nested two\n- last"
    found = parts(body, 90)
    assert found[0].startswith("- Many") and found[1].startswith("Many")
    assert said("\n\n".join(found)) == said(body)
    assert found[-1].endswith("- last")


def test_a_quotation_stays_one_in_every_part() -> None:
    found = parts("> " + "Words that were said. " * 20, 100)
    assert len(found) > 3 and all(part.startswith("> Words") for part in found)


def test_links_code_and_bold_are_not_cut_in_two() -> None:
    words = "some words come first, then"
    for whole in ("[a link to it](https://example.org/a)", "`code with spaces in it`", "**bold words in a row**"):
        found = parts(f"{words} {whole} and more words behind", 45)
        assert sum(whole in part for part in found) == 1, found


def test_bold_longer_than_a_part_is_closed_and_opened_again() -> None:
    body = "**" + "bold and *leaning* words " * 10 + "end**"
    found = parts(body, 70)
    assert len(found) > 3
    for part in found:
        assert part.startswith("**") and part.endswith("**")
        assert "*" not in said(part)
    assert "".join(map(said, found)) == said(body)


def test_code_and_links_longer_than_a_part_stay_what_they_are() -> None:
    code, link = "`" + "call(x) " * 20 + "`", "[" + "text of it " * 20 + "](<https://example.org/>)"
    for body, kind in ((code, "code_inline"), (link, "link_open")):
        found = parts(body, 70)
        assert len(found) > 2 and all(kind in kinds(part) for part in found)
        assert "".join(map(said, found)) == said(body)


def test_a_link_that_is_defined_elsewhere_has_its_definition_with_it() -> None:
    body = "See [the book][B] for it. " * 6 + '\n\nAnd [b].\n\n[b]: https://example.org/book "The Book"'
    found = parts(body, 110)
    for part in found:
        links = [token.attrs["href"] for token in flat(part) if token.type == "link_open"]
        assert links and set(links) == {"https://example.org/book"} and len(part) <= 110
    assert "".join(map(said, found)) == said(body)


@pytest.mark.parametrize("risky", ["- dash", "1. one", "# head", "> more", "``` x", "| a |"])
def test_a_cut_makes_no_block_of_what_was_none(risky: str) -> None:
    body = f"{'word ' * 7}{risky} {'word ' * 7}".strip()
    words = {"paragraph_open", "paragraph_close", "inline", "text"}
    assert all(kinds(part) <= words for most in range(30, 45) for part in parts(body, most))


def test_a_cut_between_characters_makes_no_bold_of_what_was_none() -> None:
    body = "x" * 20 + "_bbb_ and more words"
    found = parts(body, 20)
    assert "".join(map(said, found)) == said(body) and found[0] == "x" * 19


def test_a_heading_goes_with_what_it_heads() -> None:
    found = parts("words " * 10 + "\n\n## Next\n\n" + "more " * 12, 75)
    assert [part.startswith("## Next") for part in found] == [False, True]


@pytest.mark.parametrize(("unit", "codec", "width"), [("utf-16", "utf-16-le", 2), ("utf-8", "utf-8", 1)])
def test_lengths_are_the_networks_and_characters_stay_whole(unit: Any, codec: str, width: int) -> None:
    body = "é" * 30 + _FAMILY * 12
    found = parts(body, 60, length_unit=unit)
    assert all(len(part.encode(codec)) // width <= 60 for part in found)
    assert [g for part in found for g in iter_graphemes(part)] == list(iter_graphemes(body))


def test_a_script_without_spaces_is_cut_behind_a_sentence() -> None:
    body = "今日は天気がいいです。明日は雨が降るでしょう。" * 6
    assert all(part.endswith("。") for part in parts(body, 50))


def test_deep_quotations_and_unmatched_marks_end() -> None:
    for body in (">" * 300 + " deep", "- " * 200 + "x", "[" * 300, "*" * 301, "`" * 77 + "a`" * 90, "\\" * 301):
        assert all(len(part) <= 50 for part in parts(body, 50))


# ----------------------------------------------------------------------------------------------------------- properties

_WORDS = st.sampled_from(
    ["word", "Sentence.", "naïve", "日本語。", _FAMILY, "3", "e.g.", "(so)", "a_b", "2 * 3", "< &", "-"]
)
_PLAIN = st.lists(_WORDS, min_size=1, max_size=9).map(" ".join)
_PHRASE = st.one_of(
    _PLAIN,
    _PLAIN.map(lambda text: f"**{text.strip('-& ') or 'x'}z**"),
    _PLAIN.map(lambda text: f"`{text}`"),
    _PLAIN.map(lambda text: f"[{text}](https://example.org/path)"),
)
_PARAGRAPH = st.lists(_PHRASE, min_size=1, max_size=6).map(lambda phrases: "so " + " ".join(phrases))
_FENCE = st.lists(st.sampled_from(["x = 1", "", "    return y", "# not a head", "- no item " * 6]), max_size=9).map(
    lambda lines: "\n".join(["```py", *lines, "```"])
)


def _indented(mark: str, text: str) -> str:
    return mark + text.replace("\n", "\n" + " " * len(mark))


def _holding(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        items.map(lambda texts: "\n".join(_indented("- ", text) for text in texts)),
        items.map(lambda texts: "\n\n".join(_indented(f"{n}. ", text) for n, text in enumerate(texts, 1))),
        inner.map(lambda text: "> " + text.replace("\n", "\n> ")),
        items.map("\n\n".join),
    )


_LEAF = st.one_of(_PARAGRAPH, _FENCE, _PARAGRAPH.map(lambda text: f"# {text}"))
_DOCUMENT = st.recursive(_LEAF, _holding, max_leaves=8)
_UNITS = {"characters": ("utf-32-le", 4), "utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}


@settings(max_examples=150, deadline=None)
@given(_DOCUMENT, st.integers(80, 400), st.sampled_from(sorted(_UNITS)))
def test_parts_fit_and_say_everything(body: str, most: int, unit: Any) -> None:
    found = parts(body, most, length_unit=unit)
    codec, width = _UNITS[unit]
    assert all(0 < len(part.encode(codec)) // width <= most for part in found)
    assert "".join(map(said, found)) == said(body)
    assert found == parts(body, most, length_unit=unit)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab .\n`*_~[]()<>#-+|>1\\!:\t&;é\r" + _FAMILY, max_size=300), st.integers(1, 60))
def test_whatever_is_written_ends_in_parts_that_fit(body: str, most: int) -> None:
    found = parts(body, most)
    assert found and all(len(part) <= most for part in found)
    letters = iter("".join(found))
    wanted = [char for char in body if char in "abé"] if ":" not in body else []
    assert all(char in letters for char in wanted)
