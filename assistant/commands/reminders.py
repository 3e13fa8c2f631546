"""`remind`: reminders, which anybody sets for themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

import click

from assistant.commands.agenda import (
    AgendaHistory,
    HistoryResult,
    JobItem,
    command_key,
    delivery_target,
    job_item,
    job_line,
    limit_option,
    load_history,
    render_history,
    spoken_every,
)
from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, number_argument, phrase_option, words_argument
from assistant.core.calendar import split_reminder
from assistant.core.errors import UsageError
from assistant.core.jobs import Job, JobRequest
from assistant.core.people import ALL_ROLES


def _render_reminders(items: Sequence[JobItem], _: tzinfo) -> str:
    lines = [job_line(item) for item in items]
    return "\n".join(lines) or 'No reminder is set. `/remind call mum --at "tomorrow at 9"` sets one.'


def _render_set(item: JobItem, _: tzinfo) -> str:
    return f"Set:\n{job_line(item)}"


def _render_cancelled(item: JobItem, _: tzinfo) -> str:
    return f"Cancelled: {item.id}, {item.text}"


def _render_done(item: JobItem, _: tzinfo) -> str:
    return f"Done: {item.text}"


def _is_reminder(words: Sequence[str]) -> bool:
    """Whether words that begin like a command are what somebody wants to be reminded of: "done with the taxes"."""
    name, *rest = words
    number = bool(rest) and rest[0].removeprefix("#").isdecimal()
    match name:
        case "list" | "history":
            return bool(rest) and not rest[0].startswith("-")
        case "again" | "done":
            return bool(rest) and not (number and (name == "again" or len(rest) == 1 or rest[1].startswith("--")))
    return False


@click.group(cls=CommandGroup, default="add", is_free_text=_is_reminder)
def remind() -> None:
    """Set reminders; list, repeat or cancel them.

    A reminder comes to the conversation it was set in. Times are by the clock of your time zone. `add` may be left out.

    \b
    Example:
      assistant remind call mum --at "tomorrow at 9"
      assistant remind stretch --every "weekday at 10:30"
      assistant remind list
      assistant remind cancel 3
    """


@remind.command(
    "add",
    result=JobItem,
    render=_render_set,
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

    \b
    Example:
      assistant remind add call mum --at "tomorrow at 9"
      assistant remind add feed the cat in 20 minutes
    """
    text, at = (words, when or "") if when is not None or repeat is not None else split_reminder(words)
    if not at and repeat is None:
        raise UsageError('When? Say it as in `/remind call mum --at "tomorrow at 9"`. Nothing was set.')
    return await _create_reminder(context, command_key(context), text, at, spoken_every(repeat or ""))


@remind.command("list", result=list[JobItem], render=_render_reminders, roles=ALL_ROLES, reads=True)
def list_reminders(context: CommandContext) -> list[JobItem]:
    """List the reminders that wait, the next one first.

    \b
    Example:
      assistant remind list --json
    """
    return [job_item(context, job) for job in context.stores.agenda.list_reminders(context.scope)]


@remind.command("cancel", result=JobItem, render=_render_cancelled, roles=ALL_ROLES)
@number_argument("job_id")
def cancel(context: CommandContext, job_id: int) -> JobItem:
    """Cancel a reminder, by its number in the list.

    \b
    Example:
      assistant remind cancel 3
    """
    job = context.stores.agenda.cancel_reminder(job_id, context.scope, command_key(context), context.now)
    return job_item(context, replace(job, state="cancelled"))


@remind.command("again", result=JobItem, render=_render_set, roles=ALL_ROLES)
@number_argument("job_id")
@words_argument("when", metavar="WHEN")
async def again(context: CommandContext, job_id: int, when: str) -> JobItem:
    """Set a reminder once more, whether it came already or not.

    \b
    Example:
      assistant remind again 3 in 10 minutes
    """
    job = _find_reminder(context, job_id)
    # A button that is pressed twice sets one reminder.
    return await _create_reminder(context, f"again:{job.id}:{when}:{context.now:%Y-%m-%dT%H:%M}", job.text, when, "")


@remind.command("done", result=JobItem, render=_render_done, roles=ALL_ROLES)
@number_argument("job_id")
def done(context: CommandContext, job_id: int) -> JobItem:
    """Say that you did what a reminder was about. It changes nothing.

    \b
    Example:
      assistant remind done 3
    """
    return job_item(context, _find_reminder(context, job_id))


@remind.command("history", result=HistoryResult, render=render_history, roles=ALL_ROLES)
@limit_option
def reminder_history(context: CommandContext, limit: int) -> AgendaHistory:
    """Show what became of every reminder: ran, late or missed, and why.

    \b
    Example:
      assistant remind history
    """
    return load_history(context, "reminder", None, limit)


async def _create_reminder(context: CommandContext, key: str, text: str, when: str, repeat: str) -> JobItem:
    request = JobRequest(key, delivery_target(context), text, when, repeat)
    return job_item(context, await context.stores.agenda.create_reminder(request, context.now))


def _find_reminder(context: CommandContext, job_id: int) -> Job:
    """One that waits, or that came already."""
    job = context.stores.agenda.jobs.get_job(job_id, context.scope, "reminder")
    if job is None:
        raise UsageError(f"There is no reminder {job_id} here. Nothing was set; `/remind history` lists them.")
    return job
