"""How full the context is: three budgets (tokens, bytes, images), each of which a provider refuses on (F17).

Pressure is a share of the effective context. It counts what is about to be added and the room kept for the answer. The
provider's own count is used where it measured this very view (same prefix_rev) and estimates fill in what was added
since; a count of another view says nothing about this one (F04).
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
    """What something adds to a request."""

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
    """What a request may hold at most."""

    tokens: int  # the effective context
    reserve: int  # the part of `tokens` kept free for the answer
    bytes: int  # of the whole request
    images: int  # of the whole request

    def after_overflow(self, prompt_tokens: int) -> RequestBudgets:
        """The budgets after a provider refused a prompt that we took for `prompt_tokens`: its window is no larger."""
        tokens = max(1, min(self.tokens, prompt_tokens))
        return RequestBudgets(tokens, self.reserve * tokens // self.tokens, self.bytes, self.images)


@dataclass(frozen=True, slots=True)
class Pressure:
    """What the next request would hold, and how that compares with the budgets."""

    prompt_tokens: int  # corrected, without the reserve
    bytes: int
    images: int
    budgets: RequestBudgets
    source: Literal["reported", "estimated"] = "estimated"  # whether the provider counted most of it, or we did

    @property
    def _used_and_allowed(self) -> dict[BudgetKind, tuple[int, int]]:
        return {
            "tokens": (self.prompt_tokens + self.budgets.reserve, self.budgets.tokens),
            "bytes": (self.bytes, self.budgets.bytes),
            "images": (self.images, self.budgets.images),
        }

    @property
    def shares(self) -> dict[BudgetKind, float]:
        # A model without eyes is sent no pictures, so that they cannot be too many.
        return {kind: used / allowed if allowed else 0.0 for kind, (used, allowed) in self._used_and_allowed.items()}

    @property
    def fullest_budget(self) -> BudgetKind:
        shares = self.shares
        return max(shares, key=lambda kind: shares[kind])

    @property
    def ratio(self) -> float:
        return max(self.shares.values())

    def describe(self) -> str:
        """One line: the share and numbers of the budget that binds."""
        kind = self.fullest_budget
        used, allowed = self._used_and_allowed[kind]
        reserve = f" (with {self.budgets.reserve:,} kept for the answer)" if kind == "tokens" else ""
        return f"{self.ratio:.0%}, {used:,} of {allowed:,} {kind}{reserve}, {self.source}"


def effective_budgets(
    limits: ModelLimits, *, max_context_tokens: int, reserve_tokens: int, max_request_bytes: int, max_images: int
) -> RequestBudgets:
    """The effective budgets of a model under the settings (0: what the model allows, at most `FULL_CONTEXT` tokens)."""
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
    """The pressure of the next call. `fixed` is what surrounds the history (rules, persona, tools), `adding` what is
    about to be added to the view as it stands (a volatile block, a message not yet in it)."""
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
    """The uncorrected count of the whole prompt: what calibration compares with the provider's."""
    start = max(0, tool_loop_start(view.messages))
    thinking = sum(counter.count_thinking(message) for message in view.messages[start:] if message.thinking)
    return fixed.tokens + view.tokens + adding.tokens + thinking


def message_size(message: Message, counter: TokenCounter) -> PromptSize:
    """What a message adds to a view."""
    return PromptSize(counter.count_message(message), message_bytes(message), message_images(message))


def message_bytes(message: Message) -> int:
    """Bytes of a message's words, arguments and pictures."""
    total = utf8_length(message.content)
    for call in message.tool_calls:
        total += len(call.name) + utf8_length(str(call.arguments))
    for media in message.media:
        total += len(media.data or "")
    return total


def message_images(message: Message) -> int:
    return sum(1 for media in message.media if media.kind == "image" and media.data) if message.media else 0


def utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def answer_token_limit(limits: ModelLimits, pressure: Pressure, max_output_tokens: int) -> int:
    """The longest answer to ask for, in tokens: providers refuse a prompt and an answer that together pass the
    window."""
    return min(max_output_tokens, limits.max_output, max(MIN_ANSWER_TOKENS, limits.window - pressure.prompt_tokens))
