"""A home that keeps a journal: its stores with character.db beside them, and sleep cycles over a scripted model."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from assistant.core.errors import ModelError
from assistant.core.memories import JournalEntry, SleepReport
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.character import character_migrations
from assistant.store.script.state import CircuitBreakers
from assistant.store.script.unread import UnreadMessages
from sleep.cycle.cycle import CompactedSession, SleepCycle
from sleep.cycle.extract import Extractor
from tests.scripted import ScriptedModel
from tests.store_home import NOW, StoreHome

FAILURES = 3
COOL_DOWN = timedelta(minutes=30)
LATER = NOW + timedelta(minutes=1)
FACTS = ("I live in Oslo.", "My cat is called Mio.", "I never eat meat.", "We moved in 2018.")
TOLD = [f"Told: {fact}" for fact in FACTS]
DOWN = ModelError("no route to host", kind="network")
_TOLD = re.compile(r"^#(\d+) \S+ \S+ user: (.+)$", re.MULTILINE)


def learned(*entries: tuple[str, int] | dict[str, Any]) -> str:
    """A model's answer: what it learned, from which message."""
    rows = [one if isinstance(one, dict) else {"content": one[0], "sources": [one[1]]} for one in entries]
    return "\n".join(["<memories>", *(json.dumps(row) for row in rows), "</memories>"])


def attentive(request: ModelRequest) -> str:
    """A model that takes every line of the user for a fact."""
    return learned(*((f"Told: {text}", int(number)) for number, text in _TOLD.findall(request.messages[0].content)))


async def nothing_due(session: str, trigger: str) -> CompactedSession | None:
    return None


@dataclass
class JournalHome(StoreHome):
    """`model` reads for the journal; `batch_tokens` is about what it reads at once."""

    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(attentive))
    batch_tokens: int = 8_000

    def open(self) -> JournalHome:
        super().open()
        self.people = Database.open(self.path / "character.db", character_migrations, NOW)
        self.journal = StoredJournal(self.people)
        self.breakers = CircuitBreakers(self.db)
        return self

    def close(self) -> None:
        self.people.close()
        super().close()

    def restart(self) -> JournalHome:
        self.close()
        return self.open()

    def cycle(
        self,
        *,
        compact: Callable[[str, str], Awaitable[CompactedSession | None]] = nothing_due,
        conversation: Any = None,
        journal: Any = None,
        clock: Callable[[], datetime] = lambda: NOW,
    ) -> SleepCycle:
        """`conversation` and `journal` may stand before the home's own, to fail where a test wants it."""
        return SleepCycle(
            conversation or self.conversation, UnreadMessages(self.db, self.log), journal or self.journal,
            self.breakers,
            Extractor(lambda: self.model, "Write down what to keep.", batch_tokens=self.batch_tokens), compact,
            failures=FAILURES, cool_down=COOL_DOWN, clock=clock,
        )  # fmt: skip

    async def sleep(self, now: datetime = NOW, **options: Any) -> SleepReport:
        return await self.cycle(**options).run_sleep_tick(now)

    # ------------------------------------------------------------------------------------------------------ looking

    def entries(self, scope: str = "owner") -> list[JournalEntry]:
        """Oldest first."""
        return sorted(self.journal.entries(scope, limit=10_000), key=lambda entry: entry.id or 0)

    def remembered(self, scope: str = "owner") -> list[str]:
        return [entry.content for entry in self.entries(scope)]

    def unread(self, session: str = "main") -> int:
        """Messages out of view that still wait to be read."""
        return next(info.unextracted for info in self.conversation.sessions() if info.key == session)


def tell(home: JournalHome, *facts: str, session: str = "main") -> None:
    """Whole turns of the owner's; other people's sessions are their own scopes."""
    for fact in facts or FACTS:
        if session == "main":
            home.say(fact, "Noted.")
        else:
            home.conversation.ingest(session, session, [Message("user", fact), Message("assistant", "Noted.")], NOW)


class Crash(BaseException):
    """The process is gone."""


class Dying:
    """Stands before a store and dies at a call of one of its methods, before or after its work is done."""

    def __init__(
        self, real: Any, method: str, *, call: int = 1, after: bool = False, error: BaseException | None = None
    ) -> None:
        self._real, self._method, self._left = real, method, call
        self._after, self._error = after, error or Crash()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return partial(self._called, real) if name == self._method else real

    def _called(self, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left > 0:
            return real(*arguments, **named)
        if self._after:
            real(*arguments, **named)
        raise self._error
