"""Values of a compaction: its limits, policy, inputs, request, summary and result. Frozen.

`CompactionLimits` is what a plan is measured by, `MinimumContext` the least that stays whatever is done (F02).
`CompactionPolicy` tells how history is compacted, `CompactionInputs` what has to outlast it. `SummaryInput` is what
is to be summarised and `Summary` what came of it, between planning, summarising and committing. `CompactionRequest`
asks for one compaction; `CompactionResult` is what came of it.
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
    """What a plan is measured by."""

    budgets: RequestBudgets
    counter: TokenCounter
    fixed: PromptSize = EMPTY_SIZE  # what surrounds the history: rules, persona, pins, tools
    adding: PromptSize = EMPTY_SIZE  # what the next request adds to it
    target: float = 0.30  # how far to come down, if that can be reached; the reserve for the answer is no part of it
    threshold: float = 0.80  # above it something has to be done
    protected_tools: frozenset[str] = frozenset()  # the last result of each stays in view
    zone: tzinfo = UTC  # the home's; days are told by it

    @property
    def target_pressure(self) -> float:
        """The pressure at the target: pressure counts the reserve, the target does not."""
        return self.target + self.budgets.reserve / self.budgets.tokens


@dataclass(frozen=True, slots=True)
class MinimumContext:
    """What no compaction can take away (F02), in corrected tokens: the frame, the newest request in its shortest form,
    the tool rounds that followed it, the room for the answer; all of it against the token budget."""

    frame: int
    request: int
    rounds: int
    reserve: int
    budget: int

    @property
    def ratio(self) -> float:
        return (self.frame + self.request + self.rounds + self.reserve) / self.budget

    def describe(self) -> str:
        return (
            f"The smallest request takes {self.ratio:.0%} of a context of {self.budget:,} tokens: {self.frame:,} for "
            f"rules and tools, {self.request:,} for the newest message, {self.rounds:,} for what followed it, "
            f"{self.reserve:,} kept for the answer."
        )


Strategy = Literal["hybrid", "summary", "mask", "sliding_window", "deletion", "selective"]
STRATEGIES_WITHOUT_SUMMARY: frozenset[str] = frozenset({"sliding_window", "deletion", "selective"})

# Summaries are worth reading only above a size, and are at least this part of a small window.
_LEAST_SHARE = 40


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """The settings `compaction.*` and `context.*` that plans are made by. Numbers of tokens are those of a full context
    and shrink with a smaller one; shares are of the effective context."""

    strategy: Strategy = "hybrid"
    preserve_messages: int = 20
    preserve_share: float = 0.20
    user_messages_max_tokens: int = 20_000
    summary_max_tokens: int = 2_000
    restored_max_tokens: int = 800
    max_checkpoints: int = 5
    sleep_threshold: float = 0.50

    def user_budget(self, budgets: RequestBudgets) -> int:
        """The most that kept user messages may take."""
        return scale_to_window(self.user_messages_max_tokens, budgets)

    def summary_budget(self, budgets: RequestBudgets) -> int:
        """The longest summary of one compaction."""
        least = max(scale_to_window(self.summary_max_tokens, budgets), budgets.tokens // _LEAST_SHARE)
        return min(self.summary_max_tokens, least)

    def restored_budget(self, budgets: RequestBudgets) -> int:
        """The most that may be appended to a summary, word for word."""
        return min(
            self.restored_max_tokens, max(scale_to_window(self.restored_max_tokens, budgets), budgets.tokens // 100)
        )

    def masking_target(self, target: float) -> float:
        """The share at which masking alone will do: half way from the target to where sleep compacts. Above it the
        next compaction would be near."""
        return (target + self.sleep_threshold) / 2


@dataclass(frozen=True, slots=True)
class CompactionInputs:
    """What a plan takes account of beside the view: the live `checkpoints` of the session, oldest range first; the
    requests nobody has finished, newest first; `tasks`, the words of open to-dos; `known`, what the journal has of
    today; `focus`, what the person asked to keep in mind."""

    checkpoints: tuple[Checkpoint, ...] = ()
    open_requests: tuple[UserRequest, ...] = ()
    tasks: tuple[str, ...] = ()
    known_facts: tuple[str, ...] = ()
    focus: str = ""


def scale_to_window(tokens: int, budgets: RequestBudgets) -> int:
    """A number of tokens that is meant for a full context, as the same share of a smaller one."""
    return min(tokens, tokens * budgets.tokens // FULL_CONTEXT_TOKENS)


SummaryTier = Literal["full", "partial", "extractive", "ends", "floor"]


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """What a summary is made of."""

    session: str
    scope: str
    rows: tuple[Message, ...]  # those that leave the view, oldest first, by the home's clock
    places: Mapping[int, LogLocation]  # where the log has them whole
    budget: int  # the most that the summary may take, in tokens
    tasks: tuple[str, ...] = ()  # words of open requests and to-dos, which have to survive
    earlier_summaries: str = ""  # what the summaries that stay say, so that it is not said again
    known_facts: tuple[str, ...] = ()  # what the journal has of today
    focus: str = ""  # what the person asked to keep in mind
    depth: int = 1  # 1: `rows` are original messages, 2: they are summaries
    restored_max_tokens: int = 800  # what may be appended word for word


@dataclass(frozen=True, slots=True)
class Summary:
    """What takes the place of messages that left."""

    text: str  # checked, boundary tags escaped, what verification added again at its end
    tier: SummaryTier | Strategy  # "floor", or a strategy without summaries: no text
    tokens: int
    memories: tuple[str, ...] = ()  # durable facts for the journal
    # decisions, preferences, entities, identifiers
    key_facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    restored: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()  # why better tiers were not used, a line each
    model: str = ""
    attempts: int = 0  # model calls
    cost_usd: float | None = 0.0  # None where one call has no known price
    depth: int = 1


@dataclass(frozen=True, slots=True)
class PriceInView:
    """What each token in view is expected to cost over the coming day, in US dollars, or in input tokens where no price
    is known."""

    price: float
    is_usd: bool

    def expect(self, removed: int, cost_usd: float | None) -> dict[str, float]:
        """What the record of a compaction that removed so many tokens says: what it is expected to save over the coming
        day, its own cost taken off."""
        if self.is_usd:
            return {"removed": removed, "expected_usd": round(self.price * removed - (cost_usd or 0.0), 6)}
        return {"removed": removed, "expected_tokens": round(self.price * removed)}


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """One compaction to make."""

    session: str
    trigger: str
    terms: CompactionLimits
    focus: str = ""
    cached_prompt: CachedPrompt | None = None  # the request that the provider has in its cache
    urgent: bool = False  # a person waits: no model is asked, and no other compaction waited for
    min_pressure: float = 0.0  # below it, once its turn has come, nothing is done
    masks_only: bool = False  # shortens tool output and long answers, and removes no message
    price_in_view: PriceInView | None = None  # for its record: what it is expected to save
    sleep_budget: SleepBudget | None = None  # what a sleep may still spend
    notice_address: NoticeAddress = field(default_factory=NoticeAddress)  # where what it has to tell goes


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What came of a request."""

    before: Pressure
    after: Pressure
    checkpoints: tuple[Checkpoint, ...] = ()  # those made, oldest first
    notices: tuple[Notice, ...] = ()
    stuck_reason: str = ""  # why the context stays too full, where it does (F02)
    busy: bool = False  # another process is at it
    gains_nothing: bool = False  # what would take the place of messages is no smaller than they are

    @property
    def message_count(self) -> int:
        """How many messages left the view or were shortened."""
        return sum(checkpoint.messages_compressed for checkpoint in self.checkpoints if not checkpoint.is_merge)

    @property
    def tokens_saved(self) -> int:
        return self.before.prompt_tokens - self.after.prompt_tokens


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """The last request of a session, which its provider has in its cache."""

    model: str
    request: ModelRequest
    prompt_tokens: int  # as they are billed


@dataclass(frozen=True, slots=True)
class SummaryEstimate:
    """About what a summary takes."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None  # None where no price is known


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When models are left alone."""

    failures: int  # so many in a row
    cool_down: timedelta  # how long nobody is asked; then one try is let through
