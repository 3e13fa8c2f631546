"""Measures how full the contexts of all conversations are, for the status, at a cost independent of their number.

A conversation is measured again only after it changed. One call reads the messages of a few views at most and estimates
the others from their totals; the next calls measure those. A new pin counts from the next message on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from assistant.runtime.context_meter import ContextMeter

# Limit of messages that one call reads, which takes some milliseconds.
_MESSAGES_AT_ONCE = 200


class ContextPressures:
    def __init__(self, meter: ContextMeter) -> None:
        self._meter = meter
        # By session: the state it was measured in, and how full it was.
        self._measured: dict[str, tuple[Hashable, float]] = {}

    def measure(self, sessions: Sequence[Mapping[str, Any]], state: Hashable) -> dict[str, float]:
        """Return by session how full its context is, 0-1 and above; {} while the model's limits are unknown.

        `sessions` are rows of the status, the most recent first; `state` is what else all prompts depend on.
        Raises `StoreError`."""
        if not self._meter.knows_model:
            return {}
        found: dict[str, float] = {}
        left = _MESSAGES_AT_ONCE
        for row in sessions:
            session, now = row["session"], (state, self._meter.chosen_model, *row.values())
            known = self._measured.get(session)
            if known is not None and known[0] == now:
                found[session] = known[1]
            elif left > 0:
                left -= max(1, row["in_view"])
                found[session] = self._meter.pressure_ratio(session)
                self._measured[session] = now, found[session]
            else:
                found[session] = self._meter.approximate_ratio(row["view_tokens"])
        self._measured = {session: known for session, known in self._measured.items() if session in found}
        return found
