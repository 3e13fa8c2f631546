"""A scenario of reminders and scheduled prompts that are due: on time, late, repeating, many at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.agenda.catch_up import LATE_LINE
from assistant.core.errors import StoreError
from assistant.core.model_api import ModelRequest
from tests.crash.comparison import but, look
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.world import BEGUN, BRIDGE, AppRun, CrashEnvironment, live, message
from tests.support.scripted import ScriptStep

_DUE = datetime(2026, 3, 4, 9, 0, 10, tzinfo=UTC)
_TRIES = 40
_JOBS = (
    "/remind call mum --at 2026-03-04 09:00",
    "/remind feed the cat --at 2026-03-04 09:00",
    "/remind stretch --every day at 8",
    *(f"/remind thing {number} --at 2026-03-03 10:0{number}" for number in range(7)),
    "/schedule add news 'What is new?' --at '2026-03-04 09:00'",
    "/schedule add old 'What was it?' --every 'day at 7' --catch-up skip",
)


def _answer(request: ModelRequest) -> ScriptStep:
    return "Nothing new."


_TALKED = CrashEnvironment((message("Good morning.", 0),), _answer)


async def _set(life: AppRun) -> None:
    await life.app.runtime.wait_until_idle()
    for text in _JOBS:
        await life.app.commands.run(text, "main", bridge=BRIDGE, target="main")


async def _go_off(life: AppRun) -> None:
    """Days later, by the wall clock."""
    await life.app.runtime.wait_until_idle()
    life.clock.now = _DUE
    for _ in range(_TRIES):
        try:
            await life.app.agenda_scheduler.fire_due()
        except StoreError:
            life.clock.now += timedelta(seconds=1)
        else:
            return
    raise AssertionError("the agenda never went off")


def _look(home: Path) -> Snapshot:
    script = home / "script.db"
    return {
        **look(home),
        "jobs": rows(script, "SELECT id, kind, text, state, next_due_at, next_key FROM jobs ORDER BY id"),
        "slots": rows(
            script, "SELECT job_id, local_key, due_at, state, note, told, logged FROM slots ORDER BY job_id, local_key"
        ),
    }


_WINDOW = "what was being sent days before the network may have forgotten; it is shown as uncertain, not sent again"


def _sent_or_shown(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """What is sent days later says when it was due."""
    same = [_as_in_time(row)[:-2] for row in before] == [_as_in_time(row)[:-2] for row in after]
    uncertain = sum(row[-2] == "ambiguous" for row in after)
    return same and uncertain <= faults.all and all(row[-2] in ("sent", "ambiguous") for row in after)


def _as_in_time(row: list[Any]) -> list[Any]:
    return [*row[:5], row[5].partition(LATE_LINE)[0], *row[6:]]


def _never_sent(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """What is shown as uncertain was perhaps not sent at all: nor with the buttons of a reminder."""
    return {*after} <= {*before} and len(before) - len(after) <= faults.all


_SET_BACK = "the clock of the restart is days behind: what was spent on the day that it left counts on its own, too"


def _carried(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """Of each day: calls and tokens of its total, each beside those that were made then."""
    return not before and all(
        day == f"{BEGUN:%Y-%m-%d}" and calls >= made and tokens >= spent for day, calls, made, tokens, spent in after
    )


DUE = Scenario(
    "due",
    "reminders and a scheduled prompt are due",
    lambda home: live(home, replace(_TALKED, meanwhile=_set)),
    lambda home: live(home, replace(_TALKED, meanwhile=_go_off)),
    _look,
    but(
        AllowedDifference("deliveries", _WINDOW, _sent_or_shown),
        AllowedDifference("other bodies", _WINDOW, _never_sent),
        AllowedDifference("spending totals", _SET_BACK, _carried),
    ),
)
