"""Values of a compaction: its limits, policy, inputs, request, summary and result. Frozen.

A plan is checked against `CompactionLimits`; `MinimumContext` is what remains even after everything possible is removed
(F02). `CompactionPolicy` has the settings, `CompactionInputs` what must be preserved. `SummaryInput` is passed from
planning to summarising, `Summary` from summarising to committing. `CompactionRequest` requests one compaction;
`CompactionResult` is its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, timedelta, tzinfo
from typing import Literal

from assistant.context.pressure import EMPTY_SIZE, Pressure, PromptSize, RequestBudgets
from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint, UserRequest
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.model_api import FULL_CONTEXT_TOKENS, ModelRequest
from assistant.core.notices import Notice, NoticeAddress
from assistant.core.records import LogLocation
from sleep.compaction.budget import SleepBudget


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """The limits of a plan, in tokens."""

    budgets: RequestBudgets
    counter: TokenCounter
    fixed: PromptSize = EMPTY_SIZE  # what surrounds the history: rules, persona, pins, tools
    adding: PromptSize = EMPTY_SIZE  # what the next request adds
    target: float = 0.30  # size to reach if possible; does not include the reserve for the answer
    threshold: float = 0.80  # above it, compaction is necessary
    protected_tools: frozenset[str] = frozenset()  # tools whose last result stays in view
    zone: tzinfo = UTC  # time zone of the data folder, for dates

    @property
    def target_pressure(self) -> float:
        """Return the pressure at the target; unlike the target, it includes the reserve."""
        return self.target + self.budgets.reserve / self.budgets.tokens


@dataclass(frozen=True, slots=True)
class MinimumContext:
    """The part of the context that no compaction can remove (F02), in corrected tokens: the frame, the newest request
    in its shortest form, the tool rounds after it, and the reserve for the answer; and the token budget."""

    frame: int
    request: int
    rounds: int
    reserve: int
    budget: int

    @property
    def ratio(self) -> float:
        """Share of the budget that cannot be compacted; above 1 nothing can be sent."""
        return (self.frame + self.request + self.rounds + self.reserve) / self.budget

    def describe(self) -> str:
        return (
            f"The smallest request takes {self.ratio:.0%} of a context of {self.budget:,} tokens: {self.frame:,} for "
            f"rules and tools, {self.request:,} for the newest message, {self.rounds:,} for what followed it, "
            f"{self.reserve:,} kept for the answer."
        )

    def describe_parts(self) -> str:
        """Return what takes the room, without the reserve, as the end of a sentence."""
        followed = f", what followed it {self.rounds:,}" if self.rounds else ""
        return f"rules and tools take {self.frame:,}, the newest message {self.request:,}{followed}"


Strategy = Literal["hybrid", "summary", "mask", "sliding_window", "deletion", "selective"]
STRATEGIES_WITHOUT_SUMMARY: frozenset[str] = frozenset({"sliding_window", "deletion", "selective"})

# Summaries are only worth reading above a certain size, and are at least this share of a small window.
_LEAST_SHARE = 40


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """The settings `compaction.*` and `context.*` used for planning. Token counts are for a full-size context and scale
    down with a smaller one; shares are of the effective context."""

    strategy: Strategy = "hybrid"
    preserve_messages: int = 20
    preserve_share: float = 0.20
    user_messages_max_tokens: int = 20_000
    summary_max_tokens: int = 2_000
    restored_max_tokens: int = 800
    max_checkpoints: int = 5
    sleep_threshold: float = 0.50

    def user_budget(self, budgets: RequestBudgets) -> int:
        """Return the maximum size of kept user messages, in tokens."""
        return scale_to_window(self.user_messages_max_tokens, budgets)

    def summary_budget(self, budgets: RequestBudgets) -> int:
        """Return the maximum size of one summary, in tokens."""
        least = max(scale_to_window(self.summary_max_tokens, budgets), budgets.tokens // _LEAST_SHARE)
        return min(self.summary_max_tokens, least)

    def restored_budget(self, budgets: RequestBudgets) -> int:
        """Return the maximum size of text appended to a summary verbatim, in tokens."""
        return min(
            self.restored_max_tokens, max(scale_to_window(self.restored_max_tokens, budgets), budgets.tokens // 100)
        )

    def masking_target(self, target: float) -> float:
        """Return the share at which masking alone suffices: midway between the target and the share at which sleep
        compacts. Above it, the next compaction would follow soon."""
        return (target + self.sleep_threshold) / 2


@dataclass(frozen=True, slots=True)
class CompactionInputs:
    """What a plan considers in addition to the view: the live `checkpoints` of the session, oldest range first; open
    requests, newest first; `tasks`, the texts of open to-dos; `known`, today's journal entries; `focus`, what the
    person wants the summary to keep."""

    checkpoints: tuple[Checkpoint, ...] = ()
    open_requests: tuple[UserRequest, ...] = ()
    tasks: tuple[str, ...] = ()
    known_facts: tuple[str, ...] = ()
    focus: str = ""


def scale_to_window(tokens: int, budgets: RequestBudgets) -> int:
    """Scale a token count meant for a full-size context to the current one."""
    return min(tokens, tokens * budgets.tokens // FULL_CONTEXT_TOKENS)


SummaryTier = Literal["full", "partial", "extractive", "ends", "floor"]


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """The input of a summary."""

    session: str
    scope: str
    rows: tuple[Message, ...]  # messages that leave the view, oldest first, with local times
    places: Mapping[int, LogLocation]  # where the log has them in full
    budget: int  # maximum size of the summary, in tokens
    tasks: tuple[str, ...] = ()  # words of open requests and to-dos, which must be kept
    earlier_summaries: str = ""  # content of the summaries that stay, to avoid repeating it
    known_facts: tuple[str, ...] = ()  # today's journal entries
    focus: str = ""  # what the person wants to keep
    depth: int = 1  # 1: `rows` are original messages, 2: they are summaries
    restored_max_tokens: int = 800  # text that may be appended verbatim


@dataclass(frozen=True, slots=True)
class Summary:
    """The replacement of messages that leave the view."""

    text: str  # checked, boundary tags escaped, with restored facts at its end
    tier: SummaryTier | Strategy  # "floor", or a strategy without summaries: no text
    tokens: int
    memories: tuple[str, ...] = ()  # durable facts for the journal
    # decisions, preferences, entities, identifiers
    key_facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    restored: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()  # why better tiers were not used, one line each
    model: str = ""
    attempts: int = 0  # number of model calls
    cost_usd: float | None = 0.0  # None if the price of a call is unknown
    depth: int = 1


@dataclass(frozen=True, slots=True)
class PriceInView:
    """The expected cost of each token in view over the coming day, in US dollars, or in input tokens if no price is
    known."""

    price: float
    is_usd: bool

    def expect(self, removed: int, cost_usd: float | None) -> dict[str, float]:
        """Return the expected savings for the record of a compaction: those of the coming day for the removed tokens,
        minus its own cost."""
        if self.is_usd:
            return {"removed": removed, "expected_usd": round(self.price * removed - (cost_usd or 0.0), 6)}
        return {"removed": removed, "expected_tokens": round(self.price * removed)}


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A request for one compaction."""

    session: str
    trigger: str
    terms: CompactionLimits
    focus: str = ""
    cached_prompt: CachedPrompt | None = None  # the last request, which the provider has cached
    urgent: bool = False  # a person waits: use no model, and do not wait for another compaction
    min_pressure: float = 0.0  # do nothing if the pressure is below this when it runs
    masks_only: bool = False  # only shorten tool output and long answers; remove no message
    price_in_view: PriceInView | None = None  # for its record: the expected savings
    sleep_budget: SleepBudget | None = None  # remaining budget of the sleep cycle
    notice_address: NoticeAddress = field(default_factory=NoticeAddress)  # where its notices are sent


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The outcome of a request."""

    before: Pressure
    after: Pressure
    checkpoints: tuple[Checkpoint, ...] = ()  # compactions made, oldest first
    notices: tuple[Notice, ...] = ()
    stuck_reason: str = ""  # why the context is still too full, if it is (F02)
    busy: bool = False  # another process is compacting
    gains_nothing: bool = False  # the replacement would not be smaller than the messages

    @property
    def message_count(self) -> int:
        """Return how many messages were removed from the view or shortened."""
        return sum(checkpoint.messages_compressed for checkpoint in self.checkpoints if not checkpoint.is_merge)

    @property
    def tokens_saved(self) -> int:
        """Of the prompt; negative if it grew."""
        return self.before.prompt_tokens - self.after.prompt_tokens


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """The last request of a session, which its provider has cached."""

    model: str
    request: ModelRequest
    prompt_tokens: int  # as billed


@dataclass(frozen=True, slots=True)
class SummaryEstimate:
    """The estimated cost of a summary."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None  # None if the price is unknown


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When models are not used for a while."""

    failures: int  # failures in a row
    cool_down: timedelta  # pause; afterwards one attempt is allowed
