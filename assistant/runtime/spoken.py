"""Speaks answers: to a voice message, or to everything, as the settings say.

- The text is always sent first. The recording is a delivery of its own, under one key that names the answer's message,
  so it is sent at most once. One that a restart interrupts is made again, if it is not too old.
- Only the owner's answers on a chat network and on the page are spoken; of the page only those to voice messages, since
  a terminal shows its conversations too and plays nothing. If it fails, the person reads why.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal, Protocol

from assistant.core.errors import BudgetExceeded, ModelError, StoreError
from assistant.core.logger import get_logger
from assistant.core.messages import Media
from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import InboxItem, OutboxItem, OutgoingMessage, Turn, spoken_key
from assistant.core.sessions import session_role
from assistant.core.store_ports import Outbox
from assistant.runtime.voice import HEARD

log = get_logger()

_NAME = "answer.ogg"
_LISTENED_TO = timedelta(hours=1)
_SILENT_BRIDGE = "mail"
_PAGE_BRIDGE = "terminal"


class Speaker(Protocol):
    """Turns text into sound; see `assistant/models/speech.py`."""

    async def speak(self, text: str, session: str) -> bytes:
        """Return a recording as Ogg Opus. Raises `ModelError`."""


class SpokenAnswers:
    def __init__(
        self,
        load: Callable[[], Speaker] | None,
        when: Literal["never", "voice", "always"],
        outbox: Outbox,
        tell: Callable[[InboxItem, Notice], None],
        clock: Callable[[], datetime],
    ) -> None:
        """`load` creates the speaker, in a thread; None if there is none. `tell` sends a notice to the sender of a
        message."""
        self._load = load if when != "never" else None
        self._always = when == "always"
        self._speaker: Speaker | None = None
        self._outbox = outbox
        self._tell = tell
        self._clock = clock
        self.tasks: set[asyncio.Task[None]] = set()

    def begin(self, turn: Turn, done: Callable[[], None]) -> None:
        """Start to speak the answer of a turn that has ended, if it is to be spoken; `done` is called after it."""
        if self._load is None or session_role(turn.session) != "owner":
            return
        items = [item for item in turn.items if self._is_wanted(item)]
        if items:
            task = asyncio.create_task(self._speak(turn, items, done), name=f"speaking the answer of {turn.id}")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def resume(self, turn: Turn, done: Callable[[], None]) -> None:
        """After a start: speak an answer unless it was spoken, or is too old to be listened to."""
        if self._clock() - turn.started_at < _LISTENED_TO:
            self.begin(turn, done)

    def _is_wanted(self, item: InboxItem) -> bool:
        said = item.incoming
        if said.bridge == _SILENT_BRIDGE:
            return False
        is_typed = self._always and said.bridge != _PAGE_BRIDGE
        return is_typed or (said.content.endswith(HEARD) and any(it.kind == "file" for it in said.media))

    async def _speak(self, turn: Turn, items: list[InboxItem], done: Callable[[], None]) -> None:
        try:
            places = {(item.incoming.bridge, item.incoming.target) for item in items}
            answers = [
                it
                for it in self._outbox.list_by_turn(turn.id)
                if it.outgoing.kind == "reply" and (it.outgoing.bridge, it.outgoing.target) in places
            ]
            new = [it for it in answers if it.outgoing.body and not self._outbox.has(_key(it), turn.scope)]
            if not new:
                return
            sound = await (await self._ready()).speak(new[0].outgoing.body, turn.session)
            media = Media("file", "audio/ogg", _NAME, len(sound), base64.b64encode(sound).decode(), voice=True)
            for it in new:
                self._outbox.push(_spoken(it, media), self._clock())
        except (ModelError, StoreError) as error:
            log.warning("an answer was not spoken", turn=turn.id, error=str(error))
            # What to do next is another matter than with a message that no model answered.
            reason = f"{error.reason}." if isinstance(error, ModelError) else str(error)
            reason += error.remedy_sentence if isinstance(error, BudgetExceeded) else ""
            self._tell(items[0], NoticeKind.ANSWER_NOT_SPOKEN.fill(items[0].message_id, reason=reason))
        finally:
            done()

    async def _ready(self) -> Speaker:
        if self._speaker is None:
            assert self._load is not None
            # Importing the SDK takes a second.
            self._speaker = await asyncio.to_thread(self._load)
        return self._speaker

    async def stop(self) -> None:
        """Stop what is being spoken: its text was sent."""
        for task in (open_tasks := list(self.tasks)):
            task.cancel()
        if open_tasks:
            await asyncio.wait(open_tasks)


def _key(answer: OutboxItem) -> str:
    """Return the key of the recording of an answer: one a message and place."""
    place = answer.outgoing.key.split(":")[2:]
    return ":".join((spoken_key(answer.outgoing.message_id), *place))


def _spoken(answer: OutboxItem, media: Media) -> OutgoingMessage:
    text = answer.outgoing
    return OutgoingMessage(
        _key(answer),
        text.session,
        text.scope,
        text.bridge,
        text.target,
        "",
        "reply",
        message_id=text.message_id,
        media=(media,),
    )
