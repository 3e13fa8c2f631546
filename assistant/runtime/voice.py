"""Transcribes the owner's voice messages before their turn starts.

The recording is always kept. The text is stored with the message before the turn starts, so that a restart does not pay
again and the log has what was answered. If transcription fails, the message is answered as one with a file, and the
user is notified. Only the owner's own recordings are sent out: those of guests and rooms are not kept, and a file or
forwarded recording is data, not the owner's words (I10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from assistant.core.errors import BudgetExceeded, ModelError, StoreError
from assistant.core.logger import get_logger
from assistant.core.messages import Media
from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import InboxItem
from assistant.store.home.workspace import WorkspaceFiles
from assistant.store.script.inbox import StoredVoiceMessages

log = get_logger()

HEARD = "[heard in the voice message]"
_NOT_HEARD = "[The voice message could not be turned into text: {reason} The recording is kept.]"
_LARGEST = 25 * 1_000_000


class Transcriber(Protocol):
    """Transcribes a recording; see `assistant/models/speech.py`."""

    async def transcribe(self, data: bytes, mime: str, session: str) -> str:
        """Return the text. Raises `ModelError`."""


def has_voice(item: InboxItem) -> bool:
    """Return whether a message has a recording to transcribe."""
    return any(_waits(medium) for medium in item.incoming.media)


def _waits(medium: Media) -> bool:
    return medium.voice and medium.path is not None


class VoiceMessages:
    def __init__(
        self,
        load: Callable[[], Transcriber] | None,
        stored: StoredVoiceMessages,
        workspace: WorkspaceFiles,
        tell: Callable[[InboxItem, Notice], None],
        clock: Callable[[], datetime],
    ) -> None:
        """`load` creates the transcriber, in a thread; None if there is none. `tell` sends a notice to the sender of a
        message."""
        self._load = load
        self._transcriber: Transcriber | None = None
        self._stored = stored
        self._workspace = workspace
        self._tell = tell
        self._clock = clock

    @property
    def listens(self) -> bool:
        """Whether a transcription service is set."""
        return self._load is not None

    def waits(self, item: InboxItem) -> bool:
        """Return whether `transcribe` has something to do."""
        return self._load is not None and has_voice(item)

    async def transcribe(self, item: InboxItem) -> None:
        """Transcribe a message's recordings and store the text with it. Raises `StoreError`."""
        texts: list[str] = []
        for medium in item.incoming.media:
            if _waits(medium):
                texts.append(await self._transcribe_one(item, medium))
        content = "\n\n".join(part for part in (item.incoming.content, *texts) if part)
        self._stored.save_text(item, content)

    async def _transcribe_one(self, item: InboxItem, medium: Media) -> str:
        assert medium.path is not None
        try:
            data = await asyncio.to_thread(self._workspace.read, medium.path, _LARGEST)
            text = await (await self._ready()).transcribe(data, medium.mime, item.incoming.session)
        except (ModelError, StoreError) as error:
            log.warning("a voice message was not turned into text", error=str(error))
            # What to do next is another matter than with a message that no model answered.
            reason = f"{error.reason}." if isinstance(error, ModelError) else str(error)
            notice = NoticeKind.VOICE_NOT_HEARD.fill(item.message_id, reason=reason, advice=_what_to_do(error))
            self._tell(item, notice)
            return _NOT_HEARD.format(reason=reason)
        return f"{text}\n{HEARD}"

    async def _ready(self) -> Transcriber:
        if self._transcriber is None:
            assert self._load is not None
            # Importing the SDK takes a second.
            self._transcriber = await asyncio.to_thread(self._load)
        return self._transcriber


def _what_to_do(error: ModelError | StoreError) -> str:
    """As part of a sentence. Over the budget, another recording would be refused as well."""
    if not isinstance(error, BudgetExceeded):
        return "send another, or type it"
    return f"type it, or {error.remedy}, and send another" if error.remedy else "type it, or send another later"
