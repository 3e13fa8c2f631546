"""What a compaction is going to do, as a value: made by pure code, shown by a dry run, committed by the stores.

A plan is carried out in one transaction (I4): rows that stay are replaced by shorter forms of the same messages, and
the oldest rows by a new prefix. Every tier of compaction makes the same value. Where a summary is needed first, the
plan holds the `outline` of the compaction instead; the deterministic floor (`sleep/compaction/floor.py`) needs no
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assistant.context.pressure import Pressure
from assistant.core.checkpoints import Compaction
from assistant.core.messages import Message
from assistant.core.text import pluralize
from sleep.compaction.outline import Outline
from sleep.compaction.terms import Floor


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a group of rows, for a person to read: whether it `goes`, what it is, why, how large."""

    goes: bool
    what: str
    why: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`shorten` and `compaction` are committed together, under `prefix_rev`; `outline` is what a summary has to
    complete before there is a compaction; `merge` are the ids of neighbouring checkpoints that have to become one
    first, so that the next plan finds room. `after` is what is expected of a plan with an outline. `notices` are lines
    that the user should read; `stuck` is another one: the context stays too full whatever is done (F02)."""

    session: str
    prefix_rev: int
    trigger: str
    tier: str
    before: Pressure
    after: Pressure
    floor: Floor
    shorten: tuple[Message, ...] = ()
    compaction: Compaction | None = None
    outline: Outline | None = None
    merge: tuple[int, ...] = ()
    fates: tuple[Fate, ...] = ()
    stuck: str = ""
    notices: tuple[str, ...] = field(default=())

    @property
    def changes(self) -> bool:
        return bool(self.shorten or self.compaction or self.outline)

    def at_floor(self, threshold: float) -> bool:
        """Whether even this plan leaves the context above the threshold: trying again would gain nothing (I7)."""
        return self.after.ratio > threshold

    def whole(self) -> Compaction | None:
        """All that the plan changes without a summary, as one compaction."""
        if self.compaction is not None:
            return replace(self.compaction, shorten=self.shorten)
        if not self.shorten:
            return None
        ids = [message.id or 0 for message in self.shorten]
        return Compaction(
            session=self.session,
            prefix_rev=self.prefix_rev,
            trigger=self.trigger,
            tier=self.tier,
            from_message_id=ids[0],
            to_message_id=ids[-1],
            messages_compressed=len(ids),
            prefix=(),
            summary="",
            original_tokens=self.before.prompt_tokens,
            compressed_tokens=self.after.prompt_tokens,
            key_facts={"pressure": [round(self.before.ratio, 4), round(self.after.ratio, 4)]},
            shorten=self.shorten,
        )

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
            f"{self.trigger}: {pluralize(len(self.shorten), 'message')} shortened, {dropped} taken out of view "
            f"({self.tier}); {self.before.describe()} -> {self.after.describe()}"
        )
