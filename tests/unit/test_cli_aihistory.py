"""What the options of the compaction commands mean, and what is found in texts; without any home."""

from __future__ import annotations

import pytest

from assistant.cli.compact import compact, slash_command
from assistant.cli.search import around, folded
from sleep.facts import missing


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
    assert slash_command(given["focus"], given["dry_run"], given["undo"]) == typed


def test_what_is_shown_of_a_text_stands_around_the_words() -> None:
    text = f"{'before ' * 50}the Number 4471{' after' * 50}"
    shown = around(text, folded("NUMBER 4471"))
    assert "the Number 4471 after" in shown
    assert shown.startswith("… ") and shown.endswith(" …")
    assert len(shown) < 300
    assert around("short", "short") == "short"


def test_wide_and_capital_letters_are_found_by_plain_ones() -> None:
    assert folded("ＡＢＣ１２３ Straße") == "abc123 strasse"
    assert "Ｔ" not in around("Ｔokyo", folded("tokyo"))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("the ticket is TK-4471-Q.", "identifiers", "TK-4471-Q"),
        ("see https://example.org/a?b=1, it says", "identifiers", "https://example.org/a?b=1"),
        ("write to anna@example.org", "identifiers", "anna@example.org"),
        ("it lies in /var/lib/home.db", "identifiers", "/var/lib/home.db"),
        ("it costs 1,299.50 in all", "numbers", "1,299.50"),
        ("we leave on 2027-03-04", "numbers", "2027-03-04"),
        ("then ask Anna Berg about it", "names", "Anna Berg"),
        ("потом спроси Анну", "names", "Анну"),
        ("Please water the plants", "tasks", "Please water the plants"),
        ("- [ ] order boots", "tasks", "- [ ] order boots"),
    ],
)
def test_what_a_summary_leaves_out_is_named_and_what_it_has_is_not(text: str, kind: str, value: str) -> None:
    assert missing([text, text], "Nothing of it.") == {kind: [value]}
    assert missing([text], f"It has {value.upper()} in it.") == {}
