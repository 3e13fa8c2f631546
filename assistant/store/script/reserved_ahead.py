"""Worst cases that are reserved before their call is known, by the commit that accepts a message (I9).

That commit waits for the disk in any case. A call that costs no more than what it reserved replaces the row by its own,
without another wait: after a power cut, either row counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assistant.core.budget import PeriodSpend, call_spend
from assistant.core.dataclass import dataclass
from assistant.core.model_api import ModelCall

# By how much the next prompt of a session may grow beside the message: recalled words, the last answer, cold caches.
_MARGIN = 1.1
_MARGIN_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class ReservedAhead:
    """A reservation for a session's next call: `id` of its row, what it allows, and the day and month it counts in."""

    id: int
    call: ModelCall
    periods: Mapping[str, str]

    def covers(self, call: ModelCall, periods: Mapping[str, str]) -> bool:
        """Return whether the call may cost no more than this, in the same periods."""
        allowed = self.call
        tokens = call.input_tokens + call.max_output <= allowed.input_tokens + allowed.max_output
        if call.usd is None or allowed.usd is None:
            return tokens and call.usd is allowed.usd and periods == self.periods
        return tokens and call.usd <= allowed.usd and periods == self.periods


def worst_case(call: ModelCall) -> PeriodSpend:
    return call_spend(call.usd, call.input_tokens + call.max_output, calls=1)


def expect_next_call(last: ModelCall, characters: int) -> ModelCall:
    """Return what the call after `last` in its session may cost, with a new message of that many characters."""
    tokens = last.input_tokens + last.max_output
    more = int(_MARGIN * tokens) - tokens + _MARGIN_TOKENS + characters
    usd = last.usd and last.usd * (tokens + more) / tokens
    return replace(last, input_tokens=last.input_tokens + more, usd=usd, turn=None)
