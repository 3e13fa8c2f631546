"""Slash commands about time, and how jobs and their slots are shown: reminders, which anybody may set for themselves,
and scheduled prompts, the owner's. The renderers are pure.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.recurrence import describe_recurrence, parse_cron
from assistant.agenda.service import AgendaService
from assistant.core.calendar import format_moment as as_people_read
from assistant.core.errors import UsageError
from assistant.core.jobs import CatchUpPolicy, DeliveryTarget, EndedSlot, Job, JobKind, JobRequest
from assistant.core.people import ALL_ROLES
from assistant.core.quoting import quote_text
from assistant.core.sessions import OWNER_SCOPE, session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.split_reminder import split_reminder
from assistant.core.text import lazy_regex, pluralize

REMIND_USAGE = "/remind [TEXT --at WHEN [--every HOW OFTEN] | list | cancel N | again N WHEN | done N | history]"
SCHEDULE_USAGE = (
    "/schedule [add NAME PROMPT --every|--cron|--rrule|--at WHEN | list | show NAME | pause NAME | resume NAME"
    " | remove NAME | run NAME | history [NAME]]"
)
_OPTION = lazy_regex(r"\s--(at|every)(?:\s|$)")
_DONE = lazy_regex(r"done #?(\d{1,18})", re.ASCII)
_AGAIN = lazy_regex(r"again #?(\d{1,18})\s+(.+)", re.ASCII)
_SHOWN = 100
_MOST_SHOWN = 10_000
_CATCH_UPS: Mapping[str, CatchUpPolicy] = {"once": "once", "all": "all", "skip": "skip"}
_OPTIONS = frozenset({"at", "every", "cron", "rrule", "catch-up", "limit"})


@dataclass(frozen=True, slots=True)
class _Words:
    """What was typed: plain words, and options with what follows each."""

    plain: tuple[str, ...]
    options: Mapping[str, str]
    json: bool

    def only(self, *names: str) -> None:
        """Raises `UsageError` for options that have no meaning here."""
        wrong = [name for name in self.options if name not in names]
        if wrong:
            raise UsageError(f"--{wrong[0]} has no meaning here. Nothing was changed.")


class AgendaCommands:
    def __init__(self, agenda: AgendaService, fired: Callable[[], None]) -> None:
        """`fired` is called when there is something to answer."""
        self._agenda = agenda
        self._fired = fired

    def entries(self) -> Mapping[str, Command]:
        return {
            "remind": Command(REMIND_USAGE, "be reminded of something at a time", self._remind, ALL_ROLES),
            "schedule": Command(SCHEDULE_USAGE, "have something asked for you at times that repeat", self._schedule),
        }

    # ---------------------------------------------------------------------------------------------------- reminders

    async def _remind(self, call: CommandInvocation) -> str:
        first, _, rest = call.arguments.partition(" ")
        wants_json = call.arguments.endswith("--json")
        match call.arguments.removesuffix("--json").strip():
            case "" | "list":
                return self._reminders(call, wants_json)
            case "history":
                return self._history(call, "reminder", None, wants_json, _SHOWN)
        if first == "cancel":
            return self._cancel(call, rest)
        if told := _DONE.fullmatch(call.arguments.strip()):
            return f"Done: {self._told(call, told[1]).text}"
        if told := _AGAIN.fullmatch(call.arguments.strip()):
            return await self._again(call, self._told(call, told[1]), told[2])
        text, when, repeat = _reminder(call.arguments)
        job = await self._agenda.create_reminder(JobRequest(_key(call), _place(call), text, when, repeat), call.now)
        return f"Set:\n{render_job(job, self._agenda.describe_due(job))}"

    def _reminders(self, call: CommandInvocation, wants_json: bool) -> str:
        waiting = self._agenda.list_reminders(session_scope(call.session))
        if wants_json:
            return rows_to_json([job_json(job) for job in waiting])
        empty = "No reminder is set. Set one as in `/remind call mum --at tomorrow 9:00`."
        return render_jobs(waiting, self._agenda.describe_due, empty)

    def _told(self, call: CommandInvocation, number: str) -> Job:
        """A reminder, whether it waits or was told."""
        job = self._agenda.jobs.get_job(int(number), session_scope(call.session), "reminder")
        if job is None:
            raise UsageError(f"There is no reminder {number} here. Nothing was set; `/remind history` lists them.")
        return job

    async def _again(self, call: CommandInvocation, job: Job, when: str) -> str:
        # A button that is pressed twice sets one reminder.
        key = f"again:{job.id}:{when}:{call.now:%Y-%m-%dT%H:%M}"
        again = await self._agenda.create_reminder(JobRequest(key, _place(call), job.text, when, ""), call.now)
        return f"Set:\n{render_job(again, self._agenda.describe_due(again))}"

    def _cancel(self, call: CommandInvocation, rest: str) -> str:
        number = rest.strip().lstrip("#")
        if not (number.isascii() and number.isdigit()) or len(number) > 18:
            raise UsageError("Name one reminder by its number, as in `/remind cancel 3`. Nothing was changed.")
        job = self._agenda.cancel_reminder(int(number), session_scope(call.session), _key(call), call.now)
        return f"Cancelled: {job.id}, {job.text}"

    # ---------------------------------------------------------------------------------------------------- schedules

    async def _schedule(self, call: CommandInvocation) -> str:
        words = _words(call.arguments)
        scope = session_scope(call.session)
        match words.plain:
            case () | ("list",):
                words.only()
                return self._schedules(scope, words.json)
            case ("history", *names) if len(names) < 2:
                words.only("limit")
                which = self._agenda.find_schedule(names[0], scope).id if names else None
                return self._history(call, None, which, words.json, _limit(words.options.get("limit")))
            case ("add", name, *prompt) if prompt:
                return await self._add(call, name, " ".join(prompt), words)
            case ("show" | "pause" | "resume" | "remove" | "run" as action, name):
                words.only()
                return self._change(call, action, self._agenda.find_schedule(name, scope), words.json)
        raise UsageError(f"Use {SCHEDULE_USAGE}. Nothing was changed.")

    def _schedules(self, scope: str, wants_json: bool) -> str:
        known = self._agenda.list_schedules(scope)
        if wants_json:
            return rows_to_json([job_json(job) for job in known])
        empty = 'Nothing is scheduled. Schedule as in `/schedule add news "What is new?" --every "weekday at 8:30"`.'
        return render_jobs(known, self._agenda.describe_due, empty)

    async def _add(self, call: CommandInvocation, name: str, prompt: str, words: _Words) -> str:
        words.only("at", "every", "cron", "rrule", "catch-up")
        repeats = [words.options[one] for one in ("every", "cron", "rrule") if one in words.options]
        when = words.options.get("at", "")
        if len(repeats) > 1 or not (repeats or when):
            raise UsageError("Say when, with one of --every, --cron, --rrule, or --at. Nothing was set.")
        if "cron" in words.options:
            parse_cron(words.options["cron"])
        catch_up = words.options.get("catch-up")
        if catch_up is not None and catch_up not in _CATCH_UPS:
            raise UsageError("--catch-up is once, all or skip. Nothing was set.")
        wanted = JobRequest(
            _key(call),
            _place(call),
            prompt,
            when,
            _every(words.options, repeats),
            name,
            _CATCH_UPS[catch_up] if catch_up else None,
        )
        job = await self._agenda.create_schedule(wanted, call.now)
        return f"Scheduled:\n{render_job(job, self._agenda.describe_due(job))}"

    def _change(self, call: CommandInvocation, action: str, job: Job, wants_json: bool) -> str:
        match action:
            case "pause":
                self._agenda.pause_schedule(job)
                return f"Paused: {job.name}. `/schedule resume {shlex.quote(job.name)}` goes on with it."
            case "resume":
                resumed = self._agenda.resume_schedule(job, call.now)
                return f"Goes on: {render_job(resumed, self._agenda.describe_due(resumed))}"
            case "remove":
                self._agenda.remove_schedule(job, _key(call), call.now)
                return f"Removed: {job.name}. `/schedule history` still shows what became of its times."
            case "run":
                self._agenda.run_schedule_now(job, call.now)
                self._fired()
                return f"Asked now: {job.name}. The answer comes to where the schedule was made."
        if wants_json:
            return rows_to_json([job_json(job)])
        lines = [render_job(job, self._agenda.describe_due(job)), f"Catch-up: {job.catch_up}", "", job.text]
        return "\n".join(lines)

    # ------------------------------------------------------------------------------------------------------ history

    def _history(
        self, call: CommandInvocation, kind: JobKind | None, job_id: int | None, wants_json: bool, limit: int
    ) -> str:
        """What became of slots. The owner has then seen what was missed, of anybody, so that status is green again."""
        scope, jobs = session_scope(call.session), self._agenda.jobs
        slots = jobs.ended_slots(scope, kind=kind, job_id=job_id, limit=limit)
        others: Mapping[str, int] = {}
        if scope == OWNER_SCOPE and job_id is None:
            others = {other: count for other, count in jobs.count_missed().items() if other != scope}
            jobs.mark_missed_seen(call.now)
        if wants_json:
            return rows_to_json([slot_json(slot) for slot in slots])
        return render_slots(slots, others, self._agenda.zone)


def _key(call: CommandInvocation) -> str:
    return f"command:{call.session}:{call.now.isoformat()}"


def _place(call: CommandInvocation) -> DeliveryTarget:
    return DeliveryTarget(call.session, session_scope(call.session), call.bridge, call.target or call.session)


def _reminder(rest: str) -> tuple[str, str, str]:
    """Text, when and how often, of "TEXT --at WHEN --every HOW OFTEN" or of a sentence."""
    text, *options = _OPTION.split(f" {rest}")
    if not options:
        text, when = split_reminder(rest)
        if not when:
            raise UsageError("When? Say it as in `/remind call mum --at tomorrow 9:00`. Nothing was set.")
        return text, when, ""
    given = dict(zip(options[::2], options[1::2], strict=True))
    if len(given) < len(options) // 2:
        raise UsageError(f"Use {REMIND_USAGE}. Nothing was set.")
    when, every = (given.get(name, "").strip().strip('"') for name in ("at", "every"))
    return text.strip().strip('"'), when, _spoken_every(every)


def _every(options: Mapping[str, str], repeats: list[str]) -> str:
    return _spoken_every(repeats[0]) if "every" in options else (repeats[0] if repeats else "")


def _spoken_every(text: str) -> str:
    """What follows --every may leave "every" out: `--every "weekday at 8:30"`."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    leads = ("every", "each", "daily", "hourly", "weekly", "monthly", "yearly", "on", "the", "first", "last")
    bare = bool(first) and first not in leads and not first.endswith("days") and "=" not in first and "*" not in text
    return f"every {text}" if bare and (first[0].isdigit() or first.isalpha()) else text


def _limit(text: str | None) -> int:
    if text is None:
        return _SHOWN
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _MOST_SHOWN:
        raise UsageError(f"--limit is a number from 1 to {_MOST_SHOWN:,}.")
    return int(text)


def _words(text: str) -> _Words:
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError("A quotation mark is missing. Nothing was changed.") from None
    plain: list[str] = []
    options: dict[str, str] = {}
    rest = iter(word for word in words if word != "--json")
    for word in rest:
        name = word.removeprefix("--")
        if not word.startswith("--"):
            plain.append(word)
        elif name not in _OPTIONS or name in options:
            raise UsageError(f"{word} is not an option here, or is given twice. Nothing was changed.")
        else:
            options[name] = next(rest, "")
    return _Words(tuple(plain), options, "--json" in words)


_FIRST_WORDS = 120


def render_job(job: Job, when: str) -> str:
    paused = ", paused" if job.state == "paused" else ""
    name = f"{job.name}: " if job.name else ""
    return f"- {job.id}: {name}{quote_text(_short(job.text))}, {when}{paused}"


def render_jobs(jobs: Sequence[Job], describe: Callable[[Job], str], empty: str) -> str:
    return "\n".join(render_job(job, describe(job)) for job in jobs) or empty


def job_json(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "name": job.name,
        "text": job.text,
        "state": job.state,
        "due": job.due.at.isoformat() if job.due else None,
        "local": job.due.key if job.due else None,
        "repeats": describe_recurrence(job.spec),
        "zone": job.zone,
        "catch_up": job.catch_up,
        "session": job.place.session,
        "bridge": job.place.bridge,
        "created_at": job.created_at.isoformat(),
    }


def render_slots(slots: Sequence[EndedSlot], others: Mapping[str, int], zone: ZoneInfo) -> str:
    """What became of slots, the newest first; `others` counts what was missed of other people, without words."""
    rows = [_slot_row(slot, zone) for slot in slots]
    table = (
        ["| due | ended | how | what | note |", "|---|---|---|---|---|", *rows] if rows else ["Nothing was due yet."]
    )
    more = [f"{scope}: {pluralize(count, 'slot')} missed." for scope, count in sorted(others.items())]
    return "\n".join([*table, *([""] if more else []), *more])


def _slot_row(slot: EndedSlot, zone: ZoneInfo) -> str:
    what = f"{slot.kind} {slot.job_id}: {slot.name or quote_text(_short(slot.text))}".replace("|", "\\|")
    due, ended = as_people_read(slot.due_at, zone), _clock(slot.ended_at, zone)
    return f"| {due} | {ended} | {slot.state} | {what} | {slot.note} |"


def _clock(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}"


def slot_json(slot: EndedSlot) -> dict[str, Any]:
    return {
        "job": slot.job_id,
        "kind": slot.kind,
        "name": slot.name,
        "text": slot.text,
        "due": slot.due_at.isoformat(),
        "local": slot.local_key,
        "state": slot.state,
        "ended": slot.ended_at.isoformat(),
        "note": slot.note,
        "seen": slot.seen_at.isoformat() if slot.seen_at else None,
    }


def rows_to_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), ensure_ascii=False, indent=2)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FIRST_WORDS else f"{line[: _FIRST_WORDS - 1]}…"
