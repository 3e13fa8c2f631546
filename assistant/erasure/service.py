"""Erasure, from the request to the proof that the text is gone: in the stores of the data folder, the memory layer and
the backups.

Nothing is changed before a person has seen a preview and confirmed it; an erasure that was started is finished by the
same command or at the next start (`finish_interrupted`); the text is stored until then, and no longer. A code confirms
exactly the preview, in its scope, once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from assistant.core.calendar import Lifetime, since_boot
from assistant.core.dataclass import dataclass
from assistant.core.erasure import ErasureLeftover, ErasureMatches, ErasurePreview, ErasureRequest, ErasureResult
from assistant.core.erasure_values import value_kind
from assistant.core.errors import AssistantError, MemoryUnavailable, UsageError
from assistant.core.logger import get_logger
from assistant.core.memories import MIN_ID_DIGITS, Memory, resolve_id_prefix
from assistant.core.memory_api import Memories
from assistant.erasure.backups import BackupErasure, ErasedBackups, kept_backup
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.store import ErasureStore

log = get_logger()

_CODE_LIFETIME = timedelta(minutes=15)
_MAX_PENDING = 20
_CODE_LENGTH = 6
_SHOWN_ID_DIGITS = 8
BACKUPS_PLACE = "backups of the data folder"


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    request: ErasureRequest
    lifetime: Lifetime


class ErasureService:
    """Previews and carries out erasures.

    - `memories`: None without a memory layer.
    - `is_busy`: returns whether work is running that has read messages and may still write about them (a sleep cycle, a
      compaction); `defer_while` adds more.
    - `backups`: None if there are none.
    - `elapsed`: the time since boot.
    """

    def __init__(
        self,
        store: ErasureStore,
        memories: Memories | None,
        is_busy: Callable[[], bool] = lambda: False,
        backups: BackupErasure | None = None,
        elapsed: Callable[[], timedelta] = since_boot,
    ) -> None:
        self._store = store
        self._memories = memories
        self._busy_checks = [is_busy]
        self._backups = backups
        self._elapsed = elapsed
        self._running = 0
        self.on_erased: list[Callable[[], None]] = []
        self._pending: dict[str, _PendingRequest] = {}

    def defer_while(self, is_busy: Callable[[], bool]) -> None:
        """Also refuse to erase anything while this work runs."""
        self._busy_checks.append(is_busy)

    def _is_busy(self) -> bool:
        return any(is_busy() for is_busy in self._busy_checks)

    def is_running(self) -> bool:
        """Return whether an erasure, or a search of backups, is running: no backup may be made meanwhile."""
        return bool(self._running)

    async def preview(self, request: ErasureRequest) -> ErasurePreview:
        """Return what would be erased; changes nothing. Raises `UsageError`, `StoreError`, `MemoryUnavailable`."""
        resolved, plan = await self._plan(request)
        preview = self._store.preview(resolved, plan)
        preview = replace(preview, backups=(*preview.backups, *await self._find_backups(plan)))
        return preview if preview else replace(preview, leftovers=tuple(self._store.search_remains(plan)[0]))

    async def _find_backups(self, plan: ErasurePlan) -> tuple[str, ...]:
        with self._counted_as_running():
            return await self._backups.find_names(plan) if self._backups is not None else ()

    async def request_code(self, request: ErasureRequest, now: datetime) -> tuple[ErasurePreview, str]:
        """Return a preview with the code that confirms it within 15 minutes; "" if there is nothing to erase.
        Interrupted erasures are finished first, since the preview would only show what is left of them."""
        finished = await self._finish_quiet(request.scope, now)
        preview = replace(await self.preview(request), finished=tuple(finished))
        if not preview:
            return preview, ""
        made_after = self._elapsed()
        self._pending = {
            code: pending for code, pending in self._pending.items() if not pending.lifetime.is_over(now, made_after)
        }
        while len(self._pending) >= _MAX_PENDING:
            self._pending.pop(next(iter(self._pending)))
        code = hashlib.sha256(f"{preview.request!r} {now.isoformat()}".encode()).hexdigest()[:_CODE_LENGTH].upper()
        self._pending[code] = _PendingRequest(preview.request, Lifetime(now, made_after, _CODE_LIFETIME))
        return preview, code

    async def confirm(self, code: str, scope: str, now: datetime, *, keep_messages: bool = False) -> ErasureResult:
        """Erase what a code confirms, optionally keeping the source messages. Raises `UsageError` if it is unknown,
        expired, or of another scope."""
        pending = self._pending.get(code.strip().upper())
        is_over = pending is None or pending.lifetime.is_over(now, self._elapsed())
        if pending is None or is_over or pending.request.scope != scope:
            raise UsageError("There is nothing to forget under this code. Nothing was changed; ask for it again.")
        request = pending.request
        result = await self.erase(replace(request, keep_messages=keep_messages or request.keep_messages), now)
        self._pending.pop(code.strip().upper(), None)
        return result

    async def erase(self, request: ErasureRequest, now: datetime) -> ErasureResult:
        """Erase in every copy, finishing an interrupted attempt first. Raises `UsageError` (with nothing changed) and
        `StoreError` (then repeat it)."""
        if self._is_busy():
            raise UsageError(
                "The assistant is asleep, is compacting a conversation, or is making a backup. Nothing was changed; "
                "try again when that is done."
            )
        finished = await self._finish(self._store.unfinished_plans(), request.scope, now)
        resolved, plan = await self._plan(request)
        preview = self._store.preview(resolved, plan)
        if not preview and (plan.keep_backups or not await self._find_backups(plan)):
            if finished:
                return finished[-1]
            remains, searched = self._store.search_remains(plan)
            return ErasureResult((), (), tuple(remains), complete=True, files_searched=searched)
        self._store.refuse_if_running(plan)
        return await self._carry_out(self._store.write_plan(plan), preview, now, is_retry=False)

    async def finish_interrupted(self, now: datetime) -> list[ErasureResult]:
        """At start-up, before anything is answered, finish interrupted erasures. The plan of what could not be done
        stays, and is tried again the next time. Raises `StoreError`."""
        return await self._finish(self._store.unfinished_plans(), None, now)

    async def recover_after_crash(self, now: datetime) -> None:
        """At start-up, finish interrupted erasures; failures are logged, and `status` reports them."""
        try:
            if self._backups is not None:
                self._backups.remove_partial()
            for result in await self.finish_interrupted(now):
                log.info("an interrupted erasure was finished", complete=result.complete)
        except AssistantError as error:
            log.error("an erasure could not be finished", error=str(error))

    async def _finish_quiet(self, scope: str, now: datetime) -> list[ErasureResult]:
        """Like `finish_interrupted`, while no turn can repeat the text; return the results of the scope."""
        if self._is_busy():
            return []
        return await self._finish(filter(self._is_quiet, self._store.unfinished_plans()), scope, now)

    def _is_quiet(self, plan: ErasurePlan) -> bool:
        try:
            self._store.refuse_if_running(plan)
        except UsageError:
            return False
        return True

    async def _finish(self, plans: Iterable[ErasurePlan], scope: str | None, now: datetime) -> list[ErasureResult]:
        """Carry out all plans; return the results of the scope (None: of all)."""
        results = []
        for plan in plans:
            request = ErasureRequest(plan.scope, keep_backups=plan.keep_backups)
            result = await self._carry_out(plan, self._store.preview(request, plan), now, is_retry=True)
            results += [result] if scope in (None, plan.scope) else []
        return results

    async def _carry_out(
        self, plan: ErasurePlan, preview: ErasurePreview, now: datetime, *, is_retry: bool
    ) -> ErasureResult:
        """Carry out a plan; `preview` covers only the stores, with database copies as backups."""
        with self._counted_as_running():
            undone = self._store.execute(plan, now, is_retry=is_retry)
            undone += await asyncio.to_thread(self._store.rewrite_archives, plan)
            undone += await self._erase_memories(plan)
            undone += self._store.rewrite_databases()
            backups = ErasedBackups()
            if self._backups is not None:
                backups = await self._backups.erase(plan, now)
            undone += [leftover for leftover in backups.leftovers if leftover.kind == "not_done"]
            remains, files_searched = self._store.search_remains(plan)
            failed = {leftover.where for leftover in undone}
            in_archives, archives_searched = await asyncio.to_thread(self._store.search_archives, plan, failed)
            remains += in_archives
        kept_backups = [kept_backup(name) for name in preview.backups] if plan.keep_backups else []
        kept_backups += [leftover for leftover in backups.leftovers if leftover.kind != "not_done"]
        remains = [remain for remain in remains if remain.where not in {leftover.where for leftover in kept_backups}]
        if not undone:
            self._store.remove_plan(plan)
        for tell in self.on_erased:
            tell()
        return ErasureResult(
            tuple(sorted(plan.ids)),
            (*preview.places, *_removed_backups(plan, preview, undone, backups)),
            (*undone, *kept_backups, *remains),
            not undone and not any(remain.kind == "not_done" for remain in remains),
            files_searched + archives_searched + backups.files_searched,
            tuple(map(value_kind, plan.values)),
            is_retry,
        )

    @contextmanager
    def _counted_as_running(self) -> Iterator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _erase_memories(self, plan: ErasurePlan) -> list[ErasureLeftover]:
        if not plan.memories or self._memories is None:
            return []
        try:
            await self._memories.erase(plan.memories)
        except MemoryUnavailable as error:
            why = f"not done: {error} It is tried again at the next start, and when something is forgotten."
            return [ErasureLeftover("memories", len(plan.memories), why)]
        return []

    async def _plan(self, request: ErasureRequest) -> tuple[ErasureRequest, ErasurePlan]:
        """Return the request with full ids, and its plan."""
        if not request:
            raise UsageError("Say what to forget: a message, an entry, a memory, or words. Nothing was changed.")
        if self._memories is None:
            if request.memories:
                raise UsageError("Nothing is remembered here yet, so there is no such memory. Nothing was changed.")
            request = self._resolve_digits(request, ())
            return request, self._store.plan_erasure(request)
        memories = await self._memories.all(request.scope)
        request = self._resolve_digits(request, memories)
        request = replace(request, memories=tuple(_whole_id(prefix, memories) for prefix in request.memories))
        plan = self._store.plan_erasure(request, {memory.id: memory.text for memory in memories})
        return request, plan.with_memories(memory.id for memory in memories if plan.wording.matches(memory.text))

    def _resolve_digits(self, request: ErasureRequest, memories: Sequence[Memory]) -> ErasureRequest:
        """Resolve a number to a memory or message, or treat it as text. Raises `UsageError` if it is ambiguous."""
        digits = request.digits
        if not digits:
            return request
        request = replace(request, digits="")
        is_memory = len(digits) == _SHOWN_ID_DIGITS and any(memory.id.startswith(digits) for memory in memories)
        may_be_message = is_memory or digits[0] != "0"  # a code that begins with zero is not a message number
        is_message = may_be_message and self._store.find_message(int(digits), request.scope) is not None
        if is_memory and is_message:
            raise UsageError(
                f"{digits} is a message, and a memory's id begins so. Say `#{digits}` for the message, `memory "
                f"{digits}` for the memory. Nothing was changed."
            )
        if is_memory:
            return replace(request, memories=(digits,))
        return replace(request, messages=(int(digits),)) if is_message else replace(request, text=digits)


def _removed_backups(
    plan: ErasurePlan, preview: ErasurePreview, undone: Sequence[ErasureLeftover], backups: ErasedBackups
) -> list[ErasureMatches]:
    failed = {leftover.where for leftover in undone}
    copies = () if plan.keep_backups else preview.backups
    names = (*(name for name in copies if PurePosixPath(name).name not in failed), *backups.names)
    return [ErasureMatches(BACKUPS_PLACE, len(names), names)] if names else []


def _whole_id(prefix: str, memories: Sequence[Memory]) -> str:
    """Return the id of the memory that begins with `prefix`. Raises `UsageError` if there is none, or several."""
    memory_id = resolve_id_prefix(prefix, (memory.id for memory in memories)) if len(prefix) >= MIN_ID_DIGITS else ""
    if not memory_id:
        raise UsageError(f"There is no memory {prefix}. Nothing was changed; in quotes it is looked for as words.")
    return memory_id
