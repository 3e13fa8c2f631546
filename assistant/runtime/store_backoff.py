"""Sessions that wait because the data folder cannot be written: which, and why. Pure; `now` is given.

While a session waits, none of its turns begins. The reason is reported once, however often the disk is tried, and
again only after something was answered there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

_LOOK_AGAIN = timedelta(seconds=5)


class StoreBackoff:
    """`sessions` maps those that wait to why."""

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}
        self._since: datetime | None = None
        self._told: dict[str, str] = {}

    def start_waiting(self, session: str, why: str, now: datetime) -> bool:
        """The session waits from now on; whether that is to be told."""
        self.sessions[session], self._since = why, now
        news = self._told.get(session) != why
        self._told[session] = why
        return news

    def should_retry(self, now: datetime) -> bool:
        """Whether it is time to look at the disk again; a clock that was set back is no reason to wait longer."""
        waited_enough = self._since is None or not timedelta() <= now - self._since < _LOOK_AGAIN
        return bool(self.sessions) and waited_enough

    def keep_waiting(self, why: str, now: datetime) -> None:
        """The disk was looked at, and all wait on."""
        self.sessions, self._since = dict.fromkeys(self.sessions, why), now

    def end_waiting(self) -> None:
        """The disk takes and gives again."""
        self.sessions = {}

    def clear_notice(self, session: str) -> None:
        self._told.pop(session, None)
