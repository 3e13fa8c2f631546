"""What a compaction was expected to save, and what it saved: each token that it removed would have been in every
request of the day that followed, at what the tokens beside it were billed there."""

from __future__ import annotations

from datetime import datetime, timedelta

from assistant.commands.items import Item
from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.text import pluralize
from assistant.store.script.ledger import Ledger

_PERIOD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Saving:
    """In US dollars, or in input tokens where no price is known; its own cost is taken off."""

    removed: int  # tokens
    expected: float
    actual: float  # so far, of the day that follows it
    calls: int  # from which that follows
    is_usd: bool
    is_over: bool  # the day has passed

    def describe(self) -> str:
        """Return a line with both amounts, in dollars or tokens; as long as the day is not over it says "so far"."""
        expected, actual = self._amount(self.expected), self._amount(self.actual)
        so_far = "in" if self.is_over else "so far, in"
        return (
            f"{self.removed:,} tokens fewer in the context: expected to save {expected} in the day after it, saved "
            f"{actual} {so_far} {pluralize(self.calls, 'call')}"
        )

    def _amount(self, value: float) -> str:
        return f"{'-' if value < 0 else ''}${abs(value):,.4f}" if self.is_usd else f"{value:,.0f} tokens"


class SavingItem(Item):
    """What a compaction was expected to save in the day after it, and what it saved, its own cost taken off: in US
    dollars (`is_usd`), or in input tokens where no price is known."""

    removed: int
    expected: float
    actual: float
    calls: int
    is_usd: bool
    is_over: bool


def find_saving(ledger: Ledger, checkpoint: Checkpoint, now: datetime) -> Saving | None:
    """None where nothing was expected of it."""
    facts = checkpoint.key_facts.get("economy") or {}
    is_usd = "expected_usd" in facts
    expected = facts.get("expected_usd", facts.get("expected_tokens"))
    if expected is None:
        return None
    until = checkpoint.created_at + _PERIOD
    carried, removed = ledger.carried_tokens(checkpoint.session, checkpoint.created_at, until), int(facts["removed"])
    actual = removed * ((carried.usd or 0.0) if is_usd else carried.input_tokens)
    cost = (checkpoint.cost_usd or 0.0) if is_usd else 0.0
    return Saving(removed, expected, round(actual - cost, 6), carried.calls, is_usd, until <= now)
