"""Conversations: list them, end one and begin the next, take an earlier one up, go from one to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Any

import click
from pydantic import Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item, TextOrNull
from assistant.commands.table import CommandGroup, Confirmation, TableCommand, words_argument
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.sessions import (
    MAIN_SESSION,
    is_imported,
    parse_session_name,
    session_kind,
    session_name,
    session_role,
)
from assistant.core.text import pluralize
from assistant.sessions.listing import SessionReader, SessionRow
from assistant.sessions.reset import ResetRequest, ResetResult

_MOST_SECONDS = 3700.0
_WHY = {
    "manual": "reset",
    "daily": "daily reset",
    "idle": "idle reset",
    "end": "ended",
    "resume": "another resumed",
} | {"import": "imported"}


class SessionItem(Item):
    """One conversation of a session: the current one, or one that ended."""

    session: str
    generation: int = Field(validation_alias="number")  # within the session
    scope: str
    started_at: datetime
    last_at: datetime | None
    messages: int
    view_messages: int = 0  # of which the model currently sees
    view_tokens: int = 0
    checkpoints: int = 0  # compactions
    kind: str  # "main", "thread", "import", "guest" or "room"
    first_at: datetime | None
    ended_at: datetime | None
    ended: TextOrNull = Field(validation_alias="end_reason")  # why
    pressure: float | None  # how full its context was at the end, 0 to 1
    resumed: int | None  # the conversation that it continues
    archive: str | None  # where it is archived
    reset_waits: bool = False  # a reset waits for the archive


def session_item(row: SessionRow) -> SessionItem:
    return SessionItem.model_validate(_item_values(row))


def _item_values(row: SessionRow) -> dict[str, Any]:
    """What the view of a session has is of its current conversation; of the rest each conversation has its own."""
    return {
        **(asdict(row.info) if row.info is not None else {}),
        **asdict(row.generation),
        "kind": session_kind(row.generation.session),
        "archive": row.archive.url if row.archive else None,
        "reset_waits": row.reset is not None and row.reset.state == "waiting",
    }


@click.group(cls=CommandGroup, default="show")
def sessions() -> None:
    """Conversations, also those that ended. A name alone shows that one.

    A conversation ends by a reset (`assistant reset`) and has a number; the next one begins with a note of what was
    open. What was said stays in the message log, and in an archive. `assistant import show N` lists imported ones.

    > assistant sessions
    > assistant sessions show main 1
    > assistant sessions resume main 1
    """


def _count_records(item: SessionItem) -> str:
    """What tools were called with and answered is stored as messages are, and counted with them."""
    return "1 message" if item.messages == 1 else f"{item.messages:,} messages and tool results"


def _state(item: SessionItem, zone: tzinfo) -> str:
    if item.ended_at is not None:
        return f"until {format_local_time(item.ended_at, zone)}, {_WHY.get(item.ended or '', item.ended)}"
    if item.reset_waits:
        return "its reset waits for the archive"
    return f"current, {pluralize(item.view_tokens, 'token')} of context"


_NO_CONVERSATION = (
    "There is no conversation yet. Begin with `assistant chat`; `assistant import list` lists what you brought along."
)


def _render_list(items: Sequence[SessionItem], zone: tzinfo) -> str:
    lines = [
        f"- `{session_name(item.session)} {item.generation}` — {_count_records(item)}, from "
        f"{format_local_time(item.started_at, zone)}, {_state(item, zone)}"
        for item in items
    ]
    return "\n".join(lines) or _NO_CONVERSATION


@sessions.command("list", render=_render_list, reads=True, with_session=False)
@click.option(
    "--limit", default=5, show_default=True, type=click.IntRange(1, 100_000), help="How many of each session."
)
def list_sessions(context: CommandContext, limit: int) -> list[SessionItem]:
    """List conversations, of each session the newest first.

    > assistant sessions list --limit 100
    """
    return [session_item(row) for row in context.stores.sessions.list_generations(limit)]


class SessionDetails(SessionItem):
    """Everything about one conversation."""

    handover: str  # the note that it began with
    summary: str  # its newest summary
    compactions: list[int]
    compaction_states: list[str]


def _render_details(item: SessionDetails, zone: tzinfo) -> str:
    resumed = f", continues {session_name(item.session)} {item.resumed}" if item.resumed is not None else ""
    kind = "" if item.kind == MAIN_SESSION else f" ({item.kind})"
    parts = [
        f"{session_name(item.session)} {item.generation}{kind}: {_count_records(item)}, from "
        f"{format_local_time(item.started_at, zone)}{resumed}, {_state(item, zone)}."
    ]
    if item.pressure is not None:
        parts.append(f"Its context was {item.pressure:.0%} full when it ended.")
    if item.archive:
        parts.append(f"Archived at {item.archive}.")
    if item.handover:
        parts.append(f"It began with this note:\n{item.handover}")
    if item.summary:
        parts.append(f"Its newest summary:\n{item.summary}")
    if item.compactions:
        listed = [f"{n} ({state})" for n, state in zip(item.compactions, item.compaction_states, strict=True)]
        parts.append(f"Compactions (`aihistory show ID` shows one): {', '.join(listed)}.")
    if item.ended_at is None and session_role(item.session) == "owner":
        parts.append(f"`/session {item.session.removeprefix('thread:')}` goes there.")
    return "\n\n".join(parts)


@sessions.command("show", render=_render_details, reads=True, with_session=False)
@click.argument("session", metavar="[SESSION]", default=MAIN_SESSION)
@click.argument("number", metavar="[NUMBER]", required=False, type=click.IntRange(1))
def show(context: CommandContext, session: str, number: int | None) -> SessionDetails:
    """Show a conversation: when it was, how it ended, its summary. Also the note that it began with.

    > assistant sessions show
    > assistant sessions show main 3
    """
    reader = context.stores.sessions
    row = reader.get_generation(session, number)
    of_session = context.stores.conversation.checkpoints(row.generation.session)
    checkpoints = [checkpoint for checkpoint in of_session if checkpoint.generation == row.generation.number]
    summaries = [checkpoint.summary for checkpoint in checkpoints if checkpoint.state == "live" and checkpoint.summary]
    return SessionDetails.model_validate(
        _item_values(row)
        | {
            "handover": reader.handover_note(row.generation),
            "summary": summaries[-1] if summaries else "",
            "compactions": [checkpoint.id for checkpoint in checkpoints],
            "compaction_states": [f"{checkpoint.tier}, {checkpoint.state}" for checkpoint in checkpoints],
        }
    )


@dataclass(frozen=True, slots=True)
class ResetReport:
    """A reset, carried out or (while `done` is false) to be agreed to."""

    done: bool
    session: str
    ended: int  # the number of the conversation that ends
    messages: int  # in it
    begins: int | None = None  # the number of the next one
    archive: str = ""
    unread: int = 0  # messages still to be read for memories
    is_reading_on: bool = False  # they are read from now on
    open_requests: int = 0
    can_resume: bool = False
    put_away: bool = False  # ended for good, not begun again


def _render_reset(report: ResetReport, _: tzinfo) -> str:
    if not report.done:
        where = f" at {report.archive}" if report.archive else ""
        return (
            f"The conversation {session_name(report.session)} has {pluralize(report.messages, 'message')}. What is "
            f"worth remembering is written down first, then all of it is archived{where}, and the archive is read "
            "back.\n\n"
            "The next conversation begins empty, with a short note of what was open "
            f"({pluralize(report.open_requests, 'open request')}). Memories, to-dos, pins, requests and the message "
            "log stay as they are."
        )
    learned = "Everything worth keeping was written down first."
    if report.unread:
        unread = pluralize(report.unread, "message")
        learned = f"{unread} could not be read for memories yet; the next sleep reads them."
        if report.is_reading_on:
            learned = f"{unread} are still to be read for memories, which happens now."
    stays = "stays" if report.messages == 1 else "stay"
    archived = f" That conversation is archived at {report.archive}, read back and checked." if report.archive else ""
    resume = f" `/sessions resume {session_name(report.session)} {report.ended}` resumes that conversation."
    begins = (
        f"{session_name(report.session)} ended. The next message in it begins a new conversation."
        if report.put_away
        else f"{session_name(report.session)} begins a new conversation (number {report.begins})."
    )
    return (
        f"{begins} {learned} The {pluralize(report.messages, 'message')} of number {report.ended} {stays} in the "
        f"message log.{archived} Open requests, to-dos and pins stay.{resume if report.can_resume else ''}"
    )


def _report(context: CommandContext, done: ResetResult, *, put_away: bool = False) -> ResetReport:
    return ResetReport(
        True,
        done.ended.session,
        done.ended.number,
        done.ended.messages,
        done.generation,
        done.archive.url,
        done.unread,
        done.is_reading_on,
        can_resume=context.stores.sessions.can_resume(done.ended),
        put_away=put_away,
    )


@sessions.command("end", render=_render_reset, max_seconds=_MOST_SECONDS, with_session=False)
@click.argument("session", metavar="SESSION")
async def end(context: CommandContext, session: str) -> ResetReport:
    """End a thread: learn from it, archive it. Its next message begins a new conversation.

    > assistant sessions end trip
    """
    key = context.stores.sessions.resolve_session(session)
    if session_kind(key) == "main":
        raise UsageError("main cannot be ended. Nothing was changed; `/reset` starts it again from nothing.")
    done = await context.services.resets.reset_now(ResetRequest(key, "end"))
    return _report(context, done, put_away=True)


@dataclass(frozen=True, slots=True)
class ResumeReport:
    """An earlier conversation, taken up again."""

    session: str
    resumed: int  # its number
    ended: int  # the number of the conversation that ended for it
    can_go_back: bool


def _render_resume(report: ResumeReport, _: tzinfo) -> str:
    back = f": `/sessions resume {session_name(report.session)} {report.ended}` goes back" if report.can_go_back else ""
    return (
        f"{session_name(report.session)} continues number {report.resumed}: the model sees again what it last saw "
        f"there. Number {report.ended} ended for it and is kept{back}."
    )


@sessions.command("resume", render=_render_resume, max_seconds=_MOST_SECONDS, with_session=False)
@click.argument("session", metavar="SESSION")
@click.argument("number", metavar="[NUMBER]", required=False, type=click.IntRange(1))
async def resume(context: CommandContext, session: str, number: int | None) -> ResumeReport:
    """Take up an earlier conversation again. Without NUMBER, the last one that ended.

    > assistant sessions resume main
    > assistant sessions resume trip 2
    """
    reader = context.stores.sessions
    key = reader.resolve_session(session)
    chosen = _chosen(reader, key, number)
    done = await context.services.resets.reset_now(ResetRequest(key, "resume", resumes=chosen))
    return ResumeReport(key, chosen, done.ended.number, reader.can_resume(done.ended))


def _chosen(reader: SessionReader, session: str, number: int | None) -> int:
    """The conversation to continue: the last one that ended, unless named. Raises `UsageError`."""
    ended = [row for row in reversed(reader.generations.list_generations(session)) if row.ended_at is not None]
    numbers, name = [generation.number for generation in ended if reader.can_resume(generation)], session_name(session)
    if not numbers:
        raise UsageError(f"{name} has no earlier conversation to resume. Nothing was changed.")
    if number is not None and number not in numbers:
        listed = ", ".join(map(str, reversed(numbers)))
        raise UsageError(f"{name} has no earlier conversation {number}, only {listed}. Nothing was changed.")
    return numbers[0] if number is None else number


# --------------------------------------------------------------------------------------------------------------- resets


@dataclass(frozen=True, slots=True)
class CancelReport:
    session: str
    cancelled: bool


def _render_reset_or_cancel(report: ResetReport | CancelReport, zone: tzinfo) -> str:
    if isinstance(report, ResetReport):
        return _render_reset(report, zone)
    if report.cancelled:
        return f"The reset of {session_name(report.session)} is cancelled."
    return f"No reset of {session_name(report.session)} is waiting."


def _ask(report: ResetReport | CancelReport) -> Confirmation | None:
    if isinstance(report, CancelReport) or report.done:
        return None
    return Confirmation("Reset it?", ("reset", report.session, "--yes"))


@click.command(
    cls=TableCommand,
    render=_render_reset_or_cancel,
    max_seconds=_MOST_SECONDS,
    confirm=_ask,
)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--cancel", is_flag=True, help="Cancel a reset that waits for the archive.")
async def reset(context: CommandContext, name: str | None, yes: bool, cancel: bool) -> ResetReport | CancelReport:
    """End a conversation and begin the next.

    First it learns from it and archives it; the next one begins with a note of what was open. Nothing is forgotten: the
    messages stay in the message log, and `assistant sessions resume` takes the conversation up again.

    > assistant reset
    > assistant reset trip --yes
    """
    reader, resets = context.stores.sessions, context.services.resets
    session = reader.resolve_session(name or context.session)
    if cancel:
        return CancelReport(session, resets.cancel_reset(session, context.now))
    if context.surface == "shell" and not yes:
        ending = reader.get_generation(session, None).generation
        requests = len(context.stores.requests.list_open(session))
        return ResetReport(False, session, ending.number, ending.messages, open_requests=requests)
    return _report(context, await resets.reset_now(ResetRequest(session, "manual")))


# ------------------------------------------------------------------------------------------------------------ switching


@dataclass(frozen=True, slots=True)
class CurrentSession:
    """Where you are now."""

    session: str
    is_new: bool  # nothing was said there yet
    view_messages: int  # what the model sees of it
    others: list[str]
    switched: bool


def _render_current(here: CurrentSession, _: tzinfo) -> str:
    if not here.switched:
        listed = f" There are also {', '.join(f'`{session_name(key)}`' for key in here.others)}." if here.others else ""
        return f"You are in {session_name(here.session)}.{listed} `/session NAME` goes to another, or makes it."
    back = "" if here.session == MAIN_SESSION else f" `/session {MAIN_SESSION}` goes back."
    what = "which is new" if here.is_new else f"the model sees {pluralize(here.view_messages, 'message')} of it"
    return f"You are in {session_name(here.session)} now, {what}.{back}"


@click.command(cls=TableCommand, render=_render_current)
@words_argument("name", required=False, metavar="NAME")
def session(context: CommandContext, name: str) -> CurrentSession:
    """Go to a conversation of its own, or back to main; alone: where you are.

    > /session trip
    """
    views = {info.key: info.view_messages for info in context.stores.conversation.list_sessions()}
    here = parse_session_name(name) if name else context.session
    if session_role(here) != "owner" or is_imported(here):
        raise UsageError(f"{here!r} is not a conversation of yours. Nothing was changed.")
    if name and context.bridge != context.services.terminal:
        # A terminal keeps by itself which conversation it is in.
        context.stores.places.choose_session(context.bridge, context.target, here, context.now)
    others = sorted(key for key in views if session_role(key) == "owner" and key != here)
    return CurrentSession(here, here not in views, views.get(here, 0), others, bool(name))
