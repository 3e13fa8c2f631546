"""When conversations are compacted, and what people are told of it.

What always holds: one way leads to every compaction (`sleep/compaction/compactor.py`); each trigger only says when,
under which terms, and whether a person is waiting. That a context is at its floor is told once, until it no longer is,
across restarts too (F02).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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

# A context this close to its threshold, or to which so many turns more come, is nearly full.
_NEARLY, _TURNS_AHEAD = 0.04, 3


class CompactionService:
    """Compaction for turns, for sleep and for people."""

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
        self._prepared_tokens: dict[str, int] = {}  # by session, how many leave with what was prepared
        # After each compaction but those of a sleep, which does the same by itself: the session, what was done, and
        # whether a person waits for it.
        self.on_compacted: Callable[[str, CompactionResult, bool], Awaitable[None]] | None = None

    async def make_room(self, turn: Turn, terms: CompactionLimits, trigger: str) -> None:
        """Before a model call: bring the view down now, with what was prepared, or without a model: nobody waits for a
        summary. Raises `StoreError`."""
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
        """At night or in a nap: compact where the context is above the sleep threshold; None where it is not, or where
        nobody knows yet whom the session talks to. `budget` is what the sleep may still spend. Raises `StoreError`."""
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

    async def preview_sleep(self, session: str) -> CompactionPreview | None:
        """What a sleep would do to the session; None where it would leave it alone. Changes nothing and calls no
        model."""
        request = CompactionRequest(session, "sleep", await self._meter.load_terms(session))
        if not self.needs_sleep_compaction(session):
            return None
        preview = await self._compactor.preview(request)
        return preview if preview.result.checkpoints else None

    def clear_stuck_notice(self, session: str) -> None:
        """The session's context is no longer at its floor, if it was."""
        self._notices.notices.clear(Notice(NoticeKind.CONTEXT_STAYS_FULL, "", session))

    def is_compacting(self, session: str) -> bool:
        """Whether the session is being compacted now."""
        return self._compactor.is_compacting(session)

    # ------------------------------------------------------------------------------------------------------- in advance

    async def prepare_room(
        self, session: str, added: float, cached_request: CachedPrompt | None, budget: SleepBudget
    ) -> None:
        """Where the context is nearly full, make the summary that the next turns will need, so that nobody waits for
        it; `added` is what a turn adds to the context. Raises `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self._meter.compaction_settings.auto or self._compactor.has_prepared(session):
            return
        margin = max(_NEARLY, _TURNS_AHEAD * added / terms.budgets.tokens)
        if self._meter.pressure_ratio(session) >= terms.threshold - margin:
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
        """What was summarised without a model because a person was waiting is summarised by one. Raises
        `StoreError`."""
        terms = self._meter.terms(session)
        if terms is None or not self._meter.compaction_settings.auto or not self._compactor.awaits_summary(session):
            return
        address = self._notices.find_session_address(session)
        request = CompactionRequest(session, "summary", terms, sleep_budget=budget, notice_address=address)
        await self._tell_compacted(session, await self._compactor.replace_deterministic(request), person_waits=False)

    # ---------------------------------------------------------------------------------------------------------- economy

    async def compact_for_economy(self, session: str, economy: SessionEconomy, budget: SleepBudget) -> None:
        """Compact because that is cheaper; nobody waits. Raises `StoreError`."""
        outcome = await self._compact(self._economy_request(session, economy, budget))
        await self._tell_compacted(session, outcome, person_waits=False)

    async def prepare_for_economy(self, session: str, economy: SessionEconomy, budget: SleepBudget) -> None:
        """Make the summary of such a compaction, to be committed once the cache is cold; again where twice as much has
        come together since. Raises `StoreError`."""
        removed = economy.decision.removed
        if not self._compactor.has_prepared(session) or removed >= 2 * self._prepared_tokens.get(session, 0):
            await self._compactor.prepare(self._with_price(self._economy_request(session, economy, budget)))
            self._prepared_tokens[session] = removed

    async def commit_prepared(self, session: str, trigger: str) -> bool:
        """Commit what was prepared, if it still fits; whether there was something. Raises `StoreError`."""
        outcome = self._compactor.commit_prepared(session, trigger)
        if outcome is None:
            return False
        await self._tell_compacted(session, outcome, person_waits=False)
        return True

    def add_recalled(self, session: str, terms: CompactionLimits) -> None:
        """What was recalled in turn after turn becomes part of the summary, now that the view is another one anyway.
        Takes no model. Raises `StoreError`."""
        if lines := self._streaks.list_due(session):
            without_secrets = {number: mask_secrets(line) for number, line in lines.items()}
            self._compactor.add_to_summary(CompactionRequest(session, "recall", terms, urgent=True), without_secrets)
            self._streaks.mark_summarised(session)

    async def mask_old_output(self, session: str, terms: CompactionLimits) -> None:
        """Shorten old tool output and long old answers, which costs nothing while the cache is cold. Raises
        `StoreError`."""
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
        """`/compact`, with what the summary should keep in mind."""
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
        """`/compact --dry-run`: what would go, what would stay and why, and what it would cost."""
        request = CompactionRequest(
            session, "manual", await self._meter.load_terms(session), focus=focus, cached_prompt=cached_request
        )
        preview = await self._compactor.preview(request)
        if not preview.result.checkpoints:
            return _nothing_gained_text(preview.result)
        return _preview_text(preview)

    async def undo(self, session: str, checkpoint_id: int | None) -> str:
        """`/compact --undo [ID]`. Raises `UsageError` where there is nothing to take back, or no room for it."""
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
        """What it tells goes out with what it commits, or, where it commits nothing, now."""
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
    """What is done, with the verbs given: to messages, or to summaries alone."""
    count = outcome.message_count
    return f"{compact} {pluralize(count, 'message')}" if count else f"{join} earlier summaries"


def _describe_sizes(outcome: CompactionResult, bound: str = "") -> str:
    """The tokens and shares before and after, which agree: both count the room for the answer, and say so."""
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
    # How long a model's summary will be nobody knows: at most as long as it may be.
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
    """In US dollars; None where one checkpoint's is not known."""
    costs = [checkpoint.cost_usd for checkpoint in outcome.checkpoints]
    return None if None in costs else sum(cost for cost in costs if cost)
