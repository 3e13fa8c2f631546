"""Detects turns that repeat themselves, and adds a footnote to answers of another model when the budget is used up.

Repetitions are counted in the log, so that a resumed turn gets no additional attempts; a new message of the user resets
the count. The footnote appears once a day per session, and whenever the budget ran out in the middle of an answer; it
is marked as shown only after the answer was stored, so that a crash may show it twice but never drops it.
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
from assistant.core.model_api import OFFLINE_MODEL
from assistant.core.sessions import session_role
from assistant.core.text import shorten

_LONGEST = 200
_OFFLINE_MODE = "offline mode (no language model)"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A detected repetition."""

    name: str  # of the tool
    arguments: str  # as JSON
    times: int  # calls with the same outcome, or rounds without anything new
    is_idle_rounds: bool = False

    def stop_message(self, *, owner: bool) -> str:
        """Return the answer that ends the turn. Guests are not told of tools and settings."""
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
    """Return what was repeated `limit` times since the user's latest message, or None."""
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
    """Ends repetitive turns, and adds the daily budget footnote."""

    def __init__(
        self,
        zone: tzinfo,
        limit: Callable[[], int],
        was_shown: Callable[[str], bool],
        mark_shown: Callable[[str, datetime], None],
    ) -> None:
        """`limit` returns the current `budget.runaway_calls`; 0 disables the check. `was_shown` and `mark_shown`
        persist footnotes by name."""
        self._zone = zone
        self._limit = limit
        self._was_shown = was_shown
        self._mark_shown = mark_shown

    def stop_reason(self, session: str, messages: Sequence[Message]) -> str:
        """Return why the turn has to end now, or ""."""
        limit = self._limit()
        repetition = find_repetition(messages, limit) if limit else None
        return "" if repetition is None else repetition.stop_message(owner=session_role(session) == "owner")

    def footnote_for(
        self, session: str, why: str, messages: Sequence[Message], model: str | None, now: datetime, *, body: str = ""
    ) -> str:
        """Return the footnote for the answer `body` of `model` after these messages, or ""; `why` is the reason as the
        user may read it."""
        changed_midway = any(message.role == "assistant" and message.model != model for message in messages)
        if not changed_midway and self._was_shown(self._footnote_name(session, now)):
            return ""
        if session_role(session) != "owner":
            more = " What was found before is above." if changed_midway else ""
            return f"\n\n*({why} A simpler model answered.{more} Ask again later.)*"
        answering = _OFFLINE_MODE if model in (None, OFFLINE_MODEL) else model
        # The first answer of offline mode says itself what it is.
        by_whom = "" if _OFFLINE_MODE in body else f" So this is an answer of {answering}."
        ran_out = (
            " That was in the middle of this answer: what was found before is in the conversation, and the "
            f"answer was finished by {answering}. Say `go on` once there is budget again."
            if changed_midway
            else f"{by_whom} `/retry` asks again once there is budget."
        )
        more = "`/usage` shows what was spent."
        more += "" if changed_midway else " This is said once a day."
        return f"\n\n*({why}{ran_out} {more})*"

    def mark_footnote_shown(self, session: str, now: datetime) -> None:
        """Mark the footnote as shown, after the answer was stored. If that fails, it is shown again."""
        with contextlib.suppress(StoreError):
            self._mark_shown(self._footnote_name(session, now), now)

    def _footnote_name(self, session: str, now: datetime) -> str:
        return f"footnote:{session}:{now.astimezone(self._zone).date().isoformat()}"
