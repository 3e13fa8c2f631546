"""An answer while it is being written: nothing is shown twice, nothing is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.cli.chat.draft import StreamingDraft

PARAGRAPHS = "first paragraph\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\n\nlast wor"


def fed(text: str) -> StreamingDraft:
    draft = StreamingDraft()
    draft.feed(text)
    return draft


def test_what_fits_is_not_printed_yet() -> None:
    draft = fed(PARAGRAPHS)
    assert draft.take_closed_blocks(lambda tail: True) == ""
    assert draft.tail == PARAGRAPHS


def test_closed_blocks_are_printed_when_the_tail_does_not_fit_and_the_open_one_is_kept() -> None:
    draft = fed(PARAGRAPHS)
    printed = draft.take_closed_blocks(lambda tail: len(tail) < 20)
    assert printed.endswith("```\n\n")
    assert draft.tail == "last wor"


def test_a_block_that_is_still_open_is_never_cut() -> None:
    draft = fed("```python\n" + "line\n\n" * 50)
    assert draft.take_closed_blocks(lambda tail: False) == ""


def test_the_rest_of_the_final_body_follows_what_was_printed() -> None:
    draft = fed(PARAGRAPHS)
    printed = draft.take_closed_blocks(lambda tail: False)
    body = PARAGRAPHS + "ds, and more"
    assert printed + (draft.unprinted_part(body) or "") == body


def test_a_body_that_differs_from_what_was_printed_is_told_apart() -> None:
    draft = fed(PARAGRAPHS)
    assert draft.unprinted_part("something else") == "something else"
    draft.take_closed_blocks(lambda tail: False)
    assert draft.unprinted_part("something else") is None


def test_withdrawing_tells_whether_something_stands_on_the_screen() -> None:
    draft = fed(PARAGRAPHS)
    assert draft.clear() is False
    draft = fed(PARAGRAPHS)
    draft.take_closed_blocks(lambda tail: False)
    assert draft.clear() is True
    assert (draft.text, draft.printed) == ("", 0)


@given(
    st.lists(st.sampled_from(["word ", "\n", "\n\n", "- item", "# head\n", "```\n", "| a | b |\n|---|---|\n", "> q"]))
)
def test_whatever_is_printed_and_left_is_the_text(pieces: list[str]) -> None:
    draft, printed = StreamingDraft(), ""
    for piece in pieces:
        draft.feed(piece)
        printed += draft.take_closed_blocks(lambda tail: len(tail) < 12)
        assert printed + draft.tail == "".join(pieces).lstrip()[: len(draft.text)]
    assert printed + (draft.unprinted_part(draft.text) or "") == draft.text
