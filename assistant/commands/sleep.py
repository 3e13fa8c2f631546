"""The slash command about sleep, and its reports: sleep now, in part or whole, see first what it would do, see what
the last one did, or take it back. Reports are Markdown, a line for each thing, or JSON; the renderers are pure.

What always holds: nothing that went wrong or was left waiting is left out of a report, and a cost that is not known
is not shown as nothing (I11).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Any

from assistant.core.errors import UsageError
from assistant.core.memories import SleepReport
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Journal
from assistant.core.text import format_duration, pluralize
from sleep.cycle.cycle import PHASES
from sleep.cycle.dry_run import FullSession, SleepDryRun, SleepForecast
from sleep.cycle.undo import SleepUndo, SleepUndoResult

_ONE_OF = ("--dry-run", "--last", "--undo", "--phase")
SLEEP_USAGE = "/sleep [--dry-run | --phase NAME | --last | --undo]"


@dataclass(frozen=True, slots=True)
class _SleepOptions:
    """What was typed: one of `_ONE_OF` or "", the phase, and whether JSON is wanted."""

    what: str
    phase: str
    json: bool


class SleepCommands:
    def __init__(
        self,
        sleep: Callable[[str, str], Awaitable[SleepReport | None]],
        awake: Callable[[], AbstractAsyncContextManager[None]],
        undoing: SleepUndo,
        foreseeing: SleepDryRun,
        journal: Journal,
        zone: tzinfo,
    ) -> None:
        """`sleep` sleeps for a trigger, in one phase or with "" all; nobody sleeps while `awake` is open, and it raises
        `UsageError` while somebody does."""
        self._sleep_now = sleep
        self._awake = awake
        self._undoing = undoing
        self._foreseeing = foreseeing
        self._journal = journal
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {
            "sleep": Command(
                SLEEP_USAGE, "sleep now; what that would do, what the last did, or take it back", self._sleep
            )
        }

    async def _sleep(self, call: CommandInvocation) -> str:
        """Markdown, or JSON where `--json` is among the words."""
        asked, now = _asked(call.arguments), call.now
        match asked.what:
            case "--dry-run":
                found = await self._foreseeing.run()
                return _json(forecast_json(found)) if asked.json else render_forecast(found)
            case "--last":
                return self._told(next(iter(self._journal.list_cycles(limit=1)), None), asked, now)
            case "--undo":
                async with self._awake():
                    done = await self._undoing.undo_last_sleep(now)
                return _json(sleep_undo_json(done)) if asked.json else render_sleep_undo(done, self._zone)
            case _:
                report = await self._sleep_now("phase" if asked.phase else "manual", asked.phase)
                if report is None:
                    return _json(None) if asked.json else SLEEP_FAILED
                return self._told(report, asked, now)

    def _told(self, report: SleepReport | None, asked: _SleepOptions, now: datetime) -> str:
        return _json(sleep_report_json(report)) if asked.json else render_sleep_report(report, self._zone, now)


def parse_phase(name: str) -> str:
    """Raises `UsageError` for one that there is not."""
    if name not in PHASES:
        raise UsageError(f"There is no phase {name!r}; the phases are {', '.join(PHASES)}. Nothing was changed.")
    return name


def _asked(rest: str) -> _SleepOptions:
    words = rest.split()
    wants_json = "--json" in words
    words = [word for word in words if word != "--json"]
    what = words[0] if words else ""
    if what == "--phase":
        if len(words) != 2:
            raise UsageError(f"Name one phase: {', '.join(PHASES)}. Nothing was changed.")
        return _SleepOptions(what, parse_phase(words[1]), wants_json)
    if what not in ("", *_ONE_OF) or len(words) > 1:
        raise UsageError(f"Use {SLEEP_USAGE}. Nothing was changed.")
    return _SleepOptions(what, "", wants_json)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


NO_SLEEP = "No sleep yet."
SLEEP_FAILED = "The sleep failed; `assistant status` says why. Nothing was lost, and the next one goes on where it was."
PHASE_NAMES = {
    "settle": "compactions into the journal",
    "extract": "reading",
    "score": "weighing",
    "consolidate": "remembering",
    "curate": "files and profiles",
    "compact": "compacting",
}
_KINDS = {"sleep": "night", "late": "night, slept late", "nap": "nap", "manual": "by hand", "phase": "one phase"}
_ENDS = {
    "running": "it is still under way",
    "done": "all went well",
    "failed": "not all went well",
    "interrupted": "it was cut off; the next one goes on where it was",
    "undoing": "it is being taken back",
    "undone": "it was taken back",
}


def render_sleep_report(report: SleepReport | None, zone: tzinfo, now: datetime) -> str:
    """The report of a sleep; None where there was none."""
    if report is None:
        return NO_SLEEP
    begun = f"{report.started_at.astimezone(zone):%Y-%m-%d %H:%M}"
    lasted = format_duration(((report.ended_at or now) - report.started_at).total_seconds())
    took = "cut off" if report.ended_at is None and report.state != "running" else lasted
    lines = [f"Sleep {report.id} ({_KINDS.get(report.trigger, report.trigger)}), {begun}, {took}: {_end(report)}."]
    lines += [f"- {line}" for line in _lines(report)]
    return "\n".join(lines)


def render_sleep_progress(report: SleepReport, now: datetime) -> str:
    """Where a sleep that is under way is, in a line."""
    name, phase = next(reversed(report.phases.items()), ("", {}))
    lines = render_phase(name, {**phase, "state": ""})
    so_far = f": {lines[0].rstrip('.')}" if lines else ""
    lasts = format_duration((now - report.started_at).total_seconds())
    return f"{PHASE_NAMES.get(name, name or 'falling asleep').capitalize()}{so_far} ({lasts})"


def _end(report: SleepReport) -> str:
    failed = [PHASE_NAMES.get(name, name) for name, phase in report.phases.items() if phase.get("state") == "failed"]
    which = f" ({', '.join(failed)} failed)" if failed and report.state == "failed" else ""
    return f"{_ENDS.get(report.state, report.state)}{which}"


def _lines(report: SleepReport) -> Iterator[str]:
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
    return [f"{line} (under way)" for line in lines] if phase.get("state") == "running" else lines


def _settled(phase: Mapping[str, Any]) -> Iterator[str]:
    if phase.get("written"):
        yield f"Compactions: {pluralize(phase['written'], 'entry', 'entries')} went into the journal."


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


def render_sleep_undo(done: SleepUndoResult, zone: tzinfo) -> str:
    """What was taken back of a sleep, and what was left and why."""
    begun = f"{done.cycle.started_at.astimezone(zone):%Y-%m-%d %H:%M}"
    profiles = sum(target.startswith("profile:") for target in done.edits)
    files = [target.partition(":")[2] for target in done.edits if target.startswith("file:")]
    lines = [
        *([f"Memories: {pluralize(done.memory_count, 'change')} taken back."] if done.memory_count else []),
        *(
            [
                f"Journal: {pluralize(done.entry_count, 'entry', 'entries')} set aside; they stay, and nothing is made "
                f"of them.",
                "None of it is learned again from what was said, not by `assistant memory rebuild --from-log` "
                "either; what "
                "is said again is.",
            ]
            if done.entry_count
            else []
        ),
        *([f"Profiles: {pluralize(profiles, 'change')} taken back."] if profiles else []),
        *([f"Files as they were: {', '.join(dict.fromkeys(files))}."] if files else []),
        *(f"Compaction of {session} taken back." for session in done.sessions),
        *(f"! Left as it is: {line}" for line in done.not_undone),
    ]
    return "\n".join([f"Took back sleep {done.cycle.id} of {begun}.", *(f"- {line}" for line in lines)])


# ----------------------------------------------------------------------------------------------------------------- JSON


def sleep_report_json(report: SleepReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "id": report.id,
        "trigger": report.trigger,
        "state": report.state,
        "started_at": report.started_at.isoformat(),
        "ended_at": report.ended_at.isoformat() if report.ended_at else None,
        "phases": report.phases,
    }


def forecast_json(found: SleepForecast) -> dict[str, Any]:
    return asdict(found)


def sleep_undo_json(done: SleepUndoResult) -> dict[str, Any]:
    return {
        "id": done.cycle.id,
        "memories": done.memory_count,
        "entries": done.entry_count,
        "edits": list(done.edits),
        "sessions": list(done.sessions),
        "left": list(done.not_undone),
    }
