"""The slash command about sleep, and its reports: sleep now, in part or whole, see first what it would do, see what
the last one did, or take it back. Reports are Markdown, a line for each thing, or JSON; the renderers are pure.

What always holds: nothing that went wrong or was left waiting is left out of a report, and a cost that is not known
is not shown as nothing (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

import click
from pydantic import AliasPath, Field

from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.items import Item
from assistant.commands.table import TableCommand
from assistant.core.budget import BudgetStatus
from assistant.core.calendar import utc_now
from assistant.core.checkpoints import describe_tier
from assistant.core.errors import AssistantError, UsageError
from assistant.core.memories import PHASE_NAMES, SLEEP_KINDS, SleepReport
from assistant.core.sessions import session_name
from assistant.core.text import format_duration, pluralize
from sleep.cycle.cycle import PHASES
from sleep.cycle.dry_run import SleepForecast
from sleep.cycle.undo import SleepUndoResult

_MOST_SECONDS = 12 * 3600.0


class SleepItem(Item):
    """What a sleep did, or has done so far."""

    id: int
    trigger: str  # "sleep" (a night), "late", "nap", "manual" or "phase"
    state: str  # "running", "done", "failed", "interrupted", "undoing" or "undone"
    started_at: datetime
    ended_at: datetime | None
    phases: dict[str, dict[str, Any]]  # what each phase read, wrote, rejected and spent
    is_new: bool = False  # this command started it


class UndoneSleep(Item):
    """What was undone of a sleep."""

    id: int = Field(validation_alias=AliasPath("cycle", "id"))
    started_at: datetime = Field(validation_alias=AliasPath("cycle", "started_at"))
    memories: int = Field(validation_alias="memory_count")  # changes of memories
    entries: int = Field(validation_alias="entry_count")  # journal entries
    edits: tuple[str, ...]  # of profiles and files, by their targets
    sessions: tuple[str, ...]  # whose compactions were undone
    left: tuple[str, ...] = Field(validation_alias="not_undone")  # a line for each thing that was left as it is


SleepValue = SleepItem | SleepForecast | SleepUndoResult | None


def _render(value: SleepValue, zone: tzinfo) -> str:
    match value:
        case SleepForecast():
            return render_forecast(value)
        case SleepUndoResult():
            return render_sleep_undo(value, zone)
        case _:
            return render_sleep_report(value, zone, utc_now())


def _exit_code(value: SleepValue) -> int:
    return 1 if isinstance(value, SleepItem) and value.is_new and value.state in ("failed", "interrupted") else 0


def _follow(stores: CommandStores, now: datetime) -> str:
    report = next(iter(stores.journal.list_cycles(limit=1, other_process_may_sleep=True)), None)
    return "Falling asleep" if report is None or report.state != "running" else render_sleep_progress(report, now)


@click.command(
    cls=TableCommand,
    result=SleepItem | SleepForecast | UndoneSleep | None,
    render=_render,
    max_seconds=_MOST_SECONDS,
    with_session=False,
    exit_code=_exit_code,
    follow=_follow,
)
@click.option("--dry-run", is_flag=True, help="Only show what a sleep would do now, and about what it would cost.")
@click.option("--phase", metavar="NAME", help=f"This phase alone: {', '.join(PHASES[:-1])} or {PHASES[-1]}.")
@click.option("--last", is_flag=True, help="Show what the last sleep did, or does.")
@click.option("--undo", is_flag=True, help="Undo the last sleep that changed something; again: the one before it.")
async def sleep(context: CommandContext, dry_run: bool, phase: str | None, last: bool, undo: bool) -> SleepValue:
    """Sleep now: learn from what was said, and make room.

    A sleep reads what was said for the journal, remembers it, writes files and profiles, and summarises conversations
    whose context is full. It happens automatically every night, and a message never waits for it. Whatever it changed
    can be undone; the messages themselves are never touched.

    > assistant sleep --dry-run
    > assistant sleep
    > assistant sleep --last
    > assistant sleep --undo
    """
    if dry_run + (phase is not None) + last + undo > 1:
        raise UsageError("Give one of --dry-run, --phase, --last and --undo. Nothing was changed.")
    services = context.services
    if dry_run:
        forecast = await services.sleep_dry_run.run(context.now)
        return replace(forecast, refused=_refusal(context.stores.ledger.budget_status(context.now)))
    if last:
        report = next(iter(context.stores.journal.list_cycles(limit=1)), None)
        return None if report is None else SleepItem.model_validate(report)
    if undo:
        async with services.keep_awake():
            return await services.sleep_undo.undo_last_sleep(context.now)
    if phase is not None and phase not in PHASES:
        raise UsageError(f"There is no phase {phase!r}; the phases are {', '.join(PHASES)}. Nothing was changed.")
    report = await services.sleep_now("manual" if phase is None else "phase", phase or "")
    if report is None:
        raise AssistantError(_FAILED)
    return SleepItem.model_validate(report).model_copy(update={"is_new": True})


def _refusal(budget: BudgetStatus) -> str:
    """Why the budget would refuse what a sleep asks a model for; "" where it would not."""
    for part, caps in (("", budget.caps), ("part for work in the background of the ", budget.background)):
        for cap in caps:
            if cap.is_used_up:
                return f"The {part}{cap.name} budget {cap.state}."
    return ""


_FAILED = "The sleep failed; `assistant status` says why. Nothing was lost; the next one continues where it was."
# What became of entries that are no new memory.
_DECIDED = {"merged": "merged with known ones", "superseded": "replaced by newer ones", "junk": "rejected as junk"}
_BY_RULES = ("model", "budget")  # why rules did what a model was to do
_ENDS = {
    "running": "still running",
    "done": "all went well",
    "failed": "not all went well",
    "interrupted": "cut off; the next one continues where it was",
    "undoing": "being undone",
    "undone": "undone",
}


def render_sleep_report(report: SleepReport | SleepItem | None, zone: tzinfo, now: datetime) -> str:
    """Return when it began (home time), how long it took, how it ended, and a line for each thing it did."""
    if report is None:
        return "No sleep yet."
    begun = f"{report.started_at.astimezone(zone):%Y-%m-%d %H:%M}"
    lasted = format_duration(((report.ended_at or now) - report.started_at).total_seconds())
    took = f", {lasted}" if report.ended_at is not None or report.state == "running" else ""
    lines = [f"Sleep {report.id} ({SLEEP_KINDS.get(report.trigger, report.trigger)}), {begun}{took}: {_end(report)}."]
    return "\n".join([*lines, *(f"- {line}" for line in _lines(report))])


def render_sleep_progress(report: SleepReport, now: datetime) -> str:
    """Where a sleep that is under way is, in a line."""
    name, phase = next(reversed(report.phases.items()), ("", {}))
    line = next(_phase_lines(name, phase), "")
    so_far = f": {line.rstrip('.')}" if line else ""
    lasts = format_duration((now - report.started_at).total_seconds())
    return f"{PHASE_NAMES.get(name, name or 'falling asleep').capitalize()}{so_far} ({lasts})"


def _end(report: SleepReport | SleepItem) -> str:
    failed = [PHASE_NAMES.get(name, name) for name, phase in report.phases.items() if phase.get("state") == "failed"]
    which = f" ({', '.join(failed)} failed)" if failed and report.state == "failed" else ""
    if report.state == "done" and any(phase.get(key) for phase in report.phases.values() for key in _BY_RULES):
        return "done, in part by rules, without a model"
    return f"{_ENDS.get(report.state, report.state)}{which}"


def _lines(report: SleepReport | SleepItem) -> list[str]:
    phases = report.phases
    done = [line for name, phase in phases.items() for line in render_phase(name, phase)]
    # The same reason of several phases, such as a budget that is used up, is one line.
    wrong: dict[str, list[str]] = {}
    for name, phase in phases.items():
        for key in ("warning", "error", *_BY_RULES):
            if phase.get(key):
                wrong.setdefault(phase[key], []).append(PHASE_NAMES.get(name, name))
    if not done and not wrong and report.state in ("done", "undone"):
        done = ["There was nothing to do."]
    reasons = [f"! {', '.join(dict.fromkeys(names))}: {text}" for text, names in wrong.items()]
    return [*done, f"Spent: {_spent(phases)}", *reasons]


def render_phase(name: str, phase: Mapping[str, Any]) -> list[str]:
    """What one phase did; nothing where it did nothing."""
    running = " (running)" if phase.get("state") == "running" else ""
    return [f"{line}{running}" for line in _phase_lines(name, phase)]


def _phase_lines(name: str, phase: Mapping[str, Any]) -> Iterator[str]:
    read, written, waiting = (phase.get(key, 0) for key in ("read", "written", "waiting"))
    rejected = "; ".join(phase.get("rejected", ()))
    match name:
        case "settle" if written:
            yield f"Compactions: {pluralize(written, 'entry', 'entries')} were written into the journal."
        case "extract":
            if read:
                repeated = f", {phase['repeated']:,} known already" if phase.get("repeated") else ""
                entries = pluralize(written, "entry", "entries")
                yield f"Read: {pluralize(read, 'message')}; {entries} for the journal{repeated}."
            if rejected:
                yield f"Not taken from a model's answer: {rejected}."
            if waiting:
                yield f"Left for the next sleep: {pluralize(waiting, 'session')} not read to the end."
        case "score":
            if read:
                yield f"Weighed: {written:,} of {pluralize(read, 'uncertain entry', 'uncertain entries')}."
            if rejected:
                yield f"Weighed by rules: {rejected}."
        case "consolidate":
            if read:
                learned = pluralize(phase.get("learned", 0), "new memory", "new memories")
                others = _decided(phase)
                why = f" ({rejected})" if rejected else ""
                more = f"; {', '.join(others)}{why}" if others else why
                yield f"Remembered: {learned} from {pluralize(read, 'entry', 'entries')}{more}."
            if waiting:
                yield f"Left for the next sleep: {pluralize(waiting, 'entry', 'entries')} that are no memories yet."
        case "curate":
            notes = _notes_of_days(phase.get("notes", 0))
            profiles = pluralize(phase.get("profiles", 0), "profile") if phase.get("profiles") else ""
            if files := ", ".join(filter(None, [notes, profiles, "MEMORY.md" if phase.get("curated") else ""])):
                yield f"Written: {files}."
            if secrets := phase.get("secrets"):
                yield _left_out(secrets)
        case "notes":
            if phase.get("notes"):
                yield f"Written: {_notes_of_days(phase['notes'])}."
            if rejected:
                yield f"Not noted: {rejected}"
        case "imports":
            if read:
                yield f"Of what you imported: {pluralize(read, 'message')}; {pluralize(written, 'entry', 'entries')}."
            if left := phase.get("waiting_conversations"):
                yield f"Imported and still to be read: {pluralize(left, 'conversation')}; the next nights read on."
        case "compact":
            for session, compacted in phase.get("compacted", {}).items():
                yield (
                    f"Summarised {describe_tier(compacted['tier'])}: {pluralize(compacted['messages'], 'message')} of "
                    f"{session_name(session)}, {compacted['tokens_before']:,} tokens became "
                    f"{compacted['tokens_after']:,}."
                )


def _left_out(secrets: int) -> str:
    kept = "It is remembered; ask for it by its name to see it."
    if secrets > 1:
        kept = "They are remembered; ask for them by their names to see them."
    return (
        f"Left out of these and of the notes of the day: {pluralize(secrets, 'thing')} that looked like a "
        f"password, key, PIN or card number. {kept}"
    )


def _notes_of_days(days: int) -> str:
    return f"the notes of {pluralize(days, 'day')}" if days else ""


def _spent(phases: Mapping[str, Mapping[str, Any]]) -> str:
    calls = sum(phase.get("calls", 0) for phase in phases.values())
    costs = [phase["cost_usd"] for phase in phases.values() if "cost_usd" in phase]
    if not calls and not any(costs) and None not in costs:
        compacted = any(phase.get("compacted") for phase in phases.values())
        return "nothing." if compacted else "nothing; no model was asked."
    amount = f"${sum(cost for cost in costs if cost):.4f}"
    if None in costs:
        amount = f"at least {amount} (not every price is known)" if any(costs) else "no known price"
    return f"{amount} in {pluralize(calls, 'call')}." if calls else f"{amount}."


# ------------------------------------------------------------------------------------------------------------- foreseen


def render_forecast(forecast: SleepForecast) -> str:
    """What a sleep would do."""
    lines = [
        f"{session_name(unread.session)}: {pluralize(unread.messages, 'message')} to read"
        + (f", about {pluralize(unread.calls, 'call')} and {unread.tokens:,} tokens" if unread.calls else "")
        + ("." if unread.entries is None else f", {pluralize(unread.entries, 'entry', 'entries')} for the journal.")
        for unread in forecast.unread
    ]
    if forecast.pending:
        weighed = f", {forecast.unscored:,} of them to be weighed" if forecast.unscored else ""
        entries = pluralize(forecast.pending, "journal entry", "journal entries")
        lines.append(f"{entries} to remember{weighed}{_become(forecast)}.")
    if forecast.planned:
        batches = pluralize(forecast.planned, "batch", "batches")
        lines.append(f"{batches} of changes to finish, decided on by an earlier sleep.")
    lines += [
        f"{session_name(full.session)} to compact: it takes {full.ratio:.0%} of the context; {full.tokens_before:,} "
        f"tokens would become about {full.tokens_after:,}."
        for full in forecast.full
    ]
    if not lines:
        return "A sleep would find nothing to do now. Nothing was changed."
    lines.append(_price(forecast))
    return "\n".join(["Nothing was changed. A sleep would find now:", *(f"- {line}" for line in lines)])


def _become(forecast: SleepForecast) -> str:
    """What the entries that wait would become; a model may decide otherwise than the rules."""
    if forecast.changes is None:
        return "; what they would become cannot be told, since the memory store does not answer"
    if not forecast.changes:
        return ""
    learned = pluralize(forecast.changes.get("learned", 0), "new memory", "new memories")
    by_rules = " (by the rules; the model decides)" if forecast.calls else ""
    return f": {', '.join([learned, *_decided(forecast.changes)])}{by_rules}"


def _decided(counts: Mapping[str, Any]) -> list[str]:
    return [f"{counts[key]:,} {words}" for key, words in _DECIDED.items() if counts.get(key)]


def _price(forecast: SleepForecast) -> str:
    if not forecast.calls:
        return "No model is asked; it costs nothing."
    if forecast.refused:
        return f"{forecast.refused} The rules would do it, without a model."
    price = "no known price" if forecast.usd is None else f"about ${forecast.usd:.4f}"
    model = forecast.model or "a model"
    return f"About {pluralize(forecast.calls, 'call')} of {model}, {forecast.tokens:,} tokens in: {price}."


# ----------------------------------------------------------------------------------------------------------- taken back


def render_sleep_undo(undone: SleepUndoResult, zone: tzinfo) -> str:
    """What was taken back of a sleep, and what was left and why."""
    lines = [f"Undid sleep {undone.cycle.id} of {undone.cycle.started_at.astimezone(zone):%Y-%m-%d %H:%M}."]
    if undone.memory_count:
        lines.append(f"- Memories: {pluralize(undone.memory_count, 'change')} undone.")
    if undone.entry_count:
        entries = pluralize(undone.entry_count, "entry", "entries")
        lines.append(f"- Journal: {entries} set aside: they are kept, but no memories are made of them.")
        lines.append(
            "- None of it is learned again from what was said, not by `assistant memory rebuild --from-log` either; "
            "what is said again is."
        )
    if profiles := sum(target.startswith("profile:") for target in undone.edits):
        lines.append(f"- Profiles: {pluralize(profiles, 'change')} undone.")
    if files := dict.fromkeys(target.partition(":")[2] for target in undone.edits if target.startswith("file:")):
        lines.append(f"- Files restored: {', '.join(files)}.")
    lines += [f"- Compaction of {session_name(session)} undone." for session in undone.sessions]
    return "\n".join([*lines, *(f"- ! Left as it is: {line}" for line in undone.not_undone)])
