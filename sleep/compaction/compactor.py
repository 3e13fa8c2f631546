"""A compaction from plan to commit: the only way in which a view becomes smaller.

What always holds:
- Plan, do the slow part outside of any transaction, commit by compare-and-swap (I4). Whatever fails or is cut off
  leaves the view as it was; messages that arrive meanwhile are answered from it (F13).
- One compaction of a session at a time: in this process by a lock, between processes by a lease (F14). A person who is
  waiting waits for neither: theirs takes no model and no time, and what it overtakes finds another view.
- Progress or stop (I7): what would not make the context smaller is not committed, and not made again; pressure is
  measured again after each commit. What did not bring it down enough is followed by the fallback, which needs no model.
  What gained nothing counts as a failure; after some failures in a row no model is asked for a while, also across
  restarts (F01, F07).

`Compactor` takes requests, `CompactionRun` (`sleep/compaction/run.py`) carries one out, over what `CompactionDeps`
names. A dry run is the same run over a copy (`sleep/compaction/preview.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext

import structlog

from assistant.core.checkpoints import Checkpoint
from assistant.core.telemetry import NULL_TRACER, Tracer
from sleep.compaction.deps import BACKGROUND_TRIGGERS, ECONOMY_TRIGGERS, CompactionDeps
from sleep.compaction.preview import CompactionPreview, PreviewDeps
from sleep.compaction.run import CompactionRun, PreparedCompaction
from sleep.compaction.values import CompactionRequest, CompactionResult

log = structlog.get_logger()


class Compactor:
    """Carries compactions out, one at a time for each session."""

    def __init__(self, deps: CompactionDeps, tracer: Tracer = NULL_TRACER) -> None:
        self._deps = deps
        self._tracer = tracer
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._prepared: dict[str, PreparedCompaction] = {}  # by session
        self._overtakable: set[str] = set()  # sessions in which what is under way gives way to everything else
        self._tried: set[int] = set()  # checkpoints that no model could summarise again

    def is_compacting(self, session: str) -> bool:
        """Whether the session is being compacted now. What is only prepared, or made better, may be overtaken."""
        return session in self._locks and self._locks[session].locked() and session not in self._overtakable

    async def compact(self, request: CompactionRequest) -> CompactionResult:
        """Bring the session's view down. Where nothing can be done, or somebody else is at it, an outcome without
        checkpoints. Raises `StoreError`."""
        async with nullcontext() if request.urgent else self._locks[request.session]:
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
        async with self._in_background(request.session):
            prepared = await CompactionRun(self._deps, request).prepare()
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

    def has_prepared(self, session: str) -> bool:
        """Whether something was prepared for the view as it stands."""
        prepared = self._prepared.get(session)
        if prepared is None:
            return False
        return self._deps.conversation.load_view(session).prefix_rev == prepared.compactions[0].prefix_rev

    def commit_prepared(self, session: str, trigger: str) -> CompactionResult | None:
        """Commit what was prepared, at once; None where nothing was, or the view is another one. Raises
        `StoreError`."""
        if not self.has_prepared(session):
            return None
        prepared = self._prepared.pop(session)
        run = CompactionRun(self._deps, prepared.request, prepared.notices)
        before = run.measure_pressure()
        if not run.commit_prepared(prepared, trigger):
            return None
        return run.finish(before)

    async def replace_deterministic(self, request: CompactionRequest) -> CompactionResult:
        """Summarise again, with a model, what was summarised without one because a person was waiting; each once, since
        what no model can summarise stays as it is. Raises `StoreError`."""
        async with self._in_background(request.session):
            run = CompactionRun(self._deps, request)
            before = run.measure_pressure()
            for checkpoint in self._awaiting_summary(request.session):
                if self._deps.may_call_model() and not await run.replace_deterministic(checkpoint):
                    self._tried.add(checkpoint.id)
            return run.finish(before)

    def add_to_summary(self, request: CompactionRequest, lines: Mapping[int, str]) -> None:
        """Put lines, by the messages that they quote, to the end of the session's newest summary. Raises
        `StoreError`."""
        run = CompactionRun(self._deps, request)
        before = run.measure_pressure()
        run.add_to_summary(lines)
        run.finish(before)

    def awaits_summary(self, session: str) -> bool:
        """Whether something was summarised without a model because a person was waiting."""
        return bool(self._awaiting_summary(session))

    def _awaiting_summary(self, session: str) -> list[Checkpoint]:
        view = self._deps.conversation.load_view(session)
        return [
            checkpoint
            for checkpoint in self._deps.live_checkpoints(session, view.generation)
            if checkpoint.key_facts.get("awaits_summary") and checkpoint.id not in self._tried
        ]

    async def preview(self, request: CompactionRequest) -> CompactionPreview:
        """What `compact` would do, tried on a copy; changes nothing and calls no model. Raises `StoreError`."""
        deps = PreviewDeps.from_deps(self._deps, request)
        run = CompactionRun(deps, request)
        result = await self._carry_out(run, deps, request)
        return CompactionPreview(result, tuple(run.plans), tuple(deps.summariser.estimates))
