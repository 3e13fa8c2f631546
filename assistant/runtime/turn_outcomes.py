"""Recent turn outcomes, kept in memory; what a turn said is in the stores permanently."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from assistant.core.model_api import Fallback
from assistant.core.records import InboxItem
from assistant.runtime.turn import TurnOutcome

_OUTCOMES_KEPT = 256


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
