"""Shows the progress of a turn: typing, and the growing answer. Provisional and limited.

Nothing here blocks or raises; if Telegram refuses, nothing is shown. Live text is a draft (Bot API 9.3), which only
exists in direct chats; it disappears by itself, and the message replaces it. A message waits for a draft being sent,
and after a reply no draft or typing of its turn follows.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import field

from assistant.bridges.telegram.render import keep_tail
from assistant.core.bridge_api import TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.text import drop_unfinished_word

_MAX_TARGETS = 64
# A turn without events for so long is no longer shown.
_MAX_SILENCE_SECONDS = 900.0
# Telegram removes a draft after 30 s.
_REFRESH_SECONDS = 20.0
_DRAFT_UNITS = 4000
_NEVER = float("-inf")

# Both take the target; a draft has a number other than 0, the same during one turn, and its text.
SendTyping = Callable[[str], Awaitable[None]]
SendDraft = Callable[[str, int, str], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _LiveTarget:
    """What is shown at one target. Times are the loop's."""

    turn: str = ""  # "" if no turn runs
    text: str = ""
    drawing: bool = False  # until the reply is sent, or Telegram refuses drafts
    drawn: str = ""
    drawn_at: float = _NEVER
    typed_at: float = _NEVER
    heard_at: float = 0.0
    held_until: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True, eq=False)
class TelegramLiveText:
    """One per bridge. At most `_MAX_TARGETS` targets are shown at once."""

    send_typing: SendTyping
    send_draft: SendDraft
    typing_seconds: float  # typing is repeated after this time; Telegram shows it for 5 s
    draft_seconds: float  # minimum time between two drafts
    _targets: dict[str, _LiveTarget] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def show(self, event: TurnEvent, target: str, *, drafts: bool) -> None:
        """Take up what happens in a turn; requests to Telegram follow in tasks. `drafts`: whether the target shows
        them."""
        live = self._targets.get(target)
        if event.kind == "turn" and event.data.get("state") == "started":
            live = self._start(target) if live is None else live
            if live is not None:
                live.turn, live.text, live.drawn, live.drawing = event.turn, "", "", drafts
        if live is None or live.turn != event.turn:
            return
        live.heard_at = _now()
        if event.kind == "turn" and event.data.get("state") != "started":
            live.turn = ""
        elif event.kind == "delta":
            live.text = (live.text + str(event.data.get("text", "")))[-2 * _DRAFT_UNITS :]
        elif event.kind == "discard":
            live.text = ""
        live.changed.set()

    @asynccontextmanager
    async def pause_while_sending(self, target: str, *, final: bool) -> AsyncIterator[None]:
        """Send no draft while a message is being sent; after a `final` one no draft of this turn follows."""
        live = self._targets.get(target)
        if live is None:
            yield
            return
        async with live.busy:
            live.drawing = live.drawing and not final
            yield

    async def aclose(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._targets.clear()

    # ----------------------------------------------------------------------------------------------------------- within

    def _start(self, target: str) -> _LiveTarget | None:
        if len(self._targets) >= _MAX_TARGETS:
            return None
        live = self._targets[target] = _LiveTarget()
        task = asyncio.create_task(self._keep_showing(target, live), name=f"live {target}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return live

    async def _keep_showing(self, target: str, live: _LiveTarget) -> None:
        try:
            while live.turn and _now() - live.heard_at < _MAX_SILENCE_SECONDS:
                live.changed.clear()
                async with live.busy:
                    await self._show_typing(target, live)
                    await self._show_draft(target, live)
                if live.turn:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._seconds_to_next(live)):
                            await live.changed.wait()
        finally:
            del self._targets[target]

    async def _show_typing(self, target: str, live: _LiveTarget) -> None:
        if live.turn and _now() >= max(live.held_until, live.typed_at + self.typing_seconds):
            live.typed_at = _now()
            try:
                await self.send_typing(target)
            except BridgeError as error:
                live.held_until = _now() + (error.retry_after or 0)

    async def _show_draft(self, target: str, live: _LiveTarget) -> None:
        if not live.turn or _now() < self._next_draft(live):
            return
        text = _shown(live)
        live.drawn, live.drawn_at = text, _now()
        try:
            await self.send_draft(target, zlib.crc32(live.turn.encode()) or 1, text)
        except BridgeError as error:
            live.held_until = _now() + (error.retry_after or 0)
            live.drawing = error.retry_after is not None

    def _next_draft(self, live: _LiveTarget) -> float:
        """Return when the next draft is to be sent; infinite if there is none."""
        if not live.drawing or not live.text.strip():
            return float("inf")
        interval = _REFRESH_SECONDS if _shown(live) == live.drawn else self.draft_seconds
        return max(live.held_until, live.drawn_at + interval)

    def _seconds_to_next(self, live: _LiveTarget) -> float:
        """Return the seconds until something is to be shown, unless an event comes first."""
        typing = max(live.held_until, live.typed_at + self.typing_seconds)
        return max(0.0, min(typing, self._next_draft(live)) - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()


def _shown(live: _LiveTarget) -> str:
    return keep_tail(drop_unfinished_word(live.text), _DRAFT_UNITS)
