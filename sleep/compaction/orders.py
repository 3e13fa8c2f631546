"""A compaction that is wanted, and what came of it. Values."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.context.pressure import Pressure
from assistant.core.checkpoints import Checkpoint
from sleep.compaction.purse import Purse
from sleep.compaction.summariser import Live
from sleep.compaction.terms import Terms


@dataclass(frozen=True, slots=True)
class Order:
    """One compaction that is wanted. `live` is the request that the provider has in its cache, if any; `plain` asks no
    model; `purse` is what a sleep may still spend. Where pressure is below `above` once its turn has come (somebody
    else's compaction came first), nothing is done."""

    session: str
    trigger: str
    terms: Terms
    focus: str = ""
    live: Live | None = None
    plain: bool = False
    above: float = 0.0
    purse: Purse | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: pressure before and after, the checkpoints made, oldest first, and lines for the person. `stuck`
    says why the context stays too full, where it does (F02); `busy`: another process is at it."""

    before: Pressure
    after: Pressure
    made: tuple[Checkpoint, ...] = ()
    notices: tuple[str, ...] = ()
    stuck: str = ""
    busy: bool = False

    @property
    def messages(self) -> int:
        """How many messages left the view or were shortened."""
        return sum(one.messages_compressed for one in self.made if not one.is_merge)

    @property
    def tokens_saved(self) -> int:
        return self.before.prompt_tokens - self.after.prompt_tokens
