"""What a turn is given besides the conversation: standing memory in the prompt (`StandingMemory`), and the volatile
block that is frozen with the turn's opening message (`TurnContextBuilder`).

What always holds:
- Standing memory is MEMORY.md in the owner's sessions, and the notes of today and yesterday of the session's scope. It
  is frozen until the day ends, a sleep has run or the session was compacted, whatever is written to the files
  meanwhile, so that the provider's cache stays valid.
- A memory file that cannot be read is left out and logged, rather than keep a message from being answered.
- The volatile block has the time, open tasks, what is recalled, and what a restart cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import date, datetime, tzinfo
from functools import partial
from zoneinfo import ZoneInfo

import structlog

from assistant.context.build import current_time_block
from assistant.context.memory_block import memory_block, today_and_yesterday
from assistant.core.errors import AssistantError, StoreError
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

log = structlog.get_logger()


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
        """`file_max_tokens` and `day_max_tokens` as `count` counts."""
        self._conversation = conversation
        self._journal = journal
        self._files = files
        self._zone = zone
        self._clock = clock
        self._count = count
        self._file_max_tokens = file_max_tokens
        self._day_max_tokens = day_max_tokens
        # By session; the day, the view and the sleep that a block was made for, and the block.
        self._blocks: dict[str, tuple[tuple[date, int, int], str]] = {}

    def prompt_block(self, session: str) -> str:
        """The block of a session; "" where nothing is remembered. Raises `StoreError` where the home cannot be read."""
        view = self._conversation.load_view(session)
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


# What each of them means, the rules say, which are cached; this is paid for in full with every message.
OPEN_TASKS_HEADING = "Open tasks of the user:"
_MAX_OPEN_TASKS = 8
_TASK_LENGTH = 100


class TurnContextBuilder:
    """Makes the volatile block of a turn (see `docs/glossary.md`)."""

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

    def recover_after_crash(self, now: datetime) -> None:
        """At start: helpers that an earlier process left running are told of in their session's next turn (F22)."""
        cut = self._delegations.interrupt_running(now)
        for session in dict.fromkeys(delegation.session for delegation in cut):
            tasks = tasks_of_interrupted_calls(self._delegations, cut, session)
            self._interrupted[session] = interrupted_tasks_note(tasks, self._zone)

    def looks_back(self, session: str) -> bool:
        """Whether `build` looks, beside the loop, for what was said before in this session."""
        return self._history_recall.has_something_out_of(self._conversation.load_view(session))

    async def build(self, item: InboxItem, now: datetime) -> str:
        """The block for the turn that this message opens. Raises `StoreError`."""
        session = item.incoming.session
        view = self._conversation.load_view(session)
        parts = [current_time_block(now, self._zone), self._interrupted.get(session, ""), self._open_tasks(item)]
        parts += [recalled async for recalled in self._recalled(item.incoming, view, now)]
        return "\n\n".join(part for part in parts if part)

    def mark_begun(self, session: str) -> None:
        """A turn of the session has its block; what is told once was told."""
        self._interrupted.pop(session, None)

    def _open_tasks(self, item: InboxItem) -> str:
        """Tasks that nobody has finished (F18): told with each new message, so that a copy kept as history is known for
        what it is, and stops being open in the moment it is closed."""
        requests = self._requests.list_open_tasks(item.incoming.session, limit=_MAX_OPEN_TASKS + 1)
        tasks = [request for request in requests if request.message_id != item.message_id]
        if not tasks:
            return ""
        shown = reversed(tasks[:_MAX_OPEN_TASKS])
        lines = [f"- #{request.message_id}: {shorten_line(request.text, _TASK_LENGTH)}" for request in shown]
        return quote_in_tag(NOTE_TAG, "\n".join([OPEN_TASKS_HEADING, *lines]))

    async def _recalled(self, message: IncomingMessage, view: ContextView, now: datetime) -> AsyncIterator[str]:
        """Who the message names, what memory has, and what was said; a message is answered without what would have come
        to mind, rather than not at all."""
        text, session, scope = message.content, message.session, message.scope

        async def recall_profiles() -> str:
            return self._profile_recall.recall(text, scope)

        # Beside the loop: a message may be giant, and what is found may stand in giant ones.
        async def recall_memories() -> str:
            standing = self._standing_memory.prompt_block(session)
            return await asyncio.to_thread(self._memory_recall.recall, text, scope, view, standing, now)

        async def recall_history() -> str:
            if not self._history_recall.has_something_out_of(view):
                return ""
            lines = await asyncio.to_thread(self._history_recall.recall_lines, text, session, scope, view, now)
            self._streaks.record_turn(session, lines)
            return history_block(lines)

        for recall in (recall_profiles, recall_memories, recall_history):
            try:
                yield await recall()
            except StoreError as error:
                log.error("nothing was recalled", session=session, error=str(error))
