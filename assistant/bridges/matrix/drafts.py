"""The Matrix bridge's live text: what a turn says before it has answered, in one message that the answer replaces.

What always holds: nothing here is needed. Whatever fails is left out, and the answer comes as a message of its own.
A draft that an earlier process left is found again, since its transaction id is that of its turn and its event is
remembered with the position; the next answer at that place replaces it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from assistant.bridges.matrix import events as form
from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import BridgeError

log = structlog.get_logger()

_TYPING_SECONDS = 30.0
_TYPING_AGAIN_SECONDS = 20.0
_TROUBLE_SECONDS = 10.0
# A draft shows its end; of what is longer the answer shows all.
_SHOWN = 4000
_REMEMBERED = 1000

# (target, content, transaction) to the id of the event; (target, event); (target, seconds). All raise `BridgeError`.
WriteDraft = Callable[[str, dict[str, Any], str], Awaitable[str]]
EraseDraft = Callable[[str, str], Awaitable[None]]
SetTyping = Callable[[str, float], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Draft:
    """`event` is the message that shows it, "" where there is none. `doubtful`: a change of it may come late still."""

    target: str
    turn: str
    text: str = ""
    shown: str = ""
    event: str = ""
    edits: int = 0
    doubtful: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class MatrixDrafts:
    def __init__(self, write: WriteDraft, erase: EraseDraft, set_typing: SetTyping, edit_seconds: float) -> None:
        """What drafts do in rooms; a draft is changed every `edit_seconds` at most."""
        self._write_event = write
        self._erase_event = erase
        self._set_typing = set_typing
        self._edit_seconds = edit_seconds
        self._drafts: dict[str, _Draft] = {}
        self._left: dict[str, str] = {}
        # Where a draft may stand of which the server has not told yet, and whose answer is there already.
        self._lost: set[str] = set()
        # Events of this process, that are nobody's leavings.
        self._own: dict[str, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def show(self, event: TurnEvent, target: str) -> None:
        draft = self._drafts.get(target)
        if event.kind == "turn" and event.data.get("state") != "started":
            if draft is not None and draft.turn == event.turn:
                self._end(draft, gone=event.data.get("state") == "aborted")
            return
        if event.kind not in ("turn", "delta", "discard") or not event.turn:
            return
        if draft is None or draft.turn != event.turn:
            draft = self._begin(target, event.turn)
        if event.kind == "delta":
            draft.text += str(event.data.get("text", ""))
            draft.changed.set()
        elif event.kind == "discard":
            draft.text = ""
            draft.changed.set()

    async def claim_for_answer(self, target: str, key: str, *, answer: bool) -> str:
        """The event that what is sent now under `key` replaces, "" for none. A draft whose turn still runs makes way
        for an answer, or for what its turn says, only."""
        draft = self._drafts.get(target)
        if draft is None:
            return self._remember(self._left.pop(target, ""))
        if not (answer or draft.ended.is_set() or draft.turn in key):
            return ""
        del self._drafts[target]
        await self._settled(draft)
        if not draft.doubtful:
            return draft.event
        # A late change would overwrite the answer.
        if draft.event:
            self._later(self._erase(target, draft.event))
        else:
            self._lost.add(target)
        return ""

    def release_claim(self, target: str, event: str) -> None:
        """It was not replaced after all."""
        self._own.pop(event, None)
        self._left[target] = event

    def note_existing_drafts(self, drafts: Mapping[str, str]) -> None:
        """These stand in rooms, as the server tells."""
        for target, event in drafts.items():
            if event in self._own:
                continue
            if target in self._lost and target not in self._drafts:
                self._lost.discard(target)
                self._remember(event)
                self._later(self._erase(target, event))
            else:
                self._left[target] = event

    async def aclose(self) -> None:
        tasks = [*self._tasks, *(draft.task for draft in self._drafts.values() if draft.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._drafts.clear()

    # ---------------------------------------------------------------------------------------------------------- a draft

    def _begin(self, target: str, turn: str) -> _Draft:
        if (earlier := self._drafts.pop(target, None)) is not None:
            self._end(earlier, gone=True)
        draft = self._drafts[target] = _Draft(target, turn)
        draft.task = asyncio.create_task(self._show(draft), name=f"draft {turn}")
        return draft

    def _end(self, draft: _Draft, *, gone: bool) -> None:
        draft.ended.set()
        draft.changed.set()
        if gone:
            self._drafts.pop(draft.target, None)
            self._later(self._withdraw(draft))

    async def _withdraw(self, draft: _Draft) -> None:
        await self._settled(draft)
        if draft.event:
            await self._erase(draft.target, draft.event)

    async def _settled(self, draft: _Draft) -> None:
        draft.ended.set()
        draft.changed.set()
        if draft.task is not None:
            await asyncio.wait([draft.task])

    async def _show(self, draft: _Draft) -> None:
        while not draft.ended.is_set():
            await self._type(draft.target, _TYPING_SECONDS)
            await _within(_TYPING_AGAIN_SECONDS, draft.changed)
            draft.changed.clear()
            if draft.ended.is_set():
                break
            pause = self._edit_seconds
            try:
                await self._write(draft)
            except BridgeError as error:
                log.debug("live text is not shown", error=str(error))
                pause = max(error.retry_after or 0, _TROUBLE_SECONDS)
            await _within(pause, draft.ended)
        await self._type(draft.target, 0)

    async def _write(self, draft: _Draft) -> None:
        text = draft.text.strip()
        text = text if len(text) <= _SHOWN else "…" + text[-_SHOWN:]
        if draft.event:
            text = text or "…"
        if not text or text == draft.shown or draft.doubtful:
            return
        try:
            draft.shown = text
            if draft.event:
                draft.edits += 1
                transaction = form.notice_transaction_id(draft.event, str(draft.edits), text)
                await self._write_event(draft.target, form.edit_content(draft.event, text), transaction)
            else:
                await self._create(draft, text)
        except BridgeError as error:
            draft.doubtful = draft.doubtful or error.ambiguous
            draft.shown = ""
            raise

    async def _create(self, draft: _Draft, text: str) -> None:
        content = form.message_content(text, form.parse_target(draft.target)[1])
        draft.event = await self._write_event(
            draft.target, content, form.draft_transaction_id(draft.turn, draft.target)
        )
        self._remember(draft.event)
        left = self._left.pop(draft.target, "")
        if left and left != draft.event:
            self._later(self._erase(draft.target, left))
        elif left:
            # An earlier process began it: the server answered with that event, which shows what it said then.
            draft.shown = ""
            draft.changed.set()

    async def _type(self, target: str, seconds: float) -> None:
        with contextlib.suppress(BridgeError):
            await self._set_typing(target, seconds)

    async def _erase(self, target: str, event: str) -> None:
        try:
            await self._erase_event(target, event)
        except BridgeError as error:
            log.warning("a draft could not be withdrawn", target=target, error=str(error))

    def _remember(self, event: str) -> str:
        if event:
            self._own[event] = None
            if len(self._own) > _REMEMBERED:
                del self._own[next(iter(self._own))]
        return event

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
