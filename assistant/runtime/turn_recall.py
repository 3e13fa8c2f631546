"""What a message recalls: profiles, memories and earlier messages.

Where nothing else is done in its session, the search begins while the message is being stored: both take some
milliseconds, one of a thread, the other of the disk. What was found is used only if the turn begins at once, with the
view that was searched for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from datetime import datetime
from functools import partial
from threading import Event
from typing import TypeVar

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.logger import get_logger
from assistant.core.records import ContextView, IncomingMessage
from assistant.core.store_ports import Conversation
from assistant.runtime.recall import HistoryRecall, MemoryRecall, ProfileRecall, history_block
from assistant.runtime.recall_streaks import RecallStreaks
from assistant.runtime.standing_memory import StandingMemory

log = get_logger()
T = TypeVar("T")

# In seconds: how long it may take from when a message is accepted until its turn begins.
_AT_ONCE = 1.0


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found in a thread; `history` is None where it was not searched."""

    memories: str
    history: dict[int, str] | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """A search that has begun, and what it is for."""

    content: str
    scope: str
    view_state: tuple[int, int, int]
    began_at: float  # by the clock of the event loop, in seconds
    profiles: str
    found: asyncio.Future[_Found]

    def fits(self, message: IncomingMessage, view: ContextView) -> bool:
        return (self.content, self.scope, self.view_state) == (message.content, message.scope, _state_of(view))

    def is_recent(self) -> bool:
        return asyncio.get_running_loop().time() - self.began_at <= _AT_ONCE


class TurnRecall:
    """Recalls for the turns of all sessions. A recall that fails is left out: the message is answered without it."""

    def __init__(
        self,
        conversation: Conversation,
        history: HistoryRecall,
        memory: MemoryRecall,
        profiles: ProfileRecall,
        standing_memory: StandingMemory,
        streaks: RecallStreaks,
        judge: Callable[[str], None],
    ) -> None:
        """`judge` finds out what else the turn asks of a message's text, and remembers it; in a thread."""
        self._conversation = conversation
        self._history = history
        self._memory = memory
        self._profiles = profiles
        self._standing_memory = standing_memory
        self._streaks = streaks
        self._judge = judge
        self._begun: dict[str, _Search] = {}  # by session
        self._is_ending = Event()

    def stop(self) -> None:
        """Recall nothing more. What a thread is looking for is dropped: the stores may be closed before it ends."""
        self._is_ending.set()

    def looks_back(self, view: ContextView) -> bool:
        """Return whether a recall searches earlier messages."""
        return self._history.has_something_out_of(view)

    def begin(self, message: IncomingMessage, now: datetime) -> None:
        """Begin the search for a message that is about to be stored and answered."""
        self._begun = {session: search for session, search in self._begun.items() if search.is_recent()}
        try:
            view = self._conversation.load_view(message.session)
            self._begun[message.session] = self._start(message, view, now)
        # A disk that fails, or no thread to be had: the message is stored all the same, and its turn looks again.
        except (StoreError, RuntimeError) as error:
            log.error("nothing is looked up yet", session=message.session, error=str(error))

    async def recall(self, message: IncomingMessage, view: ContextView, now: datetime) -> list[str]:
        """Return the blocks of what is recalled for the first message of a turn."""
        search = self._begun.pop(message.session, None)
        if search is None or not (search.is_recent() and search.fits(message, view)):
            search = self._start(message, view, now)
        found = await search.found
        if found.history is not None:
            self._streaks.record_turn(message.session, found.history)
        return [search.profiles, found.memories, history_block(found.history or {})]

    def _start(self, message: IncomingMessage, view: ContextView, now: datetime) -> _Search:
        text, session, scope = message.content, message.session, message.scope
        profiles = self._attempt(partial(self._profiles.recall, text, scope), session) or ""
        standing = self._attempt(partial(self._standing_memory.prompt_block, session, view), session) or ""

        def search() -> _Found:
            self._judge(text)
            memories = self._attempt(partial(self._memory.recall, text, scope, view, standing, now), session)
            if not self.looks_back(view):
                return _Found(memories or "")
            lines = self._attempt(partial(self._history.recall_lines, text, session, scope, view, now), session)
            return _Found(memories or "", lines)

        # In one thread: messages, and what is found, may be huge, and each change of the thread has to be waited for.
        loop = asyncio.get_running_loop()
        found = loop.run_in_executor(None, copy_context().run, search)
        return _Search(text, scope, _state_of(view), loop.time(), profiles, found)

    def _attempt(self, recall: Callable[[], T], session: str) -> T | None:
        """Return what is recalled; None, and a line in the log, if that fails; None at the end."""
        try:
            return None if self._is_ending.is_set() else recall()
        except StoreError as error:
            if not self._is_ending.is_set():
                log.error("nothing was recalled", session=session, error=str(error))
            return None


def _state_of(view: ContextView) -> tuple[int, int, int]:
    return view.generation, view.prefix_rev, len(view.messages)
