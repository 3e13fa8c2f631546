"""A scenario of the ends of conversations: one is reset, cleared, and taken up again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from assistant.core.errors import ArchiveUnavailable, AssistantError, StoreError
from assistant.core.model_api import ModelRequest
from tests.crash.comparison import but, look
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.world import AppRun, CrashEnvironment, live, message
from tests.support.scripted import ScriptStep

_TRIES = 20
_A_WHILE = timedelta(minutes=2)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}")
_WORDS = ("I moved to Bergen in March.", "Please write the letter to the bank.", "My sister Ines keeps the spare key.")


def _answer(request: ModelRequest) -> ScriptStep:
    return "Noted."


_TALKED = CrashEnvironment(tuple(message(text, number) for number, text in enumerate(_WORDS)), _answer)


async def _persistently(life: AppRun, do: Callable[[], Awaitable[object]], done: Callable[[], bool]) -> None:
    """A person asks for it until it is done, or lets it be where the archive's disk never answers. Calls are broken by
    their number in each thread, and each step of an archive has a thread of its own, so that such a fault does not
    pass."""
    refused: AssistantError | None = None
    for _ in range(_TRIES):
        if done():
            return
        life.clock.now += _A_WHILE
        try:
            await do()
        except AssistantError as error:
            refused = error
    if not done() and not isinstance(refused, ArchiveUnavailable | StoreError):
        raise AssertionError(f"what was asked for was never done: {refused}")


async def _reset(life: AppRun) -> None:
    """The person resets, unless that was done before the crash, has it cleared, and takes the first one up again; then
    the assistant sleeps, and reads what could not be read before."""
    await life.app.runtime.wait_until_idle()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    stores, run = life.app.stores, life.app.commands.run

    def number() -> int:
        return len(stores.generations.list_generations("main"))

    await _persistently(life, lambda: run("/reset", "main", bridge="network"), lambda: number() >= 2)
    life.app.maintenance.run()
    if number() >= 2:
        resume = "/sessions resume main 1"
        await _persistently(life, lambda: run(resume, "main", bridge="network"), lambda: number() >= 3)
    for _ in range(_TRIES):
        life.app.maintenance.run()

    def read() -> bool:
        slept = any(cycle.state == "done" for cycle in stores.journal.list_cycles())
        return slept and not stores.conversation.list_unread_generations()

    await _persistently(life, lambda: life.app.sleep.scheduler.run_now("nap"), read)


def _work(home: Path) -> None:
    live(home, replace(_TALKED, meanwhile=_reset))


def _look(home: Path) -> Snapshot:
    """Where the archive was refused to the end, after another start on a disk that works."""
    script = home / "script.db"
    if rows(script, "SELECT 1 FROM resets WHERE state IN ('begun', 'waiting', 'archived')"):
        _work(home)
    return {
        **look(home),
        "generations": rows(
            script, "SELECT key, generation, from_seq, ended_at IS NULL, end_reason, resumed, cleared FROM sessions"
        ),
        "resets": rows(script, "SELECT session, generation, reason, state FROM resets ORDER BY session, generation"),
        "archived": rows(script, "SELECT session, generation, records, to_seq FROM archives ORDER BY 1, 2"),
    }


def _timeless(before: Any, after: Any, faults: Faults) -> bool:
    """The note says when the conversation ended, which is later after a fault."""
    return _without_times(before) == _without_times(after)


def _without_times(value: Any) -> str:
    return _TIME.sub("then", json.dumps(value))


def _same_files(before: list[list[str]], after: list[list[str]], faults: Faults) -> bool:
    """Files of the archive by their names: `power.py` knows nothing of permissions that were changed later. What was
    torn off the end of a log is kept beside it."""
    kept = [one for one in after if ".jsonl.torn-" not in one[0]]
    return bool(faults.all) and _archives_by_name(before) == _archives_by_name(kept)


def _archives_by_name(entries: list[list[str]]) -> list[list[str]]:
    return [[name, "" if name.startswith("archive/") else mode] for name, mode in entries]


def _same_lines(before: list[str], after: list[str], faults: Faults) -> bool:
    """Each step is told of as often as it is tried; what failed is told in clear lines besides."""
    return {*before} <= {*after} if faults.all else before == after


_LATER = "a conversation that ends after a fault ends later"
RESET = Scenario(
    "reset",
    "a conversation is reset, and taken up again",
    lambda home: live(home, _TALKED),
    _work,
    _look,
    but(
        AllowedDifference("log", _LATER, _timeless),
        AllowedDifference("said", _LATER, _timeless),
        AllowedDifference("view", _LATER, _timeless),
        AllowedDifference(
            "files", "a cut of power may leave a new file with the permissions it was made with", _same_files
        ),
        AllowedDifference("told", "each step is told of as often as it is tried", _same_lines),
    ),
)
