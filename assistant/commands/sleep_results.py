"""`memory profiles` and `memory changes`: what sleeps made of what was said, as dated facts about people, places and
projects, and as the difference that one sleep made.

What always holds: stored words are data. On a line they are one JSON string, so that nothing that was said can pass for
a line of the report.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Literal

import click

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import TableCommand, words_argument
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.memories import ChangePlan, MemoryChange, SleepReport, UndoableEdit
from assistant.core.profiles import Profile
from assistant.core.quoting import quote_text
from assistant.core.text import pluralize

_MOST_LINES = 60  # of one text
_LOOKED_BACK = 500
_MOST_WITHOUT_CHANGES = 50
_FILE_TARGET, _PROFILE_TARGET = "file:", "profile:"

# ------------------------------------------------------------------------------------------------------------ profiles


class FactItem(Item):
    """Something that is known of somebody or something, from when until when."""

    name: str
    value: str
    since: datetime
    until: datetime | None
    sources: tuple[int, ...]  # journal entries: `assistant memory why e12`


class ProfileItem(Item):
    """A person, a place, a project or another thing that conversations come back to."""

    kind: Literal["person", "place", "project", "thing"]
    name: str
    aliases: tuple[str, ...]
    summary: str
    attributes: tuple[FactItem, ...]  # oldest first, those that ended included
    updated_at: datetime | None


def _render_profiles(profiles: Sequence[Profile], zone: tzinfo) -> str:
    return "\n\n".join("\n".join(_profile_lines(it, zone)) for it in profiles) or "No profile was made yet."


def _profile_lines(profile: Profile, zone: tzinfo) -> Iterator[str]:
    also = f", also {', '.join(map(quote_text, profile.aliases))}" if profile.aliases else ""
    yield f"{quote_text(profile.name)} ({profile.kind}{also})"
    if profile.summary:
        yield f"- {quote_text(profile.summary)}"
    for fact in profile.attributes:
        until = f" until {_day(fact.until, zone)}" if fact.until else ""
        yield f"- {quote_text(fact.name)}: {quote_text(fact.value)}, since {_day(fact.since, zone)}{until}"


def _day(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).date().isoformat()


@click.command("profiles", cls=TableCommand, result=list[ProfileItem], render=_render_profiles, reads=True)
@words_argument("name", required=False)
@click.option("--after", default="", metavar="NAME", help="Only those whose name comes after this one.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="How many.")
def profiles(context: CommandContext, name: str, after: str, limit: int) -> list[Profile]:
    """List people, places and projects by name, with dated facts. With NAME, that one.

    > assistant memory profiles
    > assistant memory profiles Ada
    """
    store = context.stores.profiles
    if not name:
        return store.list_profiles(context.scope, after_name=after, limit=limit)
    found = store.find(name, context.scope)
    if found is None:
        raise UsageError(f"There is no profile of {quote_text(name)}. `/memory profiles` lists them.")
    return [found]


# ------------------------------------------------------------------------------------------------- what a sleep changed


@dataclass(frozen=True, slots=True)
class ChangedMemory:
    """A memory that a sleep made, changed or removed; `before` and `after` are "" where there was, or is, none."""

    action: Literal["add", "update", "delete"]
    id: str
    before: str
    after: str
    until: datetime | None  # it is no longer true since then
    accepted: bool  # a person said that this is right


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """What was noted and made no memory, and why."""

    id: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A file, or a profile, that a sleep wrote: the lines that went ("-") and came ("+")."""

    name: str
    lines: list[str]  # the first of them
    more: int  # how many more lines changed
    id: int  # `assistant memory undo c12` undoes the change 12
    accepted: bool  # a person said that this is right


@dataclass(frozen=True, slots=True)
class SleepChanges:
    """What one sleep changed."""

    id: int
    started_at: datetime
    state: str  # as in `assistant sleep --last`
    memories: list[ChangedMemory]
    rejected: list[RejectedEntry]
    texts: list[ChangedText]
    more: bool = False  # whether it changed more memories than are listed


def _render_changes(changes: SleepChanges | None, zone: tzinfo) -> str:
    if changes is None:
        return "There was no sleep yet."
    when = format_local_time(changes.started_at, zone)
    if changes.state == "undone":
        return f"Sleep {changes.id} of {when} was undone."
    count = len(changes.memories) + len(changes.texts)
    least = "at least " if changes.more else ""
    lines = [f"Sleep {changes.id} of {when} changed {least}{pluralize(count, 'thing')}:"]
    for memory in changes.memories:
        accepted = ", accepted" if memory.accepted else ""
        lines += [f"- Memory {memory.id[:8]}: was {quote_text(memory.before)}"] if memory.before else []
        lines += [f"- Memory {memory.id[:8]}{accepted}: is {quote_text(memory.after)}"] if memory.after else []
    lines += [f"- Not remembered: {quote_text(it.text)} ({it.reason})" for it in changes.rejected]
    for text in changes.texts:
        lines += [f"- {text.name} (c{text.id}): {quote_text(line)}" for line in text.lines]
        lines += [f"- {text.name} (c{text.id}): {pluralize(text.more, 'more line')}"] if text.more else []
    lines += ["- There are more; `--limit` shows them."] if changes.more else []
    return "\n".join(lines) if lines[1:] else f"Sleep {changes.id} of {when} changed no memory and no file."


@click.command("changes", cls=TableCommand, render=_render_changes, reads=True)
@click.argument("number", type=click.IntRange(1), required=False)
@click.option("--limit", default=200, show_default=True, type=click.IntRange(1, 100_000), help="How many memories.")
def changes(context: CommandContext, number: int | None, limit: int) -> SleepChanges | None:
    """Show what a sleep changed. Without NUMBER, the last that changed anything, which `sleep --undo` undoes.

    `memory undo` undoes a single change, `memory accept` says that it is right.

    > assistant memory changes
    > assistant memory changes 12
    """
    if number is None:
        return _last_changes(context, limit)
    for report in context.stores.journal.list_cycles(limit=_LOOKED_BACK):
        if report.id == number:
            return _read_changes(context, report, limit)
    raise UsageError(f"There is no sleep {number}. `/sleep --last` shows the last one, with its number.")


def _last_changes(context: CommandContext, limit: int) -> SleepChanges | None:
    """Of the last sleep that changed anything; where none did, of the last."""
    newest: SleepChanges | None = None
    for report in context.stores.journal.list_cycles(limit=_MOST_WITHOUT_CHANGES):
        found = _read_changes(context, report, limit)
        if found.memories or found.texts:
            return found
        newest = newest or found
    return newest


def _read_changes(context: CommandContext, report: SleepReport, limit: int) -> SleepChanges:
    stores, scope = context.stores, context.scope
    plans, count = list[ChangePlan](), 0
    for plan in stores.consolidations.iterate_applied_plans(report.id, scope):
        plans.append(plan)
        count += len(plan.changes) + len(plan.rejected)
        if count > limit:
            break
    reasons = dict(islice(((entry, reason) for plan in plans for entry, reason in plan.rejected), limit))
    entries = stores.journal.read(list(reasons), scope)
    edits = [it for it in stores.files.edits_of_cycle(report.id) if it.scope == scope]
    accepted = stores.consolidations.accepted_keys(report.id)
    noted = {
        change.memory.id: (min(change.memory.entries, default=0), change.memory.id)
        for plan in plans
        for change in plan.changes
    }
    names = {f"{_PROFILE_TARGET}{it.id}": f"Profile of {it.name}" for it in stores.profiles.list_profiles(scope)}
    return SleepChanges(
        report.id,
        report.started_at,
        report.state,
        sorted(
            (_changed_memory(change, plan.key in accepted) for plan in plans for change in plan.changes),
            # What is accepted or undone beside it moves none of them.
            key=lambda it: noted[it.id],
        )[:limit],
        [RejectedEntry(it.id, it.content, reasons[it.id]) for it in entries if it.id is not None],
        [_changed_text(it, names.get(it.target, it.target.removeprefix(_FILE_TARGET))) for it in edits],
        count > limit,
    )


def _changed_text(edit: UndoableEdit, name: str) -> ChangedText:
    lines = _difference(_lines_of(edit.target, edit.before), _lines_of(edit.target, edit.after))
    more = max(0, len(lines) - _MOST_LINES)
    return ChangedText(name, lines[:_MOST_LINES], more, edit.id or 0, edit.accepted_at is not None)


def _changed_memory(change: MemoryChange, accepted: bool) -> ChangedMemory:
    before = change.before.text if change.before else ""
    after = "" if change.action == "delete" else change.memory.text
    return ChangedMemory(change.action, change.memory.id, before, after, change.memory.until, accepted)


def _difference(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-" and line[2:].strip()]


def _lines_of(target: str, text: str) -> list[str]:
    """A file as it is; a profile, which is kept as JSON, as people read it."""
    if not target.startswith(_PROFILE_TARGET) or not text:
        return text.splitlines()
    profile = json.loads(text)
    facts = [
        f"{fact['name']}: {fact['value']}, since {fact['since'][:10]}"
        + (f" until {fact['until'][:10]}" if fact.get("until") else "")
        for fact in profile.get("attributes", ())
    ]
    also = profile.get("aliases")
    return [*([f"also: {', '.join(also)}"] if also else []), *profile.get("summary", "").splitlines(), *facts]


# ------------------------------------------------------------------------------------------------------ single changes

_EDIT = re.compile(r"c([0-9]{1,18})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SingleChange:
    """What became of a single change of a sleep."""

    done: Literal["undone", "accepted"]
    changes: int  # how many, with those that hang together with it


def _render_single_change(change: SingleChange, zone: tzinfo) -> str:
    count = pluralize(change.changes, "change")
    if change.done == "accepted":
        return f"Accepted: {count}."
    return f"Undone: {count}. What was said stays, and nothing is learned from it again."


@click.command("undo", cls=TableCommand, render=_render_single_change)
@words_argument("reference", metavar="ID")
async def undo_change(context: CommandContext, reference: str) -> SingleChange:
    """Undo one change of a sleep. ID is a memory's, or c12 for a file or profile, as in `memory changes`.

    Where a memory replaced another, that one is current again. `sleep --undo` undoes a whole sleep.

    > assistant memory undo 1a2b3c4d
    > assistant memory undo c12
    """
    async with context.services.keep_awake():
        if edit := _EDIT.fullmatch(reference):
            context.stores.files.undo_edit(int(edit[1]), context.scope, context.now)
            return SingleChange("undone", 1)
        found = await context.stores.memory.show(reference, context.scope)
        undo = context.services.sleep_undo
        return SingleChange("undone", await undo.undo_memory(found.memory.id, context.scope, context.now))


@click.command("accept", cls=TableCommand, render=_render_single_change)
@words_argument("reference", metavar="ID", required=False)
async def accept_change(context: CommandContext, reference: str) -> SingleChange:
    """Accept one change of a sleep: it is not shown as new any more. ID is as in `memory changes`. Without it: all.

    > assistant memory accept 1a2b3c4d
    > assistant memory accept c12
    > assistant memory accept
    """
    undo = context.services.sleep_undo
    if edit := _EDIT.fullmatch(reference or ""):
        context.stores.files.accept_edit(int(edit[1]), context.scope, context.now)
        return SingleChange("accepted", 1)
    if reference:
        found = await context.stores.memory.show(reference, context.scope)
        return SingleChange("accepted", undo.accept_memory(found.memory.id, context.scope, context.now))
    shown = _last_changes(context, 1)
    accepted = undo.accept_sleep(shown.id, context.scope, context.now) if shown else 0
    return SingleChange("accepted", accepted)
