"""Goes through the messages of a session in the background, as soon as they are answered, so that a turn that has to
make room at once needs no time for it.

It has a run of its own, beside what `BackgroundCompaction` does: that waits until nobody says anything for a moment,
and for models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from assistant.core.errors import StoreError
from assistant.core.logger import get_logger
from assistant.core.store_ports import Conversation
from assistant.runtime.running_turns import RunningTurns

if TYPE_CHECKING:
    from sleep.compaction.prepared_messages import PreparedMessages  # with its rules, which a first answer needs not

log = get_logger()
# A summary of fewer tokens takes a tenth of a second in any case.
_LEAST_TOKENS = 6_000
# Messages prepared before it is asked again how much they are needed: less than a second.
_AT_ONCE = 32


class MessagePreparation:
    """Prepares the messages of sessions, one session after the other."""

    def __init__(
        self, conversation: Conversation, running: RunningTurns, needs_summary_soon: Callable[[str], bool]
    ) -> None:
        """`needs_summary_soon` tells of a session whether one of its next turns will have to make room, for which
        nothing else is prepared: else turns that follow one another without a pause go first."""
        self._conversation = conversation
        self._needs_summary_soon = needs_summary_soon
        self._running = running
        self._prepared: PreparedMessages | None = None
        self._sessions: dict[str, None] = {}  # those that wait, in order
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = Event()

    def after_turn(self, session: str) -> None:
        """Prepare what a session has new."""
        self._sessions[session] = None
        if self._task is None and not self._is_stopping.is_set():
            self._task = asyncio.create_task(self._run(), name="messages are prepared")
            self._task.add_done_callback(self._end)

    def is_running(self) -> bool:
        return self._task is not None

    async def wait_until_idle(self) -> None:
        while self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """End after the message in progress, which takes some milliseconds."""
        self._is_stopping.set()
        await self.wait_until_idle()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # A text that the rules cannot read holds up nothing: it is read again when it is needed.
            log.error("messages were not prepared for a summary", error=repr(error))

    async def _run(self) -> None:
        while self._sessions and not self._is_stopping.is_set():
            session = next(iter(self._sessions))
            del self._sessions[session]
            try:
                view = self._conversation.load_view(session)
                if view.tokens < _LEAST_TOKENS:
                    continue
                if self._prepared is None:
                    self._prepared = await asyncio.to_thread(_load_rules)
                prepared = self._prepared
                rows = prepared.take_new(view)
                for first in range(0, len(rows), _AT_ONCE):
                    rest = partial(self._rest, is_urgent=self._needs_summary_soon(session))
                    await asyncio.to_thread(prepared.prepare, rows[first : first + _AT_ONCE], rest)
            except StoreError as error:
                log.warning("messages were not prepared for a summary", session=session, error=str(error))

    def _rest(self, *, is_urgent: bool) -> bool:
        if not self._is_stopping.is_set():
            self._running.let_turns_pass(is_urgent=is_urgent)
        return not self._is_stopping.is_set()


def _load_rules() -> PreparedMessages:
    from sleep.compaction.prepared_messages import PreparedMessages

    return PreparedMessages()
