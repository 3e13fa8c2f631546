"""Erasure, from what a person asks for to the proof that it is gone: over the copies in the home's stores, the memory
layer and the backups.

What always holds: nothing is changed before a person has seen what would be erased and confirmed it; what was begun is
finished, by the same command or at the next start (`finish_interrupted`); the words are kept until then and no
longer. A code stands for exactly what was shown, in the scope it was shown in, once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from assistant.core.erasure import ErasureLeftover, ErasureMatches, ErasurePreview, ErasureRequest, ErasureResult
from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import MIN_ID_DIGITS, Memory, resolve_id_prefix
from assistant.core.memory_api import Memories

_HOLDS = timedelta(minutes=15)
_MOST_ASKED = 20
_CODE_LENGTH = 6
_BACKUPS = "backups of the home"

MarkedT = TypeVar("MarkedT", bound="ErasureSubject")
AboutT = TypeVar("AboutT", bound="ErasureSubject", contravariant=True)


class ErasureSubject(Protocol):
    """What one forgetting is about."""

    @property
    def scope(self) -> str: ...
    @property
    def memories(self) -> tuple[str, ...]: ...
    @property
    def ids(self) -> frozenset[int]: ...
    def contains_words(self, text: str) -> bool:
        """Whether a text has the words."""
        ...


class ErasedBackups(Protocol):
    """What became of the words in backups."""

    @property
    def names(self) -> Sequence[str]:
        """Of those that were rewritten."""
        ...

    @property
    def left(self) -> Sequence[ErasureLeftover]: ...
    @property
    def searched(self) -> int: ...


class ErasableBackups(Protocol[AboutT]):
    """The backups of the home, wherever they lie."""

    async def find_with_words(self, marked: AboutT) -> Sequence[str]:
        """The names of those that have the words."""
        ...

    async def erase(self, marked: AboutT, now: datetime) -> ErasedBackups:
        """Rewrite those that have something of it; what could not be done is left, and told."""
        ...


class ErasableStores(Protocol[MarkedT]):
    """The copies of what was said that the home's stores have. Every method raises `StoreError`."""

    def plan_erasure(self, wanted: ErasureRequest) -> MarkedT:
        """What it is about. Raises `UsageError` for what is not there, or too short to be looked for."""
        ...

    def with_memories(self, marked: MarkedT, memory_ids: tuple[str, ...]) -> MarkedT: ...

    def preview(self, wanted: ErasureRequest, marked: MarkedT) -> ErasurePreview: ...

    def has_message(self, message_id: int, scope: str) -> bool: ...

    def refuse_if_running(self, marked: MarkedT) -> None:
        """Raises `UsageError` where something of it belongs to what is being answered."""
        ...

    def write_plan(self, marked: MarkedT) -> MarkedT: ...
    def unfinished_plans(self) -> list[MarkedT]: ...
    def execute(self, marked: MarkedT, now: datetime, *, is_retry: bool) -> list[ErasureLeftover]: ...
    def rewrite_archives(self, marked: MarkedT) -> list[ErasureLeftover]:
        """What could not be done of the archives; slow, for a worker thread."""
        ...

    def rewrite_databases(self) -> list[ErasureLeftover]: ...
    def search_remains(self, marked: MarkedT) -> tuple[list[ErasureLeftover], int]: ...
    def remove_plan(self, marked: MarkedT) -> None: ...


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    wanted: ErasureRequest
    until: datetime


class ErasureService(Generic[MarkedT]):
    """`memories` None: the home has no memory layer. `busy`: whether somebody is at work who has read what was said
    and may write of it yet (a sleep, a compaction, a backup). `backups` None: there are none."""

    def __init__(
        self,
        stores: ErasableStores[MarkedT],
        memories: Memories | None,
        is_busy: Callable[[], bool] = lambda: False,
        backups: ErasableBackups[MarkedT] | None = None,
    ) -> None:
        self._copies = stores
        self._memories = memories
        self._busy = is_busy
        self._backups = backups
        self._at_work = 0
        self._asked: dict[str, _PendingRequest] = {}

    @property
    def is_running(self) -> bool:
        """Whether something is being forgotten just now."""
        return bool(self._at_work)

    async def preview(self, wanted: ErasureRequest) -> ErasurePreview:
        """What would go; nothing is changed. Raises `UsageError`, `StoreError`, `MemoryUnavailable`."""
        whole, marked = await self._marked(wanted)
        return await self._found(whole, marked)

    async def _found(self, wanted: ErasureRequest, marked: MarkedT) -> ErasurePreview:
        """Backups are searched where the home itself has nothing of it any more: what it has, they have as well."""
        found = self._copies.preview(wanted, marked)
        if found or self._backups is None:
            return found
        names = tuple(await self._backups.find_with_words(marked))
        return replace(found, places=(ErasureMatches(_BACKUPS, len(names), names),)) if names else found

    async def request_code(self, wanted: ErasureRequest, now: datetime) -> tuple[ErasurePreview, str]:
        """As `find`, with the code by which a person confirms it within a quarter of an hour; "" where there is
        nothing to forget. What was confirmed before and cut off is finished first: asking for it again would find no
        more than what is left of it, or nothing."""
        finished = await self._finish(wanted.scope, now)
        found = replace(await self.preview(wanted), finished=tuple(finished))
        if not found:
            return found, ""
        self._asked = {code: asked for code, asked in self._asked.items() if asked.until > now}
        while len(self._asked) >= _MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        code = hashlib.sha256(f"{found.request!r} {now.isoformat()}".encode()).hexdigest()[:_CODE_LENGTH].upper()
        self._asked[code] = _PendingRequest(found.request, now + _HOLDS)
        return found, code

    async def confirm(self, code: str, scope: str, now: datetime) -> ErasureResult:
        """Forget what a code stands for. Raises `UsageError` for one that is unknown, old, or of another scope."""
        asked = self._asked.get(code.strip().upper())
        if asked is None or asked.wanted.scope != scope or asked.until <= now:
            raise UsageError("There is nothing to forget under this code. Nothing was changed; ask for it again.")
        done = await self.erase(asked.wanted, now)
        self._asked.pop(code.strip().upper(), None)
        return done

    async def erase(self, wanted: ErasureRequest, now: datetime) -> ErasureResult:
        """Forget it in every copy. What an earlier attempt left undone is finished first. Raises `UsageError` (then
        nothing was changed) and `StoreError` (then it is to be repeated)."""
        if self._busy():
            raise UsageError(
                "The assistant sleeps, or makes room, or makes a backup, just now. Nothing was changed; try again "
                "after that."
            )
        finished = await self._settled(self._copies.unfinished_plans(), wanted.scope, now)
        whole, marked = await self._marked(wanted)
        found = await self._found(whole, marked)
        if not found:
            return finished[-1] if finished else ErasureResult((), (), (), complete=True, files_searched=0)
        self._copies.refuse_if_running(marked)
        return await self._carry_out(self._copies.write_plan(marked), found, now, again=False)

    async def finish_interrupted(self, now: datetime) -> list[ErasureResult]:
        """At start, before anything is answered: finish what was begun. What could not be done stays noted, and is
        tried again the next time. Raises `StoreError`."""
        return await self._settled(self._copies.unfinished_plans(), None, now)

    async def _finish(self, scope: str, now: datetime) -> list[ErasureResult]:
        """As `settle`, of what nobody may say again meanwhile; what was of the scope."""
        if self._busy():
            return []
        return await self._settled([one for one in self._copies.unfinished_plans() if self._is_quiet(one)], scope, now)

    def _is_quiet(self, marked: MarkedT) -> bool:
        try:
            self._copies.refuse_if_running(marked)
        except UsageError:
            return False
        return True

    async def _settled(self, unfinished: Sequence[MarkedT], scope: str | None, now: datetime) -> list[ErasureResult]:
        """All of it is gone on with; what was done, in the scope (None: in any)."""
        settled = []
        for marked in unfinished:
            found = self._copies.preview(ErasureRequest(marked.scope), marked)
            done = await self._carry_out(marked, found, now, again=True)
            settled += [done] if scope in (None, marked.scope) else []
        return settled

    async def _carry_out(self, marked: MarkedT, found: ErasurePreview, now: datetime, *, again: bool) -> ErasureResult:
        self._at_work += 1
        try:
            undone = self._copies.execute(marked, now, is_retry=again)
            undone += await asyncio.to_thread(self._copies.rewrite_archives, marked)
            undone += await self._erase(marked)
            undone += self._copies.rewrite_databases()
            left, searched = self._copies.search_remains(marked)
            places = tuple(place for place in found.places if place.kind != _BACKUPS)
            if self._backups is not None:
                done = await self._backups.erase(marked, now)
                places += (ErasureMatches(_BACKUPS, len(done.names), tuple(done.names)),) if done.names else ()
                undone += [one for one in done.left if one.kind == "not_done"]
                left += [one for one in done.left if one.kind != "not_done"]
                searched += done.searched
        finally:
            self._at_work -= 1
        if not undone:
            self._copies.remove_plan(marked)
        still = any(one.kind == "not_done" for one in left)
        return ErasureResult(
            tuple(sorted(marked.ids)), places, (*undone, *left), not undone and not still, searched, again
        )

    async def _erase(self, marked: MarkedT) -> list[ErasureLeftover]:
        if not marked.memories or self._memories is None:
            return []
        try:
            await self._memories.erase(marked.memories)
        except MemoryUnavailable as error:
            why = f"not done: {error} It is tried again at the next start, and when something is forgotten."
            return [ErasureLeftover("semantic memory", len(marked.memories), why)]
        return []

    async def _marked(self, wanted: ErasureRequest) -> tuple[ErasureRequest, MarkedT]:
        """What is wanted, by whole ids, and what that is about."""
        if not wanted:
            raise UsageError("Say what to forget: a message, an entry, a memory, or words. Nothing was changed.")
        if self._memories is None:
            if wanted.memories:
                raise UsageError("There is no semantic memory here. Nothing was changed.")
            wanted = self._told_apart(wanted, ())
            return wanted, self._copies.plan_erasure(wanted)
        of_scope = await self._memories.all(wanted.scope)
        wanted = self._told_apart(wanted, of_scope)
        wanted = replace(wanted, memories=tuple(_whole(one, of_scope) for one in wanted.memories))
        marked = self._copies.plan_erasure(wanted)
        with_words = tuple(one.id for one in of_scope if marked.contains_words(one.text))
        return wanted, self._copies.with_memories(marked, with_words)

    def _told_apart(self, wanted: ErasureRequest, of_scope: Sequence[Memory]) -> ErasureRequest:
        """Digits alone as the memory or the message that they name. Raises `UsageError` where they name both."""
        digits = wanted.digits
        if not digits:
            return wanted
        wanted = replace(wanted, digits="")
        if not any(memory.id.startswith(digits) for memory in of_scope):
            return replace(wanted, messages=(int(digits),))
        if self._copies.has_message(int(digits), wanted.scope):
            raise UsageError(
                f"{digits} is a message, and a memory's id begins so. Say `#{digits}` for the message, `memory "
                f"{digits}` for the memory. Nothing was changed."
            )
        return replace(wanted, memories=(digits,))


def _whole(beginning: str, memories: Sequence[Memory]) -> str:
    """The id that begins so. Raises `UsageError` where there is none, or several."""
    found = resolve_id_prefix(beginning, (memory.id for memory in memories)) if len(beginning) >= MIN_ID_DIGITS else ""
    if not found:
        raise UsageError(f"There is no memory {beginning}. Nothing was changed; in quotes it is looked for as words.")
    return found
