"""The agenda: reminders and schedules are set, listed, paused and cancelled here, for tools and for people.

What a person sets is understood in full, by the clock of the home's zone, or refused with how it was understood;
the answer says when it is due. A call that is repeated under its key sets nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LatenessPolicy, build_manual_run
from assistant.agenda.recurrence import describe_recurrence, next_due, next_due_after
from assistant.agenda.repeat_phrases import parse_schedule
from assistant.core.calendar import format_moment
from assistant.core.errors import UsageError
from assistant.core.jobs import (
    MAX_JOB_NAME_CHARACTERS,
    MAX_PROMPT_CHARACTERS,
    MAX_REMINDER_CHARACTERS,
    CatchUpPolicy,
    DueSlot,
    Job,
    JobKind,
    JobRequest,
    NewJob,
    OneTimeSpec,
    ScheduleSpec,
)
from assistant.core.ports import ToolContext
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, strip_control_characters
from assistant.store.script.jobs import Jobs

# Of anybody but the owner: what they set must not fill the home.
MAX_JOBS_OF_OTHERS = 100
MIN_INTERVAL_OF_OTHERS = timedelta(hours=1)
# So many times of a job are looked at for how close they come.
_COMPARED = 60
_NEXT_SHOWN = 2
# Looks at the wall clock after which something that is due and did not go off needs a person.
_WATCHES = 4


@dataclass(frozen=True, slots=True)
class AgendaConfig:
    """How a home keeps its agenda."""

    zone: ZoneInfo
    catch_up: CatchUpPolicy  # what becomes of times that passed
    max_pending: int  # how many jobs may wait
    punctuality: LatenessPolicy


class AgendaService:
    """Who minds reminders. Every method raises `UsageError` with what to do differently; then nothing was changed."""

    def __init__(self, jobs: Jobs, config: AgendaConfig, changed: Callable[[], None]) -> None:
        """`changed` is called when something may be due at another time than before."""
        self.jobs = jobs
        self._config = config
        self._changed = changed

    @property
    def zone(self) -> ZoneInfo:
        return self._config.zone

    # ------------------------------------------------------------------------------------------------------ setting

    async def create_reminder(self, request: JobRequest, now: datetime) -> Job:
        text = strip_control_characters(request.text)
        _check_length(text, "reminder", MAX_REMINDER_CHARACTERS)
        return await self._set(replace(request, text=text, name=""), "reminder", now)

    async def create_schedule(self, request: JobRequest, now: datetime) -> Job:
        """A prompt with a name, said for the owner whenever it is due."""
        text, name = strip_control_characters(request.text, keep_newlines=True), strip_control_characters(request.name)
        _check_length(text, "prompt", MAX_PROMPT_CHARACTERS)
        _check_length(name, "name", MAX_JOB_NAME_CHARACTERS)
        return await self._set(replace(request, text=text, name=name), "schedule", now)

    async def _set(self, request: JobRequest, kind: JobKind, now: datetime) -> Job:
        existing = self.jobs.find_by_key(request.key, request.place.scope)
        if existing is not None:
            return existing
        # Languages are loaded from files, and some texts take long to read.
        spec, due = await asyncio.to_thread(parse_schedule, request.when, request.repeat, self.zone, now)
        config, scope = self._config, request.place.scope
        if scope != OWNER_SCOPE and _closest(spec, due, self.zone) < MIN_INTERVAL_OF_OTHERS:
            raise UsageError("That is too often: once an hour at most here. Nothing was set.")
        # The setting is about times that repeat: what is due once is told, however late.
        catch_up = request.catch_up or ("once" if isinstance(spec, OneTimeSpec) else config.catch_up)
        limit = config.max_pending if scope == OWNER_SCOPE else min(config.max_pending, MAX_JOBS_OF_OTHERS)
        new = NewJob(
            request.key,
            kind,
            request.place,
            request.text,
            spec,
            self.zone.key,
            catch_up,
            due,
            request.name,
            request.made_by,
        )
        job = self.jobs.add(new, limit, now)
        self._changed()
        return job

    async def create_reminder_from_tool(self, context: ToolContext, text: str, when: str, repeat: str) -> Job:
        """A reminder that a tool sets, for where the newest message of its turn came from."""
        origin = self.jobs.origin_of_turn(context.turn)
        if origin is None:
            raise UsageError("It is not known where this reminder was asked for. Nothing was set.")
        place, message_id = origin
        return await self.create_reminder(
            JobRequest(context.key, place, text, when, repeat, made_by=message_id), context.now
        )

    # ----------------------------------------------------------------------------------------------------- changing

    def list_reminders(self, scope: str) -> Sequence[Job]:
        return self.jobs.list_waiting(scope, "reminder")

    def cancel_reminder(self, job_id: int, scope: str, key: str, now: datetime) -> Job:
        job = self.jobs.cancel(job_id, scope, "reminder", key, now)
        self._changed()
        return job

    def list_schedules(self, scope: str) -> Sequence[Job]:
        return self.jobs.list_waiting(scope, "schedule")

    def find_schedule(self, name: str, scope: str) -> Job:
        """By its name, or its number. Raises `UsageError`."""
        job = self.jobs.find_by_name(strip_control_characters(name), scope)
        number = name.lstrip("#")[:18]
        if job is None and number.isascii() and number.isdigit():
            job = self.jobs.get_job(int(number), scope, "schedule")
        if job is None or job.state not in ("active", "paused"):
            names = ", ".join(repr(schedule.name) for schedule in self.list_schedules(scope)) or "none yet"
            raise UsageError(f"There is no schedule {name!r}. Nothing was changed. Schedules: {names}.")
        return job

    def remove_schedule(self, job: Job, key: str, now: datetime) -> None:
        self.jobs.cancel(job.id, job.place.scope, "schedule", key, now)
        self._changed()

    def pause_schedule(self, job: Job) -> None:
        self.jobs.pause(job.id, job.place.scope)
        self._changed()

    def resume_schedule(self, job: Job, now: datetime) -> Job:
        """Go on with the first time to come; those that passed meanwhile were not due. Raises `UsageError`."""
        if job.state != "paused" or job.due is None:
            raise UsageError(f"Schedule {job.name!r} is not paused. Nothing was changed.")
        due = next_due_after(job.spec, ZoneInfo(job.zone), job.due, now)
        self.jobs.resume(job.id, job.place.scope, due, now)
        self._changed()
        return replace(job, state="done" if due is None else "active", due=due)

    def run_schedule_now(self, job: Job, now: datetime) -> None:
        """Beside its times, which stay as they are."""
        self.jobs.apply_firing(build_manual_run(job, self.zone, now), now)

    # ------------------------------------------------------------------------------------------------------ telling

    def describe_due(self, job: Job) -> str:
        """How often and when it is due, as people read it: one line."""
        if job.due is None:
            return "never again"
        zone, punctuality = self.zone, self._config.punctuality
        parts = [f"{format_moment(job.due.at, zone)} ({zone.key})"]
        following = next_due(job.spec, ZoneInfo(job.zone), job.due)
        for _ in range(_NEXT_SHOWN):
            if following is not None:
                parts.append(f"then {format_moment(following.at, zone)}")
                following = next_due(job.spec, ZoneInfo(job.zone), following)
        told_at = punctuality.next_allowed(job.due.at)
        if told_at > job.due.at:
            parts.append(f"sent {format_moment(told_at, zone)}, after quiet hours ({punctuality.quiet})")
        often = describe_recurrence(job.spec)
        return f"{often}: {', '.join(parts)}" if often else ", ".join(parts)


def _closest(spec: ScheduleSpec, due: DueSlot, zone: ZoneInfo) -> timedelta:
    """The shortest time between two of the next times of a job."""
    closest = timedelta.max
    for _ in range(_COMPARED):
        following = next_due(spec, zone, due)
        if following is None:
            break
        closest, due = min(closest, following.at - due.at), following
    return closest


def _check_length(text: str, what: str, limit: int) -> None:
    if not text:
        raise UsageError(f"The {what} is empty. Nothing was set.")
    if len(text) > limit:
        raise UsageError(f"The {what} has {len(text):,} characters; {limit:,} are allowed. Nothing was set.")


def find_agenda_problems(jobs: Jobs, punctuality: LatenessPolicy, watch_seconds: float, now: datetime) -> Iterator[str]:
    """What of the agenda needs a person, for `status` (I11)."""
    missed = sum(jobs.count_missed().values())
    if missed:
        yield (
            f"{pluralize(missed, 'due time')} of reminders and schedules passed without anything done. "
            "`assistant schedule history` shows which, and then this warning ends."
        )
    grace = max(punctuality.late_after, timedelta(seconds=_WATCHES * watch_seconds))
    window = punctuality.quiet.window(now) if punctuality.quiet is not None else None
    overdue = jobs.count_overdue((now if window is None else window[0]) - grace)
    if overdue:
        what = pluralize(overdue, "reminder or schedule", "reminders and schedules")
        yield f"{what} should have been sent and were not. Keep `assistant run` running."
