"""One compaction being carried out: its plans, the model asked, the commits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from assistant.context.pressure import Pressure, measure
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.errors import StaleView
from assistant.core.messages import Message
from sleep.compaction.floor import floor_plan
from sleep.compaction.means import BY_MODEL, Means
from sleep.compaction.merging import merged, originals, summaries, untold
from sleep.compaction.orders import Order
from sleep.compaction.plan import Plan
from sleep.compaction.rendering import RECORD_TIERS
from sleep.compaction.summariser import Live
from sleep.compaction.summary import Material, Summary

LONG_THREAD = (
    "This conversation was compacted {count} times. Long threads answer less exactly than fresh ones, however good the "
    "summaries are; `/pin` keeps in view, word for word, what must not blur, and `/reset` begins afresh: it learns, "
    "archives, and hands over what is open."
)
NOT_USED = "No model's summary could be used ({why}); the most telling sentences stand for what left the view."
# From this many compactions of a generation on, the person is told what long threads cost.
_MANY = 3
# Plans made for one order: merges, and new tries where the view changed meanwhile.
_MOST_PLANS = 8
_PAGE = 500


class Work:
    """One order being carried out."""

    def __init__(self, means: Means, order: Order) -> None:
        self._means = means
        self._order = order
        self._conversation = means.conversation
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
            await self._means.give_way(self._order)
            found = await self._means.plan(self._order)
            await self._means.give_way(self._order)
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
        places, now = self._conversation.places(ids), self._means.clock()
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
            live = self._means.live(self._order.session, view.generation)
            pair = next((two for two in pairwise(live) if all(one.tier in RECORD_TIERS for one in two)), None)
            if len(live) <= self._means.policy.max_checkpoints or pair is None:
                return
            told, now = Summary("", "floor", 0), self._means.clock()
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
            self.made.append(self._conversation.compact(compaction, self._means.clock()))
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
            await self._means.give_way(self._order)
            compaction = replace(outline.finished(summary, self._means.clock()), started=started)
            self.made.append(self._conversation.compact(compaction, self._means.clock()))
            committed = True
        finally:
            if not committed:
                self._conversation.abandon_compaction(started, "cut off, or overtaken", self._means.clock())
        return True

    async def _merge(self, found: Plan) -> bool:
        """The two checkpoints that the plan names become one; another plan is needed then. Raises `StaleView`."""
        view = self._conversation.view(self._order.session)
        live = self._means.live(self._order.session, view.generation)
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
            compaction = merged(view, pair, live, summary, counter, self._order.trigger, self._means.clock())
            self.made.append(self._conversation.compact(replace(compaction, started=started), self._means.clock()))
            committed = True
        finally:
            if not committed:
                self._conversation.abandon_compaction(started, "cut off, or overtaken", self._means.clock())
        return False

    async def _material_of(self, pair: list[Checkpoint], found: Plan) -> Material:
        """The original messages of two checkpoints where they fit one call, else the summaries made of originals."""
        outline = found.outline
        budget = outline.material.budget if outline else 0
        restored = outline.material.restored if outline else 0
        most = await self._means.summariser.chunk_tokens()
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
            page = self._means.history.recent(pair[0].scope, session=pair[0].session, limit=_PAGE, before_id=before)
            rows = (*(row.by_clock_of(self._order.terms.zone) for row in originals(page, pair)), *rows)
            if sum(counter.count_message(row) for row in rows) > most:
                return ()
            before = page[0].id if page else 0
        return rows

    def _begin(self, found: Plan, ids: tuple[int, int]) -> int | None:
        now = self._means.clock()
        return self._conversation.begin_compaction(
            found.session, found.prefix_rev, found.trigger, ids, self._means.holder, now + self._means.lease, now
        )

    async def _ask(self, material: Material, live: Live | None) -> Summary:
        purse = self._order.purse
        plain = self._order.plain or not self._means.may_ask() or (purse is not None and purse.is_empty)
        summary = await self._means.summariser.summarise(material, live=live, plain=plain, purse=purse)
        if not plain and not (purse is not None and purse.is_empty):
            self._means.judge(summary)
            if summary.failures and summary.tier not in BY_MODEL:
                self.notices.append(NOT_USED.format(why=summary.failures[-1]))
        return summary
