"""Recent turn outcomes, kept in memory; what a turn said is in the stores permanently. And the conversations that wait
for an answer, as `status` reports them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.calendar import format_moment
from assistant.core.model_api import Fallback
from assistant.core.records import FailedTurn, InboxItem
from assistant.core.sessions import MAIN_SESSION, session_role
from assistant.core.text import pluralize
from assistant.runtime.turn import TurnOutcome
from assistant.store.script.notices import StoredOutages
from assistant.store.script.turns import UserRequests

_OUTCOMES_KEPT = 256
_LINES_SHOWN = 3
# A guest who has not written again after this is not waiting any more; the owner decides that for themselves.
_OTHERS_WAIT = timedelta(days=1)


class TurnOutcomes:
    """Outcomes of the most recent turns of this process."""

    def __init__(self) -> None:
        self._by_turn: OrderedDict[str, TurnOutcome] = OrderedDict()

    def add(self, outcome: TurnOutcome) -> None:
        self._by_turn[outcome.turn] = outcome
        while len(self._by_turn) > _OUTCOMES_KEPT:
            self._by_turn.popitem(last=False)

    def describe_result(self, item: InboxItem, sent: str, notices: list[str]) -> dict[str, Any]:
        """Return the result of an accepted message; `sent` is its turn's answer, `notices` its other deliveries."""
        outcome = self._by_turn.get(item.turn or "")
        answered = item.state == "answered"
        failed = item.state not in ("accepted", "running", "answered")
        text = outcome.text if outcome else sent
        fallback = outcome.fallback if outcome else None
        return {
            "state": item.state,
            "reply": text if answered else "",
            "error": text if failed else "",
            "exit_code": (outcome.exit_code if outcome else 1) if failed else 0,
            "session": item.incoming.session,
            "turn": item.turn,
            "model": outcome.model if outcome else None,
            "fallback": outcome.fallback is not None if outcome else None,
            "fallback_reason": describe_fallback(fallback) if fallback else "",
            "notices": notices,
            "usage": asdict(outcome.usage) if outcome else None,
            "pressure": round(outcome.pressure, 4) if outcome else None,
        }


def describe_fallback(fallback: Fallback) -> str:
    """Describe, for API clients, which model answered and why."""
    first, *others = fallback.failures
    more = "".join(f"; {failure.name} did not either: {failure.reason}" for failure in others)
    return f"{fallback.answering} answered, because {first.name} did not: {first.reason}{more}."


def find_unanswered_problems(
    requests: UserRequests, outages: StoredOutages, zone: ZoneInfo, now: datetime
) -> Iterator[str]:
    """Yield a line for each conversation whose last message was not answered, until it has an answer. What an outage
    explains is not told twice."""
    began = min((outage.began_at for outage in outages.list_outages()), default=None)
    failed = [
        turn
        for turn in requests.list_failed_turns()
        if (began is None or turn.ended_at < began)
        and (session_role(turn.session) == "owner" or now - turn.ended_at < _OTHERS_WAIT)
    ]
    # The newest are the ones that somebody still waits for.
    for turn in failed[-_LINES_SHOWN:]:
        yield _unanswered_line(turn, zone)
    if more := failed[:-_LINES_SHOWN]:
        yield f"Not answered either: the last message of {pluralize(len(more), 'more conversation')}."


def _unanswered_line(turn: FailedTurn, zone: ZoneInfo) -> str:
    where = "" if turn.session == MAIN_SESSION else f" in {turn.session}"
    return f"The last message{where} is not answered, since {format_moment(turn.ended_at, zone)}: {turn.error}"
