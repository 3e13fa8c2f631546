"""What the commands about reminders and schedules share: what they show, and how a time is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Annotated

import click
from pydantic import PlainSerializer

from assistant.agenda.recurrence import describe_recurrence
from assistant.commands.context import CommandContext
from assistant.core.calendar import format_moment
from assistant.core.jobs import CatchUpPolicy, DeliveryTarget, Job, JobKind, JobState, SlotState
from assistant.core.quoting import quote_text
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, shorten_line

_FIRST_WORDS = 120


@dataclass(frozen=True, slots=True)
class JobItem:
    """A reminder, or a schedule."""

    id: int
    kind: JobKind
    name: str  # of a schedule
    text: str
    state: JobState
    due: datetime | None
    local: str | None  # when it is due by the clock of `zone`
    repeats: str  # the rule, "" for once
    zone: str
    catch_up: CatchUpPolicy
    session: str  # where it was made, and comes to
    bridge: str
    created_at: datetime
    when: str  # when it is due, and how often, in words


@dataclass(frozen=True, slots=True)
class SlotItem:
    """A time at which a job was due, and what became of it."""

    job: int
    kind: JobKind
    name: str
    text: str
    due: datetime
    local: str  # by the clock of the job's zone
    state: SlotState
    ended: datetime
    note: str  # why, "" where there is nothing to explain
    seen: datetime | None  # when somebody looked at it, of one that was missed


@dataclass(frozen=True, slots=True)
class AgendaHistory:
    """What became of every time, newest first."""

    slots: list[SlotItem]
    missed_of_others: Mapping[str, int]  # by scope, without words


def render_history(history: AgendaHistory, zone: tzinfo) -> str:
    lines = [_slot_line(slot, zone) for slot in history.slots] or ["Nothing was due yet."]
    others = [
        f"- of {scope}: {pluralize(count, 'due time')} missed"
        for scope, count in sorted(history.missed_of_others.items())
    ]
    return "\n".join([*lines, *others])


HistoryResult = Annotated[AgendaHistory, PlainSerializer(lambda history: history.slots, return_type=list[SlotItem])]
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many, newest first."
)


def load_history(context: CommandContext, kind: JobKind | None, job_id: int | None, limit: int) -> AgendaHistory:
    """The owner has then seen what was missed, of anybody, so that status is green again."""
    jobs = context.stores.agenda.jobs
    slots = [
        SlotItem(
            slot.job_id,
            slot.kind,
            slot.name,
            slot.text,
            slot.due_at,
            slot.local_key,
            slot.state,
            slot.ended_at,
            slot.note,
            slot.seen_at,
        )
        for slot in jobs.ended_slots(context.scope, kind=kind, job_id=job_id, limit=limit)
    ]
    if context.scope != OWNER_SCOPE or job_id is not None:
        return AgendaHistory(slots, {})
    others = {scope: count for scope, count in jobs.count_missed().items() if scope != OWNER_SCOPE}
    jobs.mark_missed_seen(context.now)
    return AgendaHistory(slots, others)


def command_key(context: CommandContext) -> str:
    return f"command:{context.session}:{context.now.isoformat()}"


def delivery_target(context: CommandContext) -> DeliveryTarget:
    return DeliveryTarget(context.session, context.scope, context.bridge, context.target or context.session)


def job_item(context: CommandContext, job: Job) -> JobItem:
    return JobItem(
        job.id,
        job.kind,
        job.name,
        job.text,
        job.state,
        job.due.at if job.due else None,
        job.due.key if job.due else None,
        describe_recurrence(job.spec),
        job.zone,
        job.catch_up,
        job.place.session,
        job.place.bridge,
        job.created_at,
        context.stores.agenda.describe_due(job),
    )


def job_line(item: JobItem) -> str:
    paused = ", paused" if item.state == "paused" else ""
    name = f"{item.name}: " if item.name else ""
    return f"- {item.id}: {name}{quote_text(shorten_line(item.text, _FIRST_WORDS))}, {item.when}{paused}"


def _slot_line(slot: SlotItem, zone: tzinfo) -> str:
    what = slot.name or quote_text(shorten_line(slot.text, _FIRST_WORDS))
    came = f" at {format_moment(slot.ended.replace(microsecond=0), zone)}" if slot.state == "late" else ""
    note = f" ({slot.note})" if slot.note else ""
    due = format_moment(slot.due, zone)
    return f"- {due}, {slot.kind} {slot.job}, {what}: {slot.state}{came}{note}"


def spoken_every(text: str) -> str:
    """What follows --every may leave "every" out: `--every "weekday at 8:30"`."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    leads = ("every", "each", "daily", "hourly", "weekly", "monthly", "yearly", "on", "the", "first", "last")
    bare = bool(first) and first not in leads and not first.endswith("days") and "=" not in first and "*" not in text
    return f"every {text}" if bare and (first[0].isdigit() or first.isalpha()) else text
