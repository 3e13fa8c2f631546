"""Sessions that wait for the disk: told once, looked at again after a while, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assistant.runtime.running_turns import StoreBackoff

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_why_a_session_waits_is_told_once_until_something_was_answered() -> None:
    waiting = StoreBackoff()
    assert waiting.start_waiting("main", "the disk is full", NOW)
    waiting.sessions.clear()
    assert not waiting.start_waiting("main", "the disk is full", NOW)
    assert waiting.start_waiting("main", "the disk is gone", NOW)
    waiting.sessions.clear()
    waiting.clear_notice("main")
    assert waiting.start_waiting("main", "the disk is gone", NOW)


def test_the_disk_is_looked_at_again_after_a_while() -> None:
    waiting = StoreBackoff()
    assert not waiting.should_retry(NOW)
    waiting.start_waiting("main", "the disk is full", NOW)
    waiting.start_waiting("thread:a", "it cannot be written", NOW)
    assert not waiting.should_retry(NOW + timedelta(seconds=4))
    assert waiting.should_retry(NOW + timedelta(seconds=5))
    waiting.keep_waiting("the disk is full", NOW + timedelta(seconds=5))
    assert not waiting.should_retry(NOW + timedelta(seconds=9))
    assert waiting.sessions == {"main": "the disk is full", "thread:a": "the disk is full"}
    waiting.sessions.clear()
    assert not waiting.sessions and not waiting.should_retry(NOW + timedelta(days=1))


def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    waiting = StoreBackoff()
    waiting.start_waiting("main", "the disk is full", NOW)
    assert waiting.should_retry(NOW - timedelta(hours=1))
