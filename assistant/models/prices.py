"""List prices of models, read from `config/prices.toml` into a frozen table. Pure but for `load_prices`.

A model without an entry has no price, and none is guessed: its use is counted in tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assistant.core.errors import SettingsError
from assistant.core.messages import Usage
from assistant.core.text import lazy_regex

MILLION = 1_000_000
OPENAI_URL = "https://api.openai.com/v1"
_DATE_SUFFIX = lazy_regex(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rates(_Table):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float = Field(ge=0)
    cache_write: float = Field(ge=0)

    def cost(self, usage: Usage) -> float:
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / MILLION


class LongRates(Rates):
    above: int = Field(gt=0)


class Price(Rates):
    """What one model costs."""

    long: LongRates | None = None  # for a whole request whose prompt is longer than `long.above` tokens
    window: int | None = Field(default=None, gt=0)  # longest prompt, where the provider's API does not report it

    def rates(self, prompt: int) -> Rates:
        return self.long if self.long is not None and prompt > self.long.above else self

    def cost_of_call(self, usage: Usage) -> float:
        """US dollars for what a call used."""
        return self.rates(usage.prompt).cost(usage)

    def worst_case(self, prompt: int, max_output: int) -> float:
        """US dollars if nothing is read from the cache, all is written to it, and the answer takes all it may."""
        rates = self.rates(prompt)
        return (prompt * max(rates.input, rates.cache_write) + max_output * rates.output) / MILLION


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
            provider: Prices({name: Price.model_validate(entry) for name, entry in models.items()}, as_of)
            for provider, models in raw.items()
        }
    except (OSError, KeyError, AttributeError, tomllib.TOMLDecodeError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"{path} cannot be used as a table of prices: {reason}. Nothing was started.") from None
