"""Handles jumps of the wall clock: reports them, and plans again what was done while the clock was ahead.

What is valid for some time (codes, approvals, permissions) ends by the clock, and after that much time at most: when
the clock is set back, so are the ends.

What was spent counts in the day and month that the clock shows after a jump.

A clock that is ahead ends slots that are still in the future. When it is set back across the recorded jump, these slots
are restored: repeating jobs are due at their next time, and what was sent too early is sent again at the right time, or
late if that passed meanwhile. A clock behind all stored times undoes and repeats nothing; `status` reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import format_lateness
from assistant.agenda.recurrence import first_due
from assistant.core.calendar import format_moment
from assistant.core.errors import StoreError
from assistant.core.jobs import DueSlot
from assistant.core.logger import get_logger
from assistant.core.notices import Notice, NoticeKind
from assistant.core.text import pluralize
from assistant.service.clock import HOLD, TOLERANCE, ClockStep, SteadyClock
from assistant.store.script.clock_steps import UNNOTICED, ClockSteps
from assistant.store.script.spending_periods import SpendingCarrier

log = get_logger()

_NOTHING_REPEATED = "Nothing that was done is done again."


class ClockChanges:
    def __init__(
        self,
        clock: SteadyClock | None,
        steps: ClockSteps,
        spending: SpendingCarrier,
        zone: ZoneInfo,
        send: Callable[[Notice], None],
    ) -> None:
        """`clock` is watched; None if times are passed by the caller. `send` sends a notice to the owner."""
        self._clock = clock
        self._steps = steps
        self._spending = spending
        self._zone = zone
        self._send = send

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up: the clock may have been set while nothing ran. Raises `StoreError`."""
        newest = self._steps.newest_moment(now)
        if newest is None:
            return
        if now < newest - TOLERANCE:
            if (skipped := self._steps.skipped(now)) is not None:
                # The newest thing stored may be older than when the clock was set right; it was ahead by its jump.
                self._set_back(newest, now, ahead=skipped[1] - skipped[0])
            else:
                self._spending.carry(newest, now)
        elif now - newest > UNNOTICED:
            # The clock may be ahead since before this process started.
            self._steps.record(newest, now)

    def check(self) -> None:
        """Called at every wake-up."""
        try:
            self._end_steps()
        except StoreError as error:
            # After a crash, the next start detects from stored times that the clock was set back.
            log.error("a jump of the clock was not noted", error=str(error))

    def _end_steps(self) -> None:
        for step in self._clock.take_ended() if self._clock is not None else ():
            log.warning("the wall clock jumped", kind=step.kind, time=str(step.time), shown=str(step.shown))
            if step.kind == "returned":
                self._tell(NoticeKind.CLOCK_RIGHT_AGAIN, step.time, step.shown)
            elif step.shown > step.time:
                self._steps.record(step.time, step.shown)
                self._spending.carry(step.time, step.shown)
                self._tell(NoticeKind.CLOCK_AHEAD, step.time, step.shown)
            else:
                self._set_back(step.time, step.shown, ahead=step.time - step.shown)

    def _set_back(self, time: datetime, now: datetime, *, ahead: timedelta) -> None:
        self._steps.set_ends_back(time, now)
        skipped = self._steps.skipped(now)
        self._spending.carry(time, now, corrected=skipped is not None)
        planned = 0
        if skipped is not None:
            dues = self._due_again(skipped[1], now, ahead)
            self._steps.plan_again(dues, skipped[1], now)
            planned = len(dues)
        self._steps.record(time, now)
        again = (
            f"{pluralize(planned, 'reminder or schedule', 'reminders and schedules')} that the wrong time had moved or "
            "sent too early will come at the right time, or now if it has passed; `/remind` lists what waits, and any "
            "that you set meanwhile."
        )
        self._tell(NoticeKind.CLOCK_BACK, time, now, planned=again if planned else _NOTHING_REPEATED)

    def _due_again(self, since: datetime, now: datetime, ahead: timedelta) -> dict[int, DueSlot]:
        """Return the next slot of each job of which the wrong clock ended one before its time."""
        dues = {
            job.id: due
            for job in self._steps.fired_early(since, now)
            if (due := first_due(job.spec, ZoneInfo(job.zone), now)) is not None
        }
        for job, passed in self._steps.fired_before_time(since, now, ahead):
            # Unless its times were changed meanwhile.
            due = first_due(job.spec, ZoneInfo(job.zone), passed.at - timedelta.resolution)
            if due is not None and due.at == passed.at:
                dues[job.id] = passed
        return dues

    def _tell(self, kind: NoticeKind, time: datetime, shown: datetime, planned: str = "") -> None:
        notice = kind.fill(
            f"{time.isoformat()}:{shown.isoformat()}",
            by=format_lateness(abs(shown - time)),
            time=format_moment(_whole(time), self._zone),
            shown=format_moment(_whole(shown), self._zone),
            planned=planned,
        )
        self._send(notice)

    def problems(self, now: datetime) -> Iterator[str]:
        """Return the current problems, for `status`."""
        step = self._clock.held_step() if self._clock is not None else None
        if step is not None:
            yield self._held_text(step)
            return
        newest = self._steps.newest_moment(now)
        if newest is not None and now < newest - TOLERANCE:
            yield (
                f"The clock of this machine shows {format_moment(_whole(now), self._zone)}, which is before the newest "
                f"thing stored ({format_moment(_whole(newest), self._zone)}). Nothing is lost or repeated; reminders "
                "come by this clock. Set it right, if it is wrong."
            )

    def _held_text(self, step: ClockStep) -> str:
        if step.kind == "refused":
            return (
                "The clock of this machine shows a year before 1970 or after 9799, in which nothing can be planned. I "
                f"go on from the time before, now {format_moment(_whole(step.time), self._zone)}. Set it right."
            )
        return (
            f"The clock of this machine jumped to {format_moment(_whole(step.shown), self._zone)}. I keep to the "
            f"time from before, {format_moment(_whole(step.time), self._zone)}, for {HOLD.seconds // 60} minutes, in "
            "case it comes back. Set it right, if it is wrong."
        )


def _whole(moment: datetime) -> datetime:
    """Format a time to the minute."""
    return moment.replace(second=0, microsecond=0)
