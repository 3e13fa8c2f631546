"""What goes to a model and what comes back, independent of the provider; and what a call costs. Frozen values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assistant.core.messages import Message, Usage


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One piece of the system prompt. `stable_edge` asks the provider to cache the prompt up to here."""

    text: str
    cache_boundary: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool. `schema` is a JSON Schema of type object."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One well-formed model request (I5), independent of the provider.

    `messages` alternate as the model saw them, already normalised. `cache_edges` are indexes into `messages`: the
    prompt up to and including that message is worth caching; at most two.
    """

    system: tuple[SystemBlock, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    cache_boundaries: tuple[int, ...] = ()
    max_output_tokens: int = 4096


StopReason = Literal["end", "tool_calls", "max_tokens", "refusal", "overflow"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as it is written; provisional until the `Reply`."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The end of a model call: the whole assistant message and what it cost.

    `message.model` names the model that answered; `estimated` is True when the provider reported no usage."""

    message: Message
    usage: Usage
    stop: StopReason
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something a person should know about how an answer came about (a retry, a fallback), in one line.

    `restarted`: what was streamed so far is withdrawn, the answer begins anew. `over_budget`: why the budget kept a
    model from answering, in a sentence; "" for anything else."""

    text: str
    restarted: bool = False
    over_budget: str = ""


ModelEvent = TextDelta | ModelNotice | ModelReply


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What one request to a model may hold: `window` and `max_output` in tokens, `max_bytes` of the request body,
    `max_images` a request. `source` says where the window comes from ("provider", "settings", "default")."""

    window: int
    max_output: int
    max_bytes: int
    max_images: int
    source: str = "default"


CallPurpose = Literal[
    "chat", "schedule", "summary", "sleep_summary", "extraction", "scoring", "consolidation", "embedding", "check"
]
"""What a call is for. A `schedule` is a turn that a scheduled prompt opened; a `sleep_summary` is one that nobody waits
for, a `summary` one before an answer, or by hand; `check` is the first call of a set-up."""

BACKGROUND_PURPOSES: frozenset[CallPurpose] = frozenset(
    ("schedule", "sleep_summary", "extraction", "scoring", "consolidation", "embedding")
)
"""Calls for which nobody waits; they may use a part of the budget (`budget.background_share`)."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A model call about to be made, counted at its worst case until it is settled."""

    id: int
    usd: float | None
    tokens: int
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What is known of a model call before it is made. `input_tokens` is an estimate of the prompt, `max_output` the
    cap on the answer; `usd` its worst-case price, None where no price is known. `fingerprint` is the same for the same
    request of the background, "" where nobody minds that it is sent again."""

    purpose: CallPurpose
    provider: str
    model: str
    input_tokens: int
    max_output: int
    usd: float | None
    session: str | None = None
    turn: str | None = None
    fingerprint: str = ""


# What sums of what was spent are told by.
UsageKey = Literal["day", "model", "kind", "session"]


@dataclass(frozen=True, slots=True)
class SpendTotals:
    """Sums over a period; reservations not settled count at their worst case. `unpriced_tokens` are the tokens of
    calls whose price is unknown."""

    calls: int
    usage: Usage
    usd: float
    tokens: int
    unpriced_tokens: int


def request_fingerprint(request: ModelRequest, purpose: CallPurpose, model: str) -> str:
    """A few letters that are the same for the same request."""
    return text_fingerprint(
        purpose, model, [*(block.text for block in request.system), *map(_message_json, request.messages)]
    )


def text_fingerprint(purpose: CallPurpose, model: str, texts: Iterable[str]) -> str:
    """The same for the same texts."""
    told = hashlib.sha256(f"{purpose}\0{model}\0".encode())
    for text in texts:
        told.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return told.hexdigest()[:_FINGERPRINT_LENGTH]


def _message_json(message: Message) -> str:
    calls = [[call.name, dict(call.arguments)] for call in message.tool_calls]
    return json.dumps([message.role, message.content, calls], sort_keys=True, default=str)


_FINGERPRINT_LENGTH = 24
