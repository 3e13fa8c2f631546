"""Builds the chain of models from the settings: each remote model metered, offline mode last as configured.

Importing an SDK takes a second, so each is imported when its provider is first asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest, SystemBlock
from assistant.core.ports import LedgerPort, Model, ModelFactsPort, ModelPair, OutageLog
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import EstimateTokens, Prices, is_hosted_by_openai, load_prices
from assistant.service.malloc import loaded_for_good
from assistant.settings.sections import DEFAULT_MODEL_NAMES
from assistant.settings.settings import Settings, shipped_config_dir

PRICES_FILE = "prices.toml"
_GREETER = "You are being set up as somebody's personal assistant."
_GREETING = "Say hello in one short sentence."
# Some models think before they answer a greeting.
_MAX_GREETING = 512
# Models for summaries if `compaction.summary_model` is empty; other providers use the answering model.
SUMMARY_MODEL_NAMES = {"anthropic": "claude-haiku-5-5"}


@dataclass(frozen=True, slots=True)
class ModelDeps:
    """What models are built with.

    - `ledger`, `estimate_tokens`: meter paid calls and estimate their prompts.
    - `make_offline`: builds offline mode, which is not metered and free.
    - `outages`: records models that do not answer.
    - `sleep`: waits before a retry.
    """

    ledger: LedgerPort
    model_facts: ModelFactsPort
    estimate_tokens: EstimateTokens
    clock: Callable[[], datetime]
    make_offline: Callable[[], Model]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    outages: OutageLog | None = None
    prices_file: Path = field(default_factory=lambda: shipped_config_dir() / PRICES_FILE)
    tracer: Tracer = NULL_TRACER


def build_models(settings: Settings, deps: ModelDeps) -> ModelPair:
    """Build all models; outages of models no longer used are deleted. Raises `SettingsError` for an invalid price
    table."""
    pair = ModelPair(build_model_chain(settings, deps), build_summary_model(settings, deps))
    if deps.outages is not None:
        chains = (model for model in (pair.answering, pair.writing) if isinstance(model, FailoverModel))
        deps.outages.keep_only({label for chain in chains for label in chain.labels})
    return pair


def build_model_chain(settings: Settings, deps: ModelDeps) -> Model:
    """Return the models of `settings.model` in order, without repetition. A fallback without a key is left out.

    Raises `SettingsError` for an invalid price table.
    """
    prices = load_prices(deps.prices_file)
    chain = [_build_model(provider, name, settings, deps, prices) for provider, name in _configured_models(settings)]
    return _with_failover(chain, settings, deps)


def build_summary_model(settings: Settings, deps: ModelDeps) -> Model:
    """Return the economical model for summaries and journal entries: one model without a fallback, since callers can
    work without a model.

    Raises `SettingsError` for an invalid price table.
    """
    prices = load_prices(deps.prices_file)
    provider, _, name = settings.values.compaction.summary_model.partition(":")
    if not provider:
        provider = settings.provider
        name = SUMMARY_MODEL_NAMES.get(provider, settings.values.model.name)
    model = _build_model(provider, name, settings, deps, prices)
    return model if provider == "offline" else _with_failover([model], settings, deps)


def list_model_choices(settings: Settings, deps: ModelDeps) -> Mapping[str, str]:
    """Return what `/model` accepts, with descriptions. Models of a provider without a key or an address are left
    out."""
    usable, tables = _usable_providers(settings), load_prices(deps.prices_file)
    configured = [":".join(filter(None, entry)) for entry in _configured_models(settings)]
    # A model without a price for answers only embeds texts.
    priced = [
        f"{provider}:{name}"
        for provider, prices in tables.items()
        for name, price in prices.models.items()
        if usable[provider] and price.output
    ]
    return {
        "auto": "What the settings say",
        **dict.fromkeys(priced, ""),
        **dict.fromkeys(configured, "In your settings"),
        "offline": "Offline mode (no language model)",
    }


async def ask_test_question(settings: Settings, deps: ModelDeps) -> str:
    """Return the first configured model's answer to a greeting; "" if empty. Raises `ModelError`."""
    alone = settings.values.model.changed(fallback=(), retries=0, thinking="off")
    values = settings.values.changed(model=alone)
    model = build_model_chain(replace(settings, values=values), deps)
    request = ModelRequest((SystemBlock(_GREETER),), (Message("user", _GREETING),), max_output_tokens=_MAX_GREETING)
    answer = ""
    try:
        async with aclosing(model.stream(request, "check")) as events:
            async for event in events:
                answer = event.message.content if isinstance(event, ModelReply) else answer
    finally:
        await model.aclose()
    return answer


def _configured_models(settings: Settings) -> list[tuple[str, str]]:
    """Return (provider, name) of each model in order."""
    model = settings.values.model
    first = (settings.provider, "" if settings.provider == "offline" else model.name)
    rest = [(entry.partition(":")[0], entry.partition(":")[2]) for entry in model.fallback]
    usable = _usable_providers(settings)
    return list(dict.fromkeys([first, *(entry for entry in rest if usable[entry[0]])]))


def _usable_providers(settings: Settings) -> Mapping[str, bool]:
    return {
        "anthropic": bool(settings.anthropic_key.get_secret_value()),
        "openai": bool(settings.openai_url or settings.openai_key.get_secret_value()),
        "offline": True,
    }


def _with_failover(chain: list[Model], settings: Settings, deps: ModelDeps) -> Model:
    model = settings.values.model
    policy = RetryPolicy(model.retries, model.max_retry_wait_seconds)
    return FailoverModel(chain, policy, sleep=deps.sleep, outages=deps.outages)


def _build_model(provider: str, name: str, settings: Settings, deps: ModelDeps, prices: Mapping[str, Prices]) -> Model:
    """Return one model; a remote one is loaded when it is first asked."""
    build = partial(MeteredModel, estimate_tokens=deps.estimate_tokens, clock=deps.clock, tracer=deps.tracer)
    if provider == "offline":
        offline = deps.make_offline()
        return build(offline.provider, offline.name, lambda: (offline, Prices()), ledger=None)
    name = name or DEFAULT_MODEL_NAMES.get(provider, "")

    def load() -> tuple[Model, Prices]:
        with loaded_for_good():
            from assistant.models.connection import load_event_loop_support

            adapter = _build_adapter(provider, name, settings, deps, prices)
            load_event_loop_support()
            return adapter

    return build(provider, name, load, ledger=deps.ledger)


def _build_adapter(
    provider: str, name: str, settings: Settings, deps: ModelDeps, prices: Mapping[str, Prices]
) -> tuple[Model, Prices]:
    """Return the adapter of a provider, and its prices."""
    common: dict[str, Any] = {
        "clock": deps.clock,
        "facts": deps.model_facts,
        "stall_seconds": settings.values.model.stall_seconds,
    }
    # Importing a provider's SDK takes a second: only when a model is first asked.
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
