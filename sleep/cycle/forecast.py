"""What a sleep would do now: counted from what waits, with nothing changed and no model called.

What always holds: the batches are those that the sleep itself would read. What they will teach nobody knows, so the
calls that follow from it (weighing and judging what is new) are counted for what waits already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import ceil

from assistant.core.memory_api import ConsolidationsPort
from assistant.core.messages import Usage
from assistant.core.ports import Model
from assistant.core.records import SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.compaction.asking import OFFLINE, Cost
from sleep.compaction.plan import Plan
from sleep.compaction.summariser import Estimate
from sleep.cycle.cycle import BATCH_RECORDS, PHASE
from sleep.cycle.extraction import Extractor, readable, tokens_of
from sleep.cycle.scoring import PHASE as SCORE
from sleep.rules.importance import UNCERTAIN

_MOST = 100_000
_SCORED_A_CALL = 40
_JUDGED_A_CALL = 20
# About what stands around the entries of a call, for an entry, and in an answer; in tokens.
_AROUND = 800
_AN_ENTRY = 120
_ANSWER = 400


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages of a session that wait to be read, and about the calls and tokens that this takes of a model."""

    session: str
    messages: int
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Full:
    """A session that would be compacted: tokens of the whole prompt before and about after, the share of the context
    that it takes, and who would be asked."""

    session: str
    ratio: float
    tokens_before: int
    tokens_after: int
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """`pending` entries wait to become memories, `unscored` of them to be weighed, `planned` batches of changes were
    decided on and not made. `model` is "" where none would be asked; `usd` is None where no price is known."""

    unread: tuple[Unread, ...]
    pending: int
    unscored: int
    planned: int
    full: tuple[Full, ...]
    model: str
    calls: int
    tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Foreseeing:
    """`model` reads, weighs and judges; `compaction` tells what would be done to a session, None for nothing."""

    conversation: Conversation
    log: LogReaderPort
    journal: Journal
    consolidations: ConsolidationsPort
    extractor: Extractor
    model: Callable[[], Model]
    cost: Cost
    compaction: Callable[[str], Awaitable[tuple[Plan, Estimate | None] | None]]

    async def foresee(self) -> Forecast:
        """Raises `StoreError`."""
        sessions = self.conversation.sessions()
        to_read = (*self.conversation.unread(), *sessions)
        unread = [one for info in to_read if (one := await self._unread(info)).messages]
        full = [found for info in sessions if (found := await self._full(info.key)) is not None]
        pending = len(self.consolidations.pending(limit=_MOST))
        last = self.journal.reading(SCORE, "", 0)
        unscored = len(self.consolidations.unscored(last, *UNCERTAIN, limit=_MOST))
        calls, tokens, usd = self._asked(unread, unscored, pending, full)
        model = self.model()
        return Forecast(
            tuple(unread), pending, unscored, len(self.consolidations.planned()), tuple(full),
            "" if model.provider == OFFLINE else model.name, calls, tokens, usd,
        )  # fmt: skip

    async def _unread(self, info: SessionInfo) -> Unread:
        seq = self.journal.reading(PHASE, info.key, info.generation)
        has_model = self.model().provider != OFFLINE
        messages = calls = tokens = 0
        while records := self.log.after(info.key, info.generation, seq, limit=BATCH_RECORDS + 1):
            batch = await self.extractor.batch(records, BATCH_RECORDS)
            spoken = [record for record in batch if readable(record)]
            messages += len(spoken)
            if spoken and has_model:
                calls += 1
                tokens += _AROUND + sum(tokens_of(record) for record in spoken)
            seq = batch[-1].seq
            await asyncio.sleep(0)
        return Unread(info.key, messages, calls, tokens)

    async def _full(self, session: str) -> Full | None:
        found = await self.compaction(session)
        if found is None:
            return None
        plan, estimate = found
        return Full(session, plan.before.ratio, plan.before.prompt_tokens, plan.after.prompt_tokens, estimate)

    def _asked(
        self, unread: Sequence[Unread], unscored: int, pending: int, full: Sequence[Full]
    ) -> tuple[int, int, float | None]:
        """Calls, tokens of their prompts, and US dollars."""
        model = self.model()
        if model.provider == OFFLINE:
            return 0, 0, 0.0
        weighing, judging = ceil(unscored / _SCORED_A_CALL), ceil(pending / _JUDGED_A_CALL)
        calls = sum(one.calls for one in unread) + weighing + judging
        tokens = sum(one.tokens for one in unread) + (weighing + judging) * _AROUND + (unscored + pending) * _AN_ENTRY
        summaries = [one.estimate for one in full if one.estimate is not None]
        usage = Usage(input=tokens, output=calls * _ANSWER)
        costs = [self.cost(model.provider, model.name, usage) if calls else 0.0, *(one.usd for one in summaries)]
        usd = None if None in costs else sum(cost or 0.0 for cost in costs)
        return calls + sum(one.calls for one in summaries), tokens + sum(one.input_tokens for one in summaries), usd
