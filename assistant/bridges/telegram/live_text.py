"""What is shown while a turn runs: typing, and the answer as it grows. Provisional, and bounded in every way.

What always holds: nobody waits here, and nothing is raised; where Telegram refuses, nothing is shown. Live text is a
draft (Bot API 9.3), which Telegram has between two only; it disappears by itself, and gives way to the message. A
message waits for what is on its way to that place, and after a reply nothing of its turn follows: no late draft, no
typing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from assistant.bridges.telegram.render import keep_tail
from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import BridgeError

_MOST_PLACES = 64
# A turn of which nothing was heard for this long is shown no longer.
_SILENT_SECONDS = 900.0
# Telegram takes a draft away after 30 s.
_REFRESH_SECONDS = 20.0
_DRAFT_UNITS = 4000
_NEVER = float("-inf")

# Both take the target; a draft has a number other than 0, the same for one turn, and its text.
SendTyping = Callable[[str], Awaitable[None]]
SendDraft = Callable[[str, int, str], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Place:
    """`turn` is "" where none runs. `drawing` ends when the reply goes out, or Telegram wants no draft. Times are the
    loop's."""

    turn: str = ""
    text: str = ""
    drawing: bool = False
    drawn: str = ""
    drawn_at: float = _NEVER
    typed_at: float = _NEVER
    heard_at: float = 0.0
    held_until: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


class TelegramLiveText:
    def __init__(self, type_: SendTyping, draft: SendDraft, *, typing_seconds: float, draft_seconds: float) -> None:
        """Typing is repeated after `typing_seconds` (Telegram shows it for 5), drafts are that many seconds apart at
        least."""
        self._type = type_
        self._draft = draft
        self._typing_seconds = typing_seconds
        self._draft_seconds = draft_seconds
        self._places: dict[str, _Place] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def show(self, event: TurnEvent, target: str, *, drafts: bool) -> None:
        place = self._places.get(target)
        if event.kind == "turn" and event.data.get("state") == "started":
            place = self._begin(target) if place is None else place
            if place is not None:
                place.turn, place.text, place.drawn, place.drawing = event.turn, "", "", drafts
        if place is None or place.turn != event.turn:
            return
        place.heard_at = _now()
        if event.kind == "turn" and event.data.get("state") != "started":
            place.turn = ""
        elif event.kind == "delta":
            place.text = (place.text + str(event.data.get("text", "")))[-2 * _DRAFT_UNITS :]
        elif event.kind == "discard":
            place.text = ""
        place.changed.set()

    @asynccontextmanager
    async def pause_while_sending(self, target: str, *, final: bool) -> AsyncIterator[None]:
        """A message goes out: nothing is on its way meanwhile; after a `final` one no draft of this turn follows."""
        place = self._places.get(target)
        if place is None:
            yield
            return
        async with place.busy:
            place.drawing = place.drawing and not final
            yield

    async def aclose(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._places.clear()

    # ----------------------------------------------------------------------------------------------------------- within

    def _begin(self, target: str) -> _Place | None:
        if len(self._places) >= _MOST_PLACES:
            return None
        place = self._places[target] = _Place()
        task = asyncio.create_task(self._keep(target, place), name=f"live {target}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return place

    async def _keep(self, target: str, place: _Place) -> None:
        try:
            while place.turn and _now() - place.heard_at < _SILENT_SECONDS:
                place.changed.clear()
                async with place.busy:
                    await self._show_typing(target, place)
                    await self._show_draft(target, place)
                if place.turn:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._pause(place)):
                            await place.changed.wait()
        finally:
            del self._places[target]

    async def _show_typing(self, target: str, place: _Place) -> None:
        if place.turn and _now() >= max(place.held_until, place.typed_at + self._typing_seconds):
            place.typed_at = _now()
            try:
                await self._type(target)
            except BridgeError as error:
                place.held_until = _now() + (error.retry_after or 0)

    async def _show_draft(self, target: str, place: _Place) -> None:
        if not place.turn or _now() < self._next_draft(place):
            return
        text = keep_tail(place.text, _DRAFT_UNITS)
        place.drawn, place.drawn_at = text, _now()
        try:
            await self._draft(target, zlib.crc32(place.turn.encode()) or 1, text)
        except BridgeError as error:
            place.held_until = _now() + (error.retry_after or 0)
            place.drawing = error.retry_after is not None

    def _next_draft(self, place: _Place) -> float:
        """When there is one to show; infinite where there is nothing."""
        if not place.drawing or not place.text.strip():
            return float("inf")
        apart = _REFRESH_SECONDS if keep_tail(place.text, _DRAFT_UNITS) == place.drawn else self._draft_seconds
        return max(place.held_until, place.drawn_at + apart)

    def _pause(self, place: _Place) -> float:
        """Until something is to be shown, where nothing happens before."""
        typing = max(place.held_until, place.typed_at + self._typing_seconds)
        return max(0.0, min(typing, self._next_draft(place)) - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()
