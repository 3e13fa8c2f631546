"""A dry run: executes a compaction with the real code on an in-memory copy.

Nothing is written and no model is called. Without a model the result is exact; a model's summary is assumed to have its
maximum length, so the real result is at least as small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields, replace
from datetime import datetime

from assistant.context.pressure import message_size
from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogLocation
from sleep.compaction.budget import SleepBudget
from sleep.compaction.deps import CompactionDeps, CompactionStore
from sleep.compaction.draft_view import is_compaction_prefix
from sleep.compaction.plan import CompactionPlan, PlannedChange
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import (
    CachedPrompt,
    CompactionRequest,
    CompactionResult,
    Summary,
    SummaryEstimate,
    SummaryInput,
)


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """The predicted result of a compaction."""

    result: CompactionResult
    plans: tuple[CompactionPlan, ...]  # in order of execution
    estimates: tuple[SummaryEstimate, ...]  # of summaries that would call a model

    @property
    def planned_changes(self) -> tuple[PlannedChange, ...]:
        """Merges of summaries first, then what each plan would do."""
        merged = sum(checkpoint.is_merge for checkpoint in self.result.checkpoints)
        merges = (PlannedChange(True, "earlier summaries", "two become one", 2 * merged, 0),) if merged else ()
        return (*merges, *(change for plan in self.plans if not plan.merge_ids for change in plan.planned_changes))

    @property
    def estimate(self) -> SummaryEstimate | None:
        """The sum of all estimates; None if no model would be called."""
        if not self.estimates:
            return None
        known = [estimate.usd for estimate in self.estimates if estimate.usd is not None]
        return SummaryEstimate(
            self.estimates[-1].model,
            sum(estimate.calls for estimate in self.estimates),
            sum(estimate.input_tokens for estimate in self.estimates),
            sum(estimate.output_tokens for estimate in self.estimates),
            sum(known) if len(known) == len(self.estimates) else None,
        )


class ViewCopy:
    """A copy of a session's view and checkpoints that commits compactions in memory."""

    def __init__(self, store: CompactionStore, session: str, counter: TokenCounter) -> None:
        self._store = store
        self._counter = counter
        self._view = store.load_view(session)
        self._checkpoints = store.checkpoints(session)

    def load_view(self, session: str) -> ContextView:
        del session
        return self._view

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]:
        return self._store.find_log_places(message_ids)

    def checkpoints(self, session: str, state: CheckpointState | None = None) -> list[Checkpoint]:
        del session
        return [c for c in self._checkpoints if state is None or c.state == state]

    def newest_checkpoints(self, session: str, limit: int) -> list[Checkpoint]:
        del session
        return self._checkpoints[: -limit - 1 : -1]

    def live_checkpoints(self, session: str, generation: int) -> list[Checkpoint]:
        del session
        return [c for c in self._checkpoints if c.state == "live" and c.generation == generation]

    def begin_compaction(
        self, session: str, prefix_rev: int, trigger: str, ids: tuple[int, int], until: datetime, now: datetime
    ) -> int | None:
        del session, prefix_rev, trigger, ids, until, now
        return 0

    def abandon_compaction(self, checkpoint_id: int, note: str) -> None: ...

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint:
        view, absorbed = self._view, compaction.absorbed_ids
        shorter = {message.id: message for message in compaction.shortened}
        counted = view.sizes or [self._count(row) for row in view.messages]
        rows = list(zip(view.messages, counted, strict=True))
        if compaction.prefix:
            merged = any(c.id in absorbed and c.to_message_id == compaction.to_message_id for c in self._checkpoints)
            leaves = [is_compaction_prefix(row) if merged else row.id == compaction.to_message_id for row, _ in rows]
            last = max((index for index, it in enumerate(leaves) if it), default=-1)
            rows = [*((row, self._count(row)) for row in compaction.prefix), *rows[last + 1 :]]
        rows = [(it, self._count(it)) if (it := shorter.get(row.id)) else (row, size) for row, size in rows]
        self._view = replace(
            view,
            prefix_rev=view.prefix_rev + 1,
            messages=tuple(row for row, _ in rows),
            tokens=sum(size[0] for _, size in rows),
            bytes=sum(size[1] for _, size in rows),
            images=sum(size[2] for _, size in rows),
            sizes=tuple(size for _, size in rows),
        )
        made = self._checkpoint_of(compaction, now)
        others = [replace(c, state="absorbed") if c.id in absorbed else c for c in self._checkpoints]
        self._checkpoints = [*others, made]
        return made

    def _count(self, message: Message) -> tuple[int, int, int]:
        size = message_size(message, self._counter)
        return size.tokens, size.bytes, size.images

    def _checkpoint_of(self, compaction: Compaction, now: datetime) -> Checkpoint:
        newest = max((checkpoint.id for checkpoint in self._checkpoints), default=0)
        taken = [checkpoint for checkpoint in self._checkpoints if checkpoint.id in compaction.absorbed_ids]
        end = max((checkpoint.to_seq for checkpoint in self._checkpoints), default=0) + 1
        merged = bool(taken) and taken[-1].to_message_id == compaction.to_message_id
        return Checkpoint(
            newest + 1,
            compaction.session,
            newest + 1,
            self._view.generation,
            compaction.from_message_id,
            compaction.to_message_id,
            compaction.messages_compressed,
            compaction.summary,
            compaction.key_facts,
            compaction.original_tokens,
            compaction.compressed_tokens,
            compaction.cost_usd,
            now,
            compaction.trigger,
            compaction.tier,
            "live" if compaction.prefix else "masked",
            self._view.scope,
            compaction.depth,
            from_seq=min((checkpoint.from_seq for checkpoint in taken), default=end),
            to_seq=max(checkpoint.to_seq for checkpoint in taken) if merged else end,
        )


@dataclass(frozen=True, slots=True)
class SummaryForecast(Summariser):
    """Summarises if no model is needed; otherwise records an estimate and returns a placeholder of maximum length."""

    estimates: list[SummaryEstimate] = field(default_factory=list, kw_only=True)

    async def summarise(
        self,
        material: SummaryInput,
        *,
        cached_prompt: CachedPrompt | None = None,
        without_model: bool = False,
        sleep_budget: SleepBudget | None = None,
    ) -> Summary:
        """Return a text of the longest size that a summary may have, and note the call that would be made; without a
        model, the summary itself."""
        estimate = await self.estimate(material, cached_prompt=cached_prompt)
        if without_model or not estimate.calls:
            # `super()` without arguments does not work in a class with slots.
            return await Summariser.summarise(self, material, without_model=True)
        self.estimates.append(estimate)
        count = self.count_for(estimate.model).count_text
        tokens = material.budget + min(self.restored_max_tokens, material.restored_max_tokens, material.budget // 2)
        return Summary("word " * (100 * tokens // count("word " * 100)), "full", tokens, depth=material.depth)


@dataclass(frozen=True, slots=True)
class PreviewDeps(CompactionDeps):
    """Dependencies of a dry run, which record nothing."""

    summariser: SummaryForecast

    @classmethod
    def from_deps(cls, deps: CompactionDeps, request: CompactionRequest) -> PreviewDeps:
        """Return dependencies that act on a copy of the view: nothing is written, no model is called."""
        own = {it.name: getattr(deps, it.name) for it in fields(CompactionDeps)}
        forecast = SummaryForecast(**{it.name: getattr(deps.summariser, it.name) for it in fields(Summariser)})
        copy = ViewCopy(deps.conversation, request.session, request.terms.counter)
        changed = {"conversation": copy, "summariser": forecast, "sync_journal": lambda now: None}
        return cls(**(own | changed | {"wait_until_idle": None}))

    def record_failure(self, why: str) -> None: ...

    def record_summary(self, summary: Summary) -> None: ...
