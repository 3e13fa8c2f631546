"""A compaction from plan to commit: the only way in which a view becomes smaller.

What always holds:
- Plan, do the slow part outside of any transaction, commit by compare-and-swap (I4). Whatever fails or is cut off
  leaves the view as it was; messages that arrive meanwhile are answered from it (F13).
- One compaction of a session at a time: in this process by a lock, between processes by a lease (F14).
- Progress or stop (I7): pressure is measured afresh after the commit. What did not bring it down enough is followed by
  the floor, which needs no model, and counts as a failure; after some failures in a row no model is asked for a while,
  also across restarts (F01, F07).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

import structlog

from assistant.core.telemetry import NULL_TRACER, Tracer
from sleep.compaction.means import Means
from sleep.compaction.orders import Order, Outcome
from sleep.compaction.plan import Plan
from sleep.compaction.summariser import Estimate
from sleep.compaction.work import Work

log = structlog.get_logger()


class Compactor:
    """Carries compactions out, one at a time for each session."""

    def __init__(self, means: Means, tracer: Tracer = NULL_TRACER) -> None:
        self._means = means
        self._tracer = tracer
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def is_at_work(self, session: str) -> bool:
        return session in self._locks and self._locks[session].locked()

    async def compact(self, order: Order) -> Outcome:
        """Bring the session's view down. Where nothing can be done, or somebody else is at it, an outcome without
        checkpoints. Raises `StoreError`."""
        async with self._locks[order.session]:
            with self._tracer.span("compaction", trigger=order.trigger) as span:
                outcome = await self._compact(order)
                span.tell(made=len(outcome.made))
            return outcome

    async def _compact(self, order: Order) -> Outcome:
        means, work = self._means, Work(self._means, order)
        await means.give_way(order)
        before = work.pressure()
        if before.ratio < order.above:
            return Outcome(before, before)
        await work.by_plan()
        # Too many light messages may take no more than their summary does: that they are fewer is enough.
        if work.made and order.trigger != "messages" and work.pressure().ratio >= before.ratio:
            means.failed("the context did not become smaller")
        await means.give_way(order)
        if work.pressure().ratio > order.terms.threshold:
            work.to_the_floor()
        if work.made:
            work.join_records()
            if not work.stuck:
                # At its floor a context is compacted with every message, which is told once (F02).
                work.tell_of_length()
            means.settle(means.clock())
        after = work.pressure()
        tiers = [one.tier for one in work.made]
        # A person waits while an emergency is dealt with: worth a look in the log.
        level = logging.INFO if order.trigger in ("sleep", "nap", "manual") else logging.WARNING
        log.log(
            level, "compacted", session=order.session, trigger=order.trigger, made=tiers,
            before=before.describe(), after=after.describe(),
        )  # fmt: skip
        return Outcome(before, after, tuple(work.made), tuple(dict.fromkeys(work.notices)), work.stuck, work.busy)

    async def plan(self, order: Order) -> Plan:
        """What `compact` would do first; changes nothing."""
        return await self._means.plan(order)

    async def estimate(self, order: Order, found: Plan) -> Estimate | None:
        """About what the model call of a plan takes; None where it needs none."""
        if found.outline is None:
            return None
        return await self._means.summariser.estimate(found.outline.material, live=order.live)
