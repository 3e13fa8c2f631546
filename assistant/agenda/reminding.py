"""Who minds the agenda: reminders and schedules are set, listed, paused and cancelled here, for tools and for people.

What always holds: what somebody sets is understood in full, by the clock of the home, or refused with how it was
understood; whoever sets something is told when it is due. A call that is repeated under its key sets nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.firing import Punctuality
from assistant.agenda.repeats import understood
from assistant.agenda.telling import by_hand
from assistant.agenda.times import told as as_people_read
from assistant.core.agenda_ports import Jobs, Wanted
from assistant.core.agenda_values import (
    LONGEST_NAME,
    LONGEST_PROMPT,
    LONGEST_REMINDER,
    CatchUp,
    Due,
    Job,
    Kind,
    NewJob,
    Once,
    Spec,
    cleaned,
)
from assistant.core.errors import UsageError
from assistant.core.plural import counted
from assistant.core.ports import ToolContext
from assistant.core.recurrence import due_after, how_often, next_due
from assistant.core.sessions import OWNER_SCOPE

# Of anybody but the owner: what they set must not fill the home.
MOST_OF_OTHERS = 100
SHORTEST_OF_OTHERS = timedelta(hours=1)
# So many times of a job are looked at for how close they come.
_COMPARED = 60
_NEXT_SHOWN = 2
# Looks at the wall clock after which something that is due and did not go off needs a person.
_WATCHES = 4


@dataclass(frozen=True, slots=True)
class Habits:
    """How a home keeps its agenda: its zone, what becomes of times that passed, how many jobs may wait, and how
    punctual it is."""

    zone: ZoneInfo
    catch_up: CatchUp
    most: int
    punctuality: Punctuality


class Agenda:
    """Implements `agenda_ports.Reminders`, and the same for schedules."""

    def __init__(self, jobs: Jobs, habits: Habits, changed: Callable[[], None]) -> None:
        """`changed` is called when something may be due at another time than before."""
        self.jobs = jobs
        self._habits = habits
        self._changed = changed

    @property
    def zone(self) -> ZoneInfo:
        return self._habits.zone

    # ------------------------------------------------------------------------------------------------------ setting

    async def remind(self, wanted: Wanted, now: datetime) -> Job:
        text = cleaned(wanted.text)
        _must_be_said(text, "reminder", LONGEST_REMINDER)
        return await self._set(replace(wanted, text=text, name=""), "reminder", now)

    async def schedule(self, wanted: Wanted, now: datetime) -> Job:
        """A prompt with a name, said for the owner whenever it is due."""
        text, name = cleaned(wanted.text, lines=True), cleaned(wanted.name)
        _must_be_said(text, "prompt", LONGEST_PROMPT)
        _must_be_said(name, "name", LONGEST_NAME)
        return await self._set(replace(wanted, text=text, name=name), "schedule", now)

    async def _set(self, wanted: Wanted, kind: Kind, now: datetime) -> Job:
        known = self.jobs.made_under(wanted.key, wanted.place.scope)
        if known is not None:
            return known
        # Languages are loaded from files, and some texts take long to read.
        spec, due = await asyncio.to_thread(understood, wanted.when, wanted.repeat, self.zone, now)
        habits, scope = self._habits, wanted.place.scope
        if scope != OWNER_SCOPE and _closest(spec, due, self.zone) < SHORTEST_OF_OTHERS:
            raise UsageError("That is too often: once an hour is the most here. Nothing was set.")
        # The setting is about times that repeat: what is due once is told, however late.
        catch_up = wanted.catch_up or ("once" if isinstance(spec, Once) else habits.catch_up)
        most = habits.most if scope == OWNER_SCOPE else min(habits.most, MOST_OF_OTHERS)
        new = NewJob(
            wanted.key, kind, wanted.place, wanted.text, spec, self.zone.key, catch_up, due, wanted.name, wanted.made_by
        )
        job = self.jobs.add(new, most, now)
        self._changed()
        return job

    async def remind_from(self, context: ToolContext, text: str, when: str, repeat: str) -> Job:
        found = self.jobs.place_of(context.turn)
        if found is None:
            raise UsageError("Nobody knows where this reminder was asked for. Nothing was set.")
        place, message_id = found
        return await self.remind(Wanted(context.key, place, text, when, repeat, made_by=message_id), context.now)

    # ----------------------------------------------------------------------------------------------------- changing

    def reminders(self, scope: str) -> Sequence[Job]:
        return self.jobs.waiting(scope, "reminder")

    def cancel_reminder(self, job_id: int, scope: str, key: str, now: datetime) -> Job:
        job = self.jobs.cancel(job_id, scope, "reminder", key, now)
        self._changed()
        return job

    def schedules(self, scope: str) -> Sequence[Job]:
        return self.jobs.waiting(scope, "schedule")

    def schedule_named(self, name: str, scope: str) -> Job:
        """By its name, or its number. Raises `UsageError`."""
        job = self.jobs.named(cleaned(name), scope)
        number = name.lstrip("#")[:18]
        if job is None and number.isascii() and number.isdigit():
            job = self.jobs.get(int(number), scope, "schedule")
        if job is None or job.state not in ("active", "paused"):
            names = ", ".join(repr(one.name) for one in self.schedules(scope)) or "none yet"
            raise UsageError(f"There is no schedule {name!r}. Nothing was changed. Schedules: {names}.")
        return job

    def remove(self, job: Job, key: str, now: datetime) -> None:
        self.jobs.cancel(job.id, job.place.scope, "schedule", key, now)
        self._changed()

    def pause(self, job: Job) -> None:
        self.jobs.pause(job.id, job.place.scope)
        self._changed()

    def resume(self, job: Job, now: datetime) -> Job:
        """Go on with the first time to come; those that passed meanwhile were not due. Raises `UsageError`."""
        if job.state != "paused" or job.due is None:
            raise UsageError(f"Schedule {job.name!r} is not paused. Nothing was changed.")
        due = due_after(job.spec, ZoneInfo(job.zone), job.due, now)
        self.jobs.resume(job.id, job.place.scope, due, now)
        self._changed()
        return replace(job, state="done" if due is None else "active", due=due)

    def run_now(self, job: Job, now: datetime) -> None:
        """Beside its times, which stay as they are."""
        self.jobs.fire(by_hand(job, self.zone, now), now)

    # ------------------------------------------------------------------------------------------------------ telling

    def told(self, job: Job) -> str:
        if job.due is None:
            return "never again"
        zone, punctuality = self.zone, self._habits.punctuality
        parts = [f"{as_people_read(job.due.at, zone)} ({zone.key})"]
        following = next_due(job.spec, ZoneInfo(job.zone), job.due)
        for _ in range(_NEXT_SHOWN):
            if following is not None:
                parts.append(f"then {as_people_read(following.at, zone)}")
                following = next_due(job.spec, ZoneInfo(job.zone), following)
        if often := how_often(job.spec):
            parts.append(f"and so on: {often}" if following is not None else often)
        told_at = punctuality.over(job.due.at)
        if told_at > job.due.at:
            parts.append(f"told {as_people_read(told_at, zone)}, after quiet hours ({punctuality.quiet})")
        return ", ".join(parts)


def _closest(spec: Spec, due: Due, zone: ZoneInfo) -> timedelta:
    """The shortest time between two of the next times of a job."""
    closest = timedelta.max
    for _ in range(_COMPARED):
        following = next_due(spec, zone, due)
        if following is None:
            break
        closest, due = min(closest, following.at - due.at), following
    return closest


def _must_be_said(text: str, what: str, most: int) -> None:
    if not text:
        raise UsageError(f"The {what} is empty. Nothing was set.")
    if len(text) > most:
        raise UsageError(f"The {what} has {len(text):,} characters; {most:,} is the most. Nothing was set.")


def problems(jobs: Jobs, punctuality: Punctuality, watch_seconds: float, now: datetime) -> Iterator[str]:
    """What of the agenda needs a person, for `status` (I11)."""
    missed = sum(jobs.missed().values())
    if missed:
        yield (
            f"{counted(missed, 'due time')} of reminders and schedules passed without anything done. "
            "`assistant schedule history` shows which, and then this is green again."
        )
    grace = max(punctuality.late, timedelta(seconds=_WATCHES * watch_seconds))
    window = punctuality.quiet.window(now) if punctuality.quiet is not None else None
    overdue = jobs.overdue((now if window is None else window[0]) - grace)
    if overdue:
        what = counted(overdue, "reminder or schedule", "reminders and schedules")
        yield f"{what} should have gone off and did not. Keep `assistant run` running."
