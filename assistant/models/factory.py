"""From settings to the chain of models that answers: each remote model metered, the built-in one last as configured.

An SDK costs a second to import, so each is imported when its provider is first asked, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant.core.messages import Usage
from assistant.core.ports import LedgerPort, Model, ModelFactsPort
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import EstimateTokens, LazyModel, MeteredModel, TracedModel
from assistant.models.prices import Prices, is_hosted_by_openai, load_prices
from assistant.settings.settings import Settings, shipped_config_dir

PRICES_FILE = "prices.toml"
# Who answers where `model.name` is empty; an OpenAI-compatible address is asked for its first model instead.
DEFAULT_MODEL_NAMES = {"anthropic": "claude-sonnet-5-5"}
# Who writes summaries where `compaction.summary_model` is empty; elsewhere whoever answers does.
SUMMARY_MODEL_NAMES = {"anthropic": "claude-haiku-5-5"}


@dataclass(frozen=True, slots=True)
class ModelDeps:
    """What models are made with. Paid calls are metered in `ledger`, their prompts estimated by `tokens_of`; `offline`
    makes the built-in model, which is neither metered nor paid for. `sleep` waits before a call is tried again."""

    ledger: LedgerPort
    model_facts: ModelFactsPort
    estimate_tokens: EstimateTokens
    clock: Callable[[], datetime]
    make_offline: Callable[[], Model]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    prices_file: Path = field(default_factory=lambda: shipped_config_dir() / PRICES_FILE)
    tracer: Tracer = NULL_TRACER


def build_model_chain(settings: Settings, deps: ModelDeps) -> Model:
    """The models of `settings.model` in order, without repetition. A fallback whose key is missing is left out.

    Raises `SettingsError` for an unusable table of prices."""
    prices = load_prices(deps.prices_file)
    chain = [_made(provider, name, settings, deps, prices) for provider, name in _wanted(settings)]
    return _failing_over(chain, settings, deps)


def build_summary_model(settings: Settings, deps: ModelDeps) -> Model:
    """The economical model that writes summaries and journal entries: one model, tried as often as any other, and
    nobody instead of it, since what can be done without a model is done without a model.

    Raises `SettingsError` for an unusable table of prices."""
    prices = load_prices(deps.prices_file)
    provider, _, name = settings.values.compaction.summary_model.partition(":")
    if not provider:
        provider = settings.provider
        name = SUMMARY_MODEL_NAMES.get(provider, settings.values.model.name)
    made = _made(provider, name, settings, deps, prices)
    return made if provider == "offline" else _failing_over([made], settings, deps)


def cost_usd_of_call(prices: Mapping[str, Prices], provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for what a call used; None where no price is known. The built-in model costs nothing."""
    if provider == "offline":
        return 0.0
    price = prices.get(provider, Prices()).price_for_model(model)
    return None if price is None else price.cost_of_call(usage)


def _wanted(settings: Settings) -> list[tuple[str, str]]:
    """(provider, name) of each model, the first one first."""
    model = settings.values.model
    first = (settings.provider, "" if settings.provider == "offline" else model.name)
    rest = [(entry.partition(":")[0], entry.partition(":")[2]) for entry in model.fallback]
    usable = {
        "anthropic": bool(settings.anthropic_key.get_secret_value()),
        "openai": bool(settings.openai_url or settings.openai_key.get_secret_value()),
        "offline": True,
    }
    return list(dict.fromkeys([first, *(entry for entry in rest if usable[entry[0]])]))


def _failing_over(chain: list[Model], settings: Settings, means: ModelDeps) -> Model:
    wanted = settings.values.model
    return FailoverModel(chain, RetryPolicy(wanted.retries, wanted.max_retry_wait_seconds), sleep=means.sleep)


def _made(provider: str, name: str, settings: Settings, means: ModelDeps, prices: Mapping[str, Prices]) -> Model:
    """One model, traced; a remote one is loaded when it is first asked, and metered."""
    if provider == "offline":
        return TracedModel(means.make_offline(), means.tracer)
    name = name or DEFAULT_MODEL_NAMES.get(provider, "")

    def load() -> Model:
        model, table = _remote(provider, name, settings, means, prices)
        return MeteredModel(model, means.ledger, table, means.estimate_tokens, means.clock)

    return TracedModel(LazyModel(provider, name, load), means.tracer)


def _remote(
    provider: str, name: str, settings: Settings, means: ModelDeps, prices: Mapping[str, Prices]
) -> tuple[Model, Prices]:
    """The adapter of a provider, and the prices that hold there."""
    common: dict[str, Any] = {
        "clock": means.clock,
        "facts": means.model_facts,
        "stall_seconds": settings.values.model.stall_seconds,
    }
    # A provider's SDK takes a second to import: only when a model is first asked.
    if provider == "anthropic":
        from assistant.models.anthropic import AnthropicModel

        key, address = settings.anthropic_key.get_secret_value(), settings.anthropic_url
        thinking = settings.values.model.thinking
        return AnthropicModel(name, key, base_url=address, thinking=thinking, **common), prices.get(provider, Prices())
    from assistant.models.openai import OpenAIModel

    key, address = settings.openai_key.get_secret_value(), settings.openai_url
    table = prices.get(provider, Prices()) if is_hosted_by_openai(address) else Prices()
    price = table.price_for_model(name)
    window = price.window if price else None
    return OpenAIModel(name, key, base_url=address, known_window=window, **common), table
