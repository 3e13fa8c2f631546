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
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import structlog

from assistant.compactions import Checkpoint, Compaction
from assistant.context.pressure import Pressure, measure
from assistant.errors import StaleView
from assistant.messages import Message
from assistant.ports import Conversation
from assistant.records import View
from sleep.floor import floor_plan
from sleep.merging import merged, originals, summaries, untold
from sleep.orders import Beside, Fuses, Order, Outcome
from sleep.plan import Plan
from sleep.planner import plan
from sleep.policy import Keeping, Policy
from sleep.rendering import RECORD_TIERS
from sleep.summariser import Estimate, Live, Summariser
from sleep.summary import Material, Summary

log = structlog.get_logger()

FUSE = "summary"
LONG_THREAD = (
    "This conversation was compacted {count} times. Long threads answer less exactly than fresh ones, however good the "
    "summaries are; `/pin` keeps in view, word for word, what must not blur."
)
NOT_USED = "No model's summary could be used ({why}); the most telling sentences stand for what left the view."
# Triggers behind which nobody waits to be answered.
_PATIENT = ("sleep", "nap", "manual")
_BY_MODEL = ("full", "partial")
_MOST_KNOWN = 40
_MOST_REQUESTS = 50
_LEASE_MARGIN = timedelta(seconds=30)
# From this many compactions of a generation on, the person is told what long threads cost.
_MANY = 3
# Plans made for one order: merges, and new tries where the view changed meanwhile.
_MOST_PLANS = 8
_PAGE = 500


class Compactor:
    """Carries compactions out, one at a time for each session."""

    def __init__(
        self,
        conversation: Conversation,
        summariser: Summariser,
        beside: Beside,
        policy: Policy,
        fuses: Fuses,
        *,
        holder: str,
        seconds: float,
        clock: Callable[[], datetime],
        quiet: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`holder` names this process for leases; `seconds` is the longest that a summary may take; `quiet` returns
        once nobody waits for an answer, or after some seconds."""
        self._conversation = conversation
        self._summariser = summariser
        self._beside = beside
        self._policy = policy
        self._fuses = fuses
        self._holder = holder
        self._lease = timedelta(seconds=seconds) + _LEASE_MARGIN
        self._clock = clock
        self._quiet = quiet
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def most_checkpoints(self) -> int:
        return self._policy.max_checkpoints

    def is_at_work(self, session: str) -> bool:
        return session in self._locks and self._locks[session].locked()

    async def compact(self, order: Order) -> Outcome:
        """Bring the session's view down. Where nothing can be done, or somebody else is at it, an outcome without
        checkpoints. Raises `StoreError`."""
        async with self._locks[order.session]:
            work = _Work(self, order)
            await self.give_way(order)
            before = work.pressure()
            if before.ratio < order.above:
                return Outcome(before, before)
            await work.by_plan()
            # Too many light messages may take no more than their summary does: that they are fewer is enough.
            if work.made and order.trigger != "messages" and work.pressure().ratio >= before.ratio:
                self.failed("the context did not become smaller")
            await self.give_way(order)
            if work.pressure().ratio > order.terms.threshold:
                work.to_the_floor()
            if work.made:
                work.join_records()
                if not work.stuck:
                    # At its floor a context is compacted with every message, which is told once (F02).
                    work.tell_of_length()
                self._beside.settle(self._clock())
            after = work.pressure()
            tiers = [one.tier for one in work.made]
            # A person waits while an emergency is dealt with: worth a look in the log.
            level = logging.INFO if order.trigger in ("sleep", "nap", "manual") else logging.WARNING
            log.log(
                level, "compacted", session=order.session, trigger=order.trigger, made=tiers,
                before=before.describe(), after=after.describe(),
            )  # fmt: skip
            return Outcome(before, after, tuple(work.made), tuple(dict.fromkeys(work.notices)), work.stuck, work.busy)

    def plan(self, order: Order) -> Plan:
        """What `compact` would do first; changes nothing."""
        view = self._conversation.view(order.session)
        ids = [message.id for message in view.messages if message.id is not None]
        places, keeping = self._conversation.places(ids), self._keeping(order, view)
        return plan(view, places, order.terms, self._policy, keeping, self._clock(), trigger=order.trigger)

    async def give_way(self, order: Order) -> None:
        """Between two steps: whoever said something meanwhile is answered first, unless they wait for this."""
        if self._quiet is not None and order.trigger in _PATIENT:
            await self._quiet()

    async def planned(self, order: Order) -> Plan:
        """The same, giving way between its steps."""
        view = self._conversation.view(order.session)
        await self.give_way(order)
        ids = [message.id for message in view.messages if message.id is not None]
        places, keeping = self._conversation.places(ids), self._keeping(order, view)
        await self.give_way(order)
        return plan(view, places, order.terms, self._policy, keeping, self._clock(), trigger=order.trigger)

    async def estimate(self, order: Order, found: Plan) -> Estimate | None:
        """About what the model call of a plan takes; None where it needs none."""
        if found.outline is None:
            return None
        return await self._summariser.estimate(found.outline.material, live=order.live)

    def live(self, session: str, generation: int) -> tuple[Checkpoint, ...]:
        """The session's live checkpoints, oldest range first."""
        found = [c for c in self._conversation.checkpoints(session) if c.state == "live" and c.generation == generation]
        return tuple(sorted(found, key=lambda one: one.from_message_id))

    def _keeping(self, order: Order, view: View) -> Keeping:
        since = self._clock() - timedelta(days=1)
        known = self._beside.journal.entries(view.scope, since=since, limit=_MOST_KNOWN)
        return Keeping(
            checkpoints=self.live(order.session, view.generation),
            requests=tuple(self._beside.requests.open(order.session, limit=_MOST_REQUESTS)),
            tasks=tuple(todo.text for todo in self._beside.todos.all(view.scope)),
            known=tuple(entry.content for entry in known if entry.source_type != "context_synthesis"),
            focus=order.focus,
        )

    # ------------------------------------------------------------------------------------------------------------ fuses

    def may_ask(self) -> bool:
        """Whether a model may be asked: the fuse is whole, or its cool-down is over and this is the one try."""
        fuse = self._beside.breakers.get(FUSE)
        return fuse.opened_at is None or self._clock() >= fuse.opened_at + self._fuses.cool_down

    def failed(self, why: str) -> None:
        self._beside.breakers.failed(FUSE, why, self._fuses.failures, self._clock())

    def judge(self, summary: Summary) -> None:
        """A model was asked: did it serve?"""
        if summary.tier in _BY_MODEL:
            self._beside.breakers.succeeded(FUSE)
        elif summary.failures:
            self.failed(summary.failures[-1])


class _Work:
    """One order being carried out."""

    def __init__(self, compactor: Compactor, order: Order) -> None:
        self._of = compactor
        self._order = order
        self._conversation = compactor._conversation
        self.made: list[Checkpoint] = []
        self.notices: list[str] = []
        self.stuck = ""
        self.busy = False

    def pressure(self) -> Pressure:
        terms = self._order.terms
        view = self._conversation.view(self._order.session)
        return measure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    async def by_plan(self) -> None:
        """Plan and commit until a plan without a merge is carried out, or nothing changes."""
        for _ in range(_MOST_PLANS):
            await self._of.give_way(self._order)
            found = await self._of.planned(self._order)
            await self._of.give_way(self._order)
            if self._order.trigger != "manual" and found.floor.ratio > self._order.terms.threshold:
                # No summary could bring this down far enough: none is paid for (F02).
                return
            try:
                if found.merge:
                    done = await self._merge(found)
                elif found.outline is not None:
                    done = await self._summarise(found)
                else:
                    done = self._commit(found.whole())
            except StaleView:
                # Somebody undid or compacted meanwhile: what stands now is planned for anew.
                continue
            self.notices += found.notices
            if done:
                return

    def to_the_floor(self) -> None:
        """What is above the threshold still is brought down without a model, or the person told why it cannot be."""
        view = self._conversation.view(self._order.session)
        ids = [message.id for message in view.messages if message.id is not None]
        places, now = self._conversation.places(ids), self._of._clock()
        found = floor_plan(view, places, self._order.terms, now, trigger=self._order.trigger)
        try:
            self._commit(found.whole())
        except StaleView:
            # What the next call sees is measured again, and shortened then.
            return
        self.notices += found.notices
        self.stuck = found.stuck

    def join_records(self) -> None:
        """Checkpoints without a summary say where messages stand, and one says it for many: beyond the most that may
        stand side by side neighbours become one, which takes no model."""
        while True:
            view = self._conversation.view(self._order.session)
            live = self._of.live(self._order.session, view.generation)
            pair = next((two for two in pairwise(live) if all(one.tier in RECORD_TIERS for one in two)), None)
            if len(live) <= self._of.most_checkpoints or pair is None:
                return
            told, now = Summary("", "floor", 0), self._of._clock()
            joined = merged(view, pair, live, told, self._order.terms.counter, self._order.trigger, now)
            try:
                self._conversation.compact(joined, now)
            except StaleView:
                return

    def tell_of_length(self) -> None:
        view = self._conversation.view(self._order.session)
        count = sum(
            1
            for one in self._conversation.checkpoints(self._order.session)
            if one.generation == view.generation and one.state in ("live", "absorbed") and not one.is_merge
        )
        if count >= _MANY and any(one.state == "live" for one in self.made):
            self.notices.append(LONG_THREAD.format(count=count))

    # ------------------------------------------------------------------------------------------------------------ steps

    def _commit(self, compaction: Compaction | None) -> bool:
        if compaction is not None:
            self.made.append(self._conversation.compact(compaction, self._of._clock()))
        return True

    async def _summarise(self, found: Plan) -> bool:
        """Raises `StaleView`."""
        outline = found.outline
        assert outline is not None
        ids = (outline.leaving.rows[0].id or 0, outline.leaving.rows[-1].id or 0)
        started = self._begin(found, ids)
        if started is None:
            self.busy = True
            return True
        committed = False
        try:
            summary = await self._ask(outline.material, self._order.live)
            await self._of.give_way(self._order)
            compaction = replace(outline.finished(summary, self._of._clock()), started=started)
            self.made.append(self._conversation.compact(compaction, self._of._clock()))
            committed = True
        finally:
            if not committed:
                self._conversation.abandon_compaction(started, "cut off, or overtaken", self._of._clock())
        return True

    async def _merge(self, found: Plan) -> bool:
        """The two checkpoints that the plan names become one; another plan is needed then. Raises `StaleView`."""
        view = self._conversation.view(self._order.session)
        live = self._of.live(self._order.session, view.generation)
        pair = [one for one in live if one.id in found.merge]
        started = self._begin(found, (pair[0].from_message_id, pair[1].to_message_id))
        if started is None:
            self.busy = True
            return True
        committed = False
        counter = self._order.terms.counter
        try:
            material = await self._material_of(pair, found)
            summary = untold(pair, counter) if material.depth > 1 else None
            summary = summary or await self._ask(material, None)
            compaction = merged(view, pair, live, summary, counter, self._order.trigger, self._of._clock())
            self.made.append(self._conversation.compact(replace(compaction, started=started), self._of._clock()))
            committed = True
        finally:
            if not committed:
                self._conversation.abandon_compaction(started, "cut off, or overtaken", self._of._clock())
        return False

    async def _material_of(self, pair: list[Checkpoint], found: Plan) -> Material:
        """The original messages of two checkpoints where they fit one call, else the summaries made of originals."""
        outline = found.outline
        budget = outline.material.budget if outline else 0
        restored = outline.material.restored if outline else 0
        most = await self._of._summariser.chunk_tokens()
        counter = self._order.terms.counter
        rows = self._originals(pair, most)
        if rows:
            return Material(pair[0].session, pair[0].scope, rows, {}, budget, restored=restored)
        return summaries(pair, self._conversation.checkpoints(pair[0].session), counter, most, budget, restored)

    def _originals(self, pair: list[Checkpoint], most: int) -> tuple[Message, ...]:
        """The messages that two checkpoints cover, as the log has them, but for those taken back since; none where they
        take more than `most` tokens, or where more was summarised than they cover."""
        if any(one.key_facts.get("inherited") for one in pair):
            return ()
        counter = self._order.terms.counter
        rows: tuple[Message, ...] = ()
        before = pair[1].to_message_id + 1
        while before > pair[0].from_message_id:
            page = self._of._beside.history.recent(
                pair[0].scope, session=pair[0].session, limit=_PAGE, before_id=before
            )
            rows = (*originals(page, pair), *rows)
            if sum(counter.count_message(row) for row in rows) > most:
                return ()
            before = page[0].id if page else 0
        return rows

    def _begin(self, found: Plan, ids: tuple[int, int]) -> int | None:
        now = self._of._clock()
        return self._conversation.begin_compaction(
            found.session, found.prefix_rev, found.trigger, ids, self._of._holder, now + self._of._lease, now
        )

    async def _ask(self, material: Material, live: Live | None) -> Summary:
        plain = self._order.plain or not self._of.may_ask()
        summary = await self._of._summariser.summarise(material, live=live, plain=plain)
        if not plain:
            self._of.judge(summary)
            if summary.failures and summary.tier not in _BY_MODEL:
                self.notices.append(NOT_USED.format(why=summary.failures[-1]))
        return summary
