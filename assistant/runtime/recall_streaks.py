"""Counts how many turns in a row recalled the same message; it then belongs in the summary, since recalled text is not
cached.

A turn that does not recall a message ends its streak, but a message that is due stays so until it is summarised. State
is in memory: after a restart, counting starts over.
"""

from __future__ import annotations

from collections.abc import Mapping

STREAK = 5
"""Number of consecutive turns after which a message is due."""

_SESSIONS_KEPT = 64


class RecallStreaks:
    """Streaks by session and message."""

    def __init__(self) -> None:
        self._streaks: dict[str, dict[int, int]] = {}
        self._due: dict[str, dict[int, str]] = {}

    def record_turn(self, session: str, lines: Mapping[int, str]) -> None:
        """Record the messages that a turn recalled, with their lines."""
        before = self._streaks.pop(session, {})
        times = self._streaks[session] = {number: before.get(number, 0) + 1 for number in lines}
        if due := {number: line for number, line in lines.items() if times[number] >= STREAK}:
            self._due[session] = {**self._due.pop(session, {}), **due}
        for kept in (self._streaks, self._due):
            while len(kept) > _SESSIONS_KEPT:
                kept.pop(next(iter(kept)))

    def list_due(self, session: str) -> Mapping[int, str]:
        """Return the messages due for the summary, with their lines."""
        return self._due.get(session, {})

    def mark_summarised(self, session: str) -> None:
        """Mark due messages as summarised."""
        self._due.pop(session, None)
