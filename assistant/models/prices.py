"""List prices of models, read from `config/prices.toml` into a frozen table. Pure but for `load_prices`.

A model without an entry has no price, and none is guessed: its use is counted in tokens.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable, InvalidTable
from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError
from assistant.core.messages import Usage
from assistant.core.model_api import CacheLifetime, ModelRequest
from assistant.core.ports import Model
from assistant.core.text import lazy_regex

MILLION = 1_000_000
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
_DATE_SUFFIX = lazy_regex(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


EstimateTokens = Callable[[ModelRequest, str], int]
"""The whole prompt of a request, as the model of that name is expected to bill it."""


_Dollars = Annotated[float, Meta(ge=0)]
_Tokens = Annotated[int, Meta(ge=1)]


class Rates(CheckedTable, frozen=True):
    """US dollars per million tokens."""

    input: _Dollars
    output: _Dollars
    cache_read: _Dollars
    cache_write: _Dollars  # kept for five minutes
    cache_write_hour: _Dollars | None = None  # kept for an hour; None where nobody offers that

    def write_rate(self, lifetime: CacheLifetime) -> float:
        """US dollars per million tokens written to the cache for this lifetime."""
        return self.cache_write if lifetime == "5m" or self.cache_write_hour is None else self.cache_write_hour

    def cost(self, usage: Usage) -> float:
        """Return US dollars."""
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + (usage.cache_write - usage.cache_write_hour) * self.write_rate("5m")
            + usage.cache_write_hour * self.write_rate("1h")
        ) / MILLION


class LongRates(Rates, frozen=True, kw_only=True):
    above: _Tokens


class Price(Rates, frozen=True):
    """What one model costs."""

    long: LongRates | None = None  # for a whole request whose prompt is longer than `long.above` tokens
    window: _Tokens | None = None  # longest prompt, where the provider's API does not report it

    def rates(self, prompt: int) -> Rates:
        """Return the rates of a prompt of so many tokens, cached ones included: long prompts may cost more."""
        return self.long if self.long is not None and prompt > self.long.above else self

    def cost_of_call(self, usage: Usage) -> float:
        """US dollars for what a call used."""
        return self.rates(usage.prompt).cost(usage)

    def worst_case(self, prompt: int, max_output: int, lifetime: CacheLifetime = "5m") -> float:
        """US dollars if nothing is read from the cache, all is written to it, and the answer takes all it may."""
        rates = self.rates(prompt)
        return (prompt * max(rates.input, rates.write_rate(lifetime)) + max_output * rates.output) / MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one provider's models by name."""

    models: Mapping[str, Price] = field(default_factory=dict)
    as_of: date | None = None

    def price_for_model(self, model: str) -> Price | None:
        """By its exact name, else by the name before a date."""
        return self.models.get(model) or self.models.get(_DATE_SUFFIX.sub("", model))


def is_hosted_by_openai(base_url: str) -> bool:
    """Whether OpenAI's prices apply at an address; "" is OpenAI's own."""
    host = urlsplit(base_url or OPENAI_URL).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


@cache
def load_prices(path: Path) -> Mapping[str, Prices]:
    """The tables of the file by provider, read once a process. Raises `SettingsError` naming what is wrong with it."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        as_of = raw.pop("as_of")
        return {
            provider: Prices({name: Price.from_values(entry) for name, entry in models.items()}, as_of)
            for provider, models in raw.items()
        }
    except (OSError, KeyError, AttributeError, tomllib.TOMLDecodeError, InvalidTable) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"{path} cannot be used as a table of prices: {reason}. Nothing was started.") from None


def cost_usd_of_call(prices: Mapping[str, Prices], provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for what a call used; None where no price is known. Offline mode costs nothing."""
    if provider == "offline":
        return 0.0
    price = prices.get(provider, Prices()).price_for_model(model)
    return None if price is None else price.cost_of_call(usage)


def find_price_rise(prices: Mapping[str, Prices], provider: str, model: str) -> int | None:
    """From how many tokens of a prompt on the whole request costs more; None where it never does, or nobody knows."""
    price = prices.get(provider, Prices()).price_for_model(model)
    return price.long.above if price is not None and price.long is not None else None


def worst_case_usd(
    prices: Mapping[str, Prices], estimate_tokens: EstimateTokens, model: Model, request: ModelRequest
) -> float | None:
    """US dollars that a call may cost at most; None where no price is known."""
    price = prices.get(model.provider, Prices()).price_for_model(model.name)
    if price is None:
        return None
    tokens = estimate_tokens(request, model.name)
    return price.worst_case(tokens, request.max_output_tokens, request.cache_lifetime)
