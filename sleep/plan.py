"""What a compaction is going to do, as a value: made by pure code, shown by a dry run, committed by the stores.

A plan is carried out in two steps, each of which leaves a valid view behind (I4): first `shorten` replaces rows by
shorter forms of the same messages, then `compaction` replaces the oldest rows by a new prefix. Every tier of compaction
makes the same value; the deterministic floor (`sleep/floor.py`) needs no model for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assistant.compactions import Compaction
from assistant.context.pressure import NOTHING, Budgets, Counter, Pressure, Size
from assistant.messages import Message


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan is made under. `fixed` is what surrounds the history (rules, persona, pins, tools), `adding` what the
    next request adds to it; above `threshold` something has to be done, down to `target` if that can be reached.
    Results of `protected` tools are never lost: the last one of each stays in view."""

    budgets: Budgets
    counter: Counter
    fixed: Size = NOTHING
    adding: Size = NOTHING
    target: float = 0.30
    threshold: float = 0.80
    protected: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True)
class Plan:
    """`shorten` is committed first, under `prefix_rev`; then `compaction`, under the revision which that left.
    `notices` are lines that the user should read."""

    session: str
    prefix_rev: int
    trigger: str
    tier: str
    before: Pressure
    after: Pressure
    floor: Floor
    shorten: tuple[Message, ...] = ()
    compaction: Compaction | None = None
    notices: tuple[str, ...] = field(default=())

    @property
    def changes(self) -> bool:
        return bool(self.shorten or self.compaction)

    def at_floor(self, threshold: float) -> bool:
        """Whether even this plan leaves the context above the threshold: trying again would gain nothing (I7)."""
        return self.after.ratio > threshold

    def compaction_at(self, prefix_rev: int) -> Compaction | None:
        """The compaction as it is to be committed after `shorten` left the view at this revision."""
        return self.compaction and replace(self.compaction, prefix_rev=prefix_rev)

    def applied(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The rows of the view as the plan leaves them."""
        shorter = {message.id: message for message in self.shorten}
        rows = [message if message.id is None else shorter.get(message.id, message) for message in messages]
        if self.compaction is None:
            return tuple(rows)
        last = next(index for index, message in enumerate(rows) if message.id == self.compaction.to_message_id)
        return (*self.compaction.prefix, *rows[last + 1 :])

    def describe(self) -> str:
        """One line for the log."""
        dropped = self.compaction.messages_compressed if self.compaction else 0
        return (
            f"{self.trigger}: {len(self.shorten)} messages shortened, {dropped} taken out of view ({self.tier}); "
            f"{self.before.describe()} -> {self.after.describe()}"
        )
