"""`remind`: reminders, which anybody sets for themselves; and what they share with schedules: how they are shown, and
how a time is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Annotated

import click
from pydantic import AliasPath, BeforeValidator, Field

from assistant.agenda.recurrence import recurrence_rule
from assistant.agenda.service import SKIPS_NEXT
from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.named_items import NamedItems, items_argument
from assistant.commands.table import CommandGroup, number_argument, phrase_option, words_argument
from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.jobs import (
    CatchUpPolicy,
    DeliveryTarget,
    EndedSlot,
    Job,
    JobKind,
    JobRequest,
    JobState,
    SlotState,
)
from assistant.core.permissions import ALL_ROLES
from assistant.core.quoting import quote_text
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, shorten_line

_FIRST_WORDS = 120
_OTHER_NAMES = {
    **dict.fromkeys(("edit", "move", "reschedule"), "change"),
    **dict.fromkeys(("delete", "remove", "stop"), "cancel"),
    **dict.fromkeys(("repeat", "snooze"), "again"),
}


class JobItem(Item):
    """A reminder, or a schedule."""

    id: int
    kind: JobKind
    name: str  # of a schedule
    text: str
    state: JobState
    due: datetime | None = Field(None, validation_alias=AliasPath("due", "at"))
    local: str | None = Field(None, validation_alias=AliasPath("due", "key"))  # when it is due by the clock of `zone`
    repeats: Annotated[str, BeforeValidator(recurrence_rule)] = Field(validation_alias="spec")  # "" for once
    zone: str
    catch_up: CatchUpPolicy
    session: str = Field(validation_alias=AliasPath("place", "session"))  # where it was made, and comes to
    bridge: str = Field(validation_alias=AliasPath("place", "bridge"))
    created_at: datetime
    when: str = ""  # when it is due, and how often, in words
    warning: str = ""  # that nothing will run then, where that is so


class SlotItem(Item):
    """A time at which a job was due, and what became of it."""

    job: int = Field(validation_alias="job_id")
    kind: JobKind
    name: str
    text: str
    due: datetime = Field(validation_alias="due_at")
    local: str = Field(validation_alias="local_key")  # by the clock of the job's zone
    state: SlotState
    ended: datetime = Field(validation_alias="ended_at")
    note: str  # why, "" where there is nothing to explain
    seen: datetime | None = Field(validation_alias="seen_at")  # when somebody looked at a missed or late one


@dataclass(frozen=True, slots=True)
class AgendaHistory:
    """What became of every time, newest first."""

    slots: Sequence[EndedSlot]
    missed_of_others: Mapping[str, int]  # by scope, without words


def render_history(history: AgendaHistory, zone: tzinfo) -> str:
    """Return what became of due times, and how many of other people's were missed or late."""
    lines = [_slot_line(slot, zone) for slot in history.slots] or ["Nothing was due yet."]
    others = [
        f"- of {scope}: {pluralize(count, 'due time')} missed or late"
        for scope, count in sorted(history.missed_of_others.items())
    ]
    return "\n".join([*lines, *others])


def _slot_line(slot: EndedSlot, zone: tzinfo) -> str:
    what = slot.name or quote_text(shorten_line(slot.text, _FIRST_WORDS))
    came = f" at {format_moment(slot.ended_at.replace(microsecond=0), zone)}" if slot.state == "late" else ""
    note = f" ({slot.note})" if slot.note else ""
    return f"- {format_moment(slot.due_at, zone)}, {slot.kind} {slot.job_id}, {what}: {slot.state}{came}{note}"


HISTORY_JSON = Annotated[list[SlotItem], BeforeValidator(attrgetter("slots"))]
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many, newest first."
)


def load_history(context: CommandContext, kind: JobKind | None, job_id: int | None, limit: int) -> AgendaHistory:
    """The owner has then seen what was missed or late, of anybody, so that status is green again."""
    jobs = context.stores.agenda.jobs
    slots = jobs.ended_slots(context.scope, kind=kind, job_id=job_id, limit=limit)
    if context.scope != OWNER_SCOPE or job_id is not None:
        return AgendaHistory(slots, {})
    others = {scope: count for scope, count in jobs.count_unseen().items() if scope != OWNER_SCOPE}
    jobs.mark_seen(context.now)
    return AgendaHistory(slots, others)


def command_key(context: CommandContext) -> str:
    """Return a key under which what the command does is done once, however often it is sent."""
    return f"command:{context.session}:{context.now.isoformat()}"


def delivery_target(context: CommandContext) -> DeliveryTarget:
    """Return where what the command makes is delivered: where it was typed."""
    return DeliveryTarget(context.session, context.scope, context.bridge, context.target or context.session)


def job_item(context: CommandContext, job: Job) -> JobItem:
    """Return the job with its next time in words."""
    return JobItem.model_validate(job).model_copy(update={"when": context.stores.agenda.describe_due(job)})


def set_item(context: CommandContext, job: Job) -> JobItem:
    """One that was set just now."""
    return job_item(context, job).model_copy(update={"warning": context.stores.agenda.warning(context.scope, job.kind)})


def job_line(item: JobItem) -> str:
    paused = ", paused" if item.state == "paused" else ""
    name = f"{item.name}: " if item.name else ""
    return f"- {item.id}: {name}{quote_text(shorten_line(item.text, _FIRST_WORDS))}, {item.when}{paused}"


def spoken_every(text: str) -> str:
    """What follows --every may leave "every" out: `--every "weekday at 8:30"`."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    leads = ("every", "each", "daily", "hourly", "weekly", "monthly", "yearly", "on", "the", "first", "last")
    bare = bool(first) and first not in leads and not first.endswith("days") and "=" not in first and "*" not in text
    return f"every {text}" if bare and (first[0].isdigit() or first.isalpha()) else text


# ------------------------------------------------------------------------------------------------------------ reminders


def _render_reminders(items: Sequence[JobItem], _: tzinfo) -> str:
    return "\n".join(map(job_line, items)) or 'No reminder is set. `/remind call mum --at "tomorrow at 9"` sets one.'


def _render_done(item: JobItem, _: tzinfo) -> str:
    again = item.state == "active" and item.repeats
    return f"Done: {item.text}" + (
        f"\nIt comes again: {item.when}. `/remind cancel {item.id}` ends it." if again else ""
    )


def _render_set(item: JobItem, _: tzinfo) -> str:
    return f"Set:\n{job_line(item)}"


def _is_reminder(words: Sequence[str]) -> bool:
    """Whether words that begin like a command are what somebody wants to be reminded of: "done with the taxes"."""
    name, *rest = words
    number = bool(rest) and rest[0].removeprefix("#").isdecimal()
    match name:
        case "list" | "history":
            return bool(rest) and not rest[0].startswith("-")
        case "again" | "done" | "change" | "skip":
            return bool(rest) and not (number and (name != "done" or len(rest) == 1 or rest[1].startswith("--")))
    return False


@click.group(cls=CommandGroup, default="add", is_free_text=_is_reminder, other_names=_OTHER_NAMES)
def remind() -> None:
    """Set reminders; list, change, repeat or cancel them.

    A reminder comes to the conversation it was set in. Times are by the clock of your time zone. `add` may be left out.

    > assistant remind call mum --at "tomorrow at 9"
    > assistant remind stretch --every "weekday at 10:30"
    > assistant remind list
    > assistant remind cancel 3
    """


@remind.command(
    "add",
    render=_render_set,
    remark=attrgetter("warning"),
    roles=ALL_ROLES,
    creates_home=True,
    context_settings={"ignore_unknown_options": True},
)
@words_argument("words")
@phrase_option("--at", "when", metavar="WHEN", help='When: "tomorrow at 9", "in 20 minutes", "2026-12-24 18:00".')
@phrase_option(
    "--every", "repeat", metavar="HOW_OFTEN", help='"weekday at 8:30", "2 hours", an RRULE, or a line of cron.'
)
async def add_reminder(context: CommandContext, words: str, when: str | None, repeat: str | None) -> JobItem:
    """Set a reminder. Without --at and --every, TEXT says when.

    > assistant remind add call mum --at "tomorrow at 9"
    > assistant remind add feed the cat in 20 minutes
    """
    from assistant.core.time_split import split_reminder  # its vocabulary is compiled where it is imported

    text, at = (words, when or "") if when is not None or repeat is not None else split_reminder(words)
    if not at and repeat is None:
        raise UsageError('When? Say it as in `/remind call mum --at "tomorrow at 9"`. Nothing was set.')
    return await _create_reminder(context, command_key(context), text, at, spoken_every(repeat or ""))


@remind.command("list", render=_render_reminders, roles=ALL_ROLES, reads=True)
def list_reminders(context: CommandContext) -> list[JobItem]:
    """List pending reminders, the next one first. `agenda` shows those of a day.

    > assistant remind list --json
    """
    return [job_item(context, job) for job in context.stores.agenda.list_reminders(context.scope)]


@remind.command(
    "change", render=lambda item, _: f"Changed:\n{job_line(item)}", remark=attrgetter("warning"), roles=ALL_ROLES
)
@number_argument("job_id")
@words_argument("text", required=False)
@phrase_option("--at", "when", metavar="WHEN", help='When: "friday at 9", "in 20 minutes".')
@phrase_option("--every", "repeat", metavar="HOW_OFTEN", help='How often: "weekday", "2 hours"; "once" for no more.')
async def change(context: CommandContext, job_id: int, text: str, when: str | None, repeat: str | None) -> JobItem:
    """Move a reminder, reword it, have it repeat or not.

    One that came already waits again.

    > assistant remind change 3 --at "friday at 15:00"
    > assistant remind change 3 call mum and dad
    > assistant remind change 3 --every once
    """
    often = repeat if repeat is None or repeat.strip() == "once" else spoken_every(repeat)
    request = JobRequest(command_key(context), delivery_target(context), text, when or "", often or "")
    return set_item(context, await context.stores.agenda.change_reminder(job_id, request, context.now))


@remind.command("skip", render=lambda item, _: f"Skipped once:\n{job_line(item)}", roles=ALL_ROLES)
@number_argument("job_id")
async def skip(context: CommandContext, job_id: int) -> JobItem:
    """Leave out the next time of a reminder that repeats.

    > assistant remind skip 3
    """
    request = JobRequest(command_key(context), delivery_target(context), "", SKIPS_NEXT, "")
    return job_item(context, await context.stores.agenda.change_reminder(job_id, request, context.now))


@remind.command("cancel", render=lambda item, _: f"Cancelled: {item.id}, {item.text}", roles=ALL_ROLES)
@items_argument("items")
def cancel(context: CommandContext, items: NamedItems) -> JobItem:
    """Cancel a reminder, by its number in the list or by words of it.

    > assistant remind cancel 3
    > assistant remind cancel call mum
    """
    waiting = context.stores.agenda.list_reminders(context.scope)
    job_id, *others = items.find("reminder", ((job.id, job.text) for job in waiting))
    if others:
        raise UsageError("Give one number at a time. Nothing was changed.")
    return _cancel(context, job_id)


@remind.command("again", render=_render_set, remark=attrgetter("warning"), roles=ALL_ROLES)
@number_argument("job_id")
@words_argument("when", metavar="WHEN")
async def again(context: CommandContext, job_id: int, when: str) -> JobItem:
    """Set a reminder once more, whether it came already or not.

    > assistant remind again 3 in 10 minutes
    """
    job = _find_reminder(context, job_id)
    # A button that is pressed twice sets one reminder.
    return await _create_reminder(context, f"again:{job.id}:{when}:{context.now:%Y-%m-%dT%H:%M}", job.text, when, "")


@remind.command("done", render=_render_done, roles=ALL_ROLES)
@number_argument("job_id")
def done(context: CommandContext, job_id: int) -> JobItem:
    """Say that you did what a reminder was about.

    If it was still to come, it does not come; one that repeats comes again.

    > assistant remind done 3
    """
    item = job_item(context, _find_reminder(context, job_id))
    is_to_come = item.state in ("active", "paused") and not item.repeats
    return _cancel(context, job_id) if is_to_come else item


@remind.command("history", result=HISTORY_JSON, render=render_history, roles=ALL_ROLES)
@limit_option
def reminder_history(context: CommandContext, limit: int) -> AgendaHistory:
    """Show what became of every reminder: ran, late or missed, and why.

    > assistant remind history
    """
    return load_history(context, "reminder", None, limit)


async def _create_reminder(context: CommandContext, key: str, text: str, when: str, repeat: str) -> JobItem:
    request = JobRequest(key, delivery_target(context), text, when, repeat)
    return set_item(context, await context.stores.agenda.create_reminder(request, context.now))


def _cancel(context: CommandContext, job_id: int) -> JobItem:
    job = context.stores.agenda.cancel_reminder(job_id, context.scope, command_key(context), context.now)
    return job_item(context, replace(job, state="cancelled"))


def _find_reminder(context: CommandContext, job_id: int) -> Job:
    """One that waits, or that came already."""
    job = context.stores.agenda.jobs.get_job(job_id, context.scope, "reminder")
    if job is None:
        raise UsageError(f"There is no reminder {job_id} here. Nothing was changed; `/remind history` lists them.")
    return job
