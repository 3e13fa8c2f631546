"""When conversations are compacted, and what people are told of it.

What always holds: one way leads to every compaction (`sleep/compaction/compactor.py`); each trigger only says when,
under which terms, and whether a person is waiting. What happened while nobody was there is told with the next turn,
once. That a context is at its floor is told once, until it no longer is (F02).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from assistant.core.checkpoints import describe_tier
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
        self._meter = meter
        self._clock = clock
        self._pending_notices: defaultdict[str, list[str]] = defaultdict(list)
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
        for line in self._notices(session, outcome):
            notify(line)

    async def compact_in_sleep(
        self, session: str, trigger: str, budget: SleepBudget | None = None
    ) -> CompactionResult | None:
        """At night or in a nap: compact where the context is above the sleep threshold; None where it is not, or where
        nobody knows yet whom the session talks to. `budget` is what the sleep may still spend. Raises `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self.needs_sleep_compaction(session):
            return None
        if self._meter.pressure_ratio(session) < self._meter.compaction_settings.sleep_threshold:
            trigger = "messages"
        outcome = await self._compactor.compact(CompactionRequest(session, trigger, terms, sleep_budget=budget))
        self._pending_notices[session] += self._notices(session, outcome)
        return outcome

    async def compact_for_cycle(
        self, session: str, trigger: str, budget: SleepBudget | None = None
    ) -> CompactedSession | None:
        """As `compact_in_sleep`, for the report of a sleep; None where nothing was compacted."""
        await self._meter.load_model_limits()
        earlier = {checkpoint.id for checkpoint in self._conversation.checkpoints(session)}
        outcome = await self.compact_in_sleep(session, trigger, budget)
        if outcome is None or not outcome.checkpoints:
            return None
        # Those that joined records into one too, which are in no outcome.
        checkpoints = self._conversation.checkpoints(session)
        made = tuple(checkpoint.id for checkpoint in checkpoints if checkpoint.id not in earlier)
        before, after = outcome.before.prompt_tokens, outcome.after.prompt_tokens
        return CompactedSession(
            outcome.message_count, before, after, _known_cost(outcome), outcome.checkpoints[-1].tier, made
        )

    def needs_sleep_compaction(self, session: str) -> bool:
        """Whether a sleep would compact the session."""
        settings = self._meter.compaction_settings
        many = self._meter.has_too_many_messages(self._conversation.load_view(session))
        return settings.auto and (many or self._meter.pressure_ratio(session) >= settings.sleep_threshold)

    async def preview_sleep(self, session: str) -> tuple[CompactionPlan, SummaryEstimate | None] | None:
        """What a sleep would do to the session first, and what its model calls would take; None where it would leave
        the session alone. Changes nothing and calls no model."""
        request = CompactionRequest(session, "sleep", await self._meter.load_terms(session))
        if not self.needs_sleep_compaction(session):
            return None
        plan = await self._compactor.preview_plan(request)
        return (plan, await self._compactor.estimate_summary(request, plan)) if plan.has_changes else None

    def clear_stuck_notice(self, session: str) -> None:
        """The session's context is no longer at its floor, if it was."""
        self._at_floor.discard(session)

    def take_pending_notices(self, session: str) -> list[str]:
        """What happened while nobody was there; told once."""
        return self._pending_notices.pop(session, [])

    def add_pending_notice(self, session: str, line: str) -> None:
        """Have the person told with their next turn."""
        self._pending_notices[session].append(line)

    def is_compacting(self, session: str) -> bool:
        """Whether the session is being compacted now."""
        return self._compactor.is_compacting(session)

    # ----------------------------------------------------------------------------------------------------------- people

    async def compact_now(self, session: str, focus: str, cached_request: CachedPrompt | None) -> str:
        """`/compact`, with what the summary should keep in mind."""
        terms = await self._meter.load_terms(session)
        outcome = await self._compactor.compact(
            CompactionRequest(session, "manual", terms, focus=focus, cached_prompt=cached_request)
        )
        if outcome.busy and not outcome.checkpoints:
            return "Another compaction of this conversation is under way; nothing was changed by this one."
        if not outcome.checkpoints:
            return f"There is nothing to gain by compacting. The context is at {outcome.before.describe()}."
        kinds = ", ".join(dict.fromkeys(describe_tier(checkpoint.tier) for checkpoint in outcome.checkpoints))
        undo = "--undo" if len(outcome.checkpoints) == 1 else f"--undo {outcome.checkpoints[0].id}"
        before, after = outcome.before, outcome.after
        summary = (
            f"Compacted {pluralize(outcome.message_count, 'message')} ({kinds}): {before.prompt_tokens:,} tokens "
            f"became {after.prompt_tokens:,}, {outcome.tokens_saved:,} saved ({before.ratio:.0%} to {after.ratio:.0%} "
            f"of the context).{_cost_text(outcome)} The messages stay in the message log: `aihistory show "
            f"{outcome.checkpoints[-1].id}` shows what was kept, `/compact {undo}` undoes it."
        )
        return "\n\n".join([summary, *self._notices(session, outcome)])

    async def preview(self, session: str, focus: str, cached_request: CachedPrompt | None) -> str:
        """`/compact --dry-run`: what would go, what would stay and why, and what it would cost."""
        request = CompactionRequest(
            session, "manual", await self._meter.load_terms(session), focus=focus, cached_prompt=cached_request
        )
        plan = await self._compactor.preview_plan(request)
        if not plan.has_changes:
            return f"There is nothing to gain by compacting. The context is at {plan.before.describe()}."
        return _preview_text(plan, await self._compactor.estimate_summary(request, plan))

    async def undo(self, session: str, checkpoint_id: int | None) -> str:
        """`/compact --undo [ID]`. Raises `UsageError` where there is nothing to take back, or no room for it."""
        terms = await self._meter.load_terms(session)
        if self._compactor.is_compacting(session):
            raise UsageError("This conversation is being compacted. Nothing was undone; try again in a minute.")
        restore = self._conversation.plan_uncompact(session, checkpoint_id)
        needed = terms.counter.corrected(restore.tokens + terms.fixed.tokens + terms.adding.tokens)
        budgets = terms.budgets
        too_many = bool(budgets.images) and restore.images > budgets.images
        if needed + budgets.reserve > budgets.tokens or restore.bytes + terms.fixed.bytes > budgets.bytes or too_many:
            raise UsageError(
                f"The earlier view has about {needed:,} tokens, and with {budgets.reserve:,} kept for the answer that "
                f"is more than the context of {budgets.tokens:,}. Nothing was undone; `aihistory recover "
                f"{restore.checkpoint_ids[-1]}` prints the messages."
            )
        self._conversation.undo_compaction(restore, session, self._clock())
        ids = ", ".join(map(str, restore.checkpoint_ids))
        return (
            f"Undid compaction {ids}: {pluralize(restore.messages, 'message')} shown to the model again, with "
            "everything said since at the end. The next sleep compacts again where the context is full."
        )

    def _notices(self, session: str, outcome: CompactionResult) -> list[str]:
        """What to tell the person: that a context is at its floor once, until it is no longer."""
        stuck, was_told = outcome.stuck_reason, session in self._at_floor
        if not stuck:
            self._at_floor.discard(session)
            return list(outcome.notices)
        self._at_floor.add(session)
        return [*outcome.notices] if was_told else [*outcome.notices, stuck]


def _preview_text(plan: CompactionPlan, estimate: SummaryEstimate | None) -> str:
    rows = ["| | messages | tokens | why |", "|---|---:|---:|---|"]
    for change in plan.planned_changes:
        tokens = f"{change.tokens:,}" if change.tokens else ""
        fate = "removed" if change.is_removed else "kept"
        rows.append(f"| {fate}: {change.what} | {change.messages:,} | {tokens} | {change.why} |")
    before, after = plan.before, plan.after
    cost = "No model is asked; it costs nothing."
    if estimate is not None and estimate.calls:
        price = "no known price" if estimate.usd is None else f"about ${estimate.usd:.4f}"
        calls = pluralize(estimate.calls, "call")
        cost = f"{calls} of {estimate.model}, about {estimate.input_tokens:,} tokens in: {price}."
    sizes = (
        f"Tokens: {before.prompt_tokens:,} now ({before.ratio:.0%}), about {after.prompt_tokens:,} after "
        f"({after.ratio:.0%}). {plan.minimum.describe()}"
    )
    head = f"Nothing was changed. This would be done ({plan.tier}):"
    return "\n".join([head, "", *rows, "", sizes, "", cost])


def _cost_text(outcome: CompactionResult) -> str:
    cost = _known_cost(outcome)
    if cost is None:
        return " Its cost is not known."
    return f" It cost ${cost:.4f}." if cost else ""


def _known_cost(outcome: CompactionResult) -> float | None:
    """In US dollars; None where one checkpoint's is not known."""
    costs = [checkpoint.cost_usd for checkpoint in outcome.checkpoints]
    return None if None in costs else sum(cost for cost in costs if cost)
