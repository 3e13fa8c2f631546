"""A scenario of a calendar: the owner says yes to an appointment, and it is on the server once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.wire.stores import Stores
from tests.crash.calendar_world import CONFIG, PASSWORD, RecordedCalendar, calendar_server
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, AppRun, CrashEnvironment, live_once, message, settings_of, tail
from tests.support.scripted import ScriptStep

_EVENT = {"title": "Dentist", "when": "2026-03-05 14:30", "minutes": 45}


def _adds(request: ModelRequest) -> ScriptStep:
    asked = next(m.content for m in reversed(request.messages) if m.role == "user").lower()
    if "dentist" not in asked:
        return f"Noted, message {sum(m.role == 'user' for m in request.messages)}."
    if not any(m.role == "tool" for m in tail(request)):
        return ToolCall("add", "use_tool", {"name": "add_event", "arguments": _EVENT})
    return "I have asked you."


async def _read(life: AppRun) -> None:
    await life.app.calendars.read_now()


_LINKED = CrashEnvironment(LIVED.messages, _adds, settings=PASSWORD, meanwhile=_read)
_ASKED = replace(
    _LINKED,
    messages=(*LIVED.messages, message("Add the dentist to my calendar, 2026-03-05 14:30, 45 minutes", 3)),
    meanwhile=None,
)
_ANSWERED = replace(_ASKED, messages=(*_ASKED.messages, message("yes", 4)))


def _live(home: Path, *lives: CrashEnvironment) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    with calendar_server(EffectLog(home)):
        for life in lives:
            asyncio.run(live_once(home, life))


def _prepare(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    _live(home, _LINKED, _ASKED)


def _look(home: Path) -> Snapshot:
    stores = Stores(settings_of(home), BEGUN)
    try:
        verified = [f"{one.kind} {one.where}: {one.text}" for one in stores.verifier.verify().problems]
        shown = [event.title for event in stores.calendars.list_events(BEGUN, BEGUN.replace(month=4))]
    finally:
        stores.close()
    (state,) = rows(home / "script.db", "SELECT state FROM approvals")
    answers = [body for (body,) in rows(home / "script.db", "SELECT body FROM outbox ORDER BY id")]
    return {
        "verify": verified,
        "calendar": {
            "state": state[0],
            "on the server": [
                text.count("SUMMARY:Dentist") for text in RecordedCalendar(EffectLog(home)).entries().values()
            ],
            "shown": shown,
            "told": any("Dentist" in body and "Not done yet" not in body for body in answers),
        },
    }


def _added_once_or_said_to_be_unknown(before: Any, after: Any, faults: Faults) -> bool:
    """It is on the server once at most, and what is said of it is so; what is shown of it may wait for the next
    reading."""
    there, shown = after["on the server"], after["shown"]
    if not after["told"] or shown not in ([], ["Dentist"]) or (shown and not there):
        return False
    match after["state"]:
        case "done":
            return bool(there == [1])
        case "uncertain":
            return bool(there in ([], [1]))
        case "failed":
            return bool(there == [] and faults.errors)
    return False


CALENDAR = Scenario(
    "calendar",
    "the owner says yes to an appointment",
    _prepare,
    lambda home: _live(home, _ANSWERED),
    _look,
    (
        AllowedDifference(
            "calendar", "an appointment that was interrupted is not added twice", _added_once_or_said_to_be_unknown
        ),
    ),
)
