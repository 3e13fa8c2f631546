"""The working context of a session: what the next model call is sent, and that it fits.

What always holds: pressure is looked at before every model call, tool rounds included, and counts what is about to be
added and the room for the answer. Above the emergency threshold the view is brought down before the call is made,
unless the person switched that off; then a request that does not fit ends in words that say what to do (F27).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from assistant.context.build import build_request
from assistant.context.economy import LIFETIME_SECONDS
from assistant.context.pressure import answer_token_limit, estimate_prompt_tokens
from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError
from assistant.core.model_api import CacheLifetime, ModelReply, ModelRequest
from assistant.core.ports import Model
from assistant.core.records import ContextView, Turn
from assistant.core.store_ports import Conversation
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_economy import ContextEconomy, has_old_output
from assistant.runtime.context_meter import ContextMeter, TokenEstimates
from sleep.compaction.values import CachedPrompt, CompactionLimits

# Of the time for which a provider keeps a prompt, a summary takes some seconds.
_CACHE_MARGIN = timedelta(seconds=30)
_SESSIONS_KEPT = 256


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a call was prepared from, for learning from what it was billed."""

    model: Model
    view: ContextView
    terms: CompactionLimits
    request: ModelRequest
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class _Sent:
    """The last request of a session that was answered, for as long as the provider may still have it."""

    prompt: CachedPrompt
    prefix_rev: int
    call: CachedCall

    def may_be_cached(self, now: datetime) -> bool:
        return self.call.may_be_cached(now)


@dataclass(frozen=True, slots=True)
class CachedCall:
    """When a session's prompt was last sent, and for how long the provider was asked to keep it."""

    at: datetime
    lifetime: CacheLifetime = "5m"

    def may_be_cached(self, now: datetime) -> bool:
        """Whether the provider is likely to have it; a clock that was set back says nothing."""
        return timedelta() <= now - self.at < self._lifetime - _CACHE_MARGIN

    def is_cold(self, now: datetime) -> bool:
        """Whether the provider has certainly forgotten it."""
        return now - self.at >= self._lifetime

    @property
    def _lifetime(self) -> timedelta:
        return timedelta(seconds=LIFETIME_SECONDS[self.lifetime])


class ContextWindow:
    """Prepares requests for turns, and learns from their replies."""

    def __init__(
        self,
        conversation: Conversation,
        estimates: TokenEstimates,
        meter: ContextMeter,
        compaction: CompactionService,
        economy: ContextEconomy,
        *,
        max_output_tokens: int,
    ) -> None:
        self._conversation = conversation
        self._estimates = estimates
        self._meter = meter
        self._compaction = compaction
        self._economy = economy
        self._max_output = max_output_tokens
        self._prepared: dict[str, _Prepared] = {}  # by turn
        self._sent: dict[str, _Sent] = {}  # by session
        self._models: dict[str, str] = {}  # by session, the name of the model that answered there last
        self._calls: dict[str, CachedCall] = {}  # by session

    async def prepare(self, turn: Turn, model: Model, now: datetime) -> ModelRequest:
        """The request for the next call of this turn, made to fit."""
        limits = await model.limits()
        self._meter.set_limits(model, limits)
        terms = self._meter.terms_for(turn.session, model.name, limits, turn.volatile)
        view = self._conversation.load_view(turn.session)
        if self.is_cold(turn.session, view, now):
            await self._use_cold_cache(turn, view, terms, now)
            view = self._conversation.load_view(turn.session)
        lifetime = self._lifetime(turn.session, model, view, now)
        trigger = self._trigger(turn.session, model.name, view, terms)
        if trigger:
            await self._compaction.make_room(turn, terms, trigger)
            view = self._conversation.load_view(turn.session)
        else:
            self._compaction.clear_stuck_notice(turn.session)
        pressure = self._meter.pressure(view, terms)
        room = answer_token_limit(limits, pressure, self._max_output)
        frame, _ = self._meter.frame(turn.session, model.name)
        request = build_request(view, frame, limits, volatile=turn.volatile, max_output_tokens=room)
        parts = self._meter.request_parts(view, frame, model.name, terms)
        request = replace(request, cache_lifetime=lifetime, parts=parts)
        self._prepared[turn.id] = _Prepared(model, view, terms, request, pressure.prompt_tokens)
        self._estimates.remember_size(turn.id, request, model.name, pressure.prompt_tokens)
        return request

    async def shrink_after_overflow(self, turn: Turn, attempt: int) -> None:
        """The provider called the last request too long: bring the view down, further with every attempt. Raises
        `ModelError` where compaction is switched off."""
        prepared = self._prepared[turn.id]
        if not self._meter.compaction_settings.auto:
            raise ModelError(
                f"The conversation is too long for {prepared.model.name}, and compaction.auto is off. Your message "
                "is kept; `/compact` makes room, then ask again.",
                kind="overflow",
            )
        terms = prepared.terms
        view = self._conversation.load_view(turn.session)
        smaller = terms.budgets.after_overflow(self._meter.pressure(view, terms).prompt_tokens)
        terms = replace(terms, budgets=smaller, target=terms.target / attempt)
        await self._compaction.make_room(turn, terms, "overflow")

    def untrusted_sources(self, turn: Turn) -> tuple[str, ...]:
        """What the turn's model has read that the person did not say now."""
        return self._meter.untrusted_sources(self._conversation.load_view(turn.session), turn.volatile)

    def record_usage(self, turn: Turn, reply: ModelReply, now: datetime) -> None:
        """What the provider counted for the request becomes the measure of this view, and corrects later estimates."""
        prepared = self._prepared.get(turn.id)
        if prepared is None or reply.message.model not in (None, prepared.model.name):
            return
        model, view, terms = prepared.model.name, prepared.view, prepared.terms
        self._sent = {session: sent for session, sent in self._sent.items() if sent.may_be_cached(now)}
        prompt = CachedPrompt(model, prepared.request, prepared.prompt_tokens)
        call = CachedCall(now, prepared.request.cache_lifetime)
        self._sent[turn.session] = _Sent(prompt, view.prefix_rev, call)
        self._calls.pop(turn.session, None)
        self._calls[turn.session] = call
        while len(self._calls) > _SESSIONS_KEPT:
            self._calls.pop(next(iter(self._calls)))
        if reply.estimated:
            return
        last = next((message.id for message in reversed(view.messages) if message.id is not None), 0)
        self._conversation.report_usage(turn.session, view.prefix_rev, reply.usage.prompt, last)
        estimated = estimate_prompt_tokens(view, terms.counter, terms.fixed, terms.adding)
        self._estimates.calibrate(model, estimated, reply.usage.prompt, now)

    def discard_turn(self, turn: str) -> None:
        """The turn has ended: what was kept for its next call is not needed."""
        self._prepared.pop(turn, None)
        self._estimates.discard_turn(turn)

    def pressure(self, session: str) -> float | None:
        """How full the session's context is, 0-1 and above; None before a model was asked for its limits."""
        return self._meter.pressure_ratio(session) if self._meter.knows_model else None

    def last_call(self, turn: str) -> tuple[Model, ModelRequest] | None:
        """The model and the request of the running turn's last model call."""
        prepared = self._prepared.get(turn)
        return (prepared.model, prepared.request) if prepared else None

    def cached_request(self, session: str, now: datetime) -> CachedPrompt | None:
        """The session's last request, while the provider is likely to have it in its cache and the view still begins
        with it."""
        sent = self._sent.get(session)
        if sent is None or not sent.may_be_cached(now):
            return None
        return sent.prompt if self._conversation.load_view(session).prefix_rev == sent.prefix_rev else None

    def is_cold(self, session: str, view: ContextView, now: datetime) -> bool:
        """Whether the provider has certainly forgotten the session's prompt: what is changed in it costs nothing then.
        After a restart the time of the last answer tells."""
        return (call := self.last_cached_call(session, view)) is not None and call.is_cold(now)

    def last_cached_call(self, session: str, view: ContextView) -> CachedCall | None:
        """When the session's prompt was last sent; None where nothing was answered in it yet."""
        if session in self._calls:
            return self._calls[session]
        last = next((row.ts for row in reversed(view.messages) if row.role == "assistant" and row.ts), None)
        return CachedCall(last, "1h") if last is not None else None

    async def _use_cold_cache(self, turn: Turn, view: ContextView, terms: CompactionLimits, now: datetime) -> None:
        """The prompt is written anew in any case: what was recalled again and again becomes part of the summary; the
        summary that was prepared is committed, or at least old tool output shortened. Takes no model, so that nobody
        waits."""
        self._compaction.add_recalled(turn.session, terms)
        if not self._economy.is_on or await self._compaction.commit_prepared(turn.session, "economy"):
            return
        if self._compaction.is_compacting(turn.session):
            return
        if has_old_output(view, self._meter.context_settings.preserve_messages):
            # What is old, the small context says: in a large one nearly all of it is new.
            economy = self._economy.decide(turn.session, now, lifetime="5m", is_cold=True)
            await self._compaction.mask_old_output(turn.session, economy.terms if economy else terms)

    def _lifetime(self, session: str, model: Model, view: ContextView, now: datetime) -> CacheLifetime:
        """As long as the prompt is cached it keeps the lifetime that it has."""
        call = self._calls.get(session)
        if call is not None and not call.is_cold(now):
            return call.lifetime
        return self._economy.cache_lifetime(session, model, view, now)

    def _trigger(self, session: str, model: str, view: ContextView, terms: CompactionLimits) -> str:
        """Why room has to be made before this call; "" where it has not."""
        switched = self._models.get(session, model) != model
        self._models[session] = model
        if not self._meter.compaction_settings.auto:
            return ""
        if self._meter.pressure(view, terms).ratio >= terms.threshold:
            return "model" if switched else "emergency"
        return "messages" if self._meter.has_too_many_messages(view) else ""
