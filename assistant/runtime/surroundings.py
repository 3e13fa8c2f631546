"""What stands with a new message beside the conversation, frozen for its turn: the time, what comes to mind, what a
restart cut off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog

from assistant.context.quote import NOTE, quoted
from assistant.context.volatile import volatile_block
from assistant.core.errors import StoreError
from assistant.core.ports import DelegationsPort, RequestsPort
from assistant.core.records import ContextView, InboxItem
from assistant.core.store_ports import Conversation
from assistant.runtime.delegation import interrupted_report, of_interrupted_calls
from assistant.runtime.recollection import Recollection

log = structlog.get_logger()

OPEN_TASKS = "Open tasks of the user; close_requests once one is done or no longer wanted:"
_LOOKED_AT = 30
_MOST_OPEN = 8
_FIRST_WORDS = 100


class Surroundings:
    """Makes the volatile block of a turn (DESIGN 5)."""

    def __init__(
        self,
        conversation: Conversation,
        requests: RequestsPort,
        delegations: DelegationsPort,
        recollection: Recollection,
        known: Callable[[str, str], str],
        remembered: Callable[[InboxItem, ContextView, datetime], str],
        zone: ZoneInfo,
    ) -> None:
        """`known` gives what is known of those whom a text names, for a (text, scope), `remembered` what memory has
        that bears on a message; "" for nothing."""
        self._conversation = conversation
        self._requests = requests
        self._delegations = delegations
        self._recollection = recollection
        self._known = known
        self._remembered = remembered
        self._zone = zone
        self._interrupted: dict[str, str] = {}

    def settle(self, now: datetime) -> None:
        """At start: helpers that an earlier process left running are told of in their session's next turn (F22)."""
        cut = self._delegations.interrupt(now)
        for session in dict.fromkeys(one.session for one in cut):
            told = of_interrupted_calls(self._delegations, cut, session)
            self._interrupted[session] = interrupted_report(told, self._zone)

    async def ready(self) -> None:
        """Prepare what `of` looks for, beside the loop where that takes long."""
        try:
            await self._recollection.ready()
        except StoreError as error:
            log.error("nothing can be recalled", error=str(error))

    def of(self, item: InboxItem, now: datetime) -> str:
        """The block for the turn that this message opens. Raises `StoreError`."""
        asked = item.incoming
        parts = [volatile_block(now, self._zone), self._interrupted.pop(asked.session, "")]
        view = self._conversation.view(item.incoming.session)
        parts += [self._open(item), self._known_of(item), *self._from_before(item, view, now)]
        return "\n\n".join(part for part in parts if part)

    def _open(self, item: InboxItem) -> str:
        """Tasks that nobody has finished (F18): told with each new message, so that a copy kept as history is known for
        what it is, and stops being open in the moment it is closed."""
        asked = self._requests.open(item.incoming.session, limit=_LOOKED_AT)
        tasks = [request for request in asked if request.task and request.message_id != item.message_id][:_MOST_OPEN]
        if not tasks:
            return ""
        lines = [f"- #{request.message_id}: {_first_words(request.text)}" for request in reversed(tasks)]
        return quoted(NOTE, "\n".join([OPEN_TASKS, *lines]))

    def _known_of(self, item: InboxItem) -> str:
        try:
            return self._known(item.incoming.content, item.incoming.scope)
        except StoreError as error:
            log.error("no profiles were looked up", session=item.incoming.session, error=str(error))
            return ""

    def _from_before(self, item: InboxItem, view: ContextView, now: datetime) -> list[str]:
        """What memory has, and what was said; a message is answered without what would have come to mind, rather than
        not at all."""
        asked = item.incoming
        found: list[str] = []
        recalling: tuple[Callable[[], str], ...] = (
            lambda: self._remembered(item, view, now),
            lambda: self._recollection.recall(asked.content, asked.session, asked.scope, view, now),
        )
        for recall in recalling:
            try:
                found.append(recall())
            except StoreError as error:
                log.error("nothing was recalled", session=asked.session, error=str(error))
        return found


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FIRST_WORDS else f"{line[: _FIRST_WORDS - 1]}…"
