"""What became of the turns that ended last, as the sender of a message is told. The process that a turn ran in knows
how it ended for a while; what it said is in the stores for good."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from assistant.core.records import InboxItem
from assistant.runtime.turn import TurnOutcome, describe_fallback

_OUTCOMES_KEPT = 256


class TurnOutcomes:
    """How the turns that ended last ended: what a turn said is in the stores for good, how it ended is known for a
    while, to the process it ran in."""

    def __init__(self) -> None:
        self._by_turn: OrderedDict[str, TurnOutcome] = OrderedDict()

    def add(self, outcome: TurnOutcome) -> None:
        self._by_turn[outcome.turn] = outcome
        while len(self._by_turn) > _OUTCOMES_KEPT:
            self._by_turn.popitem(last=False)

    def describe_result(self, item: InboxItem, sent: str, notices: list[str]) -> dict[str, Any]:
        """What became of an accepted message; `sent` is what its turn answered, `notices` what it told beside that."""
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
