"""When conversations are compacted, and what people are told of it.

What always holds: one way leads to every compaction (`sleep/compaction/compactor.py`); each trigger only says when,
under which
terms, and whether a person is waiting. What happened while nobody was there is told with the next turn, once. That a
context is at its floor is told once, until it no longer is (F02).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from assistant.core.errors import UsageError
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.runtime.context_meter import ContextMeter
from sleep.compaction.budget import SleepBudget
from sleep.compaction.compactor import Compactor
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.values import CachedPrompt, CompactionLimits, CompactionRequest, CompactionResult, SummaryEstimate
from sleep.cycle.cycle import CompactedSession

Notify = Callable[[str], None]


class CompactionService:
    """Compaction for turns, for sleep and for people."""

    def __init__(
        self, conversation: Conversation, compactor: Compactor, meter: ContextMeter, clock: Callable[[], datetime]
    ) -> None:
        self._conversation = conversation
        self._compactor = compactor
        self._measures = meter
        self._clock = clock
        self._untold: defaultdict[str, list[str]] = defaultdict(list)
        self._at_floor: set[str] = set()

    async def make_room(
        self,
        session: str,
        terms: CompactionLimits,
        trigger: str,
        notify: Notify,
        cached_request: CachedPrompt | None,
        *,
        plain: bool = False,
    ) -> None:
        """Before a model call: bring the view down now. Raises `StoreError`."""
        above = terms.threshold if trigger in ("emergency", "model") else 0.0
        outcome = await self._compactor.compact(
            CompactionRequest(
                session, trigger, terms, cached_prompt=cached_request, without_model=plain, min_pressure=above
            )
        )
        for line in self._news(session, outcome):
            notify(line)

    async def compact_in_sleep(
        self,
        session: str,
        trigger: str,
        cached_request: CachedPrompt | None = None,
        *,
        budget: SleepBudget | None = None,
    ) -> CompactionResult | None:
        """At night or in a nap: compact where the context is above the sleep threshold; None where it is not, or where
        nobody knows yet whom the session talks to. `purse` is what the sleep may still spend. Raises `StoreError`."""
        terms = self._measures.terms(session)
        if not self._measures.compaction_settings.auto or terms is None or not self.needs_sleep_compaction(session):
            return None
        if self._measures.pressure_ratio(session) < self._measures.compaction_settings.sleep_threshold:
            trigger = "messages"
        outcome = await self._compactor.compact(
            CompactionRequest(session, trigger, terms, cached_prompt=cached_request, sleep_budget=budget)
        )
        self._untold[session] += self._news(session, outcome)
        return outcome

    async def compact_for_cycle(
        self, session: str, trigger: str, budget: SleepBudget | None = None
    ) -> CompactedSession | None:
        """As `compact_in_sleep`, for the report of a sleep; None where nothing was compacted."""
        await self._measures.load_model_limits()
        earlier = {checkpoint.id for checkpoint in self._conversation.checkpoints(session)}
        outcome = await self.compact_in_sleep(session, trigger, budget=budget)
        if outcome is None or not outcome.checkpoints:
            return None
        # Those that joined records into one too, which are in no outcome.
        made = tuple(one.id for one in self._conversation.checkpoints(session) if one.id not in earlier)
        before, after = outcome.before.prompt_tokens, outcome.after.prompt_tokens
        return CompactedSession(
            outcome.message_count, before, after, _known_cost(outcome), outcome.checkpoints[-1].tier, made
        )

    def needs_sleep_compaction(self, session: str) -> bool:
        """Whether a sleep would compact the session."""
        settings = self._measures.compaction_settings
        many = self._measures.has_too_many_messages(self._conversation.load_view(session))
        return settings.auto and (many or self._measures.pressure_ratio(session) >= settings.sleep_threshold)

    async def preview_sleep(self, session: str) -> tuple[CompactionPlan, SummaryEstimate | None] | None:
        """What a sleep would do to the session first, and what its model calls would take; None where it would leave
        the session alone. Changes nothing and calls no model."""
        order = CompactionRequest(session, "sleep", await self._measures.load_terms(session))
        if not self.needs_sleep_compaction(session):
            return None
        found = await self._compactor.preview_plan(order)
        return (found, await self._compactor.estimate_summary(order, found)) if found.has_changes else None

    def clear_stuck_notice(self, session: str) -> None:
        """The session's context is no longer at its floor, if it was."""
        self._at_floor.discard(session)

    def take_pending_notices(self, session: str) -> list[str]:
        """What happened while nobody was there; told once."""
        return self._untold.pop(session, [])

    def add_pending_notice(self, session: str, line: str) -> None:
        """Have the person told with their next turn."""
        self._untold[session].append(line)

    def is_compacting(self, session: str) -> bool:
        """Whether the session is being compacted now."""
        return self._compactor.is_compacting(session)

    # ----------------------------------------------------------------------------------------------------------- people

    async def compact_now(self, session: str, focus: str, cached_request: CachedPrompt | None = None) -> str:
        """`/compact`, with what the summary should keep in mind."""
        terms = await self._measures.load_terms(session)
        outcome = await self._compactor.compact(
            CompactionRequest(session, "manual", terms, focus=focus, cached_prompt=cached_request)
        )
        if outcome.busy and not outcome.checkpoints:
            return "Another compaction of this conversation is under way; nothing was changed by this one."
        if not outcome.checkpoints:
            return f"There is nothing to gain by compacting: {outcome.before.describe()}."
        kinds = ", ".join(dict.fromkeys(one.tier for one in outcome.checkpoints))
        undo = "--undo" if len(outcome.checkpoints) == 1 else f"--undo {outcome.checkpoints[0].id}"
        told = [
            f"Compacted {pluralize(outcome.message_count, 'message')} ({kinds}): {outcome.before.prompt_tokens:,} "
            f"tokens "
            f"became {outcome.after.prompt_tokens:,}, {outcome.tokens_saved:,} saved ({outcome.before.ratio:.0%} to "
            f"{outcome.after.ratio:.0%} of the context).{_cost(outcome)} The messages stay in the master log: "
            f"`aihistory show {outcome.checkpoints[-1].id}` tells what was kept, `/compact {undo}` takes it back.",
            *self._news(session, outcome),
        ]
        return "\n\n".join(told)

    async def preview(self, session: str, focus: str = "", cached_request: CachedPrompt | None = None) -> str:
        """`/compact --dry-run`: what would go, what would stay and why, and what it would cost."""
        order = CompactionRequest(
            session, "manual", await self._measures.load_terms(session), focus=focus, cached_prompt=cached_request
        )
        found = await self._compactor.preview_plan(order)
        if not found.has_changes:
            return f"There is nothing to gain by compacting: {found.before.describe()}."
        return _report(found, await self._compactor.estimate_summary(order, found))

    async def undo(self, session: str, checkpoint_id: int | None) -> str:
        """`/compact --undo [ID]`. Raises `UsageError` where there is nothing to take back, or no room for it."""
        terms = await self._measures.load_terms(session)
        if self._compactor.is_compacting(session):
            raise UsageError("This conversation is being compacted. Nothing was undone; try again in a minute.")
        found = self._conversation.plan_uncompact(session, checkpoint_id)
        around = terms.counter.corrected(found.tokens + terms.fixed.tokens + terms.adding.tokens)
        budgets = terms.budgets
        too_many = bool(budgets.images) and found.images > budgets.images
        if around + budgets.reserve > budgets.tokens or found.bytes + terms.fixed.bytes > budgets.bytes or too_many:
            raise UsageError(
                f"The earlier view has about {around:,} tokens, and with {budgets.reserve:,} kept for the answer that "
                f"is more than the context of {budgets.tokens:,}. Nothing was undone; `aihistory recover "
                f"{found.checkpoint_ids[-1]}` prints the messages."
            )
        self._conversation.undo_compaction(found, session, self._clock())
        ids = ", ".join(map(str, found.checkpoint_ids))
        return (
            f"Took back compaction {ids}: {pluralize(found.messages, 'message')} in view again, with everything said "
            "since at the end. The next sleep compacts again where the context is full."
        )

    def _news(self, session: str, outcome: CompactionResult) -> list[str]:
        """What to tell the person: that a context is at its floor once, until it is no longer."""
        known = session in self._at_floor
        (self._at_floor.add if outcome.stuck_reason else self._at_floor.discard)(session)
        return [*outcome.notices, *([outcome.stuck_reason] if outcome.stuck_reason and not known else [])]


def _report(found: CompactionPlan, estimate: SummaryEstimate | None) -> str:
    rows = ["| | messages | tokens | why |", "|---|---:|---:|---|"]
    for fate in found.planned_changes:
        tokens = f"{fate.tokens:,}" if fate.tokens else ""
        rows.append(
            f"| {'goes' if fate.is_removed else 'stays'}: {fate.what} | {fate.messages:,} | {tokens} | {fate.why} |"
        )
    before, after = found.before, found.after
    asks = "No model is asked; it costs nothing."
    if estimate is not None and estimate.calls:
        price = "no known price" if estimate.usd is None else f"about ${estimate.usd:.4f}"
        calls = pluralize(estimate.calls, "call")
        asks = f"{calls} of {estimate.model}, about {estimate.input_tokens:,} tokens in: {price}."
    return "\n".join(
        [
            f"Nothing was changed. This would be done ({found.tier}):",
            "",
            *rows,
            "",
            f"Tokens: {before.prompt_tokens:,} now ({before.ratio:.0%}), about {after.prompt_tokens:,} after "
            f"({after.ratio:.0%}). {found.minimum.describe()}",
            "",
            asks,
        ]
    )


def _cost(outcome: CompactionResult) -> str:
    cost = _known_cost(outcome)
    if cost is None:
        return " Its cost is not known."
    return f" It cost ${cost:.4f}." if cost else ""


def _known_cost(outcome: CompactionResult) -> float | None:
    """In US dollars; None where one checkpoint's is not known."""
    costs = [checkpoint.cost_usd for checkpoint in outcome.checkpoints]
    return None if None in costs else sum(cost for cost in costs if cost)
