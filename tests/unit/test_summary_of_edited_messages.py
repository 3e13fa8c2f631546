"""What a summary is made of where messages were edited or deleted on their network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assistant.context.structure import DELETED_TEXT, with_changes_described
from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Media, Message, RecordKind, Role
from assistant.core.records import LogRecord
from sleep.compaction.plan import collect_originals
from sleep.compaction.prompts import split_transcript

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
PICTURE = Media("image", "image/png", "pin.png", data="UE5H")


def note(number: int, kind: str, words: str, *refs: int) -> Message:
    return Message("system", words, number, NOW, metadata={"type": kind, "refs": list(refs)})


def test_the_words_of_what_was_deleted_go_into_no_summary() -> None:
    rows = (
        Message("user", "My pin is 4711", 1, NOW, media=(PICTURE,)),
        note(2, "edit", "My pin is 8122", 1),
        Message("user", "Lunch at five", 3, NOW),
        note(4, "edit", "Lunch at six", 3),
        note(5, "delete", "", 1),
    )
    (text,) = split_transcript(with_changes_described(rows), 10_000, len, partial=False)
    assert "4711" not in text and "8122" not in text and "pin.png" not in text
    assert f"#1 2026-11-20 10:00 user: {DELETED_TEXT}" in text and "The sender deleted message #1." in text
    assert "Lunch at five" in text and "edited message #3. It now says:\n  > Lunch at six" in text


def test_rows_without_changes_are_the_rows_themselves() -> None:
    rows = (Message("user", "hello", 1, NOW), Message("system", "note", 2, NOW))
    assert with_changes_described(rows) == rows


def record(
    number: int, content: str, kind: RecordKind = "message", *, turn: str | None = "t", refs: tuple[int, ...] = ()
) -> LogRecord:
    role: Role = "user" if kind == "message" else "system"
    at = NOW + timedelta(minutes=number)
    return LogRecord(number, number, at, "main", 1, "owner", kind, role, content, "", "", turn=turn, refs=refs)


def test_a_summary_made_anew_of_the_log_has_the_words_that_hold() -> None:
    records = [
        record(1, "pin 4711"),
        record(2, "at five"),
        record(3, "first form", "edit", refs=(4,)),
        record(4, "last form"),
        record(5, "at six", "edit", turn=None, refs=(2,)),
        record(6, "", "delete", turn=None, refs=(1,)),
    ]
    pair = [_checkpoint(1, 2), _checkpoint(3, 6)]
    assert [message.content for message in collect_originals(records, pair)] == ["at six", "last form"]


def _checkpoint(first: int, last: int) -> Checkpoint:
    return Checkpoint(
        id=first,
        session="main",
        num=first,
        generation=1,
        from_message_id=first,
        to_message_id=last,
        messages_compressed=1,
        summary="",
        key_facts={},
        original_tokens=0,
        compressed_tokens=0,
        cost_usd=None,
        created_at=NOW,
        trigger="nap",
        tier="full",
        state="live",
        from_seq=first,
        to_seq=last,
        scope="owner",
        depth=1,
        model="",
        attempts=1,
        note="",
    )
