"""The slash command about sleep: sleep now, in part or whole, see first what it would do, see what the last one did, or
take it back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, tzinfo

from assistant.commands import sleeping_report as sleep_report
from assistant.core.errors import UsageError
from assistant.core.memories import SleepReport
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Journal
from sleep.cycle.cycle import PHASES
from sleep.cycle.dry_run import SleepDryRun
from sleep.cycle.undo import SleepUndo

_ONE_OF = ("--dry-run", "--last", "--undo", "--phase")
USAGE = "/sleep [--dry-run | --phase NAME | --last | --undo]"


@dataclass(frozen=True, slots=True)
class _Asked:
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
            "sleep": Command(USAGE, "sleep now; what that would do, what the last did, or take it back", self._sleep)
        }

    async def _sleep(self, call: CommandInvocation) -> str:
        """Markdown, or JSON where `--json` is among the words."""
        asked, now = _asked(call.rest), call.now
        match asked.what:
            case "--dry-run":
                found = await self._foreseeing.foresee()
                return _json(sleep_report.forecast_json(found)) if asked.json else sleep_report.foreseen(found)
            case "--last":
                return self._told(next(iter(self._journal.cycles(limit=1)), None), asked, now)
            case "--undo":
                async with self._awake():
                    done = await self._undoing.take_back(now)
                return (
                    _json(sleep_report.taken_back_json(done))
                    if asked.json
                    else sleep_report.taken_back(done, self._zone)
                )
            case _:
                report = await self._sleep_now("phase" if asked.phase else "manual", asked.phase)
                if report is None:
                    return _json(None) if asked.json else sleep_report.FAILED
                return self._told(report, asked, now)

    def _told(self, report: SleepReport | None, asked: _Asked, now: datetime) -> str:
        return _json(sleep_report.as_json(report)) if asked.json else sleep_report.told(report, self._zone, now)


def phase_named(name: str) -> str:
    """Raises `UsageError` for one that there is not."""
    if name not in PHASES:
        raise UsageError(f"There is no phase {name!r}; the phases are {', '.join(PHASES)}. Nothing was changed.")
    return name


def _asked(rest: str) -> _Asked:
    words = rest.split()
    wants_json = "--json" in words
    words = [word for word in words if word != "--json"]
    what = words[0] if words else ""
    if what == "--phase":
        if len(words) != 2:
            raise UsageError(f"Name one phase: {', '.join(PHASES)}. Nothing was changed.")
        return _Asked(what, phase_named(words[1]), wants_json)
    if what not in ("", *_ONE_OF) or len(words) > 1:
        raise UsageError(f"Use {USAGE}. Nothing was changed.")
    return _Asked(what, "", wants_json)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
