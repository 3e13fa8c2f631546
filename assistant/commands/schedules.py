"""`schedule`: prompts that are asked for the owner at their times."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from operator import attrgetter

import click

from assistant.agenda.recurrence import parse_cron
from assistant.commands.context import CommandContext
from assistant.commands.reminders import (
    HISTORY_JSON,
    AgendaHistory,
    JobItem,
    command_key,
    delivery_target,
    job_item,
    job_line,
    limit_option,
    load_history,
    render_history,
    set_item,
    spoken_every,
)
from assistant.commands.table import CommandGroup, phrase_option, words_argument
from assistant.core.errors import UsageError
from assistant.core.jobs import CatchUpPolicy, JobRequest


@click.group(cls=CommandGroup)
def schedule() -> None:
    """Schedule prompts: each is sent for you when it is due, and answered where you made it.

    > assistant schedule add news "What is on my list?" --every "weekday at 8:30"
    > assistant schedule list
    > assistant schedule history
    """


def _render_schedules(items: Sequence[JobItem], _: tzinfo) -> str:
    example = '`/schedule add news "What is new?" --every "weekday at 8:30"`'
    return "\n".join(map(job_line, items)) or f"Nothing is scheduled. {example} schedules something."


def _render_schedule(item: JobItem, _: tzinfo) -> str:
    return f"{job_line(item)}\n- catch-up: {item.catch_up}\n\n{item.text}"


@schedule.command(
    "add", render=lambda item, _: f"Scheduled:\n{job_line(item)}", remark=attrgetter("warning"), creates_home=True
)
@click.argument("name")
@words_argument("prompt", metavar="PROMPT")
@phrase_option("--every", "every", metavar="HOW_OFTEN", help='In words: "weekday at 8:30", "Monday", "2 hours".')
@phrase_option("--cron", "cron", metavar="LINE", help='A line of cron: "30 8 * * 1-5".')
@phrase_option("--rrule", "rrule", metavar="RULE", help='An RRULE: "FREQ=WEEKLY;BYDAY=MO"; --at says from when.')
@phrase_option("--at", "when", metavar="WHEN", help='Once, or from when: "tomorrow at 9".')
@click.option("--catch-up", type=click.Choice(["once", "all", "skip"]), help="For times that passed while it was off.")
async def add_schedule(
    context: CommandContext,
    name: str,
    prompt: str,
    every: str | None,
    cron: str | None,
    rrule: str | None,
    when: str | None,
    catch_up: CatchUpPolicy | None,
) -> JobItem:
    """Schedule PROMPT under NAME. When is said by --every, --cron or --rrule, or by --at for once.

    > assistant schedule add news "What is on my list?" --every "weekday at 8:30"
    > assistant schedule add rent "Is the rent paid?" --cron "0 9 1 * *"
    """
    repeats = [rule for rule in (every and spoken_every(every), cron, rrule) if rule is not None]
    if len(repeats) > 1 or not (repeats or when):
        raise UsageError("Say when, with one of --every, --cron, --rrule, or --at. Nothing was set.")
    if cron is not None:
        parse_cron(cron)
    repeat = repeats[0] if repeats else ""
    request = JobRequest(command_key(context), delivery_target(context), prompt, when or "", repeat, name, catch_up)
    return set_item(context, await context.stores.agenda.create_schedule(request, context.now))


@schedule.command("list", render=_render_schedules, reads=True)
def list_schedules(context: CommandContext) -> list[JobItem]:
    """List what is scheduled, the next one first.

    > assistant schedule list --json
    """
    return [job_item(context, job) for job in context.stores.agenda.list_schedules(context.scope)]


@schedule.command("show", render=_render_schedule, reads=True)
@words_argument("name", metavar="NAME")
def show_schedule(context: CommandContext, name: str) -> JobItem:
    """Show one schedule, with all of its prompt.

    > assistant schedule show news
    """
    return job_item(context, context.stores.agenda.find_schedule(name, context.scope))


@schedule.command(
    "pause",
    render=lambda item, _: f"Paused: {item.name}. `/schedule resume {shlex.quote(item.name)}` resumes it.",
)
@words_argument("name", metavar="NAME")
def pause_schedule(context: CommandContext, name: str) -> JobItem:
    """Pause a schedule. Nothing is asked until you resume it.

    > assistant schedule pause news
    """
    agenda = context.stores.agenda
    job = agenda.find_schedule(name, context.scope)
    agenda.pause_schedule(job)
    return job_item(context, replace(job, state="paused"))


@schedule.command("resume", render=lambda item, _: f"Resumed:\n{job_line(item)}", remark=attrgetter("warning"))
@words_argument("name", metavar="NAME")
def resume_schedule(context: CommandContext, name: str) -> JobItem:
    """Resume a schedule that was paused, from its next time on.

    > assistant schedule resume news
    """
    agenda = context.stores.agenda
    return set_item(context, agenda.resume_schedule(agenda.find_schedule(name, context.scope), context.now))


@schedule.command(
    "remove",
    render=lambda item, _: f"Removed: {item.name}. `/schedule history` still shows what became of its times.",
)
@words_argument("name", metavar="NAME")
def remove_schedule(context: CommandContext, name: str) -> JobItem:
    """Remove a schedule. Its history stays.

    > assistant schedule remove news
    """
    agenda = context.stores.agenda
    job = agenda.find_schedule(name, context.scope)
    agenda.remove_schedule(job, command_key(context), context.now)
    return job_item(context, replace(job, state="cancelled"))


@schedule.command(
    "run",
    render=lambda item, _: f"Asked now: {item.name}. The answer comes to where the schedule was made.",
)
@words_argument("name", metavar="NAME")
def run_schedule(context: CommandContext, name: str) -> JobItem:
    """Ask it now; its times stay. Without a daemon, the next one answers it.

    > assistant schedule run news
    """
    agenda = context.stores.agenda
    job = agenda.find_schedule(name, context.scope)
    agenda.run_schedule_now(job, context.now)
    context.services.wake()
    return job_item(context, job)


@schedule.command("history", result=HISTORY_JSON, render=render_history)
@words_argument("name", required=False, metavar="NAME")
@limit_option
def schedule_history(context: CommandContext, name: str, limit: int) -> AgendaHistory:
    """Show what became of every time: ran, late or missed, and why.

    This lists reminders and schedules; with NAME, one schedule. Looking at it acknowledges what was missed, so that
    `assistant status` is green again.

    > assistant schedule history
    > assistant schedule history news --json
    """
    job_id = context.stores.agenda.find_schedule(name, context.scope).id if name else None
    return load_history(context, None, job_id, limit)
