"""When a conversation is quiet enough for a nap."""

from __future__ import annotations

from datetime import timedelta

import pytest

from assistant.core.calendar import is_nap_due
from tests.support.store_home import NOW


@pytest.mark.parametrize(
    ("quiet", "minutes", "running", "due"),
    [
        (15, 15, False, True),
        (14.9, 15, False, False),
        (600, 15, True, False),
        (600, 0, False, False),
        (None, 15, False, False),
        (-60, 15, False, False),
    ],
)
def test_a_nap_is_due_when_nothing_was_said_for_long_enough(
    quiet: float | None, minutes: float, running: bool, due: bool
) -> None:
    last_at = None if quiet is None else NOW - timedelta(minutes=quiet)
    assert is_nap_due(last_at, minutes, running, NOW) is due
