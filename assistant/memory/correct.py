"""A memory put right by a person or a model, at once.

What always holds:
- The correction is a journal entry, and what it takes the place of says so, in one transaction: from then on recall
  goes by it, and whatever is cut off or down afterwards, the next sleep makes the same memory of it (I4, F30).
- Nothing is deleted: what was put right keeps its words and gets the date, so that both stay.
- The same call made twice, by its key, is made once. Everything is of one scope (I10).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import CorrectionResult, JournalEntry, Memory, MemoryState
from assistant.core.memory_api import Memories
from assistant.core.store_ports import Journal
from assistant.memory.lookup import MemoryLookup
from assistant.store.character.consolidations import StoredConsolidations
from sleep.cycle.change_plan import ChangePlanDraft, memory_from_entry
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.rules.importance import score_importance
from sleep.rules.supersede import EntryDecision

NO_CYCLE = 0
"""The cycle of changes that no sleep made."""
_NAMESPACE = uuid.UUID("3a0d7f0e-6f0d-4a52-9a1c-55f0d5f3c8be")
_ASLEEP = "The assistant sleeps just now; semantic memory has it after this sleep."
_NO_MEMORY_YET = "No memory was made of it yet; the next sleep makes it."
_SEMANTIC_MEMORY_LATER = "Recall goes by the journal, which has it; semantic memory has it after the next sleep."


class MemoryCorrector:
    """`asleep`: whether a sleep is under way, which reads the same memories; corrections are left to it then."""

    def __init__(
        self,
        lookup: MemoryLookup,
        memories: Memories,
        consolidations: StoredConsolidations,
        journal: Journal,
        is_asleep: Callable[[], bool],
    ) -> None:
        self._known = lookup
        self._memories = memories
        self._consolidations = consolidations
        self._journal = journal
        self._consolidation = ConsolidationPhase(consolidations, memories)
        self._asleep = is_asleep

    async def correct(
        self,
        reference: str,
        text: str,
        scope: str,
        session: str,
        now: datetime,
        *,
        key: str = "",
        sources: Sequence[int] = (),
    ) -> CorrectionResult:
        """Have `text` hold in the place of what a reference names. `key` is the caller's own where a crash may repeat
        the call; `sources` are messages in which it was said, beside those of what is put right.

        Raises `UsageError` (then nothing was changed) and `StoreError`."""
        said = text.strip()
        if not any(char.isalnum() for char in said):
            raise UsageError("Say in words what is right instead. Nothing was changed.")
        if not self._asleep():
            with contextlib.suppress(MemoryUnavailable):
                # What was decided before is made first, so that this one stands upon it.
                await self._consolidation.apply_planned(now)
        former = await self._known.find(reference, scope)
        key = key or f"correction:{uuid.uuid5(_NAMESPACE, repr((scope, former.reference, said, now.isoformat()))).hex}"
        entry = self._made_before(former, key)
        if entry is None:
            _check_correctable(former, said)
            entry = self._written(_correction_entry(former, said, session, key, now, sources), former, now)
        return await self._carried_out(entry, former, now)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _made_before(self, former: MemoryState, key: str) -> JournalEntry | None:
        """The correction that an earlier call under this key wrote."""
        by = [one.superseded_by for one in former.entries if one.superseded_by is not None]
        return next((one for one in self._journal.read(by, former.memory.scope) if one.key == key), None)

    def _written(self, entry: JournalEntry, former: MemoryState, now: datetime) -> JournalEntry:
        written = self._journal.add([entry], now, replaced={one.key: entry.key for one in former.entries})
        if not written:
            raise UsageError("This correction was made already, of something else. Nothing was changed.")
        return written[0]

    async def _carried_out(self, entry: JournalEntry, former: MemoryState, now: datetime) -> CorrectionResult:
        alone = CorrectionResult(former, replace(memory_from_entry(entry), id=""))
        if not former.memory.id:
            return replace(alone, pending_reason=_NO_MEMORY_YET)
        if self._asleep():
            return replace(alone, pending_reason=_ASLEEP)
        try:
            self._plan(entry, await self._memories.get(former.memory.id), now)
            await self._consolidation.apply_planned(now)
        except MemoryUnavailable as error:
            return replace(alone, pending_reason=f"{error} {_SEMANTIC_MEMORY_LATER}")
        finally:
            if not self._asleep():
                # The child gives back what it took of memory.
                await self._memories.aclose()
        into = self._consolidations.memory_ids_by_entry([entry.id or 0]).get(entry.id or 0)
        made = None if into is None else await self._memories.get(into)
        return replace(alone, pending_reason=_NO_MEMORY_YET) if made is None else replace(alone, current=made)

    def _plan(self, entry: JournalEntry, former: Memory | None, now: datetime) -> None:
        if former is None or not former.is_current:
            return
        draft = ChangePlanDraft([former])
        draft.apply_decision(entry, EntryDecision("supersedes", "", (former.id,)))
        self._consolidations.save_plan(draft.build_plan([entry], NO_CYCLE), now)


def _check_correctable(former: MemoryState, said: str) -> None:
    memory = former.memory
    if not memory.is_current:
        instead = f"; correct {former.replaced_by}, which does" if former.replaced_by else ""
        raise UsageError(f"{former.reference} no longer holds{instead}. Nothing was changed.")
    if memory.text.strip() == said:
        raise UsageError(f"{former.reference} says so already. Nothing was changed.")


def _correction_entry(
    former: MemoryState, said: str, session: str, key: str, now: datetime, sources: Sequence[int]
) -> JournalEntry:
    memory = former.memory
    guest = ("guest",) if any("guest" in one.tags for one in former.entries) else ()
    return JournalEntry(
        key=key,
        scope=memory.scope,
        session=session,
        generation=max(one.generation for one in former.entries),
        content=said,
        # Never before what it puts right.
        timestamp=max(now, memory.said_at, *(one.timestamp for one in former.entries)),
        source_type="correction",
        importance=max(memory.importance, score_importance(memory.kind, said)),
        tags=(memory.kind, "correction", *guest),
        sources=tuple(dict.fromkeys((*sources, *(source for one in former.entries for source in one.sources)))),
    )
