"""The turns that run now (`RunningTurns`), and the sessions in which none may begin: one is being reset, or waits for
the disk (`StoreBackoff`).

The runtime starts and ends turns; code that has to wait for a turn, or to keep one from starting, asks here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from assistant.core.errors import UsageError
from assistant.core.store_ports import Conversation
from assistant.runtime.turn import TurnControl

# Longest that work nobody waits for lets messages go first, between two of its steps.
_MAX_QUIET_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.005
_RETRY_STORE_AFTER = timedelta(seconds=5)

RunningTurn = tuple[TurnControl, asyncio.Task[None]]


class StoreBackoff:
    """Sessions that wait because the data folder cannot be written: `sessions` maps them to why. The reason is reported
    once, however often the disk is tried, and again only after something was answered there."""

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}
        self._tried_at: datetime | None = None
        self._reported: dict[str, str] = {}

    def start_waiting(self, session: str, why: str, now: datetime) -> bool:
        """The session waits from now on; whether that is to be reported."""
        self.sessions[session], self._tried_at = why, now
        is_news = self._reported.get(session) != why
        self._reported[session] = why
        return is_news

    def should_retry(self, now: datetime) -> bool:
        """Whether it is time to look at the disk again; a clock that was set back is no reason to wait longer."""
        waited_enough = self._tried_at is None or not timedelta() <= now - self._tried_at < _RETRY_STORE_AFTER
        return bool(self.sessions) and waited_enough

    def retry_now(self) -> None:
        """There is room again."""
        self._tried_at = None

    def keep_waiting(self, why: str, now: datetime) -> None:
        """The disk was looked at, and all wait on."""
        self.sessions, self._tried_at = dict.fromkeys(self.sessions, why), now

    def clear_notice(self, session: str) -> None:
        self._reported.pop(session, None)


class RunningTurns:
    """At most one turn a session."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.by_session: dict[str, RunningTurn] = {}
        self.unsaved: dict[str, TurnControl] = {}  # by turn: open, but the disk did not take what they know
        self.backoff = StoreBackoff()
        self.wake = asyncio.Event()  # set when a turn may be due
        self.accepts_turns = False  # from the first tick until the shutdown
        self._paused: set[str] = set()
        self._waited_for: dict[str, asyncio.Task[None]] = {}

    @property
    def any_running(self) -> bool:
        return bool(self.by_session)

    def is_running(self, session: str) -> bool:
        return session in self.by_session

    def tasks(self, sessions: Iterable[str] | None = None) -> list[asyncio.Task[None]]:
        """Those of these sessions, or all."""
        return [self.by_session[session][1] for session in (self.by_session if sessions is None else sessions)]

    def waiting_sessions(self) -> list[str]:
        """Sessions in which a message waits that may be answered, now or after the turn that runs there."""
        return [
            session
            for session in self._conversation.sessions_waiting()
            if session not in self.backoff.sessions and session not in self._paused
        ]

    @contextmanager
    def pause_session(self, session: str) -> Iterator[None]:
        """No turn of the session begins while this lasts; what arrives is accepted, and answered afterwards. Raises
        `UsageError` while one is open, or the session is paused already."""
        if session in self._paused:
            raise UsageError(f"{session} is being reset. Nothing was changed; wait until that has ended.")
        if session in self.by_session or any(control.turn.session == session for control in self.unsaved.values()):
            raise UsageError(
                f"A message in {session} is being answered. Nothing was changed; wait for the answer, or `/stop` it."
            )
        self._paused.add(session)
        try:
            yield
        finally:
            self._paused.discard(session)
            self.wake.set()

    async def wait_until_quiet(self, seconds: float = _MAX_QUIET_WAIT_SECONDS) -> None:
        """Wait until nothing is being answered or waits to be, but no longer than that: for work that can wait. A turn
        that takes longer is not waited for again."""
        await asyncio.sleep(0)
        if not self.accepts_turns:
            return
        try:
            async with asyncio.timeout(seconds):
                while (short := self.by_session.keys() - self._long()) or {*self.waiting_sessions()} - self._long():
                    await (asyncio.wait(self.tasks(short)) if short else asyncio.sleep(_POLL_SECONDS))
        except TimeoutError:
            self._waited_for = {session: task for session, (_, task) in self.by_session.items()}

    def _long(self) -> set[str]:
        """Sessions whose turn still runs after it was waited for in vain."""
        return {session for session, (_, task) in self.by_session.items() if self._waited_for.get(session) is task}
