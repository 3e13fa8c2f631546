"""Live text of the Matrix bridge: what a turn writes before its answer, in one message that the answer replaces.

Nothing here is essential: failures are ignored, and the answer then is a separate message. A draft of an earlier
process is found again, since its transaction id derives from its turn and its event is stored with the position; the
next answer to the same target replaces it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import field
from typing import Any

from assistant.bridges.matrix import events as form
from assistant.core.bridge_api import TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger
from assistant.core.text import beside_loop

log = get_logger()

_TYPING_SECONDS = 30.0
_TYPING_AGAIN_SECONDS = 20.0
_ERROR_SECONDS = 10.0
# A draft shows the end of a longer text; the answer shows all of it.
_MAX_SHOWN = 4000
_MAX_OWN_EVENTS = 1000

# (target, content, transaction) to event id; (target, event); (target, seconds). All raise `BridgeError`.
WriteDraft = Callable[[str, dict[str, Any], str], Awaitable[str]]
EraseDraft = Callable[[str, str], Awaitable[None]]
SetTyping = Callable[[str, float], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Draft:
    """Live text at one target."""

    target: str
    turn: str
    text: str = ""
    shown: str = ""
    event: str = ""  # the event that shows it; "" for none
    edits: int = 0
    doubtful: bool = False  # a late edit of it may still arrive
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class MatrixDrafts:
    """A draft is changed at most every `edit_seconds`."""

    write_event: WriteDraft
    erase_event: EraseDraft
    set_typing: SetTyping
    edit_seconds: float
    _drafts: dict[str, _Draft] = field(default_factory=dict)
    _leftover_events: dict[str, str] = field(default_factory=dict)
    # Targets whose answer was sent, but where a draft may appear that the server has not reported yet.
    _doubtful_targets: set[str] = field(default_factory=set)
    # Drafts of this process, as opposed to leftover ones.
    _own_events: dict[str, None] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def show(self, event: TurnEvent, target: str) -> None:
        """Take up what happens in a turn; what is shown follows in tasks. An aborted turn's draft is erased."""
        draft = self._drafts.get(target)
        if event.kind == "turn" and event.data.get("state") != "started":
            if draft is not None and draft.turn == event.turn:
                self._finish(draft, withdrawn=event.data.get("state") == "aborted")
            return
        if event.kind not in ("turn", "delta", "discard") or not event.turn:
            return
        if draft is None or draft.turn != event.turn:
            draft = self._start(target, event.turn)
        if event.kind == "delta":
            draft.text += str(event.data.get("text", ""))
            draft.changed.set()
        elif event.kind == "discard":
            draft.text = ""
            draft.changed.set()

    async def claim_for_answer(self, target: str, key: str, *, answer: bool) -> str:
        """Return the event that the message under `key` replaces, "" for none. A draft whose turn still runs is
        replaced only by an answer, or by a message of its turn."""
        draft = self._drafts.get(target)
        if draft is None:
            return self._remember(self._leftover_events.pop(target, ""))
        if not (answer or draft.ended.is_set() or draft.turn in key):
            return ""
        del self._drafts[target]
        await self._wait_for_end(draft)
        if not draft.doubtful:
            return draft.event
        # A late edit would overwrite the answer.
        if draft.event:
            self._run_later(self._erase(target, draft.event))
        else:
            self._doubtful_targets.add(target)
        return ""

    def release_claim(self, target: str, event: str) -> None:
        """The draft was not replaced after all."""
        self._own_events.pop(event, None)
        self._leftover_events[target] = event

    def note_existing_drafts(self, drafts: Mapping[str, str]) -> None:
        """Handle drafts that the server reported in rooms."""
        for target, event in drafts.items():
            if event in self._own_events:
                continue
            if target in self._doubtful_targets and target not in self._drafts:
                self._doubtful_targets.discard(target)
                self._remember(event)
                self._run_later(self._erase(target, event))
            else:
                self._leftover_events[target] = event

    async def aclose(self) -> None:
        tasks = [*self._tasks, *(draft.task for draft in self._drafts.values() if draft.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._drafts.clear()

    # ---------------------------------------------------------------------------------------------------------- a draft

    def _start(self, target: str, turn: str) -> _Draft:
        if (earlier := self._drafts.pop(target, None)) is not None:
            self._finish(earlier, withdrawn=True)
        draft = self._drafts[target] = _Draft(target, turn)
        draft.task = asyncio.create_task(self._show(draft), name=f"draft {turn}")
        return draft

    def _finish(self, draft: _Draft, *, withdrawn: bool) -> None:
        draft.ended.set()
        draft.changed.set()
        if withdrawn:
            self._drafts.pop(draft.target, None)
            self._run_later(self._withdraw(draft))

    async def _withdraw(self, draft: _Draft) -> None:
        await self._wait_for_end(draft)
        if draft.event:
            await self._erase(draft.target, draft.event)

    async def _wait_for_end(self, draft: _Draft) -> None:
        draft.ended.set()
        draft.changed.set()
        if draft.task is not None:
            await asyncio.wait([draft.task])

    async def _show(self, draft: _Draft) -> None:
        while not draft.ended.is_set():
            await self._type(draft.target, _TYPING_SECONDS)
            await _wait_within(_TYPING_AGAIN_SECONDS, draft.changed)
            draft.changed.clear()
            if draft.ended.is_set():
                break
            pause = self.edit_seconds
            try:
                await self._write(draft)
            except BridgeError as error:
                log.debug("live text is not shown", error=str(error))
                pause = max(error.retry_after or 0, _ERROR_SECONDS)
            await _wait_within(pause, draft.ended)
        await self._type(draft.target, 0)

    async def _write(self, draft: _Draft) -> None:
        text = draft.text.strip()
        text = text if len(text) <= _MAX_SHOWN else "…" + text[-_MAX_SHOWN:]
        if draft.event:
            text = text or "…"
        if not text or text == draft.shown or draft.doubtful:
            return
        try:
            draft.shown = text
            if draft.event:
                draft.edits += 1
                transaction = form.notice_transaction_id(draft.event, str(draft.edits), text)
                content = await beside_loop(len(text), form.edit_content, draft.event, text)
                await self.write_event(draft.target, content, transaction)
            else:
                await self._create(draft, text)
        except BridgeError as error:
            draft.doubtful = draft.doubtful or error.ambiguous
            draft.shown = ""
            raise

    async def _create(self, draft: _Draft, text: str) -> None:
        thread = form.parse_target(draft.target)[1]
        content = await beside_loop(len(text), form.message_content, text, thread)
        draft.event = await self.write_event(draft.target, content, form.draft_transaction_id(draft.turn, draft.target))
        self._remember(draft.event)
        leftover = self._leftover_events.pop(draft.target, "")
        if leftover and leftover != draft.event:
            self._run_later(self._erase(draft.target, leftover))
        elif leftover:
            # An earlier process started it: the server returned its event, which shows the earlier text.
            draft.shown = ""
            draft.changed.set()

    async def _type(self, target: str, seconds: float) -> None:
        with contextlib.suppress(BridgeError):
            await self.set_typing(target, seconds)

    async def _erase(self, target: str, event: str) -> None:
        try:
            await self.erase_event(target, event)
        except BridgeError as error:
            log.warning("a draft could not be withdrawn", target=target, error=str(error))

    def _remember(self, event: str) -> str:
        if event:
            self._own_events[event] = None
            if len(self._own_events) > _MAX_OWN_EVENTS:
                del self._own_events[next(iter(self._own_events))]
        return event

    def _run_later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _wait_within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
