"""A turn's context besides the conversation: standing memory in the prompt (`StandingMemory`), and the volatile block
attached to the turn's first message (`TurnContextBuilder`).

Invariants:
- Standing memory consists of MEMORY.md (owner sessions only) and the notes of today and yesterday of the session's
  scope. It changes only when the day changes, a sleep cycle ends or the session is compacted, regardless of file
  changes, to keep the provider's cache valid.
- An unreadable memory file is skipped and logged; the message is still answered.
- The volatile block contains the time, open tasks, recalled text, and tasks interrupted by a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, tzinfo
from functools import partial
from threading import Event
from zoneinfo import ZoneInfo

from assistant.context.build import current_time_block
from assistant.context.memory_block import memory_block, today_and_yesterday
from assistant.core.errors import AssistantError, StoreError
from assistant.core.logger import get_logger
from assistant.core.quoting import NOTE_TAG, quote_in_tag
from assistant.core.records import ContextView, InboxItem, IncomingMessage
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation, Journal
from assistant.core.text import shorten_line
from assistant.runtime.delegation import interrupted_tasks_note, tasks_of_interrupted_calls
from assistant.runtime.recall import HistoryRecall, MemoryRecall, ProfileRecall, history_block
from assistant.runtime.recall_streaks import RecallStreaks
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.script.turns import Delegations, UserRequests

log = get_logger()


class StandingMemory:
    def __init__(
        self,
        conversation: Conversation,
        journal: Journal,
        files: StoredMemoryFiles,
        zone: tzinfo,
        clock: Callable[[], datetime],
        count: Callable[[str], int],
        *,
        file_max_tokens: int,
        day_max_tokens: int,
    ) -> None:
        """`file_max_tokens` and `day_max_tokens` are measured by `count`."""
        self._conversation = conversation
        self._journal = journal
        self._files = files
        self._zone = zone
        self._clock = clock
        self._count = count
        self._file_max_tokens = file_max_tokens
        self._day_max_tokens = day_max_tokens
        # By session: the cache key (day, view revision, last sleep cycle) and the block.
        self._blocks: dict[str, tuple[tuple[date, int, int], str]] = {}

    def prompt_block(self, session: str, view: ContextView | None = None) -> str:
        """Return the memory block of a session, or ""; `view` is its current view, if that is at hand. Raises
        `StoreError`."""
        view = view or self._conversation.load_view(session)
        days = today_and_yesterday(self._clock(), self._zone)
        made_for = (days[0], view.prefix_rev, self._journal.last_finished_cycle())
        frozen_for, block = self._blocks.get(session, (None, ""))
        if frozen_for != made_for:
            role = session_role(session)
            block = memory_block(
                self._read(self._files.read_memory_file) if role == "owner" else "",
                [(day, self._read(partial(self._files.read_daily_note, view.scope, day))) for day in days],
                role=role,
                count=self._count,
                file_max_tokens=self._file_max_tokens,
                day_max_tokens=self._day_max_tokens,
            )
            self._blocks[session] = made_for, block
        return block

    def _read(self, file: Callable[[], str]) -> str:
        try:
            return file()
        except AssistantError as error:
            log.error("a memory file is left out of the prompt", error=str(error))
            return ""


# The meaning of the parts is explained in the rules, which are cached; this text is paid for with every message.
OPEN_TASKS_HEADING = "Open tasks of the user:"
_MAX_OPEN_TASKS = 8
_TASK_LENGTH = 100


class TurnContextBuilder:
    """Builds the volatile block of a turn (see `docs/glossary.md`)."""

    def __init__(
        self,
        conversation: Conversation,
        requests: UserRequests,
        delegations: Delegations,
        history_recall: HistoryRecall,
        memory_recall: MemoryRecall,
        profile_recall: ProfileRecall,
        standing_memory: StandingMemory,
        streaks: RecallStreaks,
        zone: ZoneInfo,
    ) -> None:
        self._conversation = conversation
        self._streaks = streaks
        self._requests = requests
        self._delegations = delegations
        self._history_recall = history_recall
        self._memory_recall = memory_recall
        self._profile_recall = profile_recall
        self._standing_memory = standing_memory
        self._zone = zone
        self._interrupted: dict[str, str] = {}
        self._is_ending = Event()

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up, prepare reports of interrupted delegations for the next turn of their sessions (F22)."""
        cut = self._delegations.interrupt_running(now)
        for session in dict.fromkeys(delegation.session for delegation in cut):
            tasks = tasks_of_interrupted_calls(self._delegations, cut, session)
            self._interrupted[session] = interrupted_tasks_note(tasks, self._zone)

    def stop(self) -> None:
        """Recall nothing more. What a thread is looking for is dropped: the stores may be closed before it ends."""
        self._is_ending.set()

    def looks_back(self, session: str) -> bool:
        """Return whether `build` will search earlier messages of this session."""
        return self._history_recall.has_something_out_of(self._conversation.load_view(session))

    async def build(self, item: InboxItem, now: datetime) -> str:
        """Return the block for the turn that this message starts. Raises `StoreError`."""
        session = item.incoming.session
        view = self._conversation.load_view(session)
        parts = [current_time_block(now, self._zone), self._interrupted.get(session, ""), self._open_tasks(item)]
        parts += await self._recall(item.incoming, view, now)
        return "\n\n".join(part for part in parts if part)

    def mark_begun(self, session: str) -> None:
        """Discard one-time reports after a turn has received its block."""
        self._interrupted.pop(session, None)

    def _open_tasks(self, item: InboxItem) -> str:
        """List open tasks (F18). Sent with each new message, so that copies in the history are recognised as outdated
        and a closed task disappears at once."""
        requests = self._requests.list_open_tasks(item.incoming.session, limit=_MAX_OPEN_TASKS + 1)
        tasks = [request for request in requests if request.message_id != item.message_id]
        if not tasks:
            return ""
        shown = reversed(tasks[:_MAX_OPEN_TASKS])
        lines = [f"- #{request.message_id}: {shorten_line(request.text, _TASK_LENGTH)}" for request in shown]
        return quote_in_tag(NOTE_TAG, "\n".join([OPEN_TASKS_HEADING, *lines]))

    async def _recall(self, message: IncomingMessage, view: ContextView, now: datetime) -> list[str]:
        """Return recalled profiles, memories and messages. If recall fails, the message is answered without it."""
        text, session, scope = message.content, message.session, message.scope
        quoted: list[dict[int, str]] = []

        def recall_profiles() -> str:
            return self._profile_recall.recall(text, scope)

        def recall_memories() -> str:
            return self._memory_recall.recall(text, scope, view, standing, now)

        def recall_history() -> str:
            quoted.append(self._history_recall.recall_lines(text, session, scope, view, now))
            return history_block(quoted[0])

        def attempt(*recalls: Callable[[], str]) -> list[str]:
            return [found for recall in recalls for found in self._attempted(recall, session)]

        parts = attempt(recall_profiles)
        (standing,) = attempt(partial(self._standing_memory.prompt_block, session, view)) or [""]
        # In one thread: messages, and what is found, may be huge, and each change of the thread has to be waited for.
        looks_back = self._history_recall.has_something_out_of(view)
        recalls = (recall_memories, recall_history) if looks_back else (recall_memories,)
        parts += await asyncio.to_thread(attempt, *recalls)
        for lines in quoted:
            self._streaks.record_turn(session, lines)
        return parts

    def _attempted(self, recall: Callable[[], str], session: str) -> list[str]:
        """Return what is recalled; nothing, and a line in the log, if that fails; nothing at the end."""
        try:
            return [] if self._is_ending.is_set() else [recall()]
        except StoreError as error:
            if not self._is_ending.is_set():
                log.error("nothing was recalled", session=session, error=str(error))
            return []
