"""The volatile block attached to a turn's first message: the time, open tasks, recalled text, and tasks that a restart
interrupted."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.context.build import current_time_block
from assistant.core.quoting import NOTE_TAG, quote_in_tag
from assistant.core.records import InboxItem, IncomingMessage
from assistant.core.store_ports import Conversation
from assistant.core.text import shorten_line
from assistant.runtime.delegation import interrupted_tasks_note, tasks_of_interrupted_calls
from assistant.runtime.turn_recall import TurnRecall
from assistant.store.script.turns import Delegations, UserRequests

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
        recall: TurnRecall,
        zone: ZoneInfo,
    ) -> None:
        self._conversation = conversation
        self._requests = requests
        self._delegations = delegations
        self._recall = recall
        self._zone = zone
        self._interrupted: dict[str, str] = {}

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up, prepare reports of interrupted delegations for the next turn of their sessions (F22)."""
        cut = self._delegations.interrupt_running(now)
        for session in dict.fromkeys(delegation.session for delegation in cut):
            tasks = tasks_of_interrupted_calls(self._delegations, cut, session)
            self._interrupted[session] = interrupted_tasks_note(tasks, self._zone)

    def stop(self) -> None:
        """Recall nothing more."""
        self._recall.stop()

    def looks_back(self, session: str) -> bool:
        """Return whether `build` will search earlier messages of this session."""
        return self._recall.looks_back(self._conversation.load_view(session))

    def begin_recall(self, message: IncomingMessage, now: datetime) -> None:
        """Begin to search for what a message recalls, before it is stored; its turn uses what is found."""
        self._recall.begin(message, now)

    async def build(self, item: InboxItem, now: datetime) -> str:
        """Return the block for the turn that this message starts. Raises `StoreError`."""
        session = item.incoming.session
        view = self._conversation.load_view(session)
        parts = [current_time_block(now, self._zone), self._interrupted.get(session, ""), self._open_tasks(item)]
        parts += await self._recall.recall(item.incoming, view, now)
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
