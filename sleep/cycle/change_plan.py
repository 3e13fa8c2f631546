"""Turns the decisions of a consolidation into a `ChangePlan`, entry by entry. Pure.

- Memory ids derive from the keys of their first entries, plan keys from their entries, so deciding again over the same
  entries gives the same plan (I4).
- A memory's first entry is the earliest said, and determines the memory's date.
- A superseded memory keeps its text and gets an end date, `until`; so does one that is told late and was already
  superseded. Nothing is deleted.
- A plan has at most one change per memory, from its previous state to the final one.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange
from assistant.core.text import fold_text
from sleep.rules.supersede import EntryDecision, restate_correction

_NAMESPACE = uuid.UUID("0b1f6c5e-54d1-4d0e-9c0a-3c1d4f5a7b21")
_KINDS = ("fact", "preference", "decision", "task")
LEARNED, MERGED, SUPERSEDED = "learned", "merged", "superseded"


def derive_memory_id(entry: JournalEntry) -> str:
    """Return the id of the memory whose first entry this is."""
    return str(uuid.uuid5(_NAMESPACE, entry.key))


def memory_from_entry(entry: JournalEntry) -> Memory:
    """Return a new memory with this single entry."""
    kind = next((tag for tag in entry.tags if tag in _KINDS), "fact")
    ids = () if entry.id is None else (entry.id,)
    return Memory(derive_memory_id(entry), entry.scope, entry.content, entry.timestamp, kind, entry.importance, ids)


def merge_entry(memory: Memory, entry: JournalEntry) -> Memory:
    """Return the memory with another entry of the same meaning."""
    own = () if entry.id is None else (entry.id,)
    numbers = (*own, *memory.entries) if entry.timestamp < memory.said_at else (*memory.entries, *own)
    return replace(
        memory,
        text=_choose_fuller_text(memory.text, entry.content),
        said_at=min(memory.said_at, entry.timestamp),
        importance=max(memory.importance, entry.importance),
        entries=(*numbers[:1], *sorted({*numbers} - {*numbers[:1]})),
    )


def _choose_fuller_text(*texts: str) -> str:
    """Return the most informative of texts with the same meaning: most distinct words, then a full sentence, then the
    shortest. Independent of their order."""

    def rank(text: str) -> tuple[int, int, int, str]:
        return len(set(fold_text(text).split())), text[:1].isupper() + (text[-1:] in ".!?。"), -len(text), text

    return max(texts, key=rank)


def separate_change(plan: ChangePlan, memory_id: str) -> tuple[ChangePlan | None, ChangePlan]:
    """Split a plan: the rest without a memory's change (None if empty), and a plan with that change and those of
    memories linked to it by supersession. Raises `KeyError` if the plan does not change the memory."""
    changes = {change.memory.id: change for change in plan.changes}
    linked, waiting = set[str](), [changes[memory_id].memory.id]
    while waiting:
        found = waiting.pop()
        linked.add(found)
        waiting += [
            other
            for other, change in changes.items()
            if other not in linked
            and (change.memory.superseded_by == found or changes[found].memory.superseded_by == other)
        ]
    part = tuple(change for change in plan.changes if change.memory.id in linked)
    if len(part) == len(plan.changes):
        return None, plan
    rest = tuple(change for change in plan.changes if change.memory.id not in linked)
    entries = {entry for change in part for entry in change.memory.entries}
    return (
        replace(
            plan,
            changes=rest,
            entries=tuple(entry for entry in plan.entries if entry not in entries),
            superseded=tuple(pair for pair in plan.superseded if pair[0] not in entries),
        ),
        ChangePlan(
            f"{plan.key}/{memory_id}",
            plan.cycle,
            plan.scope,
            part,
            tuple(entry for entry in plan.entries if entry in entries),
            tuple(pair for pair in plan.superseded if pair[0] in entries),
        ),
    )


class ChangePlanDraft:
    """Accumulates decisions over the entries of one scope. `before` are the candidate memories."""

    def __init__(self, before: Sequence[Memory]) -> None:
        self._before = {memory.id: memory for memory in before}
        self._now = dict(self._before)
        self._changed: dict[str, None] = {}
        self._superseded: dict[int, int] = {}
        self._rejected: dict[int, str] = {}
        self.counts = Counter[str]()

    def memory(self, memory_id: str) -> Memory:
        """Return the current state of a memory in the draft."""
        return self._now[memory_id]

    def reject(self, entry: JournalEntry, why: str) -> None:
        self._rejected[entry.id or 0] = why

    def apply_decision(self, entry: JournalEntry, decision: EntryDecision) -> str:
        """Apply a decision and return the id of the memory that the entry belongs to."""
        same = self._now.get(decision.same_as)
        if same is not None:
            self._put(merge_entry(same, entry))
            self.counts[MERGED] += 1
            holder = same.id
        else:
            holder = self._begin(entry, decision)
        for other in decision.superseded_ids:
            if other in self._now and other != holder:
                self._set_against(entry, holder, other)
        return holder

    def build_plan(self, entries: Sequence[JournalEntry], cycle: int) -> ChangePlan:
        """Return the plan for these entries. Its key is made of theirs, so that it is stored once. Memories that end as
        they were are not changed."""
        changes = tuple(
            MemoryChange("add" if before is None else "update", self._now[memory_id], before)
            for memory_id in self._changed
            if (before := self._before.get(memory_id)) != self._now[memory_id]
        )
        return ChangePlan(
            uuid.uuid5(_NAMESPACE, "\n".join(entry.key for entry in entries)).hex,
            cycle,
            entries[0].scope,
            changes,
            tuple(entry.id or 0 for entry in entries),
            tuple(sorted(self._superseded.items())),
            tuple(sorted(self._rejected.items())),
        )

    # ----------------------------------------------------------------------------------------------------------- steps

    def _begin(self, entry: JournalEntry, decision: EntryDecision) -> str:
        made = memory_from_entry(entry)
        if made.id in self._now:
            # The memory exists already: the entry's mapping was lost or manually undone.
            self._put(merge_entry(self._now[made.id], entry))
            return made.id
        former = [self._now[memory_id].text for memory_id in decision.superseded_ids if memory_id in self._now]
        self._put(replace(made, text=restate_correction(made.text, former[0])) if former else made)
        self.counts[LEARNED] += 1
        return made.id

    def _set_against(self, entry: JournalEntry, holder: str, other: str) -> None:
        """Of two contradicting memories, the one said first ends when the other was said."""
        mine, theirs = self._now[holder], self._now[other]
        if theirs.said_at <= entry.timestamp:
            former, since, by, by_entry = theirs, entry.timestamp, mine, entry.id or 0
        else:
            former, since, by, by_entry = mine, theirs.said_at, theirs, theirs.entries[0]
        if former.until is not None and former.until <= since:
            return
        self._put(replace(former, until=since, superseded_by=by.id))
        self._superseded |= dict.fromkeys(former.entries, by_entry)
        self.counts[SUPERSEDED] += 1

    def _put(self, memory: Memory) -> None:
        self._now[memory.id] = memory
        self._changed[memory.id] = None
