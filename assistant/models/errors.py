"""What went wrong with a call, as a `ModelError`: the kind that decides what happens next, and one line to read. Pure.

Both adapters put their SDK's exceptions into a `ProviderFault` first; `provider_errors.toml` says what a status, a
type, a code or a wording means. After a stream has begun the status is 200 whatever happens, so the type is asked
before the status.

Providers have no common code for a request that is too large, so their codes, types, stop reasons and wordings are all
known here. Two look-alikes are kept out: a rate limit counted in tokens (waiting helps, compacting does not), and a cap
on the *answer* that is set too high (a smaller prompt does not help). An error that adds both up counts when the prompt
is what fills the window.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError, ModelErrorKind
from assistant.core.messages import Usage
from assistant.core.network_errors import describe_connection_error
from assistant.core.text import shorten_line
from assistant.models.encoding import MalformedProviderData

ERRORS_FILE = Path(__file__).with_name("provider_errors.toml")
_MAX_REASON_CHARACTERS = 240
# The same words would end in the same way.
_NEVER_ASKED_AGAIN = ("refusal", "budget")


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """What `provider_errors.toml` holds."""

    types: Mapping[str, ModelErrorKind]
    statuses: Mapping[str, ModelErrorKind]
    headlines: Mapping[ModelErrorKind, str]
    advice: Mapping[ModelErrorKind, str]  # the kind that tells a person most first
    codes: Mapping[str, frozenset[str]]
    patterns: Mapping[str, re.Pattern[str]]


@cache
def read_error_table() -> ErrorTable:
    """Return the kinds of errors, and the words for them, that provider_errors.toml holds."""
    from sleep.rules.pattern_files import compile_patterns

    data = tomllib.loads(ERRORS_FILE.read_text(encoding="utf-8"))
    codes = {name: frozenset(codes) for name, codes in data["codes"].items()}
    patterns = compile_patterns(ERRORS_FILE.stem, data)
    return ErrorTable(data["types"], data["statuses"], data["headlines"], data["advice"], codes, patterns)


def advise(kind: ModelErrorKind, *, asked: bool) -> str:
    """What to do, without a full stop; `asked`: the person's message was not answered, so that they can ask again."""
    again = ", then type `/retry`" if asked and kind not in _NEVER_ASKED_AGAIN else ""
    return read_error_table().advice[kind] + again


class StreamBroken(ModelError):
    """The answer broke off after the provider had begun to bill it. Your message is kept.

    `usage` is what is known to be billed: the prompt where the provider said so (else 0), and the answer so far."""

    def __init__(self, text: str, *, kind: ModelErrorKind, provider: str, partial: str, usage: Usage) -> None:
        super().__init__(text, kind=kind, provider=provider, partial=partial)
        self.usage = usage


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """What is known of an answer when it breaks off."""

    begun: bool = False  # the provider has started to answer, and to bill
    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ProviderLabel:
    provider: str  # its name in code
    label: str  # as a person knows it ("Anthropic", "localhost:11434")


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """A provider's error reply."""

    status: int
    types: tuple[str, ...]  # its type and code, the most telling first
    message: str
    raw: object  # the SDK's exception, asked for overflow wording only
    retry_after: float | None = None  # seconds

    @property
    def kind(self) -> ModelErrorKind:
        """Decided by the first of these that says something: the size, the credit, the error's type, the HTTP
        status."""
        table = read_error_table()
        if is_too_large(self.raw):
            return "overflow"
        texts = " ".join((self.message, *self.types))
        if self.status in (400, 402, 403, 429) and table.patterns["out_of_credit"].search(texts):
            return "no_credit"
        by_type = next((table.types[name] for name in self.types if name in table.types), None)
        return by_type or table.statuses.get(str(self.status)) or _kind_of_unknown_status(self.status)

    def to_model_error(self, provider: ProviderLabel, partial: PartialAnswer) -> ModelError:
        """Return the error with a headline for people, what had been streamed, and how long the provider asks to
        wait."""
        headline = read_error_table().headlines[self.kind].format(who=provider.label)
        return _error(headline, self.message, self.kind, provider, partial, self.retry_after)


def _kind_of_unknown_status(status: int) -> ModelErrorKind:
    if status < 400:
        return "network"
    return "overload" if status >= 500 else "bad_request"


def connection_lost_error(provider: ProviderLabel, reason: str, partial: PartialAnswer) -> ModelError:
    """No connection, a broken one, a silent one, or bytes that are no answer."""
    headline = f"{provider.label} broke off in mid-answer" if partial.begun else f"{provider.label} cannot be reached"
    return _error(headline, reason, "network", provider, partial)


def connection_lost_reason(error: Exception, timeouts: tuple[type[Exception], ...], stall_seconds: float) -> str:
    """What broke a connection, in words; `timeouts` are the SDK's and its HTTP client's."""
    if isinstance(error, timeouts):
        return f"nothing came for {stall_seconds:g} seconds"
    if isinstance(error, ValueError | RecursionError) and not isinstance(error, MalformedProviderData):
        return "it sent something that is no answer"
    return describe_connection_error(error.__cause__ or error)


def _error(
    headline: str,
    reason: str,
    kind: ModelErrorKind,
    provider: ProviderLabel,
    partial: PartialAnswer,
    retry_after: float | None = None,
) -> ModelError:
    text = f"{headline}: {shorten_reason(reason)}"
    if partial.begun:
        return StreamBroken(text, kind=kind, provider=provider.provider, partial=partial.text, usage=partial.usage)
    return ModelError(text, kind=kind, provider=provider.provider, retry_after=retry_after)


def shorten_reason(text: str) -> str:
    return shorten_line(text, _MAX_REASON_CHARACTERS)


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a provider asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime  # seven modules, which few servers make necessary

    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


# ------------------------------------------------------------------------------------------------------------- overflow


def is_context_length_error(error: object) -> bool:
    """Whether `error` says that the prompt does not fit the model's window.

    `error`: an exception of an SDK, a decoded error body, a stop reason or a plain text, of Anthropic, OpenAI, Gemini,
    Mistral, Ollama, llama.cpp, vLLM, Bedrock and others that speak like them."""
    table, texts = read_error_table(), list(_texts(error))
    if _status(error) == 429:
        return False
    if table.codes["window"].intersection(texts):
        return True
    whole = " ".join(texts)
    if table.patterns["rate"].search(whole):
        return False
    if table.patterns["output_cap"].search(whole):
        return _prompt_fills_window(whole)
    return table.patterns["too_long"].search(whole) is not None


def is_too_large(error: object) -> bool:
    """Whether the request is over any of the three budgets: tokens, bytes or images (F17)."""
    if is_context_length_error(error) or _status(error) == 413:
        return True
    if _status(error) == 429:
        return False
    table, texts = read_error_table(), list(_texts(error))
    if table.codes["bytes"].intersection(texts):
        return True
    whole = " ".join(texts)
    return any(table.patterns[name].search(whole) for name in ("too_many_images", "too_many_bytes"))


def _prompt_fills_window(text: str) -> bool:
    """The prompt alone takes more than half of the window."""
    patterns = read_error_table().patterns
    prompt, window = patterns["prompt_of_sum"].search(text), patterns["window"].search(text)
    return bool(prompt and window and int(prompt[1] or prompt[2]) * 2 > int(window[1]))


def _status(error: object) -> int | None:
    status = error.get("status_code") if isinstance(error, Mapping) else getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _texts(error: object) -> Iterator[str]:
    """Every text in an error: its words, and the values of its body at any depth."""
    if isinstance(error, BaseException):
        yield str(error)
        for name in ("body", "code", "type", "error_code"):
            yield from _texts(getattr(error, name, None))
    else:
        yield from _strings(error)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
