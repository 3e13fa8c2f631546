"""What is recalled in one turn after the other: it costs the full price each time, and belongs into the summary.

What always holds: a turn in which something is not recalled ends its streak, but what was recalled often enough is due
until it is in the summary; a restart forgets both, which costs no more than some more turns.
"""

from __future__ import annotations

from collections.abc import Mapping

STREAK = 5
"""In so many turns in a row."""

_SESSIONS_KEPT = 64


class RecallStreaks:
    """By session and message: in how many turns in a row it was recalled."""

    def __init__(self) -> None:
        self._streaks: dict[str, dict[int, int]] = {}
        self._due: dict[str, dict[int, str]] = {}

    def record_turn(self, session: str, lines: Mapping[int, str]) -> None:
        """A turn of the session recalled these messages, with these lines."""
        before = self._streaks.pop(session, {})
        times = self._streaks[session] = {number: before.get(number, 0) + 1 for number in lines}
        if due := {number: line for number, line in lines.items() if times[number] >= STREAK}:
            self._due[session] = {**self._due.pop(session, {}), **due}
        for kept in (self._streaks, self._due):
            while len(kept) > _SESSIONS_KEPT:
                kept.pop(next(iter(kept)))

    def list_due(self, session: str) -> Mapping[int, str]:
        """The messages that belong into the summary, with their lines."""
        return self._due.get(session, {})

    def mark_summarised(self, session: str) -> None:
        """They stand in the summary now."""
        self._due.pop(session, None)
