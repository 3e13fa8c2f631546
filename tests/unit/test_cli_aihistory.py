"""What the options of the compaction commands mean, and what is found in texts; without any home."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from assistant.cli.aihistory.compactions import _render_detail, _ShownCompaction
from assistant.cli.aihistory.search import excerpt_around, fold_text
from assistant.cli.log import print_record
from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Media, ToolCall
from assistant.core.records import LogRecord

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
    text = _render_detail(_ShownCompaction(made, with_secrets=False), UTC)
    assert "Also noted:\n- masked results: 3\n- trimmed: user messages: 2; ids: 4, 5" in text
    assert "{" not in text and "```" not in text


def test_what_the_check_put_back_is_shown_once_and_apart_from_the_messages_that_stay() -> None:
    facts = {"restored": ["TK-4471-Q"], "kept": [3]}
    made = Checkpoint(
        *(1, "main", 1, 1, 1, 4, 4, "They talked.\n\nKept word for word:\n- TK-4471-Q", facts, 900, 90, 0.0, NOW),
        *("manual", "full", "live", "owner"),
    )
    text = _render_detail(_ShownCompaction(made, with_secrets=False), UTC)
    assert text.count("TK-4471-Q") == text.count("Kept word for word") == 1
    assert "Messages that stay as they were said:\n- #3" in text


def test_a_message_without_words_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    declined = LogRecord(1, 1, NOW, "main", 1, "owner", "message", "assistant", "", "", "")
    call = ToolCall("c1", "list_reminders", {})
    for record in (declined, replace(declined, tool_calls=(call,)), replace(declined, media=(Media("image", "x/y"),))):
        print_record(record, ZoneInfo("UTC"), numbers=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("assistant: (no words)") and lines[-1].endswith("assistant: [image]")
    assert sum("(no words)" in line for line in lines) == 1


def test_an_erasure_is_told_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    erased = LogRecord(9, 9, NOW, "main", 1, "owner", "redaction", "system", "", "", "", refs=(1, 4))
    print_record(erased, ZoneInfo("UTC"), numbers=False)
    assert capsys.readouterr().out.endswith("system [erasure]: 2 messages forgotten\n")
