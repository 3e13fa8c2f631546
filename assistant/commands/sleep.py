"""The slash command about sleep, and its reports: sleep now, in part or whole, see first what it would do, see what
the last one did, or take it back. Reports are Markdown, a line for each thing, or JSON; the renderers are pure.

What always holds: nothing that went wrong or was left waiting is left out of a report, and a cost that is not known
is not shown as nothing (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

import click

from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, UsageError
from assistant.core.memories import SleepReport
from assistant.core.text import format_duration, pluralize
from sleep.cycle.cycle import PHASES
from sleep.cycle.dry_run import FullSession, SleepForecast
from sleep.cycle.undo import SleepUndoResult

_MOST_SECONDS = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class SleepItem:
    """What a sleep did, or has done so far."""

    id: int
    trigger: str  # "sleep" (a night), "late", "nap", "manual" or "phase"
    state: str  # "running", "done", "failed", "interrupted", "undoing" or "undone"
    started_at: datetime
    ended_at: datetime | None
    phases: dict[str, dict[str, Any]]  # what each phase read, wrote, rejected and spent
    is_new: bool = False  # this command started it


@dataclass(frozen=True, slots=True)
class UndoneSleep:
    """What was undone of a sleep."""

    id: int
    started_at: datetime
    memories: int  # changes of memories
    entries: int  # journal entries
    edits: tuple[str, ...]  # of profiles and files, by their targets
    sessions: tuple[str, ...]  # whose compactions were undone
    left: tuple[str, ...]  # a line for each thing that was left as it is


SleepValue = SleepItem | SleepForecast | UndoneSleep | None


def _render(value: SleepValue, zone: tzinfo) -> str:
    match value:
        case SleepForecast():
            return render_forecast(value)
        case UndoneSleep():
            return render_sleep_undo(value, zone)
        case SleepItem():
            return render_sleep_report(value, zone, utc_now())
        case None:
            return NO_SLEEP


def _exit_code(value: SleepValue) -> int:
    return 1 if isinstance(value, SleepItem) and value.is_new and value.state in ("failed", "interrupted") else 0


def _follow(stores: CommandStores, now: datetime) -> str:
    report = next(iter(stores.journal.list_cycles(limit=1, other_process_may_sleep=True)), None)
    return "Falling asleep" if report is None or report.state != "running" else render_sleep_progress(report, now)


@click.command(
    cls=TableCommand,
    result=SleepValue,
    render=_render,
    max_seconds=_MOST_SECONDS,
    with_session=False,
    exit_code=_exit_code,
    follow=_follow,
)
@click.option("--dry-run", is_flag=True, help="Only show what a sleep would do now, and about what it would cost.")
@click.option("--phase", metavar="NAME", help="This phase alone: extract, score, consolidate, curate or compact.")
@click.option("--last", is_flag=True, help="Show what the last sleep did, or does.")
@click.option("--undo", is_flag=True, help="Undo the last sleep that changed something; again: the one before it.")
async def sleep(context: CommandContext, dry_run: bool, phase: str | None, last: bool, undo: bool) -> SleepValue:
    """Sleep now: learn from what was said, and make room.

    A sleep reads what was said for the journal, remembers it, writes files and profiles, and summarises conversations
    whose context is full. It happens automatically every night, and a message never waits for it. Whatever it changed
    can be undone; the messages themselves are never touched.

    \b
    Example:
      assistant sleep --dry-run
      assistant sleep
      assistant sleep --last
      assistant sleep --undo
    """
    if dry_run + (phase is not None) + last + undo > 1:
        raise UsageError("Give one of --dry-run, --phase, --last and --undo. Nothing was changed.")
    services = context.services
    if dry_run:
        return await services.sleep_dry_run.run()
    if last:
        report = next(iter(context.stores.journal.list_cycles(limit=1)), None)
        return None if report is None else _item(report)
    if undo:
        async with services.keep_awake():
            return _undone(await services.sleep_undo.undo_last_sleep(context.now))
    report = await services.sleep_now("manual" if phase is None else "phase", parse_phase(phase) if phase else "")
    if report is None:
        raise AssistantError(SLEEP_FAILED)
    return replace(_item(report), is_new=True)


def _item(report: SleepReport) -> SleepItem:
    return SleepItem(report.id, report.trigger, report.state, report.started_at, report.ended_at, report.phases)


def _undone(done: SleepUndoResult) -> UndoneSleep:
    cycle = done.cycle
    return UndoneSleep(
        cycle.id, cycle.started_at, done.memory_count, done.entry_count, done.edits, done.sessions, done.not_undone
    )


def parse_phase(name: str) -> str:
    """Raises `UsageError` for one that there is not."""
    if name not in PHASES:
        raise UsageError(f"There is no phase {name!r}; the phases are {', '.join(PHASES)}. Nothing was changed.")
    return name


NO_SLEEP = "No sleep yet."
SLEEP_FAILED = "The sleep failed; `assistant status` says why. Nothing was lost; the next one continues where it was."
PHASE_NAMES = {
    "settle": "compactions into the journal",
    "extract": "reading",
    "score": "weighing",
    "consolidate": "remembering",
    "curate": "files and profiles",
    "compact": "compacting",
}
_KINDS = {"sleep": "night", "late": "night, late", "nap": "nap", "manual": "manual", "phase": "one phase"}
_ENDS = {
    "running": "still running",
    "done": "all went well",
    "failed": "not all went well",
    "interrupted": "cut off; the next one continues where it was",
    "undoing": "being undone",
    "undone": "undone",
}


def render_sleep_report(report: SleepReport | SleepItem | None, zone: tzinfo, now: datetime) -> str:
    """The report of a sleep; None where there was none."""
    if report is None:
        return NO_SLEEP
    begun = f"{report.started_at.astimezone(zone):%Y-%m-%d %H:%M}"
    lasted = format_duration(((report.ended_at or now) - report.started_at).total_seconds())
    took = f", {lasted}" if report.ended_at is not None or report.state == "running" else ""
    lines = [f"Sleep {report.id} ({_KINDS.get(report.trigger, report.trigger)}), {begun}{took}: {_end(report)}."]
    lines += [f"- {line}" for line in _lines(report)]
    return "\n".join(lines)


def render_sleep_progress(report: SleepReport, now: datetime) -> str:
    """Where a sleep that is under way is, in a line."""
    name, phase = next(reversed(report.phases.items()), ("", {}))
    lines = render_phase(name, {**phase, "state": ""})
    so_far = f": {lines[0].rstrip('.')}" if lines else ""
    lasts = format_duration((now - report.started_at).total_seconds())
    return f"{PHASE_NAMES.get(name, name or 'falling asleep').capitalize()}{so_far} ({lasts})"


def _end(report: SleepReport | SleepItem) -> str:
    failed = [PHASE_NAMES.get(name, name) for name, phase in report.phases.items() if phase.get("state") == "failed"]
    which = f" ({', '.join(failed)} failed)" if failed and report.state == "failed" else ""
    return f"{_ENDS.get(report.state, report.state)}{which}"


def _lines(report: SleepReport | SleepItem) -> Iterator[str]:
    phases = report.phases
    told_of = False
    for name, phase in phases.items():
        for line in render_phase(name, phase):
            told_of = True
            yield line
    if not told_of and report.state != "running":
        yield "There was nothing to do."
    yield f"Spent: {_spent(phases)}"
    for name, phase in phases.items():
        for key in ("warning", "error", "model", "budget"):
            if phase.get(key):
                yield f"! {PHASE_NAMES.get(name, name)}: {phase[key]}"


def render_phase(name: str, phase: Mapping[str, Any]) -> list[str]:
    """What one phase did; nothing where it did nothing."""
    lines = list(_TOLD.get(name, _other)(phase))
    return [f"{line} (running)" for line in lines] if phase.get("state") == "running" else lines


def _settled(phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("written"):
        yield f"Compactions: {pluralize(phase['written'], 'entry', 'entries')} were written into the journal."


def _read(phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("read"):
        known = f", {phase['repeated']:,} known already" if phase.get("repeated") else ""
        entries = pluralize(phase.get("written", 0), "entry", "entries")
        yield f"Read: {pluralize(phase['read'], 'message')}; {entries} for the journal{known}."
    yield from _rejected("Not taken from a model's answer", phase)
    if phase.get("waiting"):
        yield f"Left for the next sleep: {pluralize(phase['waiting'], 'session')} not read to the end."


def _scored(phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("read"):
        entries = pluralize(phase["read"], "uncertain entry", "uncertain entries")
        yield f"Weighed: {phase.get('written', 0):,} of {entries}."
    yield from _rejected("Weighed by rules", phase)


def _consolidated(phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("read"):
        done = [
            f"learned {pluralize(phase.get('learned', 0), 'memory', 'memories')}",
            f"{phase.get('merged', 0):,} merged",
            f"{phase.get('superseded', 0):,} superseded",
            f"{phase.get('junk', 0):,} rejected as junk",
        ]
        why = f" ({'; '.join(phase['rejected'])})" if phase.get("rejected") else ""
        yield f"Remembered: of {pluralize(phase['read'], 'entry', 'entries')} {', '.join(done)}{why}."
    if phase.get("waiting"):
        yield f"Left for the next sleep: {pluralize(phase['waiting'], 'entry', 'entries')} that are no memories yet."


def _curated(phase: Mapping[str, Any]) -> Iterator[str]:
    done = [
        *([pluralize(phase["notes"], "note of a day", "notes of days")] if phase.get("notes") else []),
        *([pluralize(phase["profiles"], "profile")] if phase.get("profiles") else []),
        *(["MEMORY.md"] if phase.get("curated") else []),
    ]
    if done:
        yield f"Written: {', '.join(done)}."


def _compacted(phase: Mapping[str, Any]) -> Iterator[str]:
    for session, one in phase.get("compacted", {}).items():
        yield (
            f"Compacted: {session}, {pluralize(one['messages'], 'message')} ({one['tier']}): {one['tokens_before']:,} "
            f"tokens became {one['tokens_after']:,}."
        )


def _other(phase: Mapping[str, Any]) -> Iterator[str]:
    yield from ()


def _rejected(what: str, phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("rejected"):
        yield f"{what}: {'; '.join(phase['rejected'])}."


_TOLD = {
    "settle": _settled,
    "extract": _read,
    "score": _scored,
    "consolidate": _consolidated,
    "curate": _curated,
    "compact": _compacted,
}


def _spent(phases: Mapping[str, Mapping[str, Any]]) -> str:
    calls = sum(phase.get("calls", 0) for phase in phases.values())
    costs = [phase["cost_usd"] for phase in phases.values() if "cost_usd" in phase]
    compacted = [one for phase in phases.values() for one in phase.get("compacted", {}).values()]
    if not calls and not any(costs) and None not in costs:
        return "nothing; no model was asked." if not compacted else "nothing."
    known = f"${sum(cost for cost in costs if cost):.4f}"
    unknown = f"{known} and what has no known price" if any(costs) else "no known price"
    asked = f" in {pluralize(calls, 'call')}" if calls else ""
    return f"{unknown if None in costs else known}{asked}."


# ------------------------------------------------------------------------------------------------------------- foreseen


def render_forecast(found: SleepForecast) -> str:
    """What a sleep would do."""
    lines = [
        f"{one.session}: {pluralize(one.messages, 'message')} to read"
        + (f", about {pluralize(one.calls, 'call')} and {one.tokens:,} tokens." if one.calls else ".")
        for one in found.unread
    ]
    if found.pending:
        weighed = f", {found.unscored:,} of them to be weighed" if found.unscored else ""
        lines.append(f"{pluralize(found.pending, 'journal entry', 'journal entries')} to remember{weighed}.")
    if found.planned:
        lines.append(
            f"{pluralize(found.planned, 'batch', 'batches')} of changes to finish, decided on by an earlier sleep."
        )
    lines += [_full(one) for one in found.full]
    if not lines:
        return "A sleep would find nothing to do now. Nothing was changed."
    lines.append(_price(found))
    return "\n".join(["Nothing was changed. A sleep would find now:", *(f"- {line}" for line in lines)])


def _full(one: FullSession) -> str:
    tokens = f"{one.tokens_before:,} tokens would become about {one.tokens_after:,}"
    return f"{one.session} to compact: it takes {one.ratio:.0%} of the context; {tokens}."


def _price(found: SleepForecast) -> str:
    if not found.calls:
        return "No model is asked; it costs nothing."
    price = "no known price" if found.usd is None else f"about ${found.usd:.4f}"
    return f"About {pluralize(found.calls, 'call')} of {found.model or 'a model'}, {found.tokens:,} tokens in: {price}."


# ----------------------------------------------------------------------------------------------------------- taken back


def render_sleep_undo(done: UndoneSleep, zone: tzinfo) -> str:
    """What was taken back of a sleep, and what was left and why."""
    begun = f"{done.started_at.astimezone(zone):%Y-%m-%d %H:%M}"
    profiles = sum(target.startswith("profile:") for target in done.edits)
    files = [target.partition(":")[2] for target in done.edits if target.startswith("file:")]
    lines = [
        *([f"Memories: {pluralize(done.memories, 'change')} undone."] if done.memories else []),
        *(
            [
                f"Journal: {pluralize(done.entries, 'entry', 'entries')} set aside: they are kept, but no "
                f"memories are made of them.",
                "None of it is learned again from what was said, not by `assistant memory rebuild --from-log` "
                "either; what "
                "is said again is.",
            ]
            if done.entries
            else []
        ),
        *([f"Profiles: {pluralize(profiles, 'change')} undone."] if profiles else []),
        *([f"Files restored: {', '.join(dict.fromkeys(files))}."] if files else []),
        *(f"Compaction of {session} undone." for session in done.sessions),
        *(f"! Left as it is: {line}" for line in done.left),
    ]
    return "\n".join([f"Undid sleep {done.id} of {begun}.", *(f"- {line}" for line in lines)])
