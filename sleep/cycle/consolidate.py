"""The phase "consolidate": what the journal learned becomes semantic memory.

What always holds:
- What is to be changed is written down before it is, and noted as done after it was: killed anywhere and run again, the
  memories are the same (I4). What a crash left is carried out first.
- A batch is of one scope, and is compared with memories of that scope alone (I10).
- What a person put right holds in the place of what it put right, whatever rules or a model make of the words.
- Rules decide where no model does, or where what it answers cannot be used; a model that was of no use is not asked
  again in the same sleep.
- Where the memory store does not answer the phase ends with its reason: the entries stay pending, and a later sleep
  catches up (F30). Nothing pending: no call, no child process (F32).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange
from assistant.core.memory_api import ConsolidationsPort, Memories
from assistant.core.text import pluralize
from sleep.cycle.change_plan import ChangePlanDraft
from sleep.cycle.judge import EntryJudge, JudgeQuestion
from sleep.cycle.phase_result import PhaseResult
from sleep.cycle.validate import find_junk_reason
from sleep.rules.supersede import EntryDecision, MemoryCandidate, ParsedStatement, decide_entry, parse_entry

CONSOLIDATE_PHASE = "consolidate"
_BATCH = 100
_BATCHES = 400
_NEAREST = 8
# What may say of itself what it takes the place of.
_TOOK_A_PLACE = ("correction", "import")
_LEARNED, _MERGED, _SUPERSEDED, _JUNK = "learned", "merged", "superseded", "junk"


class ConsolidationPhase:
    def __init__(self, consolidations: ConsolidationsPort, memories: Memories, judge: EntryJudge | None = None) -> None:
        """Without a `judge` the rules decide."""
        self._consolidations = consolidations
        self._memories = memories
        self._judge = judge

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Make memories of what is pending. Raises `MemoryUnavailable` and `StoreError`; what was done stays."""
        try:
            await self._run(cycle, outcome, now)
        finally:
            # The child process gives back its memory.
            await self._memories.aclose()

    async def _run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        outcome.details |= dict.fromkeys((_LEARNED, _MERGED, _SUPERSEDED, _JUNK), 0)
        if self._consolidations.unapplied_plans() or self._consolidations.pending_entries(limit=1):
            await self._reembed()
        await self.apply_planned(now)
        judge = self._judge if self._judge is not None and self._judge.has_model else None
        for _ in range(_BATCHES):
            batch = self._next_batch()
            if not batch:
                return
            plan, usable = await self._decide(batch, cycle, judge, outcome)
            judge = judge if usable else None
            self._consolidations.save_plan(plan, now)
            await self._carry_out(plan, now)
            outcome.read_count += len(batch)
            outcome.rejected += [why for _, why in plan.rejected]
            outcome.add_count(_JUNK, len(plan.rejected))
            outcome.report_progress()
            await asyncio.sleep(0)
        outcome.waiting_count = len(self._consolidations.pending_entries(limit=_BATCH))

    async def apply_planned(self, now: datetime) -> int:
        """Make the changes that were decided on and not made; how many plans. Raises `MemoryUnavailable` and
        `StoreError`."""
        planned = self._consolidations.unapplied_plans()
        for plan in planned:
            await self._carry_out(plan, now)
        return len(planned)

    async def undo_cycle(self, cycle: int, now: datetime) -> int:
        """Take back what a sleep changed: how many changes. What somebody had forgotten since is not brought back.
        Killed and run again it goes on. Raises `UsageError` where a later change stands upon one of them,
        `MemoryUnavailable` and `StoreError`."""
        await self.apply_planned(now)
        plans = self._consolidations.applied_plans(cycle)
        back = [_taken_back(change) for plan in plans for change in reversed(plan.changes)]
        held = {one: await self._memories.get(one) for one in dict.fromkeys(change.memory.id for change in back)}
        _must_be_untouched(plans, back, held, cycle)
        due = [change for change in back if held[change.memory.id] is not None]
        if due:
            await self._memories.apply(due)
        self._consolidations.mark_undone([plan.key for plan in plans], now)
        return len(due)

    # ----------------------------------------------------------------------------------------------------------- steps

    async def _reembed(self) -> None:
        """Where another embedder was chosen, it has to know all that new memories are compared with."""
        left = await self._memories.reembed()
        while left:
            before, left = left, await self._memories.reembed()
            if left >= before:
                to_go = pluralize(left, "memory", "memories")
                raise MemoryUnavailable(
                    f"The memory store makes no progress with embedding again: {to_go} to go. The journal "
                    "keeps everything; the next sleep tries again."
                )

    def _next_batch(self) -> list[JournalEntry]:
        """The oldest entry that waits, and what waits of its scope close behind it."""
        pending = self._consolidations.pending_entries(limit=_BATCH)
        return [entry for entry in pending if entry.scope == pending[0].scope]

    async def _carry_out(self, plan: ChangePlan, now: datetime) -> None:
        if plan.changes:
            await self._memories.apply(plan.changes)
        self._consolidations.mark_applied(plan.key, now)

    async def _decide(
        self, batch: Sequence[JournalEntry], cycle: int, judge: EntryJudge | None, outcome: PhaseResult
    ) -> tuple[ChangePlan, bool]:
        """The plan of a batch, and whether the model was of use, if one was asked."""
        readings: dict[str, ParsedStatement] = {}
        wanted: list[JournalEntry] = []
        junk: list[tuple[JournalEntry, str]] = []
        for entry in batch:
            reading = readings.setdefault(entry.content, parse_entry(entry.content))
            why = find_junk_reason(entry, reading)
            if why:
                junk.append((entry, why))
            else:
                wanted.append(entry)
            await asyncio.sleep(0)
        near = await self._nearest(wanted)
        former = await self._former(wanted)
        known = [*(memory for row in near for memory, _ in row), *(memory for row in former.values() for memory in row)]
        decider = _BatchDecider(
            known, readings, {number: [memory.id for memory in row] for number, row in former.items()}
        )
        for entry, why in junk:
            decider.draft.reject(entry, why)
        usable = await decider.decide_batch(wanted, near, judge, outcome)
        outcome.written_count += decider.draft.learned_count
        outcome.add_count(_LEARNED, decider.draft.learned_count)
        outcome.add_count(_MERGED, decider.draft.merged_count)
        outcome.add_count(_SUPERSEDED, decider.draft.superseded_count)
        return decider.draft.build_plan(batch, cycle), usable

    async def _former(self, entries: Sequence[JournalEntry]) -> dict[int, list[Memory]]:
        """By entry, the memories of what it took the place of before any memory was made of it."""
        told = [entry.id or 0 for entry in entries if entry.source_type in _TOOK_A_PLACE]
        replaced = self._consolidations.memories_superseded_by(told) if told else {}
        return {
            number: [memory for one in ids if (memory := await self._memories.get(one)) is not None]
            for number, ids in replaced.items()
        }

    async def _nearest(self, entries: Sequence[JournalEntry]) -> list[list[tuple[Memory, float]]]:
        if not entries:
            return []
        texts = [entry.content for entry in entries]
        return await self._memories.nearest(texts, entries[0].scope, limit=_NEAREST)


class _BatchDecider:
    """One batch on its way to a plan: what was made of its earlier entries stands beside the memories."""

    def __init__(
        self, known: Sequence[Memory], readings: dict[str, ParsedStatement], former: Mapping[int, Sequence[str]]
    ) -> None:
        """`former` are the memories whose place an entry took, by its id."""
        self.draft = ChangePlanDraft(known)
        self._readings = readings
        self._former = {number: list(ids) for number, ids in former.items()}
        self._made: dict[str, None] = {}

    async def decide_batch(
        self,
        entries: Sequence[JournalEntry],
        near: Sequence[Sequence[tuple[Memory, float]]],
        judge: EntryJudge | None,
        outcome: PhaseResult,
    ) -> bool:
        """Decide on the entries one after another; whether the model was of use."""
        usable = True
        step = judge.entries_per_call if judge is not None else 1
        for start in range(0, len(entries), step):
            some, rows = entries[start : start + step], near[start : start + step]
            judged: Mapping[int, EntryDecision | None] = {}
            if judge is not None and usable:
                judged = await judge.decide_entries(self._questions(some, rows), outcome)
                usable = bool(judged)
            shown = tuple(self._made)
            for entry, row in zip(some, rows, strict=True):
                if (entry.id or 0) in judged:
                    self._follow(entry, judged[entry.id or 0], shown)
                else:
                    self._take(entry, self._by_rules(entry, self._candidates(row)))
                await asyncio.sleep(0)
        return usable

    def _follow(self, entry: JournalEntry, judged: EntryDecision | None, shown: Sequence[str]) -> None:
        """Do as a model says; it was not `shown` what the other entries of the same call became."""
        if judged is None:
            self.draft.reject(entry, "worth nothing, a model says")
            return
        beside = [self._candidate(one, None) for one in self._made if one not in shown]
        found = self._by_rules(entry, beside) if judged.verdict == "new" else judged
        self._take(entry, found)

    def _by_rules(self, entry: JournalEntry, candidates: Sequence[MemoryCandidate]) -> EntryDecision:
        return decide_entry(self._reading(entry.content), entry.timestamp, candidates)

    def _take(self, entry: JournalEntry, decision: EntryDecision) -> None:
        former = self._former.get(entry.id or 0, ())
        if former:
            same = "" if decision.same_as in former else decision.same_as
            decision = EntryDecision("supersedes", same, (*former, *decision.superseded_ids))
        holder = self.draft.apply_decision(entry, decision)
        self._made[holder] = None
        if entry.superseded_by is not None:
            self._former.setdefault(entry.superseded_by, []).append(holder)

    def _questions(
        self, entries: Sequence[JournalEntry], rows: Sequence[Sequence[tuple[Memory, float]]]
    ) -> list[JudgeQuestion]:
        """What is asked about at once: each with the memories near it, and those that this batch made and may meet."""
        made = [self._candidate(one, None) for one in self._made]
        return [
            JudgeQuestion(
                entry,
                self._reading(entry.content),
                tuple(self.draft.memory(memory.id) for memory, _ in row),
                tuple((self.draft.memory(one.id), one.parsed) for one in made),
            )
            for entry, row in zip(entries, rows, strict=True)
        ]

    def _candidates(self, row: Sequence[tuple[Memory, float]]) -> list[MemoryCandidate]:
        near = {memory.id: cosine for memory, cosine in row}
        return [self._candidate(one, near.get(one)) for one in dict.fromkeys((*near, *self._made))]

    def _candidate(self, memory_id: str, cosine: float | None) -> MemoryCandidate:
        memory = self.draft.memory(memory_id)
        return MemoryCandidate(memory.id, self._reading(memory.text), memory.said_at, memory.until, cosine)

    def _reading(self, text: str) -> ParsedStatement:
        if text not in self._readings:
            self._readings[text] = parse_entry(text)
        return self._readings[text]


def _taken_back(change: MemoryChange) -> MemoryChange:
    if change.before is None:
        return MemoryChange("delete", change.memory, change.memory)
    return MemoryChange("update", change.before, change.memory)


def _must_be_untouched(
    plans: Sequence[ChangePlan], back: Sequence[MemoryChange], held: Mapping[str, Memory | None], cycle: int
) -> None:
    """A memory is as the sleep left it, as it was before (a try that was cut off), or forgotten."""
    left = {change.memory.id: change.memory for plan in reversed(plans) for change in plan.changes}
    restored = {change.memory.id: change.memory for change in back if change.action != "delete"}
    touched = sum(memory not in (None, left[one], restored.get(one)) for one, memory in held.items())
    if touched:
        what = pluralize(touched, "memory", "memories")
        raise UsageError(
            f"{what} of sleep {cycle} changed again since: by a correction, by forgetting, or by a later sleep. "
            "Nothing was undone. `assistant memory edit` and `assistant forget` change a single memory."
        )
