"""What a compaction is measured by, and the least that stays whatever is done. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo

from assistant.context.pressure import NOTHING, Budgets, Counter, Size


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan is made under. `fixed` is what surrounds the history (rules, persona, pins, tools), `adding` what the
    next request adds to it; above `threshold` something has to be done, down to `target` if that can be reached.
    Results of `protected` tools are never lost: the last one of each stays in view. What stands for messages that leave
    tells their days by the clock of `zone`, the home's."""

    budgets: Budgets
    counter: Counter
    fixed: Size = NOTHING
    adding: Size = NOTHING
    target: float = 0.30
    threshold: float = 0.80
    protected: frozenset[str] = frozenset()
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Floor:
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
            f"The least that has to be sent takes {self.ratio:.0%} of a context of {self.budget} tokens: {self.frame} "
            f"for rules and tools, {self.request} for the newest message, {self.rounds} for what followed it, "
            f"{self.reserve} kept for the answer."
        )
