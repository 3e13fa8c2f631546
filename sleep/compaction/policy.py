"""How history is compacted, and what has to outlast it. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assistant.context.pressure import FULL_CONTEXT, Budgets
from assistant.core.checkpoints import Checkpoint, UserRequest

Strategy = Literal["hybrid", "summary", "mask", "sliding_window", "deletion", "selective"]
WITHOUT_SUMMARY: frozenset[str] = frozenset({"sliding_window", "deletion", "selective"})

# Summaries are worth reading only above a size, and are at least this part of a small window.
_LEAST_SHARE = 40


@dataclass(frozen=True, slots=True)
class Policy:
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

    def user_tokens(self, budgets: Budgets) -> int:
        """The most that kept user messages may take."""
        return _scaled(self.user_messages_max_tokens, budgets)

    def summary_tokens(self, budgets: Budgets) -> int:
        """The longest summary of one compaction."""
        least = max(_scaled(self.summary_max_tokens, budgets), budgets.tokens // _LEAST_SHARE)
        return min(self.summary_max_tokens, least)

    def restored_tokens(self, budgets: Budgets) -> int:
        """The most that may be appended to a summary, word for word."""
        return min(self.restored_max_tokens, max(_scaled(self.restored_max_tokens, budgets), budgets.tokens // 100))

    def enough(self, target: float) -> float:
        """The share at which masking alone will do: half way from the target to where sleep compacts. Above it the
        next compaction would be near."""
        return (target + self.sleep_threshold) / 2


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a plan takes account of beside the view: the live `checkpoints` of the session, oldest range first; the
    requests nobody has finished, newest first; `tasks`, the words of open to-dos; `known`, what the journal has of
    today; `focus`, what the person asked to keep in mind."""

    checkpoints: tuple[Checkpoint, ...] = ()
    requests: tuple[UserRequest, ...] = ()
    tasks: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    focus: str = ""


def _scaled(tokens: int, budgets: Budgets) -> int:
    return min(tokens, tokens * budgets.tokens // FULL_CONTEXT)
