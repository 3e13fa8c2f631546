"""What a turn asks about spending: whether it goes round in circles, and what stands under an answer that the budget
kept the chosen model from giving.

What always holds: whoever asks reads why another model answers, once a day in each conversation and whenever the budget
ended in the middle of an answer; it is noted as said only after the answer was stored, so that a crash says it twice
rather than never.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.sessions import role_of
from assistant.spending.notices import footnote
from assistant.spending.runaway import circle


class Said(Protocol):
    """What was said once, over restarts."""

    def has(self, name: str) -> bool: ...
    def note(self, name: str, now: datetime) -> None: ...


class TurnGuard:
    """`said` is None where nothing is kept: all is said each time. `most` is `budget.runaway_calls`, asked for anew at
    each use; 0 lets everything go on."""

    def __init__(self, said: Said | None, zone: tzinfo, most: Callable[[], int]) -> None:
        self._said = said
        self._zone = zone
        self._most = most

    def stops(self, session: str, messages: Sequence[Message]) -> str:
        """Why a turn with these messages is to end now; "" where it gets on."""
        most = self._most()
        found = circle(messages, most) if most else None
        return "" if found is None else found.told(owner=role_of(session) == "owner")

    def under(self, session: str, why: str, messages: Sequence[Message], model: str | None, now: datetime) -> str:
        """What stands under the answer that `model` gave, after these messages of the turn, because of the budget."""
        under_way = any(m.role == "assistant" and m.model != model for m in messages)
        if not under_way and self._said is not None and self._said.has(self._name(session, now)):
            return ""
        return footnote(why, owner=role_of(session) == "owner", under_way=under_way)

    def noted(self, session: str, now: datetime) -> None:
        """The answer is stored. Where this cannot be, it is said again the next time."""
        if self._said is not None:
            with contextlib.suppress(StoreError):
                self._said.note(self._name(session, now), now)

    def _name(self, session: str, now: datetime) -> str:
        return f"footnote:{session}:{now.astimezone(self._zone).date().isoformat()}"


UNGUARDED = TurnGuard(None, UTC, lambda: 0)
"""Where nobody counts."""
