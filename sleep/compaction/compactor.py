"""Runs compactions from plan to commit; the only way in which a view shrinks.

- Plan, do the slow part outside of transactions, commit by compare-and-swap (I4). A failure or interruption leaves the
  view unchanged; messages that arrive meanwhile are answered from it (F13).
- One compaction per session at a time: by a lock within the process, by a lease between processes (F14). Urgent ones (a
  user is waiting) ignore both: they use no model and are fast, and what they overtake fails its compare-and-swap.
- Progress or stop (I7): a compaction that would not shrink the context is neither committed nor repeated; pressure is
  measured after each commit, and the fallback, which needs no model, follows if it is still too high. Compactions
  without gain count as failures; after several in a row, no model is called for a while, also across restarts (F01,
  F07).

`Compactor` accepts requests, `CompactionRun` (`sleep/compaction/run.py`) executes one, using `CompactionDeps`. A dry
run is the same run on a copy (`sleep/compaction/preview.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext

from assistant.core.checkpoints import Checkpoint
from assistant.core.logger import get_logger
from assistant.core.telemetry import NULL_TRACER, Tracer
from sleep.compaction.deps import BACKGROUND_TRIGGERS, ECONOMY_TRIGGERS, CompactionDeps
from sleep.compaction.preview import CompactionPreview, PreviewDeps
from sleep.compaction.run import CompactionRun, PreparedCompaction
from sleep.compaction.values import CompactionRequest, CompactionResult
from sleep.rules.sentence_cache import forget_sentences

log = get_logger()


class Compactor:
    """Executes compactions, one at a time per session."""

    def __init__(self, deps: CompactionDeps, tracer: Tracer = NULL_TRACER) -> None:
        self._deps = deps
        self._tracer = tracer
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._prepared: dict[str, PreparedCompaction] = {}  # by session
        self._overtakable: set[str] = set()  # sessions whose background compaction may be overtaken
        self._tried: set[int] = set()  # checkpoints that no model could summarise again

    def is_compacting(self, session: str) -> bool:
        """Return whether the session is being compacted now; background preparation does not count."""
        return session in self._locks and self._locks[session].locked() and session not in self._overtakable

    async def compact(self, request: CompactionRequest) -> CompactionResult:
        """Compact the session's view. Returns a result without checkpoints if there is nothing to do or another
        compaction is running. Raises `StoreError`."""
        async with nullcontext() if request.urgent else self._locks[request.session]:
            with self._tracer.span("compaction", trigger=request.trigger) as span:
                outcome = await self._compact(request)
                span.set_attributes(made=len(outcome.checkpoints))
            return outcome

    async def _compact(self, request: CompactionRequest) -> CompactionResult:
        result = await self._carry_out(CompactionRun(self._deps, request), self._deps, request)
        if result.checkpoints:
            # What has left the view is not gone through again.
            forget_sentences()
        if result.checkpoints or result.before.ratio >= request.min_pressure:
            # A user waits during an emergency compaction, so log it at a higher level.
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
        reported = run.measure_pressure()
        if reported.ratio < request.min_pressure:
            return CompactionResult(reported, reported)
        before = run.measure_for_comparison()
        await run.run_plans()
        # For many short messages, fewer messages is the goal, even if their summary is no smaller.
        if run.checkpoints and request.trigger != "messages" and run.measure_pressure().ratio >= before.ratio:
            deps.record_failure("the context did not become smaller")
        await deps.yield_to_chat(request)
        # Economy compactions are measured against a smaller context than the model's, and may exceed it.
        if request.trigger not in ECONOMY_TRIGGERS and run.measure_pressure().ratio > request.terms.threshold:
            run.run_fallback()
        return run.finish(before)

    # ------------------------------------------------------------------------------------------------------ in advance

    async def prepare(self, request: CompactionRequest) -> bool:
        """Do everything but the commit, so that nobody has to wait for it later; returns whether there is something to
        commit. It stays valid while only new messages are added to the view. Raises `StoreError`."""
        async with self._in_background(request.session):
            prepared = await CompactionRun(self._deps, request).prepare()
            # What it goes through is not gone through again: what is said until it is committed is not part of it.
            forget_sentences()
            if prepared is None:
                return False
            self._prepared[request.session] = prepared
            return True

    @asynccontextmanager
    async def _in_background(self, session: str) -> AsyncIterator[None]:
        async with self._locks[session]:
            self._overtakable.add(session)
            try:
                yield
            finally:
                self._overtakable.discard(session)

    def is_preparing(self, session: str) -> bool:
        """Return whether a summary is being made in the background, which a turn may overtake."""
        return session in self._overtakable

    def has_prepared(self, session: str) -> bool:
        """Return whether a prepared compaction is valid for the current view."""
        prepared = self._prepared.get(session)
        if prepared is None:
            return False
        return self._deps.conversation.load_view(session).prefix_rev == prepared.compactions[0].prefix_rev

    def commit_prepared(self, session: str, trigger: str) -> CompactionResult | None:
        """Commit a prepared compaction; None if there is none or the view changed. Raises `StoreError`."""
        if not self.has_prepared(session):
            return None
        prepared = self._prepared.pop(session)
        run = CompactionRun(self._deps, prepared.request, prepared.notices)
        before = run.measure_for_comparison()
        if not run.commit_prepared(prepared, trigger):
            return None
        forget_sentences()
        return run.finish(before)

    async def replace_deterministic(self, request: CompactionRequest) -> CompactionResult:
        """Redo with a model the summaries made without one because a user was waiting; each is attempted once. Raises
        `StoreError`."""
        async with self._in_background(request.session):
            run = CompactionRun(self._deps, request)
            before = run.measure_for_comparison()
            for checkpoint in self._awaiting_summary(request.session):
                if self._deps.may_call_model() and not await run.replace_deterministic(checkpoint):
                    self._tried.add(checkpoint.id)
            return run.finish(before)

    def add_to_summary(self, request: CompactionRequest, lines: Mapping[int, str]) -> None:
        """Append lines, by the messages they quote, to the session's newest summary. Raises `StoreError`."""
        run = CompactionRun(self._deps, request)
        before = run.measure_for_comparison()
        run.add_to_summary(lines)
        run.finish(before)

    def awaits_summary(self, session: str) -> bool:
        """Return whether a summary was made without a model because a user was waiting."""
        return bool(self._awaiting_summary(session))

    def _awaiting_summary(self, session: str) -> list[Checkpoint]:
        view = self._deps.conversation.load_view(session)
        return [
            checkpoint
            for checkpoint in self._deps.live_checkpoints(session, view.generation)
            if checkpoint.key_facts.get("awaits_summary") and checkpoint.id not in self._tried
        ]

    async def preview(self, request: CompactionRequest) -> CompactionPreview:
        """Return what `compact` would do, using a copy; changes nothing and calls no model. Raises `StoreError`."""
        deps = PreviewDeps.from_deps(self._deps, request)
        run = CompactionRun(deps, request)
        result = await self._carry_out(run, deps, request)
        return CompactionPreview(result, tuple(run.plans), tuple(deps.summariser.estimates))
