"""The phase "consolidate": turns journal entries into semantic memories.

- A plan is persisted before it is applied and marked afterwards, so that an interrupted run produces the same memories
  (I4). Plans left by a crash are applied first.
- A batch belongs to one scope, and is compared with memories of that scope only (I10).
- An entry is compared with the nearest memories and the newest current ones on the same subject: among many similar
  ones, the one it supersedes may not be among the nearest.
- A person's correction always supersedes what it corrects, whatever rules or model say.
- Rules decide if there is no model or its answer is unusable; a model without a usable answer is not asked again in the
  same cycle.
- If the memory store is unavailable, the phase ends with its reason: entries stay pending, and a later cycle catches up
  (F30). Without pending entries there is no call and no child process (F32).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange
from assistant.core.memory_api import ConsolidationsPort, Memories, NearestMemories
from assistant.core.text import pluralize
from sleep.cycle.change_plan import LEARNED, MERGED, SUPERSEDED, ChangePlanDraft
from sleep.cycle.extract import CORRECTION_TAG
from sleep.cycle.judge import EntryJudge, JudgeQuestion
from sleep.cycle.phase import PhaseResult
from sleep.cycle.validate import find_junk_reason
from sleep.rules.supersede import (
    EntryDecision,
    MemoryCandidate,
    ParsedStatement,
    decide_entry,
    list_matters,
    parse_entry,
)

_BATCH = 100
_BATCHES = 400
_NEAREST = 8
_OF_ONE_MATTER = 4
# Source types that may name what they supersede.
_TOOK_A_PLACE = ("correction", "import")
_JUNK = "junk"
_NO_ENTRY = -1


@dataclass(frozen=True, slots=True)
class ConsolidationPhase:
    """Consolidates entries; rules decide if there is no `judge`."""

    consolidations: ConsolidationsPort
    memories: Memories
    judge: EntryJudge | None = None

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Consolidate pending entries. Raises `MemoryUnavailable` and `StoreError`; completed work is kept."""
        try:
            await self._run(cycle, outcome, now)
        finally:
            # Release the memory of the child process.
            await self.memories.aclose()

    async def _run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        outcome.details |= dict.fromkeys((LEARNED, MERGED, SUPERSEDED, _JUNK), 0)
        if self.consolidations.unapplied_plans() or self.consolidations.pending_entries(limit=1):
            await self._reembed()
        await self.apply_planned(now)
        judge = self.judge if self.judge is not None and self.judge.has_model else None
        candidates = _CandidateFinder(self.memories)
        for _ in range(_BATCHES):
            pending = self.consolidations.pending_entries(limit=_BATCH)
            if not pending:
                return
            batch = [pending[place] for place in _first_batch([entry.scope for entry in pending])]
            plan, usable = await self._decide(candidates, batch, cycle, judge, outcome)
            judge = judge if usable else None
            self.consolidations.save_plan(plan, now)
            await self._carry_out(plan, now)
            outcome.report_progress()
            await asyncio.sleep(0)
        outcome.waiting_count = len(self.consolidations.pending_entries(limit=_BATCH))

    async def apply_planned(self, now: datetime) -> None:
        """Apply saved plans. Raises `MemoryUnavailable` and `StoreError`."""
        for plan in self.consolidations.unapplied_plans():
            await self._carry_out(plan, now)

    async def undo_cycle(self, cycle: int, now: datetime) -> int:
        """Undo a cycle's changes and return their number. Memories erased since are not restored. Resumes after an
        interruption. Raises `UsageError` if later changes depend on them, `MemoryUnavailable` and `StoreError`."""
        await self.apply_planned(now)
        return await self.undo_plans(self.consolidations.applied_plans(cycle), cycle, now)

    async def undo_plans(self, plans: Sequence[ChangePlan], cycle: int, now: datetime) -> int:
        """Undo applied plans of a cycle, given newest first, like `undo_cycle`."""
        back = [_taken_back(change) for plan in plans for change in reversed(plan.changes)]
        current = {
            memory_id: await self.memories.get(memory_id)
            for memory_id in dict.fromkeys(change.memory.id for change in back)
        }
        _must_be_untouched(plans, back, current, cycle)
        due = [change for change in back if current[change.memory.id] is not None]
        if due:
            await self.memories.apply(due)
        self.consolidations.mark_undone([plan.key for plan in plans], now)
        return len(due)

    # ----------------------------------------------------------------------------------------------------------- steps

    async def _reembed(self) -> None:
        """After a change of the embedder, re-embed everything that new memories are compared with."""
        left = await self.memories.reembed()
        while left:
            before, left = left, await self.memories.reembed()
            if left >= before:
                to_go = pluralize(left, "memory", "memories")
                raise MemoryUnavailable(
                    f"The memory store makes no progress with embedding again: {to_go} to go. The journal "
                    "keeps everything; the next sleep tries again."
                )

    async def _carry_out(self, plan: ChangePlan, now: datetime) -> None:
        if plan.changes:
            await self.memories.apply(plan.changes)
        self.consolidations.mark_applied(plan.key, now)

    async def _decide(
        self,
        candidates: _CandidateFinder,
        batch: Sequence[JournalEntry],
        cycle: int,
        judge: EntryJudge | None,
        outcome: PhaseResult,
    ) -> tuple[ChangePlan, bool]:
        """Return the plan of a batch, and whether the model, if asked, was usable."""
        readings: dict[str, ParsedStatement] = {}
        wanted: list[JournalEntry] = []
        junk: list[tuple[JournalEntry, str]] = []
        for entry in batch:
            corrects = CORRECTION_TAG in entry.tags
            reading = readings.setdefault(entry.content, parse_entry(entry.content, corrects=corrects))
            why = find_junk_reason(entry, reading)
            if why:
                junk.append((entry, why))
            else:
                wanted.append(entry)
            await asyncio.sleep(0)
        near = await candidates.find(wanted, readings)
        former = await self._former(candidates.memories, wanted)
        decider = _BatchDecider([memory for row in (*near, *former.values()) for memory in row], readings, former)
        for entry, why in junk:
            decider.draft.reject(entry, why)
        usable = await decider.decide_batch(wanted, near, judge, outcome)
        for name, count in decider.draft.counts.items():
            outcome.add_count(name, count)
        outcome.read_count += len(batch)
        outcome.written_count += decider.draft.counts[LEARNED]
        plan = decider.draft.build_plan(batch, cycle)
        outcome.rejected += [why for _, why in plan.rejected]
        outcome.add_count(_JUNK, len(plan.rejected))
        return plan, usable

    async def forecast(self, entries: Sequence[JournalEntry]) -> PhaseResult:
        """Return what `run` would do with these entries (with ids), without changes or model calls: calls are counted,
        and rules decide. Raises `MemoryUnavailable` and `StoreError`."""
        outcome = PhaseResult(details=dict.fromkeys((LEARNED, MERGED, SUPERSEDED, _JUNK), 0))
        draft = _DraftMemories(self.memories)
        judge = None
        if self.judge is not None and self.judge.has_model:
            judge = _CallCounter(self.judge.json_model, self.judge.entries_per_call)
        waiting = list(entries)
        candidates = _CandidateFinder(draft)
        try:
            for planned in self.consolidations.unapplied_plans() if waiting else ():
                draft.apply(planned.changes)
            while waiting:
                places = _first_batch([entry.scope for entry in waiting])
                plan, _ = await self._decide(candidates, [waiting[place] for place in places], 0, judge, outcome)
                draft.apply(plan.changes)
                waiting = [entry for place, entry in enumerate(waiting) if place not in places]
        finally:
            await self.memories.aclose()
        return outcome

    async def _former(self, memories: NearestMemories, entries: Sequence[JournalEntry]) -> dict[int, list[Memory]]:
        """Return, by entry, the memories of entries that it superseded before it had a memory itself."""
        entry_ids = [entry.id or 0 for entry in entries if entry.source_type in _TOOK_A_PLACE]
        replaced = self.consolidations.memories_superseded_by(entry_ids) if entry_ids else {}
        return {
            entry_id: [memory for name in memory_ids if (memory := await memories.get(name)) is not None]
            for entry_id, memory_ids in replaced.items()
        }


class _CandidateFinder:
    """Finds memories that new entries of a scope may repeat or supersede."""

    def __init__(self, memories: NearestMemories) -> None:
        self.memories = memories
        self._matters: dict[str, frozenset[tuple[str, ...]]] = {}  # by text

    async def find(
        self, entries: Sequence[JournalEntry], readings: Mapping[str, ParsedStatement]
    ) -> list[list[Memory]]:
        """Return per entry the newest current memories on the same subject, those with most in common first, and the
        nearest."""
        if not entries:
            return []
        rows = await self.memories.nearest([entry.content for entry in entries], entries[0].scope, limit=_NEAREST)
        wanted = [list_matters(readings[entry.content]) for entry in entries]
        by_matter = await self._read_current(entries[0].scope) if any(wanted) else {}
        found: list[list[Memory]] = []
        for matters, row in zip(wanted, rows, strict=True):
            common = Counter(memory for matter in matters for memory in by_matter.get(matter, ()))
            most = sorted(common, key=lambda memory: (common[memory], memory.said_at, memory.id), reverse=True)
            found.append(list(dict.fromkeys([*most[:_OF_ONE_MATTER], *(memory for memory, _ in row)])))
        return found

    async def _read_current(self, scope: str) -> dict[tuple[str, ...], list[Memory]]:
        """Return current (not superseded) memories by subject."""
        by_matter: dict[tuple[str, ...], list[Memory]] = defaultdict(list)
        for memory in await self.memories.all(scope):
            if not memory.is_current:
                continue
            if memory.text not in self._matters:
                self._matters[memory.text] = list_matters(parse_entry(memory.text))
                await asyncio.sleep(0)
            for matter in self._matters[memory.text]:
                by_matter[matter].append(memory)
        return by_matter


class _CallCounter(EntryJudge):
    """Counts calls and leaves decisions to the rules."""

    async def decide_entries(
        self, questions: Sequence[JudgeQuestion], outcome: PhaseResult
    ) -> Mapping[int, EntryDecision | None]:
        outcome.calls += 1
        return {_NO_ENTRY: None}


class _DraftMemories:
    """Memories with changes applied in this object only."""

    def __init__(self, memories: NearestMemories) -> None:
        self._memories = memories
        self._changed: dict[str, Memory] = {}
        self._new: dict[str, None] = {}

    def apply(self, changes: Sequence[MemoryChange]) -> None:
        self._new |= dict.fromkeys(change.memory.id for change in changes if change.action == "add")
        self._changed |= {change.memory.id: change.memory for change in changes}

    async def get(self, memory_id: str) -> Memory | None:
        return self._changed.get(memory_id) or await self._memories.get(memory_id)

    async def all(self, scope: str | None = None) -> list[Memory]:
        stored = {memory.id: memory for memory in await self._memories.all(scope)}
        return [memory for memory in (stored | self._changed).values() if scope in (None, memory.scope)]

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        """Return the nearest memories plus all new ones, whose similarity is unknown."""
        new = [(memory, 0.0) for memory_id in self._new if (memory := self._changed[memory_id]).scope == scope]
        rows = await self._memories.nearest(texts, scope, limit=limit)
        return [[*((self._changed.get(memory.id, memory), near) for memory, near in row), *new] for row in rows]


def _first_batch(scopes: Sequence[str]) -> list[int]:
    """Return the positions of the next batch: the oldest entry and those of its scope among the first `_BATCH`."""
    return [place for place, scope in enumerate(scopes[:_BATCH]) if scope == scopes[0]]


class _BatchDecider:
    """Decides a batch; memories made of its earlier entries are candidates for later ones."""

    def __init__(
        self, before: Sequence[Memory], readings: dict[str, ParsedStatement], former: Mapping[int, Sequence[Memory]]
    ) -> None:
        """`former`: by entry id, the memories it superseded."""
        self.draft = ChangePlanDraft(before)
        self._readings = readings
        self._former = {entry_id: [memory.id for memory in memories] for entry_id, memories in former.items()}
        self._made: dict[str, None] = {}

    async def decide_batch(
        self,
        entries: Sequence[JournalEntry],
        near: Sequence[Sequence[Memory]],
        judge: EntryJudge | None,
        outcome: PhaseResult,
    ) -> bool:
        """Decide the entries in order; returns whether the model was usable."""
        usable = True
        step = judge.entries_per_call if judge is not None else 1
        for start in range(0, len(entries), step):
            questions = list(zip(entries[start : start + step], near[start : start + step], strict=True))
            judged: Mapping[int, EntryDecision | None] = {}
            if judge is not None and usable:
                judged = await judge.decide_entries([self._question(*question) for question in questions], outcome)
                usable = bool(judged)
            shown = frozenset(self._made)
            for entry, row in questions:
                if (entry.id or 0) in judged:
                    self._follow(entry, judged[entry.id or 0], shown)
                else:
                    self._take(entry, self._by_rules(entry, [*(memory.id for memory in row), *self._made]))
                await asyncio.sleep(0)
        return usable

    def _follow(self, entry: JournalEntry, judged: EntryDecision | None, shown: frozenset[str]) -> None:
        """Apply a model's decision, completed by rules for memories of the same call, which the model was not
        `shown`."""
        if judged is None:
            self.draft.reject(entry, "the model found it not worth keeping")
            return
        if not judged.same_as:
            unshown = self._by_rules(entry, [memory_id for memory_id in self._made if memory_id not in shown])
            judged = EntryDecision(unshown.same_as, (*judged.superseded_ids, *unshown.superseded_ids))
        self._take(entry, judged)

    def _by_rules(self, entry: JournalEntry, memory_ids: Sequence[str]) -> EntryDecision:
        memories = map(self.draft.memory, dict.fromkeys(memory_ids))
        candidates = [
            MemoryCandidate(memory.id, self._reading(memory.text), memory.said_at, memory.until) for memory in memories
        ]
        return decide_entry(self._reading(entry.content), entry.timestamp, candidates)

    def _take(self, entry: JournalEntry, decision: EntryDecision) -> None:
        former = self._former.get(entry.id or 0, ())
        if former:
            same = "" if decision.same_as in former else decision.same_as
            decision = EntryDecision(same, (*former, *decision.superseded_ids))
        holder = self.draft.apply_decision(entry, decision)
        self._made[holder] = None
        if entry.superseded_by is not None:
            self._former.setdefault(entry.superseded_by, []).append(holder)

    def _question(self, entry: JournalEntry, row: Sequence[Memory]) -> JudgeQuestion:
        """Return the question with the nearest memories, and those made in this batch."""
        made = [self.draft.memory(memory_id) for memory_id in self._made]
        nearest = tuple(self.draft.memory(memory.id) for memory in row)
        reading = self._reading(entry.content)
        return JudgeQuestion(entry, reading, nearest, tuple((memory, self._reading(memory.text)) for memory in made))

    def _reading(self, text: str) -> ParsedStatement:
        if text not in self._readings:
            self._readings[text] = parse_entry(text)
        return self._readings[text]


def _taken_back(change: MemoryChange) -> MemoryChange:
    if change.before is None:
        return MemoryChange("delete", change.memory, change.memory)
    return MemoryChange("update", change.before, change.memory)


def _must_be_untouched(
    plans: Sequence[ChangePlan], back: Sequence[MemoryChange], current: Mapping[str, Memory | None], cycle: int
) -> None:
    """Raises `UsageError` unless each memory is as the cycle left it, already restored (by an interrupted attempt), or
    erased."""
    left = {change.memory.id: change.memory for plan in reversed(plans) for change in plan.changes}
    restored = {change.memory.id: change.memory for change in back if change.action != "delete"}
    touched = sum(
        memory not in (None, left[memory_id], restored.get(memory_id)) for memory_id, memory in current.items()
    )
    if touched:
        what = pluralize(touched, "memory", "memories")
        raise UsageError(
            f"{what} of sleep {cycle} changed again since: by a correction, by forgetting, or by a later sleep. "
            "Nothing was undone. `assistant memory edit` and `assistant forget` change a single memory."
        )
