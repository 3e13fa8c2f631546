"""Provider-independent requests to models, their replies, and the cost of calls. Frozen."""

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

OFFLINE_MODEL = "offline"
"""The name of the offline mode, as a model and as its provider."""


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of the system prompt."""

    text: str
    cache_boundary: bool = False  # asks the provider to cache the prompt up to here


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's declaration as sent to the model."""

    name: str
    description: str
    schema: Mapping[str, Any]  # a JSON Schema of type object


CacheLifetime = Literal["5m", "1h"]
"""The requested lifetime of a provider's prompt cache, renewed on each read."""


PromptPart = Literal["tools", "rules", "summary", "history", "new", "recalled", "answer"]
"""What a call's tokens are for: `new` is what the turn adds, `recalled` is sent with it but not kept, `answer` is the
output."""

PromptParts = tuple[tuple[PromptPart, int], ...]
"""The parts of a prompt in order, with approximate token counts; a part may occur twice."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One well-formed, provider-independent model request (I5)."""

    system: tuple[SystemBlock, ...]
    messages: tuple[Message, ...]  # already normalised
    tools: tuple[ToolSpec, ...] = ()
    # Indexes into `messages`; the prompt up to and including each is worth caching. At most three.
    cache_boundaries: tuple[int, ...] = ()
    max_output_tokens: int = 4096
    cache_lifetime: CacheLifetime = "5m"
    parts: PromptParts = ()  # as far as the builder knows them


StopReason = Literal["end", "tool_calls", "max_tokens", "refusal", "overflow"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of streamed text; provisional until the `ModelReply`."""

    text: str


@dataclass(frozen=True, slots=True)
class HiddenProgress:
    """A piece of an answer that nobody is shown, and that is billed all the same: thinking, arguments of tools."""

    characters: int


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a model did not answer."""

    model: str  # provider and name
    name: str  # display name
    kind: ModelErrorKind
    reason: str  # as part of a sentence


@dataclass(frozen=True, slots=True)
class Fallback:
    """Why a model other than the first one answered."""

    failures: tuple[ModelFailure, ...]  # at least one, in the order of the attempts
    answering: str  # display name of the model that answered


NO_OUTAGE_KINDS: tuple[ModelErrorKind, ...] = ("overflow", "refusal", "budget")
"""Failure kinds that concern a single request only, not the next one."""


@dataclass(frozen=True, slots=True)
class ModelOutage:
    """A model that is currently not answering."""

    model: str  # provider and name
    name: str  # display name
    kind: ModelErrorKind
    reason: str  # the latest, as part of a sentence
    began_at: datetime


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The end of a model call: the complete assistant message and its cost."""

    message: Message  # `message.model` names the model that answered
    usage: Usage
    stop: StopReason
    estimated: bool = False  # the provider reported no usage
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Progress of a call (a retry, a fallback) in one line for live clients; `notice` is sent to the person wherever
    they are."""

    text: str = ""
    restarted: bool = False  # discard the text streamed so far; the answer restarts
    over_budget: str = ""  # why the budget blocked a model, as a sentence
    notice: Notice | None = None


ModelEvent = TextDelta | HiddenProgress | ModelNotice | ModelReply

# Far above what any model answers. A server that never ends, or calls tools without end, would otherwise fill the
# memory, and block the event loop in every step of the turn.
MAX_ANSWER_CHARACTERS = 2_000_000
MAX_CALLS_IN_ANSWER = 100


# Beyond this many tokens recall degrades and cost grows, however large the window is. Token counts in the settings are
# meant for a context of this size, and scale down with a smaller one.
FULL_CONTEXT_TOKENS = 160_000


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Size limits of one request to a model."""

    window: int  # tokens
    max_output: int  # tokens
    max_bytes: int  # of the request body
    max_images: int
    source: str = "default"  # of the window: "provider", "settings", "table", "default"


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
    "speech",
]
"""What a call is for. `schedule`: a turn started by a scheduled prompt; `sleep_summary`: a summary in the background;
`summary`: one before an answer or by a command; `check`: the first call of set-up."""

BACKGROUND_PURPOSES: frozenset[CallPurpose] = frozenset(
    ("schedule", "sleep_summary", "extraction", "scoring", "consolidation", "embedding")
)
"""Background calls; they may use a share of the budget (`budget.background_share`)."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A pending model call, counted at its worst case until it is settled."""

    id: int
    usd: float | None
    tokens: int
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What is known of a model call in advance."""

    purpose: CallPurpose
    provider: str
    model: str
    input_tokens: int  # estimated prompt size
    max_output: int  # output cap in tokens
    usd: float | None  # worst case; None if no price is known
    session: str | None = None
    turn: str | None = None
    fingerprint: str = ""  # identifies repeated background requests; "" if repeats are normal


# Grouping keys of spending reports.
UsageKey = Literal["day", "model", "kind", "session", "part"]


@dataclass(frozen=True, slots=True)
class SpendTotals:
    """Sums over a period; unsettled reservations count at their worst case. `failed` counts unanswered attempts, which
    are not in `calls`."""

    calls: int
    usage: Usage
    usd: float
    tokens: int
    unpriced_tokens: int  # of calls without a known price
    failed: int = 0


def request_fingerprint(request: ModelRequest, purpose: CallPurpose, model: str) -> str:
    """Return a short hash of a request, to detect repetitions."""
    return text_fingerprint(
        purpose, model, [*(block.text for block in request.system), *map(_message_json, request.messages)]
    )


def text_fingerprint(purpose: CallPurpose, model: str, texts: Iterable[str]) -> str:
    """Return a short hash of texts, to detect repetitions."""
    digest = hashlib.sha256(f"{purpose}\0{model}\0".encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:_FINGERPRINT_LENGTH]


def _message_json(message: Message) -> str:
    calls = [[call.name, dict(call.arguments)] for call in message.tool_calls]
    return json.dumps([message.role, message.content, calls], sort_keys=True, default=str)


_FINGERPRINT_LENGTH = 24
