"""Whether a context is compacted because that is cheaper, when, and to which size. Pure: the runtime and the simulator
(`make economy`) ask the same function.

With N tokens in view and S after it, D = N - S of them leave. P is the price of an input token, w and r what writing it
to the provider's cache and reading it from there cost as multiples of P, p and o the prices of the model that writes
summaries, s the tokens of a summary. Then:

- Cold (the provider has forgotten the prompt, which is written anew in any case): compacting costs pD + os and saves
  wPD with the very next call, so that it pays at once if D(wP - p) > os.
- Warm: the prompt behind the frame is written anew, too, so that it costs pD + os + (w - r)PS and saves rPD a call. It
  pays if more calls follow before the cache is cold than the one divided by the other.
- Compactions are apart by about n = sqrt(2R / (aP(r + g(w - r)))) calls, where a call adds a tokens, a share g of the
  calls is cold, and one compaction costs R: sooner, the summaries cost more than they save, later what is carried does.

Money alone would keep as little as it can; how little is decided by what has to stay: the frame, the newest messages
whole, room for the person's words, open requests and summaries. Without known prices all is counted in input tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Literal

from assistant.context.rhythm import Rhythm
from assistant.core.dataclass import dataclass
from assistant.core.model_api import CacheLifetime

EconomyMode = Literal["off", "balanced", "thrifty"]
EconomyStep = Literal["wait", "prepare", "compact"]

LIFETIME_SECONDS: Mapping[CacheLifetime, float] = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, slots=True)
class CallPrices:
    """Prices of a token: of the model that answers, with what it pays for its cache, and of the one that writes
    summaries. In US dollars where prices are known, else in input tokens of the model that answers."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    summary_input: float
    summary_output: float
    known: bool = True


UNKNOWN_PRICES = CallPrices(1.0, 5.0, 0.1, 1.25, 1.0, 5.0, known=False)


@dataclass(frozen=True, slots=True)
class ContextState:
    """A session's context between two calls, in tokens."""

    prompt: int  # of the next request, if nothing is done
    frame: int  # of it, what stands around the history
    recent: int  # of it, the newest messages that are to stay whole
    window: int  # the effective context
    target: float  # the share of a context that is in use after a compaction
    summary: int  # the longest summary of one compaction


@dataclass(frozen=True, slots=True)
class CallForecast:
    """What is expected of the coming day."""

    calls: float
    cold_share: float  # of the calls, those that find the cache cold
    added: float  # tokens that a call adds to the context

    @property
    def calls_until_cold(self) -> float:
        return (1.0 - self.cold_share) / max(self.cold_share, 0.001)


@dataclass(frozen=True, slots=True)
class EconomyDecision:
    """`prepare`: the summary is worth making now and committing once the cache is cold. `size` is the context that a
    compaction plans for; `saving` what it saves over the coming day, its own cost taken off."""

    step: EconomyStep
    size: int
    removed: int = 0  # tokens
    cost: float = 0.0
    saving: float = 0.0


# The smallest context that is planned for, and how much of the newest messages it has room for.
_LEAST_CONTEXT: Mapping[EconomyMode, int] = {"off": 0, "balanced": 20_000, "thrifty": 14_000}
_RECENT_SHARE: Mapping[EconomyMode, float] = {"off": 1.0, "balanced": 1.0, "thrifty": 0.5}
# Detail is worth something too: so few tokens are not taken out of view for any price.
_LEAST_REMOVED: Mapping[EconomyMode, int] = {"off": 0, "balanced": 1_600, "thrifty": 1_000}


def decide(
    context: ContextState, prices: CallPrices, forecast: CallForecast, mode: EconomyMode, *, is_cold: bool
) -> EconomyDecision:
    """What to do now, when nobody waits."""
    size = economic_size(context, mode)
    kept = int(size * context.target)
    removed = context.prompt - kept
    if mode == "off" or size >= context.window or removed < max(1, _LEAST_REMOVED[mode]):
        return EconomyDecision("wait", size)
    summary = prices.summary_input * removed + prices.summary_output * context.summary
    rewriting = (prices.cache_write - prices.cache_read) * kept
    saving = price_in_view(prices, forecast) * removed
    cold = EconomyDecision("compact", size, removed, summary, saving - summary)
    if is_cold:
        pays = prices.cache_write * removed > summary
        return cold if pays and removed >= _distance(summary, prices, forecast) else EconomyDecision("wait", size)
    cost = summary + rewriting
    warm = EconomyDecision("compact", size, removed, cost, saving - cost)
    pays = prices.cache_read * removed * forecast.calls_until_cold > cost
    if pays and removed >= _distance(cost, prices, forecast):
        return warm
    if removed >= _distance(summary, prices, forecast) and prices.cache_write * removed > summary:
        return EconomyDecision("prepare", size, removed, summary, saving - summary)
    return EconomyDecision("wait", size)


def economic_size(context: ContextState, mode: EconomyMode) -> int:
    """The context that compactions plan for: small, but with room for all that has to stay."""
    needed = (context.frame + _RECENT_SHARE[mode] * context.recent + context.summary) / context.target
    return min(context.window, max(_LEAST_CONTEXT[mode], int(needed)))


def choose_cache_lifetime(
    rhythm: Rhythm, prices: Mapping[CacheLifetime, CallPrices], prompt: int, added: float
) -> CacheLifetime:
    """How long the provider is asked to keep the prompt: an hour where the person's gaps make that cheaper."""
    costs = {
        lifetime: _call_cost(rhythm.share_longer(LIFETIME_SECONDS[lifetime]), price, prompt, added)
        for lifetime, price in prices.items()
    }
    # Five minutes unless an hour is clearly cheaper: each change has the prompt written anew.
    return "1h" if "1h" in costs and costs["1h"] < _CLEARLY * costs["5m"] else "5m"


_CLEARLY = 0.95


def _call_cost(cold: float, prices: CallPrices, prompt: int, added: float) -> float:
    return cold * prices.cache_write * (prompt + added) + (1 - cold) * (
        prices.cache_read * prompt + prices.cache_write * added
    )


def price_in_view(prices: CallPrices, forecast: CallForecast) -> float:
    """What a token that stays in view is expected to cost over the coming day."""
    return _carrying(prices, forecast) * forecast.calls


def _carrying(prices: CallPrices, forecast: CallForecast) -> float:
    """What a token in view costs a call: P(r + g(w - r))."""
    return prices.cache_read + forecast.cold_share * (prices.cache_write - prices.cache_read)


def _distance(cost: float, prices: CallPrices, forecast: CallForecast) -> float:
    """The tokens that are added between two compactions of that cost."""
    carrying = max(_carrying(prices, forecast), 1e-12)
    added = max(forecast.added, 1.0)
    return added * sqrt(2 * cost / (added * carrying))
