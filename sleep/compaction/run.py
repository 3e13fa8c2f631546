"""Executes one compaction request: plan, summarise, commit, measure again.

A plan is committed only if the view is unchanged; failures leave the view as it was (I4). A compaction that would not
shrink the context is never committed (I7); if a model was called, a failed checkpoint records it, so that the same
messages are not summarised again. While a user waits no model is called: such summaries are redone by a model later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from types import MappingProxyType

from assistant.context.pressure import Pressure, measure_pressure
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.errors import StaleView
from assistant.core.notices import Notice, NoticeKind
from sleep.compaction.deps import ECONOMY_TRIGGERS, GAINED_NOTHING, MODEL_TIERS, CompactionDeps
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.merge import CheckpointMerger
from sleep.compaction.plan import CompactionPlan, PendingSummary, has_summary, merge_checkpoints, summary_of
from sleep.compaction.preview import ViewCopy
from sleep.compaction.values import CachedPrompt, CompactionRequest, CompactionResult, Summary, SummaryInput

# From this many compactions of a generation on, the user is informed about the effects of long conversations.
_MANY = 3
_MOST_READ = 60
_MOST_PLANS = 8  # per request: merges, and retries after changes of the view
# Number of extra checkpoints tolerated until there is time to merge with a model.
_MERGES_THAT_WAIT = 2
_RECALLED_HEADING = "Recalled again and again:"


@dataclass(frozen=True, slots=True)
class PreparedCompaction:
    """A compaction ready to be committed."""

    request: CompactionRequest
    compactions: tuple[Compaction, ...]  # at least one, each planned for the view after the previous one
    notices: tuple[Notice, ...] = ()


class CompactionRun:
    """Executes one request."""

    def __init__(self, deps: CompactionDeps, request: CompactionRequest, notices: Sequence[Notice] = ()) -> None:
        self._deps = deps
        self._request = request
        self._conversation = deps.conversation
        self._merger = CheckpointMerger(deps, request, lambda material: self._ask(material, None))
        self.checkpoints: list[Checkpoint] = []
        self.plans: list[CompactionPlan] = []  # executed ones
        self.notices: list[Notice] = list(notices)
        self.stuck_reason = ""
        self.busy = False
        self.gains_nothing = False

    def measure_pressure(self) -> Pressure:
        terms = self._request.terms
        view = self._conversation.load_view(self._request.session)
        return measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    def measure_for_comparison(self) -> Pressure:
        """Return the pressure to compare with the one after a commit, which is estimated: not what the provider
        reported, where our own estimate of the same view is more."""
        terms, reported = self._request.terms, self.measure_pressure()
        view = replace(self._conversation.load_view(self._request.session), reported=None)
        estimated = measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)
        return max(reported, estimated, key=lambda pressure: pressure.prompt_tokens)

    async def run_plans(self) -> None:
        """Plan and commit until a plan without a merge was executed or nothing changes."""
        for _ in range(_MOST_PLANS):
            await self._deps.yield_to_chat(self._request)
            plan = await self._deps.make_plan(self._request)
            await self._deps.yield_to_chat(self._request)
            if self._request.trigger != "manual" and plan.minimum.ratio > self._request.terms.threshold:
                # No summary could shrink this enough, so none is paid for (F02).
                return
            if self._was_refused(plan):
                self.gains_nothing = True
                return
            merges = self._must_merge(plan)
            if merges and await self._merge_records_in_steps():
                # Many records, as an import leaves, would use up all plans.
                continue
            try:
                if merges:
                    await self._merge(plan)
                elif plan.pending_summary is not None:
                    await self._summarise(plan, plan.pending_summary)
                else:
                    self._commit(plan.as_compaction(), *plan.notices)
            except StaleView:
                # The view changed meanwhile: plan again.
                continue
            if self.gains_nothing:
                return
            self.plans.append(plan)
            if self.busy or not merges:
                return

    def _was_refused(self, plan: CompactionPlan) -> bool:
        """Return whether its summary was made before and rejected. Without a model it is free to try again."""
        pending = plan.pending_summary
        if pending is None or self._request.urgent:
            return False
        return self._deps.would_gain_nothing(plan.session, pending.removed.rows)

    def _must_merge(self, plan: CompactionPlan) -> bool:
        """Return whether to merge two checkpoints first. While a user waits, merging is deferred as long as possible:
        without a model, two summaries would be truncated to one."""
        if not plan.merge_ids or not self._request.urgent:
            return bool(plan.merge_ids)
        view = self._conversation.load_view(self._request.session)
        live = self._deps.live_checkpoints(self._request.session, view.generation)
        return len(live) >= self._deps.policy.max_checkpoints + _MERGES_THAT_WAIT

    async def prepare(self) -> PreparedCompaction | None:
        """Do everything but the commit, with at most one merge before it; None if nothing would change or the view
        did."""
        plan = await self._deps.make_plan(self._request)
        if self._was_refused(plan):
            return None
        merged: tuple[Compaction, ...] = ()
        if plan.pending_summary is not None and plan.merge_ids:
            try:
                summary = await self._merger.summarise_pair(plan)
                merged = (self._merger.compaction(plan.merge_ids, summary, plan.prefix_rev),)
            except StaleView:
                return None
            plan = await self._plan_after(*merged)
        pending = plan.pending_summary
        compaction = plan.as_compaction() if pending is None else await self._make_summary(pending)
        if compaction is not None and not _makes_smaller(compaction):
            if not plan.merge_ids:
                # Another merge may make it worthwhile.
                self._note_refused(compaction, compaction.prefix_rev - len(merged))
            compaction = None
        made = merged if compaction is None else (*merged, compaction)
        return PreparedCompaction(self._request, made, tuple(self.notices)) if made else None

    async def _plan_after(self, merged: Compaction) -> CompactionPlan:
        """Return the plan for the view after a merge."""
        copy = ViewCopy(self._conversation, merged.session, self._request.terms.counter)
        copy.commit_compaction(merged, self._deps.clock())
        return await replace(self._deps, conversation=copy).make_plan(self._request)

    def commit_prepared(self, prepared: PreparedCompaction, trigger: str) -> bool:
        """Commit the prepared compaction; returns False if the view has changed."""
        with suppress(StaleView):
            for compaction in prepared.compactions:
                self._commit(replace(compaction, trigger=trigger))
        return bool(self.checkpoints)

    async def replace_deterministic(self, checkpoint: Checkpoint) -> bool:
        """Replace a checkpoint that was made without a model by a model's summary, unless the view changed meanwhile;
        returns False if no model produced one."""
        prefix_rev = self._conversation.load_view(self._request.session).prefix_rev
        summary = await self._merger.summarise_again(checkpoint)
        await self._deps.yield_to_chat(self._request)
        if summary.tier not in MODEL_TIERS:
            return False
        self._commit_merge((checkpoint.id,), summary, prefix_rev, checkpoint.trigger)
        return True

    def add_to_summary(self, lines: Mapping[int, str]) -> None:
        """Append lines to the newest summary with text, if there is one."""
        view = self._conversation.load_view(self._request.session)
        live = self._deps.live_checkpoints(self._request.session, view.generation)
        told = [checkpoint for checkpoint in live if has_summary(checkpoint)]
        if told:
            counter = self._request.terms.counter
            summary = summary_of(told[-1], counter)
            text = "\n".join([summary.text, _RECALLED_HEADING, *lines.values()])
            longer = replace(summary, text=text, tokens=counter.count_text(text))
            trigger = told[-1].trigger
            self._commit_merge((told[-1].id,), longer, view.prefix_rev, trigger, {"recalled": list(lines)})

    def _commit_merge(
        self,
        ids: tuple[int, ...],
        summary: Summary,
        prefix_rev: int,
        trigger: str,
        facts: Mapping[str, list[int]] = MappingProxyType({}),
    ) -> None:
        try:
            merged = self._merger.compaction(ids, summary, prefix_rev)
            self._commit(replace(merged, trigger=trigger, key_facts={**merged.key_facts, **facts}))
        except StaleView:
            # Undone or merged meanwhile: nothing to replace.
            return

    def finish(self, before: Pressure) -> CompactionResult:
        """Return the result, after all commits."""
        if self.checkpoints:
            self._merge_records()
            self._deps.sync_journal(self._deps.clock())
        after = self.measure_pressure()
        return CompactionResult(
            before,
            after,
            tuple(self.checkpoints),
            tuple(self.notices),
            self.stuck_reason,
            self.busy,
            self.gains_nothing,
        )

    def run_fallback(self) -> None:
        """If still above the threshold, shrink the context without a model, or report why that is impossible."""
        view = self._conversation.load_view(self._request.session)
        ids = [message.id for message in view.messages if message.id is not None]
        places, now = self._conversation.find_log_places(ids), self._deps.clock()
        plan = plan_fallback(view, places, self._request.terms, now, trigger=self._request.trigger)
        notices = list(plan.notices)
        if plan.stuck_reason:
            notices.append(Notice(NoticeKind.CONTEXT_STAYS_FULL, plan.stuck_reason, view.session))
        try:
            self._commit(plan.as_compaction(), *notices)
        except StaleView:
            # The next call measures and shortens again.
            return
        self.plans.append(plan)
        self.stuck_reason = plan.stuck_reason

    def _merge_records(self) -> bool:
        """Merge adjacent checkpoints without a summary beyond the maximum number; needs no model. Returns whether there
        were any. An import leaves hundreds: those that follow one another become one in a single step."""
        merged = False
        while (joined := self._plan_records_merge()) is not None and self._commit_records_merge(joined):
            merged = True
        return merged

    async def _merge_records_in_steps(self) -> bool:
        """Like `_merge_records`, and lets others go on between reading thousands of records and merging them."""
        merged = False
        await asyncio.sleep(0)
        while (joined := self._plan_records_merge()) is not None:
            await asyncio.sleep(0)
            if not self._commit_records_merge(joined):
                break
            merged = True
            await asyncio.sleep(0)
        return merged

    def _plan_records_merge(self) -> Compaction | None:
        view = self._conversation.load_view(self._request.session)
        live = self._deps.live_checkpoints(self._request.session, view.generation)
        excess = len(live) - self._deps.policy.max_checkpoints
        runs = (tuple(run) for is_summary, run in groupby(live, has_summary) if not is_summary)
        group = next((run[: excess + 1] for run in runs if len(run) > 1), ())
        if excess <= 0 or not group:
            return None
        record, now, request = Summary("", "floor", 0), self._deps.clock(), self._request
        return merge_checkpoints(view, group, live, record, request.terms.counter, request.trigger, now)

    def _commit_records_merge(self, joined: Compaction) -> bool:
        try:
            self._conversation.commit_compaction(joined, self._deps.clock())
        except StaleView:
            return False
        return True

    # ------------------------------------------------------------------------------------------------------------ steps

    def _commit(self, compaction: Compaction | None, *notices: Notice) -> bool:
        """Commit a compaction with its notices in one transaction. Returns False, without changes, if it would gain
        nothing."""
        if compaction is not None and not _makes_smaller(compaction):
            self.gains_nothing = True
            if compaction.attempts:
                self._deps.record_failure(GAINED_NOTHING)
            return False
        told = list(dict.fromkeys([*self.notices, *notices]))
        if compaction is not None:
            told += self._length_notices(compaction, told)
            removed, price = compaction.original_tokens - compaction.compressed_tokens, self._request.price_in_view
            economy = {"economy": price.expect(removed, compaction.cost_usd)} if price and removed > 0 else {}
            telling = replace(
                compaction,
                key_facts={**compaction.key_facts, **economy},
                notices=tuple(told),
                notice_address=self._request.notice_address,
            )
            self.checkpoints.append(self._conversation.commit_compaction(telling, self._deps.clock()))
        self.notices = told
        return True

    def _note_refused(self, compaction: Compaction, prefix_rev: int) -> None:
        """Record a prepared compaction that would gain nothing, unless the view changed."""
        now, ids = self._deps.clock(), (compaction.from_message_id, compaction.to_message_id)
        until = now + self._deps.lease_duration
        with suppress(StaleView):
            started = self._conversation.begin_compaction(
                compaction.session, prefix_rev, compaction.trigger, ids, until, now
            )
            if started is not None:
                self._conversation.abandon_compaction(started, GAINED_NOTHING)

    def _length_notices(self, compaction: Compaction, told: Sequence[Notice]) -> list[Notice]:
        """Return the notice about a long conversation, if due. Not if the context is stuck, which has its own notice
        (F02), nor for compactions that save money."""
        is_stuck = any(notice.kind is NoticeKind.CONTEXT_STAYS_FULL for notice in told)
        saves = compaction.trigger in ECONOMY_TRIGGERS
        if is_stuck or saves or not compaction.prefix or "merged" in compaction.key_facts:
            return []
        view = self._conversation.load_view(compaction.session)
        # Of a conversation that has gone on for years only the newest are read: the notice is given once.
        earlier = sum(
            checkpoint.generation == view.generation
            and checkpoint.state in ("live", "absorbed")
            and not checkpoint.is_merge
            and checkpoint.trigger not in ECONOMY_TRIGGERS
            for checkpoint in self._conversation.newest_checkpoints(compaction.session, _MOST_READ)
        )
        once = f"{view.session}:{view.generation}"
        return [NoticeKind.LONG_CONVERSATION.fill(once)] if earlier + 1 >= _MANY else []

    async def _commit_under_lease(
        self, plan: CompactionPlan, ids: tuple[int, int], make: Callable[[], Awaitable[Compaction]]
    ) -> None:
        """Make a compaction of the messages `ids` (first, last) under a lease and commit it, unless another process
        holds the lease. Urgent requests need no lease and overtake others. Raises `StaleView`."""
        if self._request.urgent:
            self._commit(await make(), *plan.notices)
            return
        now = self._deps.clock()
        started = self._conversation.begin_compaction(
            plan.session,
            plan.prefix_rev,
            plan.trigger,
            ids,
            now + self._deps.lease_duration,
            now,
        )
        if started is None:
            self.busy = True
            return
        why_not = "cut off, or overtaken"
        try:
            committed = self._commit(replace(await make(), started_id=started), *plan.notices)
            why_not = "" if committed else GAINED_NOTHING
        finally:
            if why_not:
                self._conversation.abandon_compaction(started, why_not)

    async def _summarise(self, plan: CompactionPlan, pending: PendingSummary) -> None:
        """Raises `StaleView`."""
        rows = pending.removed.rows
        await self._commit_under_lease(plan, (rows[0].id or 0, rows[-1].id or 0), partial(self._make_summary, pending))

    async def _make_summary(self, pending: PendingSummary) -> Compaction:
        summary = await self._ask(pending.summary_input, self._request.cached_prompt)
        await self._deps.yield_to_chat(self._request)
        compaction = await self._deps.beside_loop(pending.complete, summary, self._deps.clock())
        if not self._request.urgent or "inherited" in compaction.key_facts:
            return compaction
        return replace(compaction, key_facts={**compaction.key_facts, "awaits_summary": True})

    async def _merge(self, plan: CompactionPlan) -> None:
        """Merge the two checkpoints that the plan names. Raises `StaleView`."""
        first, last = self._merger.find(plan.merge_ids)

        async def make() -> Compaction:
            summary = await self._merger.summarise_pair(plan)
            return self._merger.compaction(plan.merge_ids, summary, plan.prefix_rev)

        await self._commit_under_lease(plan, (first.from_message_id, last.to_message_id), make)

    async def _ask(self, summary_input: SummaryInput, live: CachedPrompt | None) -> Summary:
        sleep_budget = self._request.sleep_budget
        exhausted = sleep_budget is not None and sleep_budget.is_exhausted
        plain = self._request.urgent or exhausted or not self._deps.may_call_model()
        summary = await self._deps.summariser.summarise(
            summary_input, cached_prompt=live, without_model=plain, sleep_budget=sleep_budget
        )
        if not plain and not (sleep_budget is not None and sleep_budget.is_exhausted):
            self._deps.record_summary(summary)
            if summary.failures and summary.tier not in MODEL_TIERS:
                once = f"{self._request.session}:{self._deps.clock():%Y-%m-%d}"
                why = summary.failures[-1].rstrip(".")
                self.notices.append(NoticeKind.SUMMARY_WITHOUT_MODEL.fill(once, why=why))
        return summary


def _makes_smaller(compaction: Compaction) -> bool:
    """Return whether the context becomes smaller. With too many messages, fewer are enough; merges are measured where
    they are made."""
    before, after = compaction.key_facts.get("pressure", (1.0, 0.0))
    return compaction.trigger == "messages" or after < before
