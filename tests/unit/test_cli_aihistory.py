"""What the options of the compaction commands mean, and what is found in texts; without any home."""

from __future__ import annotations

import pytest

from assistant.cli.aihistory.search import excerpt_around, fold_text
from assistant.cli.conversation import build_compact_command, compact


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ([], "/compact"),
        (["--focus", " the move to Bergen "], "/compact the move to Bergen"),
        (["--dry-run"], "/compact --dry-run"),
        (["--undo"], "/compact --undo"),
        (["--undo", "12"], "/compact --undo 12"),
        (["--undo", "--session", "main"], "/compact --undo"),
    ],
)
def test_options_become_the_slash_command(line: list[str], typed: str) -> None:
    given = compact.make_context("compact", list(line)).params
    assert build_compact_command(given["focus"], given["dry_run"], given["undo"]) == typed


def test_what_is_shown_of_a_text_stands_around_the_words() -> None:
    text = f"{'before ' * 50}the Number 4471{' after' * 50}"
    shown = excerpt_around(text, fold_text("NUMBER 4471"))
    assert "the Number 4471 after" in shown
    assert shown.startswith("… ") and shown.endswith(" …")
    assert len(shown) < 300
    assert excerpt_around("short", "short") == "short"


def test_wide_and_capital_letters_are_found_by_plain_ones() -> None:
    assert fold_text("ＡＢＣ１２３ Straße") == "abc123 strasse"
    assert "Ｔ" not in excerpt_around("Ｔokyo", fold_text("tokyo"))
