"""What went wrong with a call, in the words of this house: the kind that decides what happens next, one line to read.

Pure. Both adapters put their SDK's exceptions into a `Fault` first; what a status, a type or a code means stands here
once. After a stream has begun the status is 200 whatever happens, so the type is asked before the status.
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from assistant.core.errors import ModelError, ModelErrorKind
from assistant.core.messages import Usage
from assistant.core.text import shorten_line
from assistant.models.encoding import MalformedProviderData
from assistant.models.overflow import is_too_large

MAX_REASON_CHARACTERS = 240

_BY_TYPE: Mapping[str, ModelErrorKind] = {
    "overloaded_error": "overload",
    "api_error": "overload",
    "server_error": "overload",
    "service_unavailable_error": "overload",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "timeout_error": "network",
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "auth",
    "insufficient_quota": "auth",
    "invalid_api_key": "auth",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
}
_BY_STATUS: Mapping[int, ModelErrorKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    408: "network",
    409: "network",
    429: "rate_limit",
    499: "network",
    502: "network",
    504: "network",
}
# A provider's own spending limit or empty account comes as 400 or 429; waiting does not help, another provider does.
_OUT_OF_CREDIT = ("credit balance", "spend limit", "spending limit", "usage limits", "insufficient_quota", "billing")


class StreamBroken(ModelError):
    """The answer broke off after the provider had begun to bill it. Your message is kept.

    `usage` is what is known to be billed: the prompt where the provider said so (else 0), and the answer so far."""

    def __init__(self, text: str, *, kind: ModelErrorKind, provider: str, partial: str, usage: Usage) -> None:
        super().__init__(text, kind=kind, provider=provider, partial=partial)
        self.usage = usage


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """What is known of an answer when it breaks off. `begun`: the provider has started to answer, and to bill."""

    begun: bool = False
    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ProviderLabel:
    """The other side: its name in code, and as a person knows it ("Anthropic", "localhost:11434")."""

    provider: str
    label: str


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """A provider's error reply. `types` holds its type and code fields, the most telling first; `raw` is the SDK's
    exception, asked for overflow wording only."""

    status: int
    types: tuple[str, ...]
    message: str
    raw: object
    retry_after: float | None = None

    @property
    def kind(self) -> ModelErrorKind:
        if is_too_large(self.raw):
            return "overflow"
        if self.status in (400, 402, 403, 429) and any(sign in self._said for sign in _OUT_OF_CREDIT):
            return "auth"
        for name in self.types:
            if name in _BY_TYPE:
                return _BY_TYPE[name]
        if self.status in _BY_STATUS:
            return _BY_STATUS[self.status]
        if self.status < 400:
            return "network"
        return "overload" if self.status >= 500 else "bad_request"

    def to_model_error(self, who: ProviderLabel, partial: PartialAnswer) -> ModelError:
        headline = _HEADLINES[self.kind].format(who=who.label)
        return _error(
            f"{headline}: {shorten_line(self.message, MAX_REASON_CHARACTERS)}",
            self.kind,
            who,
            partial,
            self.retry_after,
        )

    @property
    def _said(self) -> str:
        return f"{self.message} {' '.join(self.types)}".lower()


_HEADLINES: Mapping[ModelErrorKind, str] = {
    "overflow": "The conversation is too long for {who}",
    "rate_limit": "{who} allows no more requests for now",
    "overload": "{who} is overloaded or failing",
    "auth": "{who} refuses the key or the account",
    "budget": "The budget is used up",
    "refusal": "{who} declined to answer",
    "bad_request": "{who} does not accept the request",
    "network": "{who} could not finish",
}


def connection_lost_error(who: ProviderLabel, reason: str, partial: PartialAnswer) -> ModelError:
    """No connection, a broken one, a silent one, or bytes that are no answer."""
    headline = f"{who.label} broke off in mid-answer" if partial.begun else f"{who.label} cannot be reached"
    return _error(f"{headline}: {shorten_line(reason, MAX_REASON_CHARACTERS)}", "network", who, partial)


def connection_lost_reason(error: Exception, timeouts: tuple[type[Exception], ...], stall_seconds: float) -> str:
    """What broke a connection, in words; `timeouts` are the SDK's and its HTTP client's."""
    if isinstance(error, timeouts):
        return f"nothing came for {stall_seconds:g} seconds"
    if isinstance(error, ValueError) and not isinstance(error, MalformedProviderData):
        return "it sent something that is no answer"
    return str(error.__cause__ or error) or type(error).__name__


def _error(
    text: str, kind: ModelErrorKind, who: ProviderLabel, partial: PartialAnswer, retry_after: float | None = None
) -> ModelError:
    if partial.begun:
        return StreamBroken(text, kind=kind, provider=who.provider, partial=partial.text, usage=partial.usage)
    return ModelError(text, kind=kind, provider=who.provider, retry_after=retry_after)


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a provider asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        asked = headers.get("retry-after", "")
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
