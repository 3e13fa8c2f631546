"""Sessions that wait for the disk: told once, looked at again after a while, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assistant.runtime.store_backoff import StoreBackoff

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_why_a_session_waits_is_told_once_until_something_was_answered() -> None:
    waiting = StoreBackoff()
    assert waiting.begin("main", "the disk is full", NOW)
    waiting.end()
    assert not waiting.begin("main", "the disk is full", NOW)
    assert waiting.begin("main", "the disk is gone", NOW)
    waiting.end()
    waiting.answered("main")
    assert waiting.begin("main", "the disk is gone", NOW)


def test_the_disk_is_looked_at_again_after_a_while() -> None:
    waiting = StoreBackoff()
    assert not waiting.is_to_be_tried(NOW)
    waiting.begin("main", "the disk is full", NOW)
    waiting.begin("thread:a", "it cannot be written", NOW)
    assert not waiting.is_to_be_tried(NOW + timedelta(seconds=4))
    assert waiting.is_to_be_tried(NOW + timedelta(seconds=5))
    waiting.goes_on("the disk is full", NOW + timedelta(seconds=5))
    assert not waiting.is_to_be_tried(NOW + timedelta(seconds=9))
    assert waiting.sessions == {"main": "the disk is full", "thread:a": "the disk is full"}
    waiting.end()
    assert not waiting.sessions and not waiting.is_to_be_tried(NOW + timedelta(days=1))


def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    waiting = StoreBackoff()
    waiting.begin("main", "the disk is full", NOW)
    assert waiting.is_to_be_tried(NOW - timedelta(hours=1))
