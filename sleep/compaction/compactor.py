"""A compaction from plan to commit: the only way in which a view becomes smaller.

What always holds:
- Plan, do the slow part outside of any transaction, commit by compare-and-swap (I4). Whatever fails or is cut off
  leaves the view as it was; messages that arrive meanwhile are answered from it (F13).
- One compaction of a session at a time: in this process by a lock, between processes by a lease (F14).
- Progress or stop (I7): pressure is measured again after the commit. What did not bring it down enough is followed
  by the fallback, which needs no model, and counts as a failure; after some failures in a row no model is asked for
  a while, also across restarts (F01, F07).

`Compactor` takes requests, `CompactionRun` carries one out, over what `CompactionDeps` names. A dry run is the same run
over a copy (`sleep/compaction/preview.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import structlog

from assistant.context.pressure import Pressure, measure_pressure
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.errors import StaleView
from assistant.core.messages import Message
from assistant.core.notices import Notice, NoticeKind
from assistant.core.telemetry import NULL_TRACER, Tracer
from sleep.compaction.deps import BACKGROUND_TRIGGERS, ECONOMY_TRIGGERS, MODEL_TIERS, CompactionDeps
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.plan import (
    CompactionPlan,
    PendingSummary,
    collect_originals,
    collect_summaries,
    merge_checkpoints,
    reuse_single_summary,
)
from sleep.compaction.preview import CompactionPreview, PreviewDeps
from sleep.compaction.render import RECORD_TIERS
from sleep.compaction.values import CachedPrompt, CompactionRequest, CompactionResult, Summary, SummaryInput

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _PreparedCompaction:
    """What only has to be committed."""

    request: CompactionRequest
    compaction: Compaction


class Compactor:
    """Carries compactions out, one at a time for each session."""

    def __init__(self, deps: CompactionDeps, tracer: Tracer = NULL_TRACER) -> None:
        self._deps = deps
        self._tracer = tracer
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._prepared: dict[str, _PreparedCompaction] = {}  # by session

    def is_compacting(self, session: str) -> bool:
        return session in self._locks and self._locks[session].locked()

    async def compact(self, request: CompactionRequest) -> CompactionResult:
        """Bring the session's view down. Where nothing can be done, or somebody else is at it, an outcome without
        checkpoints. Raises `StoreError`."""
        async with self._locks[request.session]:
            with self._tracer.span("compaction", trigger=request.trigger) as span:
                outcome = await self._compact(request)
                span.set_attributes(made=len(outcome.checkpoints))
            return outcome

    async def _compact(self, request: CompactionRequest) -> CompactionResult:
        result = await self._carry_out(CompactionRun(self._deps, request), self._deps, request)
        if result.checkpoints or result.before.ratio >= request.min_pressure:
            # A person waits while an emergency is dealt with: worth a look in the log.
            level = logging.INFO if request.trigger in BACKGROUND_TRIGGERS else logging.WARNING
            log.log(
                level,
                "compacted",
                session=request.session,
                trigger=request.trigger,
                made=[checkpoint.tier for checkpoint in result.checkpoints],
                before=result.before.describe(),
                after=result.after.describe(),
            )
        return result

    async def _carry_out(
        self, run: CompactionRun, deps: CompactionDeps, request: CompactionRequest
    ) -> CompactionResult:
        await deps.yield_to_chat(request)
        before = run.measure_pressure()
        if before.ratio < request.min_pressure:
            return CompactionResult(before, before)
        await run.run_plans()
        # Too many light messages may take no more than their summary does: that they are fewer is enough.
        if run.checkpoints and request.trigger != "messages" and run.measure_pressure().ratio >= before.ratio:
            deps.record_failure("the context did not become smaller")
        await deps.yield_to_chat(request)
        # What is compacted to save money is measured by a context that is smaller than the model's: it may pass that.
        if request.trigger not in ECONOMY_TRIGGERS and run.measure_pressure().ratio > request.terms.threshold:
            run.run_fallback()
        return run.finish(before)

    # ------------------------------------------------------------------------------------------------------ in advance

    async def prepare(self, request: CompactionRequest) -> bool:
        """Make what the request asks for, all but the commit, so that nobody has to wait for it later; whether there is
        something to commit now. A view that changed but for new messages takes another one. Raises `StoreError`."""
        async with self._locks[request.session]:
            run = CompactionRun(self._deps, request)
            compaction = await run.make_first()
            if compaction is None:
                return False
            self._prepared[request.session] = _PreparedCompaction(request, compaction)
            return True

    def has_prepared(self, session: str) -> bool:
        """Whether something was prepared for the view as it stands."""
        prepared = self._prepared.get(session)
        if prepared is None:
            return False
        return self._deps.conversation.load_view(session).prefix_rev == prepared.compaction.prefix_rev

    def commit_prepared(self, session: str, trigger: str) -> CompactionResult | None:
        """Commit what was prepared, at once; None where nothing was, or the view is another one. Raises
        `StoreError`."""
        if not self.has_prepared(session):
            return None
        prepared = self._prepared.pop(session)
        run = CompactionRun(self._deps, prepared.request)
        before = run.measure_pressure()
        if not run.commit(replace(prepared.compaction, trigger=trigger)):
            return None
        return run.finish(before)

    async def preview(self, request: CompactionRequest) -> CompactionPreview:
        """What `compact` would do, tried on a copy; changes nothing and calls no model. Raises `StoreError`."""
        deps = PreviewDeps.of(self._deps, request)
        run = CompactionRun(deps, request)
        result = await self._carry_out(run, deps, request)
        return CompactionPreview(result, tuple(run.plans), tuple(deps.summariser.estimates))


# From this many compactions of a generation on, the person is told what long threads cost.
_MANY = 3
_MOST_PLANS = 8  # for one request: merges, and new tries where the view changed meanwhile
_PAGE = 500


class CompactionRun:
    """One request being carried out."""

    def __init__(self, deps: CompactionDeps, request: CompactionRequest) -> None:
        self._deps = deps
        self._request = request
        self._conversation = deps.conversation
        self.checkpoints: list[Checkpoint] = []
        self.plans: list[CompactionPlan] = []  # those that were carried out
        self.notices: list[Notice] = []
        self.stuck_reason = ""
        self.busy = False

    def measure_pressure(self) -> Pressure:
        terms = self._request.terms
        view = self._conversation.load_view(self._request.session)
        return measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    async def run_plans(self) -> None:
        """Plan and commit until a plan without a merge is carried out, or nothing changes."""
        for _ in range(_MOST_PLANS):
            await self._deps.yield_to_chat(self._request)
            plan = await self._deps.make_plan(self._request)
            await self._deps.yield_to_chat(self._request)
            if self._request.trigger != "manual" and plan.minimum.ratio > self._request.terms.threshold:
                # No summary could bring this down far enough: none is paid for (F02).
                return
            try:
                if plan.merge_ids:
                    await self._merge(plan)
                elif plan.pending_summary is not None:
                    await self._summarise(plan, plan.pending_summary)
                else:
                    self._commit(plan.as_compaction(), *plan.notices)
            except StaleView:
                # Somebody undid or compacted meanwhile: what stands now is planned for anew.
                continue
            self.plans.append(plan)
            if self.busy or not plan.merge_ids:
                return

    async def make_first(self) -> Compaction | None:
        """The first plan, with its summary, not committed; None where it changes nothing, or the view was changed."""
        plan = await self._deps.make_plan(self._request)
        if plan.merge_ids:
            try:
                return await self._make_merge(plan)
            except StaleView:
                return None
        if plan.pending_summary is not None:
            return await self._make_summary(plan.pending_summary)
        return plan.as_compaction()

    def commit(self, compaction: Compaction) -> bool:
        """Whether the view was still the one that it was made for."""
        try:
            self._commit(compaction)
        except StaleView:
            return False
        return True

    def finish(self, before: Pressure) -> CompactionResult:
        """What came of it, once all is committed."""
        if self.checkpoints:
            self.merge_records()
            self._deps.sync_journal(self._deps.clock())
        after = self.measure_pressure()
        return CompactionResult(
            before, after, tuple(self.checkpoints), tuple(self.notices), self.stuck_reason, self.busy
        )

    def run_fallback(self) -> None:
        """What is above the threshold still is brought down without a model, or the person told why it cannot be."""
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
            # What the next call sees is measured again, and shortened then.
            return
        self.plans.append(plan)
        self.stuck_reason = plan.stuck_reason

    def merge_records(self) -> None:
        """Checkpoints without a summary say where messages stand, and one says it for many: beyond the most that may
        stand side by side neighbours become one, which takes no model."""
        while True:
            view = self._conversation.load_view(self._request.session)
            live = self._deps.live_checkpoints(self._request.session, view.generation)
            pairs = (pair for pair in pairwise(live) if {checkpoint.tier for checkpoint in pair} <= RECORD_TIERS)
            pair = next(pairs, None)
            if len(live) <= self._deps.policy.max_checkpoints or pair is None:
                return
            record, now, request = Summary("", "floor", 0), self._deps.clock(), self._request
            joined = merge_checkpoints(view, pair, live, record, request.terms.counter, request.trigger, now)
            try:
                self._conversation.commit_compaction(joined, now)
            except StaleView:
                return

    # ------------------------------------------------------------------------------------------------------------ steps

    def _commit(self, compaction: Compaction | None, *notices: Notice) -> None:
        """What the person is told goes out in the same transaction."""
        told = list(dict.fromkeys([*self.notices, *notices]))
        if compaction is not None:
            told += self._length_notices(compaction, told)
            economy = {"economy": dict(self._request.economy)} if self._request.economy else {}
            telling = replace(
                compaction,
                key_facts={**compaction.key_facts, **economy},
                notices=tuple(told),
                notice_address=self._request.notice_address,
            )
            self.checkpoints.append(self._conversation.commit_compaction(telling, self._deps.clock()))
        self.notices = told

    def _length_notices(self, compaction: Compaction, told: Sequence[Notice]) -> list[Notice]:
        """At its floor a context is compacted with every message, which is told once (F02), and is enough then. What is
        compacted to save money is no sign of a long conversation."""
        is_stuck = any(notice.kind is NoticeKind.CONTEXT_STAYS_FULL for notice in told)
        saves = compaction.trigger in ECONOMY_TRIGGERS
        if is_stuck or saves or not compaction.prefix or "merged" in compaction.key_facts:
            return []
        view = self._conversation.load_view(compaction.session)
        earlier = sum(
            checkpoint.generation == view.generation
            and checkpoint.state in ("live", "absorbed")
            and not checkpoint.is_merge
            and checkpoint.trigger not in ECONOMY_TRIGGERS
            for checkpoint in self._conversation.checkpoints(compaction.session)
        )
        once = f"{view.session}:{view.generation}"
        return [NoticeKind.LONG_CONVERSATION.fill(once)] if earlier + 1 >= _MANY else []

    async def _commit_under_lease(
        self, plan: CompactionPlan, ids: tuple[int, int], make: Callable[[], Awaitable[Compaction]]
    ) -> None:
        """Make a compaction of the messages `ids` (first, last), which takes a while, and commit it, unless another
        process is at it. Raises `StaleView`."""
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
        committed = False
        try:
            self._commit(replace(await make(), started_id=started), *plan.notices)
            committed = True
        finally:
            if not committed:
                self._conversation.abandon_compaction(started, "cut off, or overtaken")

    async def _summarise(self, plan: CompactionPlan, pending: PendingSummary) -> None:
        """Raises `StaleView`."""

        rows = pending.removed.rows
        await self._commit_under_lease(plan, (rows[0].id or 0, rows[-1].id or 0), partial(self._make_summary, pending))

    async def _make_summary(self, pending: PendingSummary) -> Compaction:
        summary = await self._ask(pending.summary_input, self._request.cached_prompt)
        await self._deps.yield_to_chat(self._request)
        return pending.complete(summary, self._deps.clock())

    async def _merge(self, plan: CompactionPlan) -> None:
        """The two checkpoints that the plan names become one. Raises `StaleView`."""
        view = self._conversation.load_view(self._request.session)
        pair = self._pair(plan, self._deps.live_checkpoints(self._request.session, view.generation))
        await self._commit_under_lease(
            plan, (pair[0].from_message_id, pair[1].to_message_id), partial(self._make_merge, plan)
        )

    async def _make_merge(self, plan: CompactionPlan) -> Compaction:
        view = self._conversation.load_view(self._request.session)
        live = self._deps.live_checkpoints(self._request.session, view.generation)
        pair, counter, trigger = self._pair(plan, live), self._request.terms.counter, self._request.trigger
        summary_input = await self._material_of(pair, plan)
        summary = reuse_single_summary(pair, counter) if summary_input.depth > 1 else None
        summary = summary or await self._ask(summary_input, None)
        return merge_checkpoints(view, pair, live, summary, counter, trigger, self._deps.clock())

    @staticmethod
    def _pair(plan: CompactionPlan, live: Sequence[Checkpoint]) -> list[Checkpoint]:
        pair = [checkpoint for checkpoint in live if checkpoint.id in plan.merge_ids]
        if len(pair) < len(plan.merge_ids):
            raise StaleView
        return pair

    async def _material_of(self, pair: list[Checkpoint], plan: CompactionPlan) -> SummaryInput:
        """The original messages of two checkpoints where they fit one call, else the summaries made of originals."""
        pending = plan.pending_summary
        budget = pending.summary_input.budget if pending else 0
        restored = pending.summary_input.restored_max_tokens if pending else 0
        most = await self._deps.summariser.max_chunk_tokens()
        counter = self._request.terms.counter
        # Beside the loop: what two checkpoints cover may be long, and may be found to be too long.
        rows = await asyncio.to_thread(self._originals, pair, most)
        if rows:
            return SummaryInput(pair[0].session, pair[0].scope, rows, {}, budget, restored_max_tokens=restored)
        return collect_summaries(pair, self._conversation.checkpoints(pair[0].session), counter, most, budget, restored)

    def _originals(self, pair: list[Checkpoint], most: int) -> tuple[Message, ...]:
        """The messages that two checkpoints cover, as the log has them, but for those taken back since; none where they
        take more than `most` tokens, or where more was summarised than they cover."""
        if any(checkpoint.key_facts.get("inherited") for checkpoint in pair):
            return ()
        counter = self._request.terms.counter
        rows: tuple[Message, ...] = ()
        before = pair[1].to_message_id + 1
        while before > pair[0].from_message_id:
            page = self._deps.recent_records(pair[0].scope, session=pair[0].session, limit=_PAGE, before_id=before)
            rows = (*(row.in_timezone(self._request.terms.zone) for row in collect_originals(page, pair)), *rows)
            if sum(counter.count_message(row) for row in rows) > most:
                return ()
            before = page[0].id if page else 0
        return rows

    async def _ask(self, summary_input: SummaryInput, live: CachedPrompt | None) -> Summary:
        sleep_budget = self._request.sleep_budget
        exhausted = sleep_budget is not None and sleep_budget.is_exhausted
        plain = self._request.without_model or exhausted or not self._deps.may_call_model()
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
