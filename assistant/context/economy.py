"""Decides whether to compact a context to save money, when, and to which size. Pure: used by both the runtime and the
simulator (`make economy`).

Of N tokens in view, D = N - S are removed and S remain. P is the price of an input token; w and r are the prices of
cache writes and reads as multiples of P; p and o are the input and output prices of the model that writes summaries; s
is the length of a summary. Then:
- Cold (the cache has expired and the prompt is written again anyway): compacting costs pD + os and saves wPD on the
  next call, so it pays at once if D(wP - p) > os.
- Warm: the prompt after the frame must be rewritten too, which costs pD + os + (w - r)PS and saves rPD per call. It
  pays if the number of calls until the cache is cold exceeds the quotient.
- The optimal distance between compactions is about n = sqrt(2R / (aP(r + g(w - r)))) calls, where a call adds a tokens,
  a share g of the calls is cold, and one compaction costs R: sooner, summaries cost more than they save; later, the
  carried context does.

Cost alone would keep as little as possible; the minimum is what has to stay: the frame, the newest messages in full,
room for the user's text, open requests and summaries. Without known prices, everything is counted in input tokens.
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
    """Prices per token of the answering model (with its cache) and of the one that writes summaries, in US dollars if
    known, else in input tokens of the answering model."""

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
    frame: int  # the part of `prompt` around the history
    recent: int  # the part of `prompt` that must stay: the newest messages
    window: int  # the effective context
    target: float  # share of the context in use after a compaction
    summary: int  # maximum length of one summary


@dataclass(frozen=True, slots=True)
class CallForecast:
    """The forecast for the coming day."""

    calls: float
    cold_share: float  # share of calls with a cold cache
    added: float  # tokens added per call

    @property
    def calls_until_cold(self) -> float:
        """Expected number of calls with a warm cache before the next cold one."""
        return (1.0 - self.cold_share) / max(self.cold_share, 0.001)


@dataclass(frozen=True, slots=True)
class EconomyDecision:
    """What to do. `prepare`: make the summary now and commit it once the cache is cold. `size` is the context to plan a
    compaction for; `saving` is net of `cost`, over the coming day."""

    step: EconomyStep
    size: int
    removed: int = 0  # tokens
    cost: float = 0.0
    saving: float = 0.0


# Minimum planned context, and the share of the newest messages it has room for.
_LEAST_CONTEXT: Mapping[EconomyMode, int] = {"off": 0, "balanced": 20_000, "thrifty": 14_000}
_RECENT_SHARE: Mapping[EconomyMode, float] = {"off": 1.0, "balanced": 1.0, "thrifty": 0.5}
# Detail has value too: fewer tokens than this are never removed for money.
_LEAST_REMOVED: Mapping[EconomyMode, int] = {"off": 0, "balanced": 1_600, "thrifty": 1_000}


def decide(
    context: ContextState, prices: CallPrices, forecast: CallForecast, mode: EconomyMode, *, is_cold: bool
) -> EconomyDecision:
    """Return what to do now, when nobody is waiting."""
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
    """Return the context size that compactions plan for: small, with room for everything that has to stay."""
    needed = (context.frame + _RECENT_SHARE[mode] * context.recent + context.summary) / context.target
    return min(context.window, max(_LEAST_CONTEXT[mode], int(needed)))


def choose_cache_lifetime(
    rhythm: Rhythm, prices: Mapping[CacheLifetime, CallPrices], prompt: int, added: float
) -> CacheLifetime:
    """Return the cache lifetime to request: an hour if the user's rhythm makes that cheaper."""
    costs = {
        lifetime: _call_cost(rhythm.share_longer(LIFETIME_SECONDS[lifetime]), price, prompt, added)
        for lifetime, price in prices.items()
    }
    # Requires a clear advantage: each change rewrites the cache.
    return "1h" if "1h" in costs and costs["1h"] < _CLEARLY * costs["5m"] else "5m"


_CLEARLY = 0.95


def _call_cost(cold: float, prices: CallPrices, prompt: int, added: float) -> float:
    return cold * prices.cache_write * (prompt + added) + (1 - cold) * (
        prices.cache_read * prompt + prices.cache_write * added
    )


def price_in_view(prices: CallPrices, forecast: CallForecast) -> float:
    """Return the expected cost of a token in view over the coming day."""
    return _carrying(prices, forecast) * forecast.calls


def _carrying(prices: CallPrices, forecast: CallForecast) -> float:
    """Return the cost per call of a token in view: P(r + g(w - r))."""
    return prices.cache_read + forecast.cold_share * (prices.cache_write - prices.cache_read)


def _distance(cost: float, prices: CallPrices, forecast: CallForecast) -> float:
    """Return the optimal number of tokens added between compactions of this cost."""
    carrying = max(_carrying(prices, forecast), 1e-12)
    added = max(forecast.added, 1.0)
    return added * sqrt(2 * cost / (added * carrying))
