"""How turns ended, for a client that asks what became of a message. Pure.

What a turn said is in the stores for good; how it ended is known for a while, to the process it ran in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from assistant.core.messages import Usage
from assistant.core.records import InboxItem, TurnState

_MOST = 256


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended. `text` is what was sent; `exit_code` as on the command line."""

    turn: str
    session: str
    state: TurnState
    text: str
    exit_code: int = 0
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    pressure: float = 0.0


class TurnOutcomes:
    """Those of the turns that ended last."""

    def __init__(self) -> None:
        self._by_turn: OrderedDict[str, TurnOutcome] = OrderedDict()

    def add(self, outcome: TurnOutcome) -> None:
        self._by_turn[outcome.turn] = outcome
        while len(self._by_turn) > _MOST:
            self._by_turn.popitem(last=False)

    def describe_result(self, item: InboxItem, sent: Sequence[str]) -> dict[str, Any]:
        """What became of an accepted message (see `DaemonControl.result`); `sent` is what its turn sent."""
        outcome = self._by_turn.get(item.turn or "")
        ended = item.state not in ("accepted", "running")
        failed = ended and item.state != "answered"
        text = outcome.text if outcome else (sent[0] if sent else "")
        return {
            "state": item.state,
            "reply": text if item.state == "answered" else "",
            "error": text if failed else "",
            "exit_code": (outcome.exit_code if outcome else 1) if failed else 0,
            "session": item.incoming.session,
            "turn": item.turn,
            "model": outcome.model if outcome else None,
            "usage": asdict(outcome.usage) if outcome else None,
            "pressure": round(outcome.pressure, 4) if outcome else None,
        }
