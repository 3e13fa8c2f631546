"""Notes for the host of a fleet that nobody needs this daemon, and when it has something to do next."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NoReturn

from assistant.core.bridge_api import NETWORK_NAMES, Bridge, PollableBridge
from assistant.core.calendar import next_time_of_day
from assistant.core.errors import StoreError
from assistant.core.logger import get_logger
from assistant.service.idle_note import IdleNote, IdleOptions, write_idle_note
from assistant.wire.app import App
from assistant.wire.stores import build_lateness_policy

log = get_logger()

# What has no time of its own, such as the removal of old files, is done at least so often.
_LONGEST_SLEEP = timedelta(days=1)
# A start takes some seconds.
_AHEAD = timedelta(seconds=8)
# Unused for so long, it may be stopped for a home that waits. What woke it may be slow to come.
_PAUSE, _FIRST_PAUSE = timedelta(seconds=10), timedelta(minutes=1)


class IdleWatch:
    """A daemon is needed while something runs or waits, somebody is connected or asked within the minutes of the
    options, something is due within them, or a bridge is on that has to listen: all but those that are polled while the
    daemon does not run."""

    def __init__(self, app: App, options: IdleOptions) -> None:
        self._app, self._options = app, options
        self._home = app.settings.home.path
        self._for = timedelta(minutes=options.minutes)
        self._needed_at = self._now()
        self._next_due: datetime | None = None
        self._has_looked, self._was_used = False, False  # since the start
        self._noted: IdleNote | None = None

    async def run(self) -> NoReturn:
        """Write the note and keep it current, until cancelled. A failure leaves the last note, and is logged."""
        write_idle_note(self._home, os.getpid(), None)
        while True:
            await asyncio.sleep(self._options.look_seconds)
            try:
                self._note(self._find_note())
            except (StoreError, OSError) as error:
                log.error("nobody can tell whether the assistant is needed", error=str(error))

    def end(self) -> None:
        """Take the note back if something that was accepted while the daemon was asked to stop was left for its next
        start: that follows at once then. Nothing is accepted any more."""
        if self._app.stores.requests.has_unanswered():
            write_idle_note(self._home, os.getpid(), None)

    def _find_note(self) -> IdleNote | None:
        """Return when it is next needed, None for now."""
        now = self._now()
        next_due = min(self._find_due(now), default=None)
        # What was due has just been done, or something was planned: it may lead to more.
        is_used = self._is_used() or (self._has_looked and next_due != self._next_due)
        self._next_due, self._has_looked = next_due, True
        self._was_used |= is_used
        # That was later than now by a clock that has been set back since.
        if is_used or self._is_needed() or self._needed_at > now:
            self._needed_at = now
        unused = now - self._needed_at
        longest = self._needed_at + _LONGEST_SLEEP
        due = longest if next_due is None else min(longest, next_due - _AHEAD)
        lasts = unused >= self._for and due - now >= self._for
        pause = _PAUSE if self._was_used else _FIRST_PAUSE
        note = IdleNote(due, lasts, polls=bool(self._networks()))
        return note if lasts or (unused >= pause and due - now >= _PAUSE) else None

    def _note(self, note: IdleNote | None) -> None:
        if note == self._noted:
            return
        write_idle_note(self._home, os.getpid(), note)
        self._noted = note

    def _find_due(self, now: datetime) -> Iterator[datetime]:
        """Reminders and schedules, the night, a nap, briefs."""
        settings = self._app.settings
        lateness, values = build_lateness_policy(settings), settings.values
        if (at := lateness.wake_at(self._app.stores.jobs.next_due_at(), now)) is not None:
            yield at
        if values.sleep.at:
            yield next_time_of_day(values.sleep.at, settings.zone, now)
        if (nap_at := self._app.sleep.scheduler.find_next_nap(now)) is not None:
            yield nap_at
        for time_of_day in (values.brief.morning, values.brief.evening):
            if time_of_day:
                yield lateness.next_allowed(next_time_of_day(time_of_day, settings.zone, now))

    def _is_used(self) -> bool:
        app = self._app
        return app.web.is_asked() or app.terminal.is_attached() or app.running_turns.any_running

    def _is_needed(self) -> bool:
        app = self._app
        turns = app.running_turns
        return (
            not all(self._options.polled and isinstance(bridge, PollableBridge) for bridge in self._networks())
            or bool(turns.unsaved or turns.backoff.sessions or turns.waiting_sessions())
            or app.stores.requests.has_unanswered()
            or app.sleep.scheduler.is_asleep()
            or app.backup_scheduler.is_running()
            or app.erasure.is_running()
            or app.background_compaction.is_running()
            or app.inbound.is_running()
            or (app.replica is not None and bool(app.replica.find_problems()))
        )

    def _networks(self) -> list[Bridge]:
        """Return those that are on."""
        states, bridges = self._app.dispatcher.bridge_states(), self._app.dispatcher.bridges
        return [bridges[name] for name in NETWORK_NAMES if name in bridges and states[name]["state"] != "paused"]

    def _now(self) -> datetime:
        now: datetime = self._app.base.clock()
        return now
