"""What goes to a model and what comes back, independent of the provider; and what a call costs. Frozen values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelErrorKind
from assistant.core.messages import Message, Usage
from assistant.core.notices import Notice


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One piece of the system prompt."""

    text: str
    cache_boundary: bool = False  # asks the provider to cache the prompt up to here


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool."""

    name: str
    description: str
    schema: Mapping[str, Any]  # a JSON Schema of type object


CacheLifetime = Literal["5m", "1h"]
"""How long a provider is asked to keep what it caches of a prompt, from each reading on."""


PromptPart = Literal["tools", "rules", "summary", "history", "new", "recalled", "answer"]
"""What a call's tokens are for: `new` is what the turn adds itself, `recalled` what is sent with it and not kept,
`answer` what came out."""

PromptParts = tuple[tuple[PromptPart, int], ...]
"""The parts of a prompt in their order, and about how many tokens each takes; a part may come twice."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One well-formed model request (I5), independent of the provider."""

    system: tuple[SystemBlock, ...]
    messages: tuple[Message, ...]  # already normalised
    tools: tuple[ToolSpec, ...] = ()
    # Indexes into `messages`: the prompt up to and including that message is worth caching; at most three.
    cache_boundaries: tuple[int, ...] = ()
    max_output_tokens: int = 4096
    cache_lifetime: CacheLifetime = "5m"
    parts: PromptParts = ()  # as far as whoever made it knows them


StopReason = Literal["end", "tool_calls", "max_tokens", "refusal", "overflow"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as it is written; provisional until the `ModelReply`."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a model did not answer."""

    model: str  # its provider and name
    name: str  # as people know it
    kind: ModelErrorKind
    reason: str  # what happened, as part of a sentence


@dataclass(frozen=True, slots=True)
class Fallback:
    """Why another model answered than the first one."""

    failures: tuple[ModelFailure, ...]  # those that could not, at least one, in the order in which they were asked
    answering: str  # who answered, as people know them


NO_OUTAGE_KINDS: tuple[ModelErrorKind, ...] = ("overflow", "refusal", "budget")
"""Failures of one request, which say nothing of the next."""


@dataclass(frozen=True, slots=True)
class ModelOutage:
    """A model that does not answer."""

    model: str  # its provider and name
    name: str  # as people know it
    kind: ModelErrorKind
    reason: str  # what happened last, as part of a sentence
    began_at: datetime


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The end of a model call: the whole assistant message and what it cost."""

    message: Message  # `message.model` names the model that answered
    usage: Usage
    stop: StopReason
    estimated: bool = False  # the provider reported no usage
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """How an answer comes about (a retry, a fallback), in one line for those who look on; `notice` is for the person,
    wherever they are."""

    text: str = ""
    restarted: bool = False  # what was streamed so far is withdrawn, the answer begins anew
    over_budget: str = ""  # why the budget kept a model from answering, in a sentence
    notice: Notice | None = None


ModelEvent = TextDelta | ModelNotice | ModelReply


# Beyond this many tokens recall degrades and cost grows, however large the window is; fixed numbers of tokens in the
# settings are meant for a context of this size, and shrink with a smaller one.
FULL_CONTEXT_TOKENS = 160_000


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """How large one request to a model may be."""

    window: int  # tokens
    max_output: int  # tokens
    max_bytes: int  # of the request body
    max_images: int
    source: str = "default"  # where the window comes from: "provider", "settings", "table", "default"


CallPurpose = Literal[
    "chat",
    "schedule",
    "summary",
    "sleep_summary",
    "extraction",
    "scoring",
    "consolidation",
    "embedding",
    "check",
    "transcription",
]
"""What a call is for. A `schedule` is a turn that a scheduled prompt opened; a `sleep_summary` is one that nobody waits
for, a `summary` one before an answer, or by a command; `check` is the first call of a set-up."""

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
    """What is known of a model call before it is made."""

    purpose: CallPurpose
    provider: str
    model: str
    input_tokens: int  # an estimate of the prompt
    max_output: int  # the cap on the answer, in tokens
    usd: float | None  # worst-case price, None where no price is known
    session: str | None = None
    turn: str | None = None
    fingerprint: str = ""  # the same for the same request in the background; "" where repeats are no fault


# What sums of spending are grouped by.
UsageKey = Literal["day", "model", "kind", "session", "part"]


@dataclass(frozen=True, slots=True)
class SpendTotals:
    """Sums over a period; reservations not settled count at their worst case. `failed` are attempts that no model
    answered, which are no calls."""

    calls: int
    usage: Usage
    usd: float
    tokens: int
    unpriced_tokens: int  # of calls whose price is unknown
    failed: int = 0


def request_fingerprint(request: ModelRequest, purpose: CallPurpose, model: str) -> str:
    """A few letters that are the same for the same request."""
    return text_fingerprint(
        purpose, model, [*(block.text for block in request.system), *map(_message_json, request.messages)]
    )


def text_fingerprint(purpose: CallPurpose, model: str, texts: Iterable[str]) -> str:
    """The same for the same texts."""
    digest = hashlib.sha256(f"{purpose}\0{model}\0".encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:_FINGERPRINT_LENGTH]


def _message_json(message: Message) -> str:
    calls = [[call.name, dict(call.arguments)] for call in message.tool_calls]
    return json.dumps([message.role, message.content, calls], sort_keys=True, default=str)


_FINGERPRINT_LENGTH = 24
