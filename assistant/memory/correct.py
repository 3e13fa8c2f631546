"""Immediate correction of a memory by a person or a model.

- The correction is a journal entry, stored in one transaction with the reference to what it supersedes: recall uses it
  from then on, and after any interruption the next sleep cycle makes the same memory of it (I4, F30).
- Nothing is deleted: the corrected memory keeps its text and gets an end date.
- Idempotent by key. Everything is within one scope (I10).
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
from sleep.rules.classifier import score_importance
from sleep.rules.supersede import EntryDecision

NO_CYCLE = 0
"""Cycle id of changes made outside of sleep cycles."""
_NAMESPACE = uuid.UUID("3a0d7f0e-6f0d-4a52-9a1c-55f0d5f3c8be")
_ASLEEP = "The assistant is asleep now; its memories have it after this sleep."
_NO_MEMORY_YET = "No memory was made of it yet; the next sleep makes it."
_SEMANTIC_MEMORY_LATER = "It is noted, and answers use it from now on; the memories have it after the next sleep."


class MemoryCorrector:
    """Corrects memories. While a sleep cycle is running (`is_asleep`), which uses the same memories, applying is left
    to it."""

    def __init__(
        self,
        lookup: MemoryLookup,
        memories: Memories,
        consolidations: StoredConsolidations,
        journal: Journal,
        is_asleep: Callable[[], bool],
    ) -> None:
        self._lookup = lookup
        self._memories = memories
        self._consolidations = consolidations
        self._journal = journal
        self._consolidation = ConsolidationPhase(consolidations, memories)
        self._is_asleep = is_asleep

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
        """Replace what a reference names by `text`. `key` makes retries after a crash idempotent; `sources` are
        additional source messages.

        Raises `UsageError` (nothing was changed) and `StoreError`.
        """
        new_text = text.strip()
        if not any(char.isalnum() for char in new_text):
            raise UsageError("Write what is right instead. Nothing was changed.")
        if not self._is_asleep():
            with contextlib.suppress(MemoryUnavailable):
                # Apply earlier plans first, so that this one builds on them.
                await self._consolidation.apply_planned(now)
        previous = await self._lookup.find(reference, scope)
        key = (
            key
            or f"correction:{uuid.uuid5(_NAMESPACE, repr((scope, previous.reference, new_text, now.isoformat()))).hex}"
        )
        entry = self._find_by_key(previous, key)
        if entry is None:
            _check_correctable(previous, new_text)
            entry = self._write(_correction_entry(previous, new_text, session, key, now, sources), previous, now)
        return await self._apply(entry, previous, now)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _find_by_key(self, previous: MemoryState, key: str) -> JournalEntry | None:
        """Return the correction written by an earlier call with this key."""
        by = [entry.superseded_by for entry in previous.entries if entry.superseded_by is not None]
        return next((entry for entry in self._journal.read(by, previous.memory.scope) if entry.key == key), None)

    def _write(self, entry: JournalEntry, previous: MemoryState, now: datetime) -> JournalEntry:
        written = self._journal.add(
            [entry], now, replaced={replaced_entry.key: entry.key for replaced_entry in previous.entries}
        )
        if not written:
            raise UsageError("This correction was made already, of something else. Nothing was changed.")
        return written[0]

    async def _apply(self, entry: JournalEntry, previous: MemoryState, now: datetime) -> CorrectionResult:
        alone = CorrectionResult(previous, replace(memory_from_entry(entry), id=""))
        if not previous.memory.id:
            return replace(alone, pending_reason=_NO_MEMORY_YET)
        if self._is_asleep():
            return replace(alone, pending_reason=_ASLEEP)
        try:
            self._plan(entry, await self._memories.get(previous.memory.id), now)
            await self._consolidation.apply_planned(now)
        except MemoryUnavailable as error:
            return replace(alone, pending_reason=f"{error} {_SEMANTIC_MEMORY_LATER}")
        finally:
            if not self._is_asleep():
                # Release the memory of the child process.
                await self._memories.aclose()
        into = self._consolidations.memory_ids_by_entry([entry.id or 0]).get(entry.id or 0)
        memory = None if into is None else await self._memories.get(into)
        return replace(alone, pending_reason=_NO_MEMORY_YET) if memory is None else replace(alone, current=memory)

    def _plan(self, entry: JournalEntry, previous: Memory | None, now: datetime) -> None:
        if previous is None or not previous.is_current:
            return
        draft = ChangePlanDraft([previous])
        draft.apply_decision(entry, EntryDecision(superseded_ids=(previous.id,)))
        self._consolidations.save_plan(draft.build_plan([entry], NO_CYCLE), now)


def _check_correctable(previous: MemoryState, new_text: str) -> None:
    memory = previous.memory
    if not memory.is_current:
        instead = f"; correct {previous.replaced_by} instead" if previous.replaced_by else ""
        raise UsageError(f"{previous.reference} is no longer current{instead}. Nothing was changed.")
    if memory.text.strip() == new_text:
        raise UsageError(f"{previous.reference} says so already. Nothing was changed.")


def _correction_entry(
    previous: MemoryState, new_text: str, session: str, key: str, now: datetime, sources: Sequence[int]
) -> JournalEntry:
    memory = previous.memory
    guest = ("guest",) if any("guest" in entry.tags for entry in previous.entries) else ()
    return JournalEntry(
        key=key,
        scope=memory.scope,
        session=session,
        generation=max(entry.generation for entry in previous.entries),
        content=new_text,
        # Never earlier than what it corrects.
        timestamp=max(now, memory.said_at, *(entry.timestamp for entry in previous.entries)),
        source_type="correction",
        importance=max(memory.importance, score_importance(memory.kind, new_text)),
        tags=(memory.kind, "correction", *guest),
        sources=tuple(dict.fromkeys((*sources, *(source for entry in previous.entries for source in entry.sources)))),
    )
