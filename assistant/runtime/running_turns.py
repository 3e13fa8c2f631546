"""Running turns (`RunningTurns`), and sessions in which none may start: because of a reset, or because the disk fails
(`StoreBackoff`).

The runtime starts and ends turns; code that must wait for a turn, or prevent one from starting, uses this module.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from assistant.core.errors import UsageError
from assistant.core.pacing import Pacer, is_in_event_loop
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation
from assistant.runtime.turn import TurnControl

# Maximum time that background work yields to messages between two of its steps.
_MAX_QUIET_WAIT_SECONDS = 5.0
# The same for each of the steps, of which there are hundreds.
_MAX_STEP_WAIT_SECONDS = 0.05
# A turn does its own work in the first and the last moments of it, and in a burst the next one follows at once.
_LIVELY_SECONDS, _MAX_LIVELY_WAIT_SECONDS = 0.3, 0.3
# Turns that follow one another without a pause are waited for as above this long. Then background work has a fifth of
# the time: what makes such turns slow in the end could not be done else.
_LONG_BURST_SECONDS, _PAUSE_SECONDS, _WAIT_FOR_WORK = 3.0, 1.0, 4.0
_POLL_SECONDS = 0.005
_RETRY_STORE_AFTER = timedelta(seconds=5)
_STEPS_IN_A_ROUND = 1

RunningTurn = tuple[TurnControl, asyncio.Task[None]]


class StoreBackoff:
    """Sessions blocked because the data folder is not writable, with the reason. A reason is reported once per session,
    until a turn succeeds there."""

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}
        self._tried_at: datetime | None = None
        self._reported: dict[str, str] = {}

    def start_waiting(self, session: str, why: str, now: datetime) -> bool:
        """Block a session; returns whether to report it."""
        self.sessions[session], self._tried_at = why, now
        is_news = self._reported.get(session) != why
        self._reported[session] = why
        return is_news

    def should_retry(self, now: datetime) -> bool:
        """Return whether to retry the disk; a clock that was set back does not prolong the wait."""
        waited_enough = self._tried_at is None or not timedelta() <= now - self._tried_at < _RETRY_STORE_AFTER
        return bool(self.sessions) and waited_enough

    def retry_now(self) -> None:
        """Retry at the next tick."""
        self._tried_at = None

    def keep_waiting(self, why: str, now: datetime) -> None:
        """Keep all sessions blocked after a failed retry."""
        self.sessions, self._tried_at = dict.fromkeys(self.sessions, why), now

    def clear_notice(self, session: str) -> None:
        """Report the session's next failure again."""
        self._reported.pop(session, None)


class RunningTurns:
    """The running turns, at most one per session."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.by_session: dict[str, RunningTurn] = {}
        self.unsaved: dict[str, TurnControl] = {}  # by turn: not running, with state that the disk did not accept
        self.backoff = StoreBackoff()
        self.wake = asyncio.Event()  # set when a turn may be due
        self.pacer = Pacer(_STEPS_IN_A_ROUND)  # asked before the longer steps of turns, which take milliseconds
        self.accepts_turns = False  # from the first tick until shutdown
        self.is_answering: Callable[[], bool] = lambda: False  # whether a request of the page or the web API runs
        self._beginning_count = 0  # turns whose context is being prepared
        self._lively_until = 0.0  # monotonic, in seconds: some time after a turn began or ended
        self._burst_began = 0.0  # monotonic
        self._step_began = 0.0  # monotonic: the last step of background work
        self._paused: set[str] = set()
        self._waited_for: dict[str, asyncio.Task[None]] = {}

    @property
    def any_running(self) -> bool:
        return bool(self.by_session)

    def is_running(self, session: str) -> bool:
        return session in self.by_session

    def tasks(self, sessions: Iterable[str] | None = None) -> list[asyncio.Task[None]]:
        """Return the tasks of these sessions, or all."""
        return [self.by_session[session][1] for session in (self.by_session if sessions is None else sessions)]

    def waiting_sessions(self) -> list[str]:
        """Return sessions with waiting messages that are not blocked or paused."""
        return [
            session
            for session in self._conversation.sessions_waiting()
            if session not in self.backoff.sessions and session not in self._paused
        ]

    def awaited_sessions(self) -> set[str]:
        """Return sessions in which a turn runs or a message waits for one."""
        return {*self.by_session, *self._conversation.sessions_waiting()}

    @contextmanager
    def pause_session(self, session: str) -> Iterator[None]:
        """Prevent turns of the session from starting within the context; messages are accepted and answered afterwards.
        Raises `UsageError` while a turn is open or the session is already paused."""
        if session in self._paused:
            raise UsageError(f"{session_name(session)} is being reset. Nothing was changed; wait until that has ended.")
        if session in self.by_session or any(control.turn.session == session for control in self.unsaved.values()):
            raise UsageError(
                f"A message in {session_name(session)} is being answered. Nothing was changed; wait for the answer, or "
                "`/stop` it."
            )
        self._paused.add(session)
        try:
            yield
        finally:
            self._paused.discard(session)
            self.wake.set()

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """While a turn's context is prepared, which is the heaviest part of a turn's own work."""
        self._beginning_count += 1
        self._note_lively()
        try:
            yield
        finally:
            self._beginning_count -= 1

    def end(self, session: str) -> None:
        """A session's turn has ended, if it had one."""
        self.by_session.pop(session, None)
        self._note_lively()

    def _note_lively(self) -> None:
        now = time.monotonic()
        if now - self._lively_until > _PAUSE_SECONDS - _LIVELY_SECONDS:
            self._burst_began = now
        self._lively_until = now + _LIVELY_SECONDS

    def is_long_burst(self) -> bool:
        """Return whether turns have followed one another without a pause for some seconds."""
        now = time.monotonic()
        return now < self._lively_until and now - self._burst_began >= _LONG_BURST_SECONDS

    async def wait_until_quiet(self, seconds: float = _MAX_QUIET_WAIT_SECONDS) -> None:
        """Wait until no message is waiting or being answered, up to `seconds`; for background work. A turn that exceeds
        the limit is not waited for again."""
        await asyncio.sleep(0)
        if not self.accepts_turns:
            return
        try:
            async with asyncio.timeout(seconds):
                while (short := self.by_session.keys() - self._long()) or {*self.waiting_sessions()} - self._long():
                    await (asyncio.wait(self.tasks(short)) if short else asyncio.sleep(_POLL_SECONDS))
        except TimeoutError:
            self._waited_for = {session: task for session, (_, task) in self.by_session.items()}

    def let_turns_pass(self, *, is_urgent: bool = True) -> None:
        """Wait, for a moment at most, while a turn is prepared or running or has just ended, or a request is answered;
        for background work in a thread, which holds the interpreter in each of its steps. A turn that has run for long
        waits for a model, and is waited for less; so are turns that follow one another without an end, by what is
        urgent. Work in the event loop's own thread does not wait: no turn could go on meanwhile."""
        if is_in_event_loop():
            return
        began = now = time.monotonic()
        while (lively := now < self._lively_until) or self._is_busy():
            longest = _MAX_LIVELY_WAIT_SECONDS if lively else _MAX_STEP_WAIT_SECONDS
            if is_urgent and self.is_long_burst():
                longest = min(longest, _WAIT_FOR_WORK * (began - self._step_began)) if self._is_busy() else 0.0
            if now - began >= longest:
                break
            time.sleep(_POLL_SECONDS)
            now = time.monotonic()
        self._step_began = now

    def _is_busy(self) -> bool:
        return bool(self.by_session or self._beginning_count or self.is_answering())

    def _long(self) -> set[str]:
        """Return sessions whose running turn exceeded an earlier wait."""
        return {session for session, (_, task) in self.by_session.items() if self._waited_for.get(session) is task}
