"""Turns the owner's voice messages into text before their turn begins.

What always holds: the recording is kept, whatever becomes of it; the text is stored with the message before the turn
begins, so that a restart does not pay for it again and the log has what was answered; a message whose recording cannot
be turned into text is answered as a message with a file, and the person is told. Only what the owner recorded is sent
anywhere: recordings of guests and rooms are not kept, and a file or a forwarded recording is data, not words (I10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import structlog

from assistant.core.errors import ModelError, StoreError
from assistant.core.messages import Media
from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import InboxItem
from assistant.store.home.workspace import WorkspaceFiles
from assistant.store.script.inbox import StoredVoiceMessages

log = structlog.get_logger()

HEARD = "[heard in the voice message]"
_NOT_HEARD = "[The voice message could not be turned into text: {reason} The recording is kept.]"
_LARGEST = 25 * 1_000_000


class Transcriber(Protocol):
    """What turns a recording into text; see `assistant/models/speech.py`."""

    async def transcribe(self, data: bytes, mime: str, session: str) -> str:
        """Raises `ModelError`."""


def has_voice(item: InboxItem) -> bool:
    """Whether a message has a recording that waits to be turned into text."""
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
        """`load` makes what listens, in a thread; None where nothing does. `tell` gives the sender of the message a
        notice."""
        self._load = load
        self._transcriber: Transcriber | None = None
        self._stored = stored
        self._workspace = workspace
        self._tell = tell
        self._clock = clock

    @property
    def listens(self) -> bool:
        return self._load is not None

    def waits(self, item: InboxItem) -> bool:
        """Whether `transcribe` has something to do."""
        return self._load is not None and has_voice(item)

    async def transcribe(self, item: InboxItem) -> None:
        """Store what is said in the recordings of a message with it. Raises `StoreError`."""
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
            reason = str(error)
            self._tell(item, NoticeKind.VOICE_NOT_HEARD.fill(item.message_id, reason=reason))
            return _NOT_HEARD.format(reason=reason)
        return f"{text}\n{HEARD}"

    async def _ready(self) -> Transcriber:
        if self._transcriber is None:
            assert self._load is not None
            # The SDK takes a second to import.
            self._transcriber = await asyncio.to_thread(self._load)
        return self._transcriber
