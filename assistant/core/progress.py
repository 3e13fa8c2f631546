"""Whether the runtime gets on: not that it lives, but that it passes (F40). Pure; `at` is monotonic, in seconds.

One probe serves the service manager's watchdog and `assistant status`. It is asked again and again, at every beat, and
each time compares what the runtime is at with what it was at before: passes that were completed, turns that run,
sessions that wait although nothing keeps them. A home that cannot be written is no fault here: it is told by itself,
and a new start would not mend it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What a turn may take beyond its own limit: to be cancelled, and to note that it failed.
TURN_GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Lanes:
    """What the runtime is at: `passes` it completed so far; the sessions of turns that run, by the turns' ids; sessions
    that wait for a turn while none runs and no trouble is known that keeps them."""

    passes: int
    turns: Mapping[str, str] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()


class Progress:
    """Remembers since when each thing has been as it is."""

    def __init__(self, turn_seconds: float) -> None:
        """`turn_seconds` is the longest that a turn may take (turn.max_seconds)."""
        self._longest = turn_seconds + TURN_GRACE_SECONDS
        self._passes = -1
        self._passed_at = 0.0
        self._since: dict[tuple[str, str], float] = {}
        self._lag = 0.0
        self.fault = ""

    def beat(self, lanes: Lanes, at: float, *, late: float, every: float) -> str:
        """Look now: what is wrong, as a sentence, or "". `every` is the time between two beats, at each of which the
        runtime is asked to pass; `late` is by how much this one came after its time."""
        if lanes.passes != self._passes:
            self._passes, self._passed_at = lanes.passes, at
        seen = {("turn", turn) for turn in lanes.turns} | {("waiting", session) for session in lanes.waiting}
        self._since = {one: self._since.get(one, at) for one in seen}
        self._lag = max(late, 0.0)
        self.fault = self._fault(lanes, at, every)
        return self.fault

    def status(self) -> Mapping[str, Any]:
        """What the last beat found."""
        return {"stalled": self.fault, "loop_lag_seconds": round(self._lag, 3)}

    def _fault(self, lanes: Lanes, at: float, every: float) -> str:
        # One beat without a pass may be chance.
        if at - self._passed_at > every * 1.5:
            return f"The runtime has not passed for {at - self._passed_at:.0f} s."
        if self._lag > every:
            return f"Everything stood still for {self._lag:.0f} s."
        for (kind, name), since in sorted(self._since.items()):
            if at - since <= self._longest:
                continue
            if kind == "turn":
                return f"A turn of {lanes.turns[name]} has not ended for {at - since:.0f} s, and cannot be ended."
            return f"Messages of {name} have waited for {at - since:.0f} s, and no turn takes them."
        return ""
