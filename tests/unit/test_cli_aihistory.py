"""What the options of the compaction commands mean, and what is found in texts; without any home."""

from __future__ import annotations

from datetime import UTC, datetime

from assistant.cli.aihistory.compactions import _render_detail
from assistant.cli.aihistory.search import excerpt_around, fold_text
from assistant.core.checkpoints import Checkpoint

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


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


def test_what_else_a_compaction_noted_is_printed_for_people() -> None:
    facts = {"decisions": ["take the ferry"], "masked_results": 3, "trimmed": {"user_messages": 2, "ids": [4, 5]}}
    made = Checkpoint(
        1, "main", 1, 1, 1, 4, 4, "They talked.", facts, 900, 90, 0.0, NOW, "manual", "full", "live", "owner"
    )
    text = _render_detail(made, UTC)
    assert "Also noted:\n- masked results: 3\n- trimmed: user messages: 2; ids: 4, 5" in text
    assert "{" not in text and "```" not in text
