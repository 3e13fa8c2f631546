"""Merges checkpoints into one, and replaces a checkpoint that was made without a model.

The material is the original messages as currently in the log (without erased or undone ones), or summaries of
originals; only the prefix of the view is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.errors import StaleView
from assistant.core.messages import Message
from sleep.compaction.deps import MODEL_TIERS, CompactionDeps
from sleep.compaction.plan import (
    CompactionPlan,
    collect_originals,
    collect_summaries,
    has_summary,
    join_summaries,
    merge_checkpoints,
)
from sleep.compaction.render import make_sections
from sleep.compaction.values import CompactionRequest, Summary, SummaryInput

AskSummary = Callable[[SummaryInput], Awaitable[Summary]]

_PAGE = 500
_EVERYTHING = 10**9


@dataclass(frozen=True, slots=True)
class CheckpointMerger:
    """Performs merges for one request; `ask` summarises material."""

    deps: CompactionDeps
    request: CompactionRequest
    ask: AskSummary

    async def summarise_pair(self, plan: CompactionPlan) -> Summary:
        """Summarise the checkpoints that the plan names, no longer than they are (I7); a record without words gets some
        if a model reads its messages. Raises `StaleView`."""
        pair = self.find(plan.merge_ids)
        joined, both = join_summaries(pair, self.request.terms.counter), all(map(has_summary, pair))
        material = await self._material_of_pair(pair, plan)
        if material.depth > 1 and not both:
            return joined
        summary = await self.ask(material)
        if summary.tokens < joined.tokens if both else summary.tier in MODEL_TIERS:
            return summary
        return replace(joined, cost_usd=summary.cost_usd, attempts=summary.attempts)

    async def summarise_again(self, checkpoint: Checkpoint) -> Summary:
        """Summarise the messages of a checkpoint that was made without a model."""
        deps, terms = self.deps, self.request.terms
        rows = await asyncio.to_thread(self._originals, [checkpoint], _EVERYTHING)
        inputs = deps.make_inputs(self.request, deps.conversation.load_view(checkpoint.session))
        others = [one for one in inputs.checkpoints if one.id != checkpoint.id]
        sections = [section.text for section in make_sections(others) if section.text]
        material = SummaryInput(
            checkpoint.session,
            checkpoint.scope,
            rows,
            {},
            min(deps.policy.summary_budget(terms.budgets), max(100, checkpoint.original_tokens // 2)),
            tasks=inputs.tasks,
            earlier_summaries="\n\n".join(sections),
            known_facts=inputs.known_facts,
            restored_max_tokens=deps.policy.restored_budget(terms.budgets),
        )
        return await self.ask(material)

    def compaction(self, ids: Sequence[int], summary: Summary, prefix_rev: int) -> Compaction:
        """Return the compaction that replaces these checkpoints by the summary, if the view is still at `prefix_rev`
        (otherwise erased or undone messages might be in it). Raises `StaleView`."""
        group, request = self.find(ids), self.request
        view = self.deps.conversation.load_view(request.session)
        if view.prefix_rev != prefix_rev:
            raise StaleView
        live = self.deps.live_checkpoints(request.session, view.generation)
        now = self.deps.clock()
        return merge_checkpoints(view, group, live, summary, request.terms.counter, request.trigger, now)

    def find(self, ids: Sequence[int]) -> list[Checkpoint]:
        """Return these checkpoints, oldest range first. Raises `StaleView` if one is no longer live."""
        view = self.deps.conversation.load_view(self.request.session)
        live = self.deps.live_checkpoints(self.request.session, view.generation)
        group = [checkpoint for checkpoint in live if checkpoint.id in ids]
        if len(group) < len(ids):
            raise StaleView
        return group

    async def _material_of_pair(self, pair: list[Checkpoint], plan: CompactionPlan) -> SummaryInput:
        """Return the original messages of two checkpoints if they fit one call, else the summaries of originals."""
        pending = plan.pending_summary
        budget = pending.summary_input.budget if pending else 0
        restored = pending.summary_input.restored_max_tokens if pending else 0
        most = await self.deps.summariser.max_chunk_tokens()
        counter = self.request.terms.counter
        # In a thread: the range may be long, and too long.
        rows = await asyncio.to_thread(self._originals, pair, most)
        if rows:
            return SummaryInput(pair[0].session, pair[0].scope, rows, {}, budget, restored_max_tokens=restored)
        return collect_summaries(
            pair, self.deps.conversation.checkpoints(pair[0].session), counter, most, budget, restored
        )

    def _originals(self, group: Sequence[Checkpoint], most: int) -> tuple[Message, ...]:
        """Return the messages that adjacent checkpoints cover, from the log, without undone ones; empty if they exceed
        `most` tokens, or if inherited messages were summarised too."""
        if any(checkpoint.key_facts.get("inherited") for checkpoint in group):
            return ()
        counter = self.request.terms.counter
        rows: tuple[Message, ...] = ()
        before = group[-1].to_message_id + 1
        while before > group[0].from_message_id:
            page = self.deps.recent_records(group[0].scope, session=group[0].session, limit=_PAGE, before_id=before)
            rows = (*(row.in_timezone(self.request.terms.zone) for row in collect_originals(page, group)), *rows)
            if sum(counter.count_message(row) for row in rows) > most:
                return ()
            before = page[0].id if page else 0
        return rows
