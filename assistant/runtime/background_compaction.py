"""Background compaction: after a reply, and once the provider's prompt cache has expired.

A turn never waits for it, and it replaces only what it was planned on (I4). Each session is checked after its turns,
once nobody has been answered for a moment, and again when its prompt cache is cold: summaries made without a model
(because a user was waiting) are redone with one; compactions that save money (`assistant/context/economy.py`) are done,
or prepared until the cache is cold; and summaries that the next turns will need are prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from assistant.core.errors import AssistantError, StoreError
from assistant.core.logger import get_logger
from assistant.core.store_ports import Conversation
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_economy import ContextEconomy, added_per_call
from assistant.runtime.context_meter import ContextMeter
from assistant.runtime.context_window import CachedCall, ContextWindow
from assistant.runtime.message_preparation import MessagePreparation
from assistant.runtime.running_turns import RunningTurns
from sleep.compaction.budget import SleepBudget

log = get_logger()

# After this much silence the session may not be resumed at all.
_FORGOTTEN_AFTER = timedelta(days=14)
# People say several things in a row; what is done after the last of them is done for all, and beside none of them.
_PAUSE_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 5.0
# Views loaded and runs started at one wake-up.
_MOST_WORK = 8
# Messages indexed in one step, of some 10 ms; and in a burst without an end, in which they would not be done else.
_INDEXED_AT_ONCE, _INDEXED_IN_BURST = 4, 8
# A context that is so near to its threshold, or in a burst will be so soon, is not left for later.
_SOON = 0.2


class BackgroundCompaction:
    """Runs background compactions. `budget` counts their model calls as background work."""

    def __init__(
        self,
        conversation: Conversation,
        compaction: CompactionService,
        economy: ContextEconomy,
        meter: ContextMeter,
        window: ContextWindow,
        running: RunningTurns,
        budget: SleepBudget,
        clock: Callable[[], datetime],
        index_messages: Callable[[int], int],
    ) -> None:
        """`index_messages` indexes at most so many of the messages that search does not know yet, and returns how
        many."""
        self._conversation = conversation
        self._compaction = compaction
        self._economy = economy
        self._meter = meter
        self._window = window
        self._running = running
        self._budget = budget
        self._clock = clock
        self._index_messages = index_messages
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by session
        self._again: set[str] = set()  # sessions in which a turn ended while a run was in progress
        self._pausing: set[str] = set()  # sessions whose run has not begun its work
        self._preparation = MessagePreparation(conversation, running, self._needs_room_soon)
        self._last_turn_at = -_PAUSE_SECONDS  # in seconds of the event loop
        self._hurried = asyncio.Event()  # somebody waits for the runs
        self._last_calls: dict[str, tuple[datetime, CachedCall | None]] = {}  # by session, as of its last message
        self._seen_cold: dict[str, datetime] = {}  # by session, the last message for which the cold check was done

    def after_turn(self, session: str) -> None:
        """Start a run after a turn has ended, once no turn has ended for a moment."""
        self._last_turn_at = asyncio.get_running_loop().time()
        if self._meter.compaction_settings.auto:
            self._preparation.after_turn(session)
        if self._economy.has_model and not self._start(session) and session not in self._pausing:
            self._again.add(session)

    def check_due(self) -> None:
        """Called at every wake-up: check each session once after its prompt cache expired."""
        if not self._economy.has_model:
            return
        now, work = self._clock(), 0
        try:
            for info in self._conversation.list_sessions():
                at = info.last_at
                if at is None or self._seen_cold.get(info.key) == at or self._running.is_running(info.key):
                    continue
                if not timedelta(minutes=5) <= now - at < _FORGOTTEN_AFTER:
                    continue
                work += self._load_last_call(info.key, at)
                call = self._window.find_call(info.key) or self._last_calls[info.key][1]
                if call is not None and call.is_cold(now) and self._start(info.key):
                    self._seen_cold[info.key] = at
                    work += 1
                if work >= _MOST_WORK:
                    return  # the others at the next wake-up: each holds the event loop for some milliseconds
        except AssistantError as error:
            log.error("nobody can tell whether a compaction is due", error=str(error))

    def _load_last_call(self, session: str, last_at: datetime) -> bool:
        """Find out when the session's prompt was last sent, where nothing known tells; returns whether its view had to
        be loaded, which happens once for each last message."""
        known = self._last_calls.get(session)
        if self._window.find_call(session) is not None or (known is not None and known[0] == last_at):
            return False
        view = self._conversation.load_view(session)
        self._last_calls[session] = (last_at, self._window.last_cached_call(session, view))
        return True

    def is_running(self) -> bool:
        return bool(self._tasks) or self._preparation.is_running()

    async def wait_until_idle(self) -> None:
        """Wait until no run is in progress; those that pause begin at once."""
        self._hurried.set()
        try:
            while tasks := list(self._tasks.values()):
                await asyncio.wait(tasks)
            await self._preparation.wait_until_idle()
        finally:
            self._hurried.clear()

    async def stop(self) -> None:
        """Cancel runs in progress; uncommitted work is discarded."""
        self._again.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self._preparation.stop()

    def _start(self, session: str) -> bool:
        if session in self._tasks:
            return False
        task = asyncio.create_task(self._run(session), name=f"economy of {session}")
        self._tasks[session] = task
        task.add_done_callback(lambda _: self._end(session))
        return True

    def _end(self, session: str) -> None:
        self._tasks.pop(session, None)
        if session in self._again:
            self._again.discard(session)
            self._start(session)

    async def _wait_for_pause(self, session: str) -> None:
        """Wait until no turn has ended for a moment, some seconds at most."""
        clock = asyncio.get_running_loop().time
        latest = clock() + (_PAUSE_SECONDS if self._needs_room_soon(session) else _LONGEST_WAIT_SECONDS)
        self._pausing.add(session)
        try:
            while (left := min(latest, self._last_turn_at + _PAUSE_SECONDS) - clock()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._hurried.wait()
                    return
        finally:
            self._pausing.discard(session)

    def _needs_room_soon(self, session: str) -> bool:
        return self._compaction.needs_room(session, _SOON)

    async def _run(self, session: str) -> None:
        with self._compaction.announce_summary(session):
            await self._compact(session)

    async def _compact(self, session: str) -> None:
        try:
            await self._wait_for_pause(session)
            await self._meter.load_model_limits()
            await self._running.pacer.wait()
            await self._compaction.replace_deterministic(session, self._budget)
            await self._save(session)
            view = self._conversation.load_view(session)
            cached = self._window.cached_request(session, self._clock())
            margin = _SOON if self._running.is_long_burst() else 0.0
            await self._compaction.prepare_room(session, added_per_call(view), cached, self._budget, margin)
        except AssistantError as error:
            log.warning("a context was not compacted", session=session, error=str(error))

    async def _save(self, session: str) -> None:
        """Do what saves money. Raises `StoreError`."""
        now, view = self._clock(), self._conversation.load_view(session)
        call = self._window.last_cached_call(session, view)
        if call is None or not self._economy.is_on:
            return
        is_cold = call.is_cold(now)
        if is_cold:
            if (terms := self._meter.terms(session)) is not None:
                self._compaction.add_recalled(session, terms)
            # Messages added since it was prepared may justify another one.
            await self._compaction.commit_prepared(session, "economy")
        economy = self._economy.decide(session, now, lifetime=call.lifetime, is_cold=is_cold)
        if economy is None:
            return
        if economy.decision.step == "compact":
            await self._index_what_leaves(len(view.messages))
            await self._compaction.compact_for_economy(session, economy, self._budget)
        elif economy.decision.step == "prepare" and not self._compaction.is_prepared(session, economy):
            await self._index_what_leaves(len(view.messages))
            await self._compaction.prepare_for_economy(session, economy, self._budget)

    async def _index_what_leaves(self, most: int) -> None:
        """What left the view is searched for in the next turn, which would have to index it first. At `most` so many
        messages: in a burst there are always new ones. The upkeep tells of an index that cannot be written."""
        with suppress(StoreError):
            while most > 0 and (indexed := await asyncio.to_thread(self._index_few)):
                most -= indexed
                if not self._running.is_long_burst():
                    await self._running.wait_until_quiet()

    def _index_few(self) -> int:
        """Index so few messages that a turn which begins meanwhile is hardly slowed down."""
        self._running.let_turns_pass()
        return self._index_messages(_INDEXED_IN_BURST if self._running.is_long_burst() else _INDEXED_AT_ONCE)
