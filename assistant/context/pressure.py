"""Measures how full the context is, by three budgets (tokens, bytes, images), each enforced by providers (F17).

Pressure is the used share of the effective context, including what is about to be added and the reserve for the answer.
The provider's own count is used if it measured the current view (same prefix_rev), plus estimates for later additions;
a count of another view is ignored (F04).
"""

from __future__ import annotations

from typing import Literal

from assistant.context.structure import tool_loop_start
from assistant.context.tokens import TokenCounter
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.model_api import FULL_CONTEXT_TOKENS, ModelLimits
from assistant.core.records import ContextView

MIN_ANSWER_TOKENS = 256

BudgetKind = Literal["tokens", "bytes", "images"]


@dataclass(frozen=True, slots=True)
class PromptSize:
    """Size of a part of a request."""

    tokens: int = 0  # uncorrected count
    bytes: int = 0  # UTF-8 and base64
    images: int = 0

    def __add__(self, other: PromptSize) -> PromptSize:
        return PromptSize(self.tokens + other.tokens, self.bytes + other.bytes, self.images + other.images)

    def __sub__(self, other: PromptSize) -> PromptSize:
        return PromptSize(self.tokens - other.tokens, self.bytes - other.bytes, self.images - other.images)


EMPTY_SIZE = PromptSize()


@dataclass(frozen=True, slots=True)
class RequestBudgets:
    """Limits of a request."""

    tokens: int  # the effective context
    reserve: int  # the part of `tokens` kept free for the answer
    bytes: int  # of the whole request
    images: int  # of the whole request

    def after_overflow(self, prompt_tokens: int) -> RequestBudgets:
        """Reduce the budgets after a provider rejected a prompt of an estimated size: its window is no larger than
        that."""
        tokens = max(1, min(self.tokens, prompt_tokens))
        return RequestBudgets(tokens, self.reserve * tokens // self.tokens, self.bytes, self.images)


@dataclass(frozen=True, slots=True)
class Pressure:
    """The size of the next request, relative to the budgets."""

    prompt_tokens: int  # corrected, without the reserve
    bytes: int
    images: int
    budgets: RequestBudgets
    source: Literal["reported", "estimated"] = "estimated"  # whether most of it was counted by the provider

    @property
    def _used_and_allowed(self) -> dict[BudgetKind, tuple[int, int]]:
        return {
            "tokens": (self.prompt_tokens + self.budgets.reserve, self.budgets.tokens),
            "bytes": (self.bytes, self.budgets.bytes),
            "images": (self.images, self.budgets.images),
        }

    @property
    def shares(self) -> dict[BudgetKind, float]:
        # A model without vision is sent no pictures, so they cannot exceed the limit.
        return {kind: used / allowed if allowed else 0.0 for kind, (used, allowed) in self._used_and_allowed.items()}

    @property
    def fullest_budget(self) -> BudgetKind:
        shares = self.shares
        return max(shares, key=lambda kind: shares[kind])

    @property
    def ratio(self) -> float:
        """Share of the fullest budget: tokens, bytes or images; 1 is full."""
        return max(self.shares.values())

    def describe(self) -> str:
        """Describe the fullest budget in one line."""
        kind = self.fullest_budget
        used, allowed = self._used_and_allowed[kind]
        reserve = f" (with {self.budgets.reserve:,} kept for the answer)" if kind == "tokens" else ""
        return f"{self.ratio:.0%}, {used:,} of {allowed:,} {kind}{reserve}, {self.source}"


def effective_budgets(
    limits: ModelLimits, *, max_context_tokens: int, reserve_tokens: int, max_request_bytes: int, max_images: int
) -> RequestBudgets:
    """Return a model's effective budgets under the settings (0: the model's own limits, at most
    `FULL_CONTEXT_TOKENS`)."""
    tokens = max(1, min(limits.window, max_context_tokens or FULL_CONTEXT_TOKENS))
    reserve = min(reserve_tokens, reserve_tokens * tokens // FULL_CONTEXT_TOKENS)
    return RequestBudgets(
        tokens,
        reserve,
        max(1, min(limits.max_bytes, max_request_bytes or limits.max_bytes)),
        min(limits.max_images, max_images or limits.max_images),
    )


def measure_pressure(
    view: ContextView,
    budgets: RequestBudgets,
    counter: TokenCounter,
    fixed: PromptSize,
    adding: PromptSize = EMPTY_SIZE,
) -> Pressure:
    """Return the pressure of the next call. `fixed` is the frame (rules, persona, tools), `adding` what is about to be
    added (a volatile block, a message not in the view yet)."""
    size, images = view.bytes + fixed.bytes + adding.bytes, view.images + adding.images
    if view.reported is None or view.reported[0] != view.prefix_rev:
        tokens = counter.corrected(estimate_prompt_tokens(view, counter, fixed, adding))
        return Pressure(tokens, size, images, budgets)
    _, reported_tokens, last_id = view.reported
    since = adding.tokens
    for message in reversed(view.messages):
        if message.id is not None and message.id <= last_id:
            break
        since += counter.count_message(message) + counter.count_thinking(message)
    return Pressure(reported_tokens + counter.corrected(since), size, images, budgets, "reported")


def estimate_prompt_tokens(
    view: ContextView, counter: TokenCounter, fixed: PromptSize, adding: PromptSize = EMPTY_SIZE
) -> int:
    """Return the uncorrected token count of the whole prompt, which calibration compares with the provider's."""
    start = max(0, tool_loop_start(view.messages))
    thinking = sum(counter.count_thinking(message) for message in view.messages[start:] if message.thinking)
    return fixed.tokens + view.tokens + adding.tokens + thinking


def message_size(message: Message, counter: TokenCounter) -> PromptSize:
    """Return the size of a message in a view."""
    return PromptSize(counter.count_message(message), message_bytes(message), message_images(message))


def message_bytes(message: Message) -> int:
    """Return the bytes of a message's text, arguments and pictures."""
    total = utf8_length(message.content)
    for call in message.tool_calls:
        total += len(call.name) + utf8_length(str(call.arguments))
    for media in message.media:
        total += len(media.data or "")
    return total


def message_images(message: Message) -> int:
    """Return how many images are sent with the message; those without data are not."""
    return sum(1 for media in message.media if media.kind == "image" and media.data) if message.media else 0


def utf8_length(text: str) -> int:
    """Return bytes. Lone surrogates, which cannot be encoded, count three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def answer_token_limit(limits: ModelLimits, pressure: Pressure, max_output_tokens: int) -> int:
    """Return the output limit in tokens: prompt and answer together must fit the window."""
    return min(max_output_tokens, limits.max_output, max(MIN_ANSWER_TOKENS, limits.window - pressure.prompt_tokens))
