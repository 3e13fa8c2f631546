"""Decides per session whether compacting saves money, and the lifetime of its prompt cache: collects the inputs of
`assistant/context/economy.py` and `assistant/context/rhythm.py`.

Read-only; without a paid model, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from assistant.context.economy import (
    LIFETIME_SECONDS,
    UNKNOWN_PRICES,
    CallForecast,
    CallPrices,
    ContextState,
    EconomyDecision,
    choose_cache_lifetime,
    decide,
    price_in_view,
)
from assistant.context.rhythm import LEARNING_PERIOD, Rhythm, learn_rhythm
from assistant.core.dataclass import dataclass
from assistant.core.model_api import CacheLifetime
from assistant.core.ports import Model
from assistant.core.records import ContextView
from assistant.core.store_ports import Conversation
from assistant.models.prices import MILLION, Prices
from assistant.runtime.context_meter import ContextMeter
from assistant.runtime.current_models import CurrentModels
from sleep.compaction.budget import OFFLINE
from sleep.compaction.draft_view import is_compaction_prefix
from sleep.compaction.values import CompactionLimits, CompactionPolicy, PriceInView

_RELEARN_AFTER = timedelta(hours=1)
_SESSIONS_KEPT = 64
# Assumed tokens per call (a message and its answer), as a prior.
_PRIOR_ADDED, _PRIOR_CALLS = 300, 4


@dataclass(frozen=True, slots=True)
class SessionEconomy:
    """The economic decision for a session's context."""

    decision: EconomyDecision
    terms: CompactionLimits  # the limits to plan its compaction with


class ContextEconomy:
    """Economic decisions per session.

    - `prices`: price tables by provider.
    """

    def __init__(
        self,
        conversation: Conversation,
        meter: ContextMeter,
        models: CurrentModels,
        prices: Mapping[str, Prices],
        policy: CompactionPolicy,
        zone: tzinfo,
    ) -> None:
        self._conversation = conversation
        self._meter = meter
        self._models = models
        self._prices = prices
        self._policy = policy
        self._zone = zone
        self._rhythms: dict[str, tuple[datetime, Rhythm]] = {}

    @property
    def has_model(self) -> bool:
        """Whether a paid model may be used for summaries."""
        return self._meter.compaction_settings.auto and self._models.answering.provider != OFFLINE

    @property
    def is_on(self) -> bool:
        """Whether prices decide too: there is a paid model for summaries, and the settings do not turn it off."""
        return self.has_model and self._meter.compaction_settings.economy != "off"

    def decide(self, session: str, now: datetime, *, lifetime: CacheLifetime, is_cold: bool) -> SessionEconomy | None:
        """Return what to do with the session's context, or None if unknown. Raises `StoreError`."""
        terms = self._meter.terms(session) if self.is_on else None
        if terms is None:
            return None
        view = self._conversation.load_view(session)
        prices, forecast = self._forecast(view, lifetime, now)
        state = self._state(view, terms)
        mode = self._meter.compaction_settings.economy
        decision = decide(state, prices, forecast, mode, is_cold=is_cold)
        budgets = terms.budgets
        smaller = replace(
            budgets, tokens=decision.size, reserve=budgets.reserve * decision.size // max(1, budgets.tokens)
        )
        # The reserve for the answer scales with the small context, and is no reason to keep less.
        return SessionEconomy(decision, replace(terms, budgets=smaller))

    def price_in_view(self, session: str, now: datetime) -> PriceInView:
        """Return the expected cost, over the coming day, of a token that stays in the session's view."""
        view = self._conversation.load_view(session)
        lifetime = self.cache_lifetime(session, self._models.answering, view, now)
        prices, forecast = self._forecast(view, lifetime, now)
        return PriceInView(price_in_view(prices, forecast), prices.known)

    def _forecast(self, view: ContextView, lifetime: CacheLifetime, now: datetime) -> tuple[CallPrices, CallForecast]:
        prices = self.call_prices(self._models.answering, self._models.writing, lifetime) or UNKNOWN_PRICES
        rhythm = self.rhythm(view.session, now)
        cold_share = rhythm.share_longer(LIFETIME_SECONDS[lifetime], hour=now.astimezone(self._zone).hour)
        return prices, CallForecast(rhythm.calls_a_day, cold_share, added_per_call(view))

    def cache_lifetime(self, session: str, model: Model, view: ContextView, now: datetime) -> CacheLifetime:
        """Return the cache lifetime to request for the session's prompt."""
        wanted = self._meter.context_settings.cache_lifetime
        if wanted != "auto":
            return wanted
        five, hour = (self.call_prices(model, model, lifetime) for lifetime in ("5m", "1h"))
        if five is None or hour is None or hour.cache_write <= five.cache_write:
            return "5m"
        prices: dict[CacheLifetime, CallPrices] = {"5m": five, "1h": hour}
        prompt = self._meter.frame(session, model.name)[1].tokens + view.tokens
        return choose_cache_lifetime(self.rhythm(session, now), prices, prompt, added_per_call(view))

    def call_prices(self, answering: Model, writing: Model, lifetime: CacheLifetime) -> CallPrices | None:
        """Return the prices, or None if one of the models has no known price."""
        answer = self._prices.get(answering.provider, Prices()).price_for_model(answering.name)
        summary = self._prices.get(writing.provider, Prices()).price_for_model(writing.name)
        if writing.provider == OFFLINE:
            own = (0.0, 0.0)
        elif summary is not None:
            own = (summary.input / MILLION, summary.output / MILLION)
        else:
            return None
        if answer is None:
            return None
        return CallPrices(
            answer.input / MILLION,
            answer.output / MILLION,
            answer.cache_read / MILLION,
            answer.write_rate(lifetime) / MILLION,
            *own,
        )

    def rhythm(self, session: str, now: datetime) -> Rhythm:
        """Return the session's message rhythm, learned at most once an hour."""
        learnt = self._rhythms.get(session)
        if learnt is None or not timedelta() <= now - learnt[0] < _RELEARN_AFTER:
            times = self._conversation.list_arrival_times(session, now - LEARNING_PERIOD)
            learnt = self._rhythms[session] = (now, learn_rhythm(times, self._zone, now))
            while len(self._rhythms) > _SESSIONS_KEPT:
                self._rhythms.pop(next(iter(self._rhythms)))
        return learnt[1]

    def _state(self, view: ContextView, terms: CompactionLimits) -> ContextState:
        counter, preserve = terms.counter, self._policy.preserve_messages
        rows = [
            size for row, size in zip(view.messages, _sizes(view, terms), strict=True) if not is_compaction_prefix(row)
        ]
        small = replace(terms.budgets, tokens=min(terms.budgets.tokens, _SMALL))
        return ContextState(
            prompt=self._meter.pressure(view, terms).prompt_tokens,
            frame=counter.corrected(terms.fixed.tokens),
            recent=counter.corrected(sum(rows[-preserve:])),
            window=terms.budgets.tokens,
            target=terms.target,
            summary=self._policy.summary_budget(small) + self._policy.restored_budget(small),
        )


# Total characters of tool output worth shortening.
_OLD_OUTPUT = 8_000


def has_old_output(view: ContextView, preserved: int) -> bool:
    """Return whether there is enough tool output before the preserved messages."""
    old = view.messages[: max(0, len(view.messages) - preserved)]
    return (
        sum(len(row.content) for row in old if row.role == "tool" and not row.metadata.get("archived")) >= _OLD_OUTPUT
    )


_SMALL = 20_000


def _sizes(view: ContextView, terms: CompactionLimits) -> list[int]:
    if view.sizes:
        return [size[0] for size in view.sizes]
    return [terms.counter.count_message(row) for row in view.messages]


def added_per_call(view: ContextView) -> float:
    """Return the average tokens of a message and what follows it."""
    # Most rows have no metadata, and a view may have thousands.
    said = [row for row in view.messages if not row.metadata or not is_compaction_prefix(row)]
    calls = sum(row.role == "user" for row in said)
    tokens = view.tokens if len(said) == len(view.messages) else sum(len(row.content) // 4 for row in said)
    return (tokens + _PRIOR_CALLS * _PRIOR_ADDED) / (calls + _PRIOR_CALLS)
