"""The agenda service: sets, lists, pauses and cancels reminders and schedules, for tools and people.

A time is understood completely, in the time zone of the data folder, or refused with how it was understood; the answer
says when it is due. A call repeated under its key sets nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.attendance import NOBODY_SAYS_WHETHER, nothing_will_run
from assistant.agenda.catch_up import LatenessPolicy, build_manual_run
from assistant.agenda.recurrence import describe_recurrence, move_rule, next_due, next_due_after
from assistant.agenda.repeat_phrases import parse_schedule
from assistant.agenda.time_phrases import counts_from_now, find_named_day
from assistant.core.calendar import format_moment, format_zone
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.jobs import (
    MAX_JOB_NAME_CHARACTERS,
    MAX_PROMPT_CHARACTERS,
    MAX_REMINDER_CHARACTERS,
    CatchUpPolicy,
    CronSpec,
    DueSlot,
    Job,
    JobKind,
    JobRequest,
    NewJob,
    OneTimeSpec,
    RRuleSpec,
    ScheduleSpec,
)
from assistant.core.ports import ToolContext
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import strip_control_characters
from assistant.store.script.jobs import Jobs

# Limit for people other than the owner, so that they cannot fill the store.
MAX_JOBS_OF_OTHERS = 100
MIN_INTERVAL_OF_OTHERS = timedelta(hours=1)
# Number of a job's next times checked for how close they are.
_COMPARED = 60
# Said for a time, it leaves out the next one.
SKIPS_NEXT = "skip"
_ONCE = ("once", "never", "none", "no", "einmal", "une fois", "una vez")
_NEXT_SHOWN = 2


@dataclass(frozen=True, slots=True)
class AgendaConfig:
    """The settings of the agenda."""

    zone: ZoneInfo
    catch_up: CatchUpPolicy  # what happens with missed times
    max_pending: int  # maximum number of waiting jobs
    lateness: LatenessPolicy


class AgendaService:
    """Manages reminders and schedules. Every method raises `UsageError` with what to do differently, with nothing
    changed."""

    def __init__(self, jobs: Jobs, config: AgendaConfig, changed: Callable[[], None]) -> None:
        """`changed` is called when the next due time may have changed."""
        self.jobs = jobs
        self._config = config
        self._changed = changed
        # Returns whether something will run when the person has left; set by the code that serves the data folder.
        self.stays: Callable[[], bool] = lambda: True
        self._warned: set[str] = set()

    @property
    def zone(self) -> ZoneInfo:
        return self._config.zone

    # ------------------------------------------------------------------------------------------------------ setting

    async def create_reminder(self, request: JobRequest, now: datetime) -> Job:
        """Return the new reminder, or the one with the same key. Raises `UsageError` if text or time is refused, or if
        too many wait."""
        text = strip_control_characters(request.text)
        _check_length(text, "reminder", MAX_REMINDER_CHARACTERS)
        return await self._set(replace(request, text=text, name=""), "reminder", now)

    async def create_schedule(self, request: JobRequest, now: datetime) -> Job:
        """Create a named prompt, sent for the owner whenever it is due."""
        text, name = strip_control_characters(request.text, keep_newlines=True), strip_control_characters(request.name)
        _check_length(text, "prompt", MAX_PROMPT_CHARACTERS)
        _check_length(name, "name", MAX_JOB_NAME_CHARACTERS)
        return await self._set(replace(request, text=text, name=name), "schedule", now)

    async def _set(self, request: JobRequest, kind: JobKind, now: datetime) -> Job:
        existing = self.jobs.find_by_key(request.key, request.place.scope)
        if existing is not None:
            return existing
        config, scope = self._config, request.place.scope
        spec, due = await self._parse_times(request.when, request.repeat, scope, now)
        # The setting applies to repeating times: a single one is reported however late.
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

    async def _parse_times(self, when: str, repeat: str, scope: str, now: datetime) -> tuple[ScheduleSpec, DueSlot]:
        # Languages are loaded from files, and some texts take long to parse.
        spec, due = await asyncio.to_thread(parse_schedule, when, repeat, self.zone, now)
        if scope != OWNER_SCOPE and _closest(spec, due, self.zone) < MIN_INTERVAL_OF_OTHERS:
            raise UsageError("That is too often: once an hour at most here. Nothing was set.")
        return spec, due

    async def create_reminder_from_tool(self, context: ToolContext, text: str, when: str, repeat: str) -> Job:
        """Set a reminder for a tool, sent to where the newest message of its turn came from."""
        return await self.create_reminder(self._request_of_tool(context, text, when, repeat), context.now)

    async def change_reminder_from_tool(
        self, context: ToolContext, job_id: int, text: str, when: str, repeat: str
    ) -> Job:
        """Change what is not "", with words as the person said them. Raises `UsageError`."""
        return await self.change_reminder(job_id, self._request_of_tool(context, text, when, repeat), context.now)

    def _request_of_tool(self, context: ToolContext, text: str, when: str, repeat: str) -> JobRequest:
        origin = self.jobs.origin_of_turn(context.turn)
        if origin is None:
            raise UsageError("The conversation that this reminder belongs to is not known. Nothing was set.")
        place, message_id = origin
        return JobRequest(context.key, place, text, when, repeat, made_by=message_id)

    # ----------------------------------------------------------------------------------------------------- changing

    def list_reminders(self, scope: str) -> Sequence[Job]:
        """Return active and paused ones, next due first."""
        return self.jobs.list_waiting(scope, "reminder")

    def list_recent(self, scope: str, since: datetime, *, limit: int) -> Sequence[tuple[Job, datetime]]:
        """Return reminders that came since then and have ended, with when, newest first."""
        return self.jobs.list_recent(scope, since, limit=limit)

    async def change_reminder(self, job_id: int, request: JobRequest, now: datetime) -> Job:
        """Change a reminder's time ("skip": leave out the next one), text or repetition ("once": none); empty fields
        are unchanged. A past one becomes active again. For a repeating one, "in 20 minutes" sets a separate single
        reminder."""
        text, scope = strip_control_characters(request.text), request.place.scope
        job = self.jobs.get_job(job_id, scope, "reminder")
        if not (text or request.when or request.repeat):
            raise UsageError("Say what to change: the time, the text, or how often it repeats. Nothing was changed.")
        if job is None or job.state == "cancelled":
            raise UsageError(f"No reminder {job_id} is waiting. Nothing was changed; `/remind` lists them.")
        _check_length(text or job.text, "reminder", MAX_REMINDER_CHARACTERS)
        repeats = not isinstance(job.spec, OneTimeSpec)
        if repeats and not request.repeat and await asyncio.to_thread(counts_from_now, request.when, self.zone, now):
            return await self.create_reminder(replace(request, text=text or job.text), now)
        due = await self._new_times(job, request.when, request.repeat, now)
        changed = self.jobs.change(job_id, scope, request.key, now, text or job.text, due, self.zone.key)
        self._changed()
        return changed

    async def _new_times(self, job: Job, when: str, repeat: str, now: datetime) -> tuple[ScheduleSpec, DueSlot] | None:
        """Return a new time with the same repetition, or a new repetition at the same time."""
        if not (when or repeat):
            return None
        if when.strip().lower() == SKIPS_NEXT and not repeat:
            return self._without_next(job)
        at = "" if job.due is None else job.due.key
        if repeat.strip().lower() in _ONCE:
            return await self._parse_times(when or at, "", job.place.scope, now)
        if not repeat and isinstance(job.spec, CronSpec):
            raise UsageError("It repeats by a line of cron: say how often it repeats now. Nothing was changed.")
        if not repeat and isinstance(job.spec, RRuleSpec):
            return await self._moved(job.spec, when, job.place.scope, now)
        if not repeat:
            return await self._parse_times(when, "", job.place.scope, now)
        try:
            return await self._parse_times(when or at, repeat, job.place.scope, now)
        except UsageError:
            if when:
                raise
            # The text names its own time.
            return await self._parse_times("", repeat, job.place.scope, now)

    async def _moved(self, spec: RRuleSpec, when: str, scope: str, now: datetime) -> tuple[ScheduleSpec, DueSlot]:
        """Return the same repetition from another time on; on another day of the week or month if `when` names one."""
        day = await asyncio.to_thread(find_named_day, when, self.zone, now)
        for rule in (spec.rrule, *([move_rule(spec, day)] if day else [])):
            moved, due = await self._parse_times(when, rule, scope, now)
            if day is None or due.key.startswith(day.isoformat()):
                return moved, due
        raise UsageError(f"It comes {describe_recurrence(spec)}: say how often it repeats now. Nothing was changed.")

    def _without_next(self, job: Job) -> tuple[ScheduleSpec, DueSlot]:
        """Return the same repetition, next due one time later."""
        later = None if job.due is None else next_due(job.spec, self.zone, job.due)
        if later is None:
            raise UsageError("It comes no more after its next time: cancel it to leave that out. Nothing was changed.")
        # From there on, so that what is left out is not due again when the clock changes; but what is counted goes on.
        if isinstance(job.spec, RRuleSpec) and "COUNT=" not in job.spec.rrule:
            return replace(job.spec, start=datetime.fromisoformat(later.key)), later
        return job.spec, later

    def cancel_reminder(self, job_id: int, scope: str, key: str, now: datetime) -> Job:
        """Return it. Raises `UsageError` if the scope has none of that number."""
        job = self.jobs.cancel(job_id, scope, "reminder", key, now)
        self._changed()
        return job

    def list_schedules(self, scope: str) -> Sequence[Job]:
        """Return active and paused ones, next due first."""
        return self.jobs.list_waiting(scope, "schedule")

    def find_schedule(self, name: str, scope: str) -> Job:
        """Return a schedule by name or number. Raises `UsageError`."""
        job = self.jobs.find_by_name(strip_control_characters(name), scope)
        number = name.lstrip("#")[:18]
        if job is None and number.isascii() and number.isdigit():
            job = self.jobs.get_job(int(number), scope, "schedule")
        if job is None or job.state not in ("active", "paused"):
            names = ", ".join(repr(schedule.name) for schedule in self.list_schedules(scope)) or "none yet"
            raise UsageError(f"There is no schedule {name!r}. Nothing was changed. Schedules: {names}.")
        return job

    def remove_schedule(self, job: Job, key: str, now: datetime) -> None:
        """Raises `UsageError` if it has ended by now."""
        self.jobs.cancel(job.id, job.place.scope, "schedule", key, now)
        self._changed()

    def pause_schedule(self, job: Job) -> None:
        self.jobs.pause(job.id, job.place.scope)
        self._changed()

    def resume_schedule(self, job: Job, now: datetime) -> Job:
        """Resume at the next time; times that passed meanwhile are skipped. Raises `UsageError`."""
        if job.state != "paused" or job.due is None:
            raise UsageError(f"Schedule {job.name!r} is not paused. Nothing was changed.")
        due = next_due_after(job.spec, ZoneInfo(job.zone), job.due, now)
        self.jobs.resume(job.id, job.place.scope, due, now)
        self._changed()
        return replace(job, state="done" if due is None else "active", due=due)

    def run_schedule_now(self, job: Job, now: datetime) -> None:
        """Run it now in addition to its times, which are unchanged."""
        self.jobs.apply_firing(build_manual_run(job, self.zone, now), now)

    # ------------------------------------------------------------------------------------------------------ telling

    def warning(self, scope: str, kind: JobKind = "reminder") -> str:
        """Return a warning that nothing will run what was set, once per scope and process; "" otherwise."""
        if scope in self._warned or self.stays():
            return ""
        self._warned.add(scope)
        return nothing_will_run(kind) if scope == OWNER_SCOPE else NOBODY_SAYS_WHETHER

    def describe_due(self, job: Job) -> str:
        """Describe on one line how often and when it is due."""
        if job.due is None:
            return "never again"
        zone, lateness = self.zone, self._config.lateness
        # Who lives by UTC reads nothing new; who does not sees that nobody has set where they live.
        by_utc = " (UTC)" if format_zone(zone) == "UTC" else ""
        parts = [f"{format_moment(job.due.at, zone)}{by_utc}"]
        following = next_due(job.spec, ZoneInfo(job.zone), job.due)
        for _ in range(_NEXT_SHOWN):
            if following is not None:
                parts.append(f"then {format_moment(following.at, zone)}")
                following = next_due(job.spec, ZoneInfo(job.zone), following)
        told_at = lateness.next_allowed(job.due.at)
        if told_at > job.due.at:
            parts.append(f"sent {format_moment(told_at, zone)}, after quiet hours ({lateness.quiet})")
        often = describe_recurrence(job.spec)
        return f"{often}: {', '.join(parts)}" if often else ", ".join(parts)


def _closest(spec: ScheduleSpec, due: DueSlot, zone: ZoneInfo) -> timedelta:
    """Return the shortest time between two of the next times of a job."""
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
