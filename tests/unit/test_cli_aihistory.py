"""What the options of the compaction commands mean, and what is found in texts; without any home."""

from __future__ import annotations

from assistant.cli.aihistory.search import excerpt_around, fold_text


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
