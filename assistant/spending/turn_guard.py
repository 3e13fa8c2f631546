"""Turns that repeat themselves, and the footnote under an answer of another model, because of the budget.

What a turn repeats is counted in what the log has of it, so that a turn that is taken up after a crash has no more
tries than any other; whatever the person says within a turn begins anew. Two requests are the same where purpose,
model and the whole prompt are. The footnote says why another model answers, once a day in each conversation and
whenever the budget ended in the middle of an answer; it is noted as shown only after the answer was stored, so that
a crash shows it twice rather than never.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from assistant.core.errors import StoreError
from assistant.core.messages import Message, ToolCall
from assistant.core.sessions import session_role
from assistant.core.text import shorten
from assistant.spending.notices import budget_footnote

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Repetition:
    """What a turn repeats."""

    name: str  # of the tool
    arguments: str  # as JSON
    times: int  # with the same outcome, or rounds that brought nothing new
    is_idle_rounds: bool = False

    def stop_message(self, *, owner: bool) -> str:
        if not owner:
            return "I was repeating myself, so I stopped. Your message is kept; say it in other words."
        what = f"`{self.name}` with {self.arguments}" if self.arguments != "{}" else f"`{self.name}`"
        how = (
            f"{self.times} rounds brought nothing new, the last one with {what}"
            if self.is_idle_rounds
            else f"I called {what} {self.times} times, and the outcome was the same each time"
        )
        return (
            f"I was repeating myself, so I stopped: {how} (budget.runaway_calls). What was found is kept; say how to "
            "continue, or say it in other words."
        )


def find_repetition(messages: Sequence[Message], limit: int) -> Repetition | None:
    """What a turn with these messages has repeated `limit` times since the person last said something; None where it
    makes progress."""
    outcomes = {m.tool_call_id: m for m in messages if m.role == "tool"}
    seen: Counter[tuple[str, str, str]] = Counter()
    idle = 0
    for message in _since_person(messages):
        calls = [call for call in (_with_outcome(call, outcomes) for call in message.tool_calls) if call is not None]
        if not calls:
            continue
        idle = 0 if any(call not in seen for call in calls) else idle + 1
        seen.update(calls)
        most_frequent = max(calls, key=lambda call: seen[call])
        if seen[most_frequent] >= limit:
            return Repetition(most_frequent[0], shorten(most_frequent[1], _LONGEST), seen[most_frequent])
        if idle >= limit:
            return Repetition(most_frequent[0], shorten(most_frequent[1], _LONGEST), idle, is_idle_rounds=True)
    return None


def _since_person(said: Sequence[Message]) -> list[Message]:
    last = max((place for place, m in enumerate(said) if m.role == "user"), default=-1)
    return [m for m in said[last + 1 :] if m.role == "assistant"]


def _with_outcome(call: ToolCall, outcomes: dict[str | None, Message]) -> tuple[str, str, str] | None:
    """(tool, arguments, outcome) of a call that has one."""
    outcome = outcomes.get(call.id)
    if outcome is None:
        return None
    return call.name, json.dumps(dict(call.arguments), sort_keys=True, default=str), outcome.content


class TurnGuard:
    """Counts what turns repeat, and says once a day under an answer that the budget chose its model."""

    def __init__(
        self,
        zone: tzinfo,
        limit: Callable[[], int],
        was_shown: Callable[[str], bool] = lambda _name: False,
        mark_shown: Callable[[str, datetime], None] = lambda _name, _now: None,
    ) -> None:
        """`limit` is `budget.runaway_calls`, asked for anew at each use; with 0 nothing is stopped. `was_shown` and
        `mark_shown` remember footnotes by name; without them each is shown every time."""
        self._zone = zone
        self._limit = limit
        self._was_shown = was_shown
        self._mark_shown = mark_shown

    def stop_reason(self, session: str, messages: Sequence[Message]) -> str:
        """Why a turn with these messages has to end now; "" where it makes progress."""
        limit = self._limit()
        repetition = find_repetition(messages, limit) if limit else None
        return "" if repetition is None else repetition.stop_message(owner=session_role(session) == "owner")

    def footnote_for(
        self, session: str, why: str, messages: Sequence[Message], model: str | None, now: datetime
    ) -> str:
        """What is added to the answer that `model` gave after these messages of the turn, because of the budget."""
        changed_midway = any(m.role == "assistant" and m.model != model for m in messages)
        if not changed_midway and self._was_shown(self._footnote_name(session, now)):
            return ""
        return budget_footnote(why, owner=session_role(session) == "owner", model_changed_midway=changed_midway)

    def mark_footnote_shown(self, session: str, now: datetime) -> None:
        """The answer is stored. Where this cannot be noted, the footnote is shown again."""
        with contextlib.suppress(StoreError):
            self._mark_shown(self._footnote_name(session, now), now)

    def _footnote_name(self, session: str, now: datetime) -> str:
        return f"footnote:{session}:{now.astimezone(self._zone).date().isoformat()}"


NO_TURN_GUARD = TurnGuard(UTC, lambda: 0)
"""Counts nothing."""
