"""Scenario of a whole night: a day's talk is read, weighed, made into semantic memory by Mem0 in its process, written
into profiles, notes of the day and MEMORY.md, and the conversation is compacted. Nothing asks a model."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from assistant.core.model_api import ModelRequest
from assistant.core.sessions import peer_session_key
from assistant.wire.memories import memory_store_settings
from tests.crash.compaction_scenarios import CARRIED_OUT
from tests.crash.comparison import look
from tests.crash.forked_mem0 import ForkedChild, MemoryChildForker, import_mem0
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.world import AppRun, CrashEnvironment, live, message
from tests.support.scripted import ScriptStep

_TRIES = 15
_A_WHILE = timedelta(seconds=30)
_ADA = peer_session_key("network", "ada")
_BEFORE = (
    "My name is Mara and I live in Oslo.",
    "My sister Ines is a nurse in Rome.",
    "Please remember: always answer in short sentences.",
    "The rent is 950 euros.",
)
_SINCE = (
    "I moved from Oslo to Bergen.",
    "Good morning!",
    "My sister Ines works as a doctor in Lund now.",
    "We decided to sell the boat in June.",
    "I never eat meat.",
    "The rent is 1100 euros now.",
)


def _answer(request: ModelRequest) -> ScriptStep:
    return "Noted. " + "The road goes on along the shore and over the hill. " * 60


_FIRST_DAY = CrashEnvironment(
    (
        *(message(text, number) for number, text in enumerate(_BEFORE, 1)),
        message("I live in Rome.", 20, _ADA, scope=_ADA, sender="ada", trust="guest"),
    ),
    _answer,
    settings={"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000"},
)
_SECOND_DAY = replace(
    _FIRST_DAY,
    messages=(
        *_FIRST_DAY.messages,
        *(message(text, number) for number, text in enumerate(_SINCE, 30)),
        message("I moved from Rome to Turin.", 40, _ADA, scope=_ADA, sender="ada", trust="guest"),
    ),
)


async def _sleep(nursery: MemoryChildForker, life: AppRun) -> None:
    """Until a sleep came to its end and nothing waits: a disk in trouble, or a child that died, is tried again. Where
    every child dies at the same call the restart goes on with it."""
    stores = life.app.stores
    stores.memories.child = ForkedChild(memory_store_settings(life.app.settings), nursery)
    await life.app.runtime.wait_until_idle()
    for _ in range(_TRIES):
        life.clock.now += _A_WHILE
        report = await life.app.sleep.scheduler.run_now("sleep")
        waiting = sum(info.unextracted for info in stores.conversation.list_sessions())
        if report is not None and report.state == "done" and not waiting:
            return


# An attempt at a compaction that was cut off uses up the number by which its summary is called.
_KEY = "CASE j.source_type WHEN 'context_synthesis' THEN 'summary' ELSE j.key END"


def _slept(home: Path, day: CrashEnvironment) -> None:
    live(home, replace(day, meanwhile=partial(_sleep, MemoryChildForker())))


def _prepare(home: Path) -> None:
    _slept(home, _FIRST_DAY)
    live(home, _SECOND_DAY)


def _look(home: Path) -> Snapshot:
    """What the night made, beside what a home holds anyway. Entries are called by their keys: after a fault they may be
    written in another order, and so get other ids."""
    character, memory = home / "character.db", home / "memory.db"
    return {
        **look(home),
        "entries": rows(
            character,
            f"SELECT scope, {_KEY}, content, CASE source_type WHEN 'context_synthesis' THEN '' ELSE timestamp END,"
            " importance, tags, (SELECT n.key FROM journal n WHERE n.id = j.superseded_by) FROM journal j"
            " ORDER BY 1, 2",
        ),
        "consolidated": rows(
            character,
            "SELECT j.key, c.memory_id, c.note FROM consolidated_entry_ids c JOIN journal j ON j.id = c.entry_id"
            " ORDER BY 1",
        ),
        "plans": rows(character, "SELECT DISTINCT scope, state FROM change_plans ORDER BY 1, 2"),
        "memories": rows(
            memory,
            "SELECT id, scope, text, said_at, json_remove(payload, '$.entries', '$.created_at', '$.updated_at'),"
            " json_array_length(payload, '$.entries') FROM memories ORDER BY 1",
        ),
        "vectors": rows(
            memory,
            "SELECT m.id, v.embedder, hex(v.vector) FROM vectors v JOIN memories m ON m.number = v.memory ORDER BY 1",
        ),
        "what memories said": rows(
            memory, "SELECT memory_id, old_memory, new_memory, event FROM history ORDER BY memory_id, number"
        ),
        "profiles": [
            [*row[:-1], _dated(json.loads(row[-1]))]
            for row in rows(
                character, "SELECT scope, kind, name, aliases, summary, attributes FROM entity_profiles ORDER BY 1, 3"
            )
        ],
        "edits": [
            [*row[:3], _said(row[3]), _said(row[4])]
            for row in rows(character, "SELECT scope, target, by, before, after FROM edits ORDER BY target, id")
        ],
        "written for people": _texts(home),
    }


def _dated(attributes: list[dict[str, Any]]) -> list[list[Any]]:
    return [[one["name"], one["value"], one["since"], one["until"], len(one["sources"])] for one in attributes]


def _said(text: str) -> Any:
    """A file as it is, a profile without the ids of entries."""
    return _dated(json.loads(text)["attributes"]) if text.startswith("{") else text


def _failed_more(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """Every process of Mem0's dies at the same call until the restart: each of these nights failed, and says so."""
    return bool(faults.all) and all(row in after for row in before) and ["sleep", "running"] not in after


def _in_steps(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """The same changes; MEMORY.md may come to the same in two steps, one building on the other."""
    curated, steps = ([row for row in rows if row[1] == _CURATED] for rows in (before, after))
    others, same = ([row for row in rows if row[1] != _CURATED] for rows in (before, after))
    whole = steps[0][3] == curated[0][3] and steps[-1][4] == curated[-1][4]
    return bool(faults.all) and others == same and whole and all(one[4] == two[3] for one, two in pairwise(steps))


def _other_room(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """The same but for what is carried along from what was compacted."""
    kept, left = ([row for row in rows if "carried_from" not in row[3]] for rows in (before, after))
    return bool(faults.errors) and kept == left


def _other_counts(before: list[Any], after: list[Any], faults: Faults) -> bool:
    return bool(faults.errors) and [row[:3] for row in before] == [row[:3] for row in after]


_CURATED = "file:MEMORY.md"
_LATE = (
    "what memories supersede leaves MEMORY.md once they were made, which may be in a later sleep than it was curated"
)
_ROOM = "where the disk kept notes from being written, a shorter prompt leaves room for one more message of the person"
_DIFFER = (
    *(rule for rule in CARRIED_OUT if rule.part not in ("view", "sessions", "sleep cycles")),
    AllowedDifference("edits", _LATE, _in_steps),
    AllowedDifference("sleep cycles", "a night whose process died has failed, and is slept again", _failed_more),
    AllowedDifference("view", _ROOM, _other_room),
    AllowedDifference("sessions", _ROOM, _other_counts),
)


def _texts(home: Path) -> list[list[Any]]:
    found = [path for path in (home / "MEMORY.md", *sorted((home / "memory").rglob("*"))) if path.is_file()]
    return [[str(path.relative_to(home)), path.read_text(encoding="utf-8")] for path in found]


NIGHT = Scenario(
    "night",
    "a day is read, weighed, consolidated by Mem0, curated and compacted",
    _prepare,
    lambda home: _slept(home, _SECOND_DAY),
    _look,
    _DIFFER,
    within=60,
    ready=import_mem0,
    apart=("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal"),
)
