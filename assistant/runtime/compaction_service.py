"""Decides when sessions are compacted, and reports it.

There is one compaction path (`sleep/compaction/compactor.py`); a trigger only determines when, with which limits, and
whether a user is waiting. That a context cannot shrink further is reported once until that changes, also across
restarts (F02).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from assistant.core.checkpoints import describe_tier
from assistant.core.errors import UsageError
from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import Turn
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.gateway.notices import NoticeSender, turn_address
from assistant.runtime.context_economy import ContextEconomy, SessionEconomy
from assistant.runtime.context_meter import ContextMeter
from assistant.runtime.recall_streaks import RecallStreaks
from sleep.compaction.budget import SleepBudget
from sleep.compaction.compactor import Compactor
from sleep.compaction.preview import CompactionPreview
from sleep.compaction.values import CachedPrompt, CompactionLimits, CompactionRequest, CompactionResult
from sleep.cycle.cycle import CompactedSession
from sleep.rules.secrets import mask_secrets

# A context is nearly full this close to its threshold, or if this many turns would fill it.
_NEARLY, _TURNS_AHEAD = 0.04, 3


class CompactionService:
    """Compaction for turns, sleep cycles and commands."""

    def __init__(
        self,
        conversation: Conversation,
        compactor: Compactor,
        meter: ContextMeter,
        economy: ContextEconomy,
        streaks: RecallStreaks,
        notices: NoticeSender,
        clock: Callable[[], datetime],
    ) -> None:
        self._conversation = conversation
        self._compactor = compactor
        self._meter = meter
        self._economy = economy
        self._streaks = streaks
        self._clock = clock
        self._notices = notices
        self._announced: set[str] = set()  # sessions whose summary, if they need one, is made next
        self._prepared_tokens: dict[str, int] = {}  # by session, the tokens that the prepared compaction removes
        # Called after each compaction except those of a sleep cycle, which does the same itself: the session, the
        # result, and whether a user is waiting.
        self.on_compacted: Callable[[str, CompactionResult, bool], Awaitable[None]] | None = None

    async def make_room(self, turn: Turn, terms: CompactionLimits, trigger: str) -> None:
        """Before a model call, shrink the view now: with a prepared summary or without a model, since a user is
        waiting. Raises `StoreError`."""
        above = terms.threshold if trigger in ("emergency", "model") else 0.0
        self.add_recalled(turn.session, terms)
        if await self.commit_prepared(turn.session, trigger):
            view = self._conversation.load_view(turn.session)
            if above and self._meter.pressure(view, terms).ratio < above:
                return
        outcome = await self._compact(
            CompactionRequest(
                turn.session, trigger, terms, urgent=True, min_pressure=above, notice_address=turn_address(turn)
            )
        )
        await self._tell_compacted(turn.session, outcome, person_waits=False)

    async def compact_in_sleep(
        self, session: str, trigger: str, budget: SleepBudget | None = None
    ) -> CompactionResult | None:
        """Compact in a sleep cycle or nap if the context exceeds the sleep threshold; None if it does not, or if the
        model's limits are unknown. `budget` is what the cycle may still spend. Raises `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self.needs_sleep_compaction(session):
            return None
        if self._meter.pressure_ratio(session) < self._meter.compaction_settings.sleep_threshold:
            trigger = "messages"
        address = self._notices.find_session_address(session)
        return await self._compact(
            CompactionRequest(session, trigger, terms, sleep_budget=budget, notice_address=address)
        )

    async def compact_for_cycle(
        self, session: str, trigger: str, budget: SleepBudget | None = None
    ) -> CompactedSession | None:
        """Like `compact_in_sleep`, for a cycle's report; None if nothing was compacted."""
        await self._meter.load_model_limits()
        newest = next((checkpoint.num for checkpoint in self._conversation.newest_checkpoints(session, 1)), 0)
        outcome = await self.compact_in_sleep(session, trigger, budget)
        if outcome is None or not outcome.checkpoints:
            return None
        # Includes checkpoints that joined records, which are in no result.
        made = tuple(checkpoint.id for checkpoint in self._conversation.checkpoints(session, after=newest))
        before, after = outcome.before.prompt_tokens, outcome.after.prompt_tokens
        return CompactedSession(
            outcome.message_count, before, after, _known_cost(outcome), outcome.checkpoints[-1].tier, made
        )

    def needs_sleep_compaction(self, session: str) -> bool:
        """Return whether a sleep cycle would compact the session."""
        settings = self._meter.compaction_settings
        many = self._meter.has_too_many_messages(self._conversation.load_view(session))
        return settings.auto and (many or self._meter.pressure_ratio(session) >= settings.sleep_threshold)

    async def preview_sleep(self, session: str) -> CompactionPreview | None:
        """Return what a sleep cycle would do to the session, or None. Changes nothing and calls no model."""
        request = CompactionRequest(session, "sleep", await self._meter.load_terms(session))
        if not self.needs_sleep_compaction(session):
            return None
        preview = await self._compactor.preview(request)
        return preview if preview.result.checkpoints else None

    def clear_stuck_notice(self, session: str) -> None:
        """Clear the notice that the context stays full."""
        self._notices.notices.clear(Notice(NoticeKind.CONTEXT_STAYS_FULL, "", session))

    def is_compacting(self, session: str) -> bool:
        """Return whether the session is being compacted now."""
        return self._compactor.is_compacting(session)

    def is_preparing(self, session: str) -> bool:
        """Return whether a summary of the session is being made in the background, or is about to be."""
        return session in self._announced or self._compactor.is_preparing(session)

    @contextmanager
    def announce_summary(self, session: str) -> Iterator[None]:
        """Within the context the summary that the session needs, if any, is made."""
        self._announced.add(session)
        try:
            yield
        finally:
            self._announced.discard(session)

    def needs_room(self, session: str, margin: float) -> bool:
        """Return whether the session's context is as near as `margin` to where a turn makes room, and no compaction is
        prepared for that; False while the model's limits are unknown. Raises `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self._meter.compaction_settings.auto or self._compactor.has_prepared(session):
            return False
        return self._meter.pressure_ratio(session) >= terms.threshold - margin

    # ------------------------------------------------------------------------------------------------------- in advance

    async def prepare_room(
        self,
        session: str,
        added: float,
        cached_request: CachedPrompt | None,
        budget: SleepBudget,
        margin: float = _NEARLY,
    ) -> None:
        """If the context is nearly full, by `margin` at least, prepare the summary that the next turns will need, so
        that nobody waits for it; `added` is what a turn adds in tokens. Raises `StoreError`."""
        terms = self._meter.terms(session)
        if terms is not None and self.needs_room(
            session, max(margin, _NEARLY, _TURNS_AHEAD * added / terms.budgets.tokens)
        ):
            request = CompactionRequest(
                session,
                "emergency",
                terms,
                cached_prompt=cached_request,
                sleep_budget=budget,
                notice_address=self._notices.find_session_address(session),
            )
            await self._compactor.prepare(self._with_price(request))

    async def replace_deterministic(self, session: str, budget: SleepBudget) -> None:
        """Redo with a model the summaries that were made without one because a user was waiting. Raises
        `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self._meter.compaction_settings.auto or not self._compactor.awaits_summary(session):
            return
        address = self._notices.find_session_address(session)
        request = CompactionRequest(session, "summary", terms, sleep_budget=budget, notice_address=address)
        await self._tell_compacted(session, await self._compactor.replace_deterministic(request), person_waits=False)

    # ---------------------------------------------------------------------------------------------------------- economy

    async def compact_for_economy(self, session: str, economy: SessionEconomy, budget: SleepBudget) -> None:
        """Compact in the background because it saves money. Raises `StoreError`."""
        outcome = await self._compact(self._economy_request(session, economy, budget))
        await self._tell_compacted(session, outcome, person_waits=False)

    async def prepare_for_economy(self, session: str, economy: SessionEconomy, budget: SleepBudget) -> None:
        """Prepare the summary of such a compaction, to be committed once the cache is cold. Raises `StoreError`."""
        await self._compactor.prepare(self._with_price(self._economy_request(session, economy, budget)))
        self._prepared_tokens[session] = economy.decision.removed

    def is_prepared(self, session: str, economy: SessionEconomy) -> bool:
        """Return whether it need not be prepared again: not until the amount to remove has doubled."""
        enough = 2 * self._prepared_tokens.get(session, 0)
        return self._compactor.has_prepared(session) and economy.decision.removed < enough

    async def commit_prepared(self, session: str, trigger: str) -> bool:
        """Commit a prepared compaction if it still applies; returns whether there was one. Raises `StoreError`."""
        outcome = self._compactor.commit_prepared(session, trigger)
        if outcome is None:
            return False
        await self._tell_compacted(session, outcome, person_waits=False)
        return True

    def add_recalled(self, session: str, terms: CompactionLimits) -> None:
        """Move repeatedly recalled text into the summary while the cache is invalidated anyway. Uses no model. Raises
        `StoreError`."""
        if lines := self._streaks.list_due(session):
            without_secrets = {number: mask_secrets(line) for number, line in lines.items()}
            self._compactor.add_to_summary(CompactionRequest(session, "recall", terms, urgent=True), without_secrets)
            self._streaks.mark_summarised(session)

    async def mask_old_output(self, session: str, terms: CompactionLimits) -> None:
        """Shorten old tool output and long old answers, which is free while the cache is cold. Raises `StoreError`."""
        await self._compact(CompactionRequest(session, "cold", terms, masks_only=True, urgent=True))

    def _economy_request(self, session: str, economy: SessionEconomy, budget: SleepBudget) -> CompactionRequest:
        address = self._notices.find_session_address(session)
        return CompactionRequest(
            session,
            "economy",
            economy.terms,
            sleep_budget=budget,
            notice_address=address,
        )

    # ----------------------------------------------------------------------------------------------------------- people

    async def compact_now(self, session: str, focus: str, cached_request: CachedPrompt | None) -> str:
        """Run `/compact`, with an optional focus for the summary."""
        terms = await self._meter.load_terms(session)
        address = self._notices.find_session_address(session)
        outcome = await self._compact(
            CompactionRequest(
                session, "manual", terms, focus=focus, cached_prompt=cached_request, notice_address=address
            )
        )
        if outcome.busy and not outcome.checkpoints:
            return "Another compaction of this conversation is under way; nothing was changed by this one."
        if not outcome.checkpoints:
            return _nothing_gained_text(outcome)
        await self._tell_compacted(session, outcome, person_waits=True)
        kinds = ", ".join(dict.fromkeys(describe_tier(checkpoint.tier) for checkpoint in outcome.checkpoints))
        made = [checkpoint.id for checkpoint in outcome.checkpoints if not checkpoint.is_merge]
        number = (made or [outcome.checkpoints[0].id])[0]
        return (
            f"{describe_compacted(outcome, 'Compacted', 'Joined')} ({kinds}): {_describe_sizes(outcome)}"
            f"{_cost_text(outcome)} The messages stay in the message log: `aihistory show {number}` shows what was "
            f"kept, `/compact --undo {number}` undoes it."
        )

    async def preview(self, session: str, focus: str, cached_request: CachedPrompt | None) -> str:
        """Run `/compact --dry-run`: what would be removed or kept and why, and the cost."""
        request = CompactionRequest(
            session, "manual", await self._meter.load_terms(session), focus=focus, cached_prompt=cached_request
        )
        preview = await self._compactor.preview(request)
        if not preview.result.checkpoints:
            return _nothing_gained_text(preview.result)
        return _preview_text(preview)

    async def undo(self, session: str, checkpoint_id: int | None) -> str:
        """Run `/compact --undo [ID]`. Raises `UsageError` if there is nothing to undo or no room for it."""
        terms = await self._meter.load_terms(session)
        if self._compactor.is_compacting(session):
            raise UsageError("This conversation is being compacted. Nothing was undone; try again in a minute.")
        restore = self._conversation.plan_uncompact(session, checkpoint_id)
        merges = {checkpoint.id for checkpoint in self._conversation.checkpoints(session) if checkpoint.is_merge}
        ids = [number for number in restore.checkpoint_ids if number not in merges] or restore.checkpoint_ids
        needed = terms.counter.corrected(restore.tokens + terms.fixed.tokens + terms.adding.tokens)
        budgets = terms.budgets
        too_many = bool(budgets.images) and restore.images > budgets.images
        if needed + budgets.reserve > budgets.tokens or restore.bytes + terms.fixed.bytes > budgets.bytes or too_many:
            raise UsageError(
                f"What the model saw before has about {needed:,} tokens, and with {budgets.reserve:,} kept for the "
                f"answer that is more than the context of {budgets.tokens:,}. Nothing was undone; `aihistory recover "
                f"{ids[-1]}` prints the messages."
            )
        self._conversation.undo_compaction(restore, session, self._clock())
        undone = f"Undid compaction {' and '.join(map(str, reversed(ids)))}"
        if not restore.messages:
            return f"{undone}, which had joined earlier summaries: the model sees each of them again."
        are = "is" if restore.messages == 1 else "are"
        return (
            f"{undone}: {pluralize(restore.messages, 'message')} {are} shown to the model whole again, with everything "
            "said since at the end. The next sleep compacts again if the context is full."
        )

    async def _compact(self, request: CompactionRequest) -> CompactionResult:
        """Compact and send the notices: in the same transaction as the commit, or now if nothing was committed."""
        outcome = await self._compactor.compact(self._with_price(request))
        self._notices.send(request.notice_address, *outcome.notices)
        if outcome.notices:
            self._notices.wake()
        if not outcome.stuck_reason:
            self.clear_stuck_notice(request.session)
        return outcome

    def _with_price(self, request: CompactionRequest) -> CompactionRequest:
        if not self._economy.has_model:
            return request
        return replace(request, price_in_view=self._economy.price_in_view(request.session, self._clock()))

    async def _tell_compacted(self, session: str, outcome: CompactionResult, *, person_waits: bool) -> None:
        if outcome.checkpoints and self.on_compacted is not None:
            await self.on_compacted(session, outcome, person_waits)


def describe_compacted(outcome: CompactionResult, compact: str, join: str) -> str:
    """Return what is done, with the given verbs: to messages, or only to summaries."""
    count = outcome.message_count
    return f"{compact} {pluralize(count, 'message')}" if count else f"{join} earlier summaries"


def _describe_sizes(outcome: CompactionResult, bound: str = "") -> str:
    """Describe tokens and shares before and after; both include the reserve for the answer, and say so."""
    before, after = outcome.before, outcome.after
    text = f"{before.prompt_tokens:,} tokens become {bound}{after.prompt_tokens:,}, {outcome.tokens_saved:,} saved."
    if {before.fullest_budget, after.fullest_budget} != {"tokens"}:
        return f"{text} The context is {before.describe()} before, and {bound}{after.describe()} after."
    reserve, budget = before.budgets.reserve, before.budgets.tokens
    return (
        f"{text} With the {reserve:,} kept for the answer, {before.ratio:.0%} of the context of {budget:,} becomes "
        f"{bound}{after.ratio:.0%}."
    )


def _nothing_gained_text(outcome: CompactionResult) -> str:
    why = "A summary would be no shorter than the messages that it stands for. " if outcome.gains_nothing else ""
    return f"There is nothing to gain by compacting. {why}The context is at {outcome.before.describe()}."


def _preview_text(preview: CompactionPreview) -> str:
    rows = ["| | messages | tokens | why |", "|---|---:|---:|---|"]
    for change in preview.planned_changes:
        tokens = f"{change.tokens:,}" if change.tokens else ""
        fate = "removed" if change.is_removed else "kept"
        rows.append(f"| {fate}: {change.what} | {change.messages:,} | {tokens} | {change.why} |")
    estimate, result = preview.estimate, preview.result
    cost = "No model is asked; it costs nothing."
    if estimate is not None:
        price = "no known price" if estimate.usd is None else f"about ${estimate.usd:.4f}"
        calls = pluralize(estimate.calls, "call")
        cost = f"{calls} of {estimate.model}, about {estimate.input_tokens:,} tokens in: {price}."
    # The length of a model's summary is unknown in advance: use its maximum.
    sizes = f"{_describe_sizes(result, 'at most ' if estimate else '')} {preview.plans[0].minimum.describe()}"
    kinds = ", ".join(dict.fromkeys(describe_tier(checkpoint.tier) for checkpoint in result.checkpoints))
    head = f"Nothing was changed. This would {describe_compacted(result, 'compact', 'join')} ({kinds}):"
    return "\n".join([head, "", *rows, "", sizes, "", cost])


def _cost_text(outcome: CompactionResult) -> str:
    cost = _known_cost(outcome)
    if cost is None:
        return " Its cost is not known."
    return f" It cost ${cost:.4f}." if cost else ""


def _known_cost(outcome: CompactionResult) -> float | None:
    """Return the total in US dollars, or None if a checkpoint's cost is unknown."""
    costs = [checkpoint.cost_usd for checkpoint in outcome.checkpoints]
    return None if None in costs else sum(cost for cost in costs if cost)
