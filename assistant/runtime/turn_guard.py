"""Turns that repeat themselves, and the footnote under an answer of another model, because of the budget.

What a turn repeats is counted in what the log has of it, so that a turn that is taken up after a crash has no more
tries than any other; whatever the person says within a turn begins anew. The footnote says why another model answers,
once a day in each conversation and whenever the budget ended in the middle of an answer; it is noted as shown only
after the answer was stored, so that a crash shows it twice rather than never.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.sessions import session_role
from assistant.core.text import shorten

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
    outcomes = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    newest_request = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    times: Counter[tuple[str, str, str]] = Counter()
    idle_rounds = 0
    for message in messages[newest_request + 1 :]:
        # (tool, arguments, outcome); calls without an outcome yet do not count.
        calls = [
            (call.name, json.dumps(dict(call.arguments), sort_keys=True, default=str), outcomes[call.id])
            for call in message.tool_calls
            if call.id in outcomes
        ]
        if not calls:
            continue
        idle_rounds = 0 if any(call not in times for call in calls) else idle_rounds + 1
        times.update(calls)
        most_frequent = max(calls, key=lambda call: times[call])
        name, arguments = most_frequent[0], shorten(most_frequent[1], _LONGEST)
        if times[most_frequent] >= limit:
            return Repetition(name, arguments, times[most_frequent])
        if idle_rounds >= limit:
            return Repetition(name, arguments, idle_rounds, is_idle_rounds=True)
    return None


class TurnGuard:
    """Counts what turns repeat, and says once a day under an answer that the budget chose its model."""

    def __init__(
        self,
        zone: tzinfo,
        limit: Callable[[], int],
        was_shown: Callable[[str], bool],
        mark_shown: Callable[[str, datetime], None],
    ) -> None:
        """`limit` is `budget.runaway_calls`, asked for anew at each use; with 0 nothing is stopped. `was_shown` and
        `mark_shown` remember footnotes by name."""
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
        """What is added to the answer that `model` gave after these messages of the turn, because of the budget; `why`
        is what happened, as the person who asked may read it."""
        changed_midway = any(message.role == "assistant" and message.model != model for message in messages)
        if not changed_midway and self._was_shown(self._footnote_name(session, now)):
            return ""
        if session_role(session) != "owner":
            more = " What was found before is above." if changed_midway else ""
            return f"\n\n*({why} A simpler model answered.{more} Ask again later.)*"
        ran_out = (
            " That was in the middle of this answer: what was found before is in the conversation, and the "
            "answer was finished in offline mode. Say `go on` once there is budget again."
            if changed_midway
            else " So this is an answer of offline mode (no language model). `/retry` asks again once there is budget."
        )
        more = "A raised `[budget]` applies at once, and `/usage` shows what was spent; this is said once a day."
        return f"\n\n*({why}{ran_out} {more})*"

    def mark_footnote_shown(self, session: str, now: datetime) -> None:
        """The answer is stored. Where this cannot be noted, the footnote is shown again."""
        with contextlib.suppress(StoreError):
            self._mark_shown(self._footnote_name(session, now), now)

    def _footnote_name(self, session: str, now: datetime) -> str:
        return f"footnote:{session}:{now.astimezone(self._zone).date().isoformat()}"
