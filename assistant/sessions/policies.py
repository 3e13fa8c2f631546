"""When conversations end by themselves: daily at an hour, or after nobody spoke for a while. Pure.

What always holds: only a generation in which something was said ends by a policy, so that none ends twice for one
night or one silence. There is one daily slot for each date of the home's zone, whatever its clocks do: an hour that
comes twice has one, and in an hour that is left out it comes when that hour would have been. A clock that was set back
makes a reset due later, never again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from assistant.core.sessions import EndReason, GenerationActivity, SessionKind, session_kind
from sleep.cycle.schedule import SleepSchedule, is_late_start

SessionResetPolicy = Literal["manual", "daily", "idle"]

# A sleep of the same night that does not come to its end is not waited for all day.
_LONGEST_WAIT_FOR_SLEEP = timedelta(hours=2)
# So long after its hour a daily reset that did not happen is told of.
_OVERDUE = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class DueReset:
    """A generation that is to end now, and why. `slot` is when it was due; `late`: a good while ago, as where nobody
    was up then."""

    session: str
    generation: int
    reason: EndReason
    slot: datetime
    late: bool


@dataclass(frozen=True, slots=True)
class ResetPolicies:
    """What holds in a home: a policy for each kind of session, the hour of daily resets in the home's zone, the minutes
    of an idle one."""

    of: Mapping[SessionKind, SessionResetPolicy]
    at: str
    idle: timedelta
    zone: tzinfo

    @property
    def any(self) -> bool:
        """Whether any conversation ends by itself."""
        return any(policy != "manual" for policy in self.of.values())

    def policy(self, session: str) -> SessionResetPolicy:
        return self.of[session_kind(session)]

    def due(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """Whether the current generation is to end now."""
        if spoken.first_at is None or spoken.last_at is None:
            return None
        slot: datetime | None = None
        reason: EndReason = "idle"
        match self.policy(spoken.session):
            case "daily":
                reason, slot = "daily", SleepSchedule(self.at, self.zone).due(None, spoken.first_at, now)
            case "idle" if now - spoken.last_at >= self.idle:
                slot = spoken.last_at + self.idle
        if slot is None:
            return None
        return DueReset(spoken.session, spoken.generation, reason, slot, is_late_start(slot, now))

    def overdue(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """A daily reset that should have happened long ago."""
        due = self.due(spoken, now)
        return due if due is not None and due.reason == "daily" and now - due.slot > _OVERDUE else None


def waits_for_sleep(due: DueReset, night_is_due: bool, since: datetime, now: datetime) -> bool:
    """Whether a daily reset, known to be due `since`, comes after a sleep that is due as well."""
    return due.reason == "daily" and night_is_due and now - since < _LONGEST_WAIT_FOR_SLEEP
