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
from assistant.core.sleep_schedule import SleepSchedule, is_late_start

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

    by_kind: Mapping[SessionKind, SessionResetPolicy]
    at: str
    idle: timedelta
    zone: tzinfo

    @property
    def has_automatic(self) -> bool:
        """Whether any conversation ends by itself."""
        return any(policy != "manual" for policy in self.by_kind.values())

    def policy_of_session(self, session: str) -> SessionResetPolicy:
        return self.by_kind[session_kind(session)]

    def due_reset(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """Whether the current generation is to end now."""
        if spoken.first_at is None or spoken.last_at is None:
            return None
        slot: datetime | None = None
        reason: EndReason = "idle"
        match self.policy_of_session(spoken.session):
            case "daily":
                reason, slot = "daily", SleepSchedule(self.at, self.zone).find_due_night(None, spoken.first_at, now)
            case "idle" if now - spoken.last_at >= self.idle:
                slot = spoken.last_at + self.idle
        if slot is None:
            return None
        return DueReset(spoken.session, spoken.generation, reason, slot, is_late_start(slot, now))

    def overdue_reset(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """A daily reset that should have happened long ago."""
        due = self.due_reset(spoken, now)
        return due if due is not None and due.reason == "daily" and now - due.slot > _OVERDUE else None


def waits_for_sleep(reset: DueReset, night_is_due: bool, since: datetime, now: datetime) -> bool:
    """Whether a daily reset, known to be due `since`, comes after a sleep that is due as well."""
    return reset.reason == "daily" and night_is_due and now - since < _LONGEST_WAIT_FOR_SLEEP
