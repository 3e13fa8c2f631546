"""The phase "consolidate": what the journal learned becomes semantic memory.

What always holds:
- What is to be changed is written down before it is, and noted as done after it was: killed anywhere and run again, the
  memories are the same (I4). What a crash left is carried out first.
- A batch is of one scope, and is compared with memories of that scope alone (I10).
- An entry is compared with the memories nearest to it and with the newest that hold of the same matter: of many that
  sound alike, the one that it takes the place of is not always among the nearest.
- What a person put right holds in the place of what it put right, whatever rules or a model make of the words.
- Rules decide where no model does, or where what it answers cannot be used; a model that was of no use is not asked
  again in the same sleep.
- Where the memory store does not answer the phase ends with its reason: the entries stay pending, and a later sleep
  catches up (F30). Nothing pending: no call, no child process (F32).
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
# What may say of itself what it takes the place of.
_TOOK_A_PLACE = ("correction", "import")
_JUNK = "junk"
_NO_ENTRY = -1


@dataclass(frozen=True, slots=True)
class ConsolidationPhase:
    """Without a `judge` the rules decide."""

    consolidations: ConsolidationsPort
    memories: Memories
    judge: EntryJudge | None = None

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Make memories of what is pending. Raises `MemoryUnavailable` and `StoreError`; what was done stays."""
        try:
            await self._run(cycle, outcome, now)
        finally:
            # The child process gives back its memory.
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
        """Make the changes that were decided on and not made. Raises `MemoryUnavailable` and `StoreError`."""
        for plan in self.consolidations.unapplied_plans():
            await self._carry_out(plan, now)

    async def undo_cycle(self, cycle: int, now: datetime) -> int:
        """Take back what a sleep changed: how many changes. What somebody had forgotten since is not brought back.
        Killed and run again it continues. Raises `UsageError` where a later change stands upon one of them,
        `MemoryUnavailable` and `StoreError`."""
        await self.apply_planned(now)
        return await self.undo_plans(self.consolidations.applied_plans(cycle), cycle, now)

    async def undo_plans(self, plans: Sequence[ChangePlan], cycle: int, now: datetime) -> int:
        """Take back plans of a sleep that were carried out, newest first, as `undo_cycle` does."""
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
        """Where another embedder was chosen, it has to know all that new memories are compared with."""
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
        """The plan of a batch, and whether the model was of use, if one was asked."""
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
        """What `run` would do with these entries, which have ids; nothing is changed and no model asked. Where one
        would be, the calls are counted, and the rules decide. Raises `MemoryUnavailable` and `StoreError`."""
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
        """By entry, the memories of what it took the place of before any memory was made of it."""
        entry_ids = [entry.id or 0 for entry in entries if entry.source_type in _TOOK_A_PLACE]
        replaced = self.consolidations.memories_superseded_by(entry_ids) if entry_ids else {}
        return {
            entry_id: [memory for name in memory_ids if (memory := await memories.get(name)) is not None]
            for entry_id, memory_ids in replaced.items()
        }


class _CandidateFinder:
    """The memories that new entries of a scope may repeat or take the place of."""

    def __init__(self, memories: NearestMemories) -> None:
        self.memories = memories
        self._matters: dict[str, frozenset[tuple[str, ...]]] = {}  # by text

    async def find(
        self, entries: Sequence[JournalEntry], readings: Mapping[str, ParsedStatement]
    ) -> list[list[Memory]]:
        """By entry: the newest that hold of the same matter, those that have most in common with it first, and the
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
        """Memories that hold, by what they are about."""
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
    """Counts the calls, and leaves the decisions to the rules."""

    async def decide_entries(
        self, questions: Sequence[JudgeQuestion], outcome: PhaseResult
    ) -> Mapping[int, EntryDecision | None]:
        outcome.calls += 1
        return {_NO_ENTRY: None}


class _DraftMemories:
    """Memories as they would be: changes stay in this object."""

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
        """With all that are new: nobody measured how near these are."""
        new = [(memory, 0.0) for memory_id in self._new if (memory := self._changed[memory_id]).scope == scope]
        rows = await self._memories.nearest(texts, scope, limit=limit)
        return [[*((self._changed.get(memory.id, memory), near) for memory, near in row), *new] for row in rows]


def _first_batch(scopes: Sequence[str]) -> list[int]:
    """Of what waits, by scope and in its order: the places of the oldest, and of what waits of its scope close behind
    it."""
    return [place for place, scope in enumerate(scopes[:_BATCH]) if scope == scopes[0]]


class _BatchDecider:
    """One batch on its way to a plan: what was made of its earlier entries stands beside the memories."""

    def __init__(
        self, before: Sequence[Memory], readings: dict[str, ParsedStatement], former: Mapping[int, Sequence[Memory]]
    ) -> None:
        """`former` are the memories whose place an entry took, by its id."""
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
        """Decide on the entries one after another; whether the model was of use."""
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
        """Do as a model says; it was not `shown` what the other entries of the same call became."""
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
        """With the memories near it, and those that this batch made and may meet."""
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
    """A memory is as the sleep left it, as it was before (a try that was cut off), or forgotten."""
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
