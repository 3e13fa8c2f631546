"""Prepares model requests from a session's view, and makes sure they fit.

Pressure is checked before every model call, including tool rounds; it includes what is about to be added and the
reserve for the answer. Above the emergency threshold the view is compacted before the call, unless the user disabled
that; then a request that does not fit fails with an error that says what to do (F27).
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
from assistant.core.pacing import Pacer
from assistant.core.ports import Model
from assistant.core.records import ContextView, Turn
from assistant.core.store_ports import Conversation
from assistant.core.text import beside_loop_if_many
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_economy import ContextEconomy, has_old_output
from assistant.runtime.context_meter import ContextMeter, TokenEstimates
from sleep.compaction.values import CachedPrompt, CompactionLimits

# Safety margin: a summary takes some seconds of the cache lifetime.
_CACHE_MARGIN = timedelta(seconds=30)
_SESSIONS_KEPT = 256
# A context that is less full than this is sent as it is while its summary is being made, as nobody waits for one.
_SENDABLE = 0.95


@dataclass(frozen=True, slots=True)
class _CallInputs:
    """The inputs of a call, for calibration with its billed usage."""

    model: Model
    view: ContextView
    terms: CompactionLimits
    request: ModelRequest
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class _Sent:
    """The last answered request of a session, while it may be cached."""

    prompt: CachedPrompt
    prefix_rev: int
    call: CachedCall

    def may_be_cached(self, now: datetime) -> bool:
        return self.call.may_be_cached(now)


@dataclass(frozen=True, slots=True)
class CachedCall:
    """When a session's prompt was last sent, and with which cache lifetime."""

    at: datetime
    lifetime: CacheLifetime = "5m"

    def may_be_cached(self, now: datetime) -> bool:
        """Return whether the prompt is likely still cached; False if the clock was set back."""
        return timedelta() <= now - self.at < self._lifetime - _CACHE_MARGIN

    def is_cold(self, now: datetime) -> bool:
        """Return whether the cache has certainly expired."""
        return now - self.at >= self._lifetime

    @property
    def _lifetime(self) -> timedelta:
        return timedelta(seconds=LIFETIME_SECONDS[self.lifetime])


class ContextWindow:
    """Builds the requests of turns, and learns from the replies."""

    def __init__(
        self,
        conversation: Conversation,
        estimates: TokenEstimates,
        meter: ContextMeter,
        compaction: CompactionService,
        economy: ContextEconomy,
        *,
        pacer: Pacer,
        max_output_tokens: int,
    ) -> None:
        self._conversation = conversation
        self._estimates = estimates
        self._meter = meter
        self._compaction = compaction
        self._economy = economy
        self._pacer = pacer
        self._max_output = max_output_tokens
        self._prepared: dict[str, _CallInputs] = {}  # by turn
        self._overflowed: set[str] = set()  # turns of which the provider rejected a request as too long
        self._sent: dict[str, _Sent] = {}  # by session
        self._models: dict[str, str] = {}  # by session, the model that answered last
        self._calls: dict[str, CachedCall] = {}  # by session

    async def wait_for_round(self) -> None:
        """Wait until this turn may take a step of some milliseconds, as storing an answer is: others take theirs in
        other rounds of the event loop."""
        await self._pacer.wait()

    async def prepare(self, turn: Turn, model: Model, now: datetime) -> ModelRequest:
        """Return the turn's next request, compacting first if it would not fit."""
        limits = await model.limits()
        # At first all turns wait for the same answer.
        await self._pacer.wait()
        self._meter.set_limits(model, limits)
        frame, terms = self._meter.frame_and_terms(turn.session, model.name, limits, turn.volatile)
        view = self._conversation.load_view(turn.session)
        first_rev = view.prefix_rev
        if self.is_cold(turn.session, view, now):
            await self._use_cold_cache(turn, view, terms, now)
            view = self._conversation.load_view(turn.session)
        lifetime = self._lifetime(turn.session, model, view, now)
        trigger = self._trigger(turn.session, model.name, view, terms)
        if trigger:
            await self._compaction.make_room(turn, terms, trigger)
            view = self._conversation.load_view(turn.session)
        elif turn.id not in self._overflowed:
            self._compaction.clear_stuck_notice(turn.session)
        pressure = self._meter.pressure(view, terms)
        room = answer_token_limit(limits, pressure, self._max_output)
        if view.prefix_rev != first_rev:
            # Standing memory is read anew then.
            frame, _ = self._meter.frame(turn.session, model.name)
        parts = self._meter.request_parts(view, frame, model.name, terms)
        request = await beside_loop_if_many(
            view.messages, build_request, view, frame, limits, volatile=turn.volatile, max_output_tokens=room
        )
        request = replace(request, cache_lifetime=lifetime, parts=parts)
        self._prepared[turn.id] = _CallInputs(model, view, terms, request, pressure.prompt_tokens)
        self._estimates.remember_size(turn.id, request, model.name, pressure.prompt_tokens)
        return request

    async def shrink_after_overflow(self, turn: Turn, attempt: int) -> None:
        """After the provider rejected the request as too long, compact the view, more with every attempt. Raises
        `ModelError` if compaction is disabled."""
        prepared = self._prepared[turn.id]
        self._overflowed.add(turn.id)
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
        """Return sources the model has read other than the user's own current message."""
        return self._meter.untrusted_sources(self._conversation.load_view(turn.session), turn.volatile)

    def record_usage(self, turn: Turn, reply: ModelReply, now: datetime) -> None:
        """Use the provider's token count as the measure of this view and to calibrate estimates."""
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
        """Discard state kept for the turn's next call."""
        self._prepared.pop(turn, None)
        self._overflowed.discard(turn)
        self._estimates.discard_turn(turn)

    def pressure(self, session: str) -> float | None:
        """Return how full the session's context is, 0-1 and above; None while the model's limits are unknown."""
        return self._meter.pressure_ratio(session) if self._meter.knows_model else None

    def last_call(self, turn: str) -> tuple[Model, ModelRequest] | None:
        """Return model and request of the running turn's last model call."""
        prepared = self._prepared.get(turn)
        return (prepared.model, prepared.request) if prepared else None

    def cached_request(self, session: str, now: datetime) -> CachedPrompt | None:
        """Return the session's last request if it is likely cached and still a prefix of the view."""
        sent = self._sent.get(session)
        if sent is None or not sent.may_be_cached(now):
            return None
        return sent.prompt if self._conversation.load_view(session).prefix_rev == sent.prefix_rev else None

    def is_cold(self, session: str, view: ContextView, now: datetime) -> bool:
        """Return whether the session's prompt cache has certainly expired, so that changing the prompt is free. After a
        restart this is derived from the time of the last answer."""
        return (call := self.last_cached_call(session, view)) is not None and call.is_cold(now)

    def find_call(self, session: str) -> CachedCall | None:
        """Return when this process last sent the session's prompt, or None if it did not."""
        return self._calls.get(session)

    def last_cached_call(self, session: str, view: ContextView) -> CachedCall | None:
        """Return when the session's prompt was last sent, or None if it has no answer yet."""
        if session in self._calls:
            return self._calls[session]
        last = next((row.ts for row in reversed(view.messages) if row.role == "assistant" and row.ts), None)
        return CachedCall(last, "1h") if last is not None else None

    async def _use_cold_cache(self, turn: Turn, view: ContextView, terms: CompactionLimits, now: datetime) -> None:
        """Use the expired cache: move repeatedly recalled text to the summary, and commit a prepared summary or at
        least shorten old tool output. Uses no model, so nobody waits."""
        self._compaction.add_recalled(turn.session, terms)
        if not self._economy.is_on or await self._compaction.commit_prepared(turn.session, "economy"):
            return
        if self._compaction.is_compacting(turn.session):
            return
        if has_old_output(view, self._meter.context_settings.preserve_messages):
            # The small context determines what is old: in a large one nearly everything is new.
            economy = self._economy.decide(turn.session, now, lifetime="5m", is_cold=True)
            await self._compaction.mask_old_output(turn.session, economy.terms if economy else terms)

    def _lifetime(self, session: str, model: Model, view: ContextView, now: datetime) -> CacheLifetime:
        """Return the cache lifetime; unchanged while the prompt is cached."""
        call = self._calls.get(session)
        if call is not None and not call.is_cold(now):
            return call.lifetime
        return self._economy.cache_lifetime(session, model, view, now)

    def _trigger(self, session: str, model: str, view: ContextView, terms: CompactionLimits) -> str:
        """Return why room has to be made before this call, or ""."""
        switched = self._models.get(session, model) != model
        self._models[session] = model
        if not self._meter.compaction_settings.auto:
            return ""
        ratio = self._meter.pressure(view, terms).ratio
        if ratio >= terms.threshold:
            is_sendable = ratio < _SENDABLE and self._compaction.is_preparing(session)
            return "model" if switched else "" if is_sendable else "emergency"
        return "messages" if self._meter.has_too_many_messages(view) else ""
