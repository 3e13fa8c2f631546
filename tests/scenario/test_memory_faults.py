"""Semantic memory is down, the databases are locked or damaged: messages are answered, the journal keeps everything,
the fault is told, and a later sleep catches up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.memories import SleepReport
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.mem0.client import MEMORY_DB_UNREADABLE, MemoryProcess
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel, ScriptStep
from tests.support.sleep_home import learn_every_line

OSLO, BERGEN = "I live in Oslo.", "I moved from Oslo to Bergen."
CHILD_THAT = {
    "hangs": ("sys.stdin.read()",),
    "ends at once": ("sys.exit(3)",),
    "is killed while it works": ("sys.stdin.readline()", "os.kill(os.getpid(), 9)"),
    "answers nonsense": ("sys.stdin.readline()", "print('nonsense', flush=True)", "sys.stdin.read()"),
    "answers another question": ("sys.stdin.readline()", """print('{"id": 99}', flush=True)""", "sys.stdin.read()"),
    "answers in another form": (
        "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'result': 0}), flush=True)",
    ),
    "answers with nothing": (
        "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'result': None}), flush=True)",
    ),
    "never gets on": (
        "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'result': 1}), flush=True)",
    ),
    "raises": (
        "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'error': 'It broke.'}), flush=True)",
    ),
}
_LOCKING = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


class Lock:
    """A process of its own that holds a database's lock until it is let go."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-I", "-S", "-c", _LOCKING, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"locked\n"

    def let_go(self) -> None:
        self._process.communicate()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    lock = Lock(path)
    try:
        yield
    finally:
        lock.let_go()


def impatient(it: LiveApp) -> None:
    """Who waits for a lock gives up at once."""
    stores = it.app.stores
    for db in (stores.journal._db, stores.conversation._db):  # type: ignore[attr-defined]
        db.rows("PRAGMA busy_timeout = 10")


async def told(it: LiveApp, *texts: str) -> None:
    for text in texts:
        await it.say(text, text)
        await it.wait_idle()


async def asleep(it: LiveApp) -> SleepReport:
    report = await it.app.sleep.scheduler.run_now("sleep")
    assert report is not None
    return report


def pending(it: LiveApp) -> list[str]:
    return [entry.content for entry in it.app.stores.consolidations.pending_entries()]


async def current(it: LiveApp) -> list[str]:
    return [memory.text for memory in await it.app.stores.memories.all("owner") if memory.is_current]


def is_red(it: LiveApp) -> bool:
    """Whether the status says that memories wait."""
    return any("memory store" in problem for problem in it.app.status()["problems"])


def entries(it: LiveApp) -> list[str]:
    found = it.app.stores.journal.entries("owner", limit=1_000)
    return sorted(entry.content for entry in found if entry.source_type != "context_synthesis")


# ----------------------------------------------------------------------------------------------------------- the child


async def test_f30_whatever_the_memory_process_does_the_journal_keeps_all_and_a_later_sleep_catches_up(
    tmp_path: Path,
) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        memories = it.app.stores.memories
        real = memories.child
        await told(it, OSLO, BERGEN)
        for kind, lines in CHILD_THAT.items():
            program = "\n".join(["import json, os, sys", "sys.stdin.readline()", *lines])
            # A hanging one is waited for as long as this takes; the others must not need it.
            seconds = 0.5 if kind == "hangs" else 60
            memories.child = MemoryProcess((sys.executable, "-I", "-S", "-c", program), {}, seconds=seconds)
            report = await asleep(it)
            assert (report.state, report.phases["consolidate"]["state"]) == ("failed", "failed"), kind
            assert report.phases["consolidate"]["error"], kind
            assert [report.phases[one]["state"] for one in ("extract", "curate", "compact")] == ["done"] * 3, kind
            assert (pending(it), await current(it)) == ([OSLO, BERGEN], []), kind
            assert memories.child.pid is None, kind
            assert is_red(it), kind
        assert "Oslo." in it.app.stores.files.read_memory_file()
        memories.child = real
        assert (await asleep(it)).state == "done"
        assert (pending(it), await current(it)) == ([], [BERGEN])
        assert not is_red(it)
        # It was written in nights in which nothing could supersede it; now nothing new was said.
        assert "Oslo." not in it.app.stores.files.read_memory_file()


async def test_f30_a_memory_process_that_is_stopped_in_the_middle_of_a_sleep_is_told_of(tmp_path: Path) -> None:
    """It is stopped (as by SIGSTOP) when a model is asked in the consolidation: it has started, and answered before."""
    writer = ScriptedModel()
    writer.provider = "scripted"
    async with run_app(tmp_path, "Noted.", writer=writer) as it:
        memories = it.app.stores.memories

        def stop(request: ModelRequest) -> ScriptStep:
            os.kill(memories.child.pid or 0, signal.SIGSTOP)
            memories.child.seconds = 0.2
            return '<decisions>\n{"entry": "E1", "decision": "new", "of": []}\n</decisions>'

        writer.script = [learn_every_line, _once("decisions", stop)]
        await told(it, OSLO)
        report = await asleep(it)
        assert "did not answer within" in report.phases["consolidate"]["error"]
        assert report.state == "failed" and len(it.app.stores.consolidations.unapplied_plans()) == 1
        memories.child.seconds = 60
        asked = len(writer.requests)
        assert (await asleep(it)).state == "done"
        # What was decided on was written down: nobody is asked again.
        assert (len(writer.requests), pending(it), await current(it)) == (asked, [], [f"Told: {OSLO}"])


def _once(tag: str, answer: Callable[[ModelRequest], ScriptStep]) -> Callable[[ModelRequest], ScriptStep]:
    """Weights where those are asked for; `answer` where decisions are."""

    def decide(request: ModelRequest) -> ScriptStep:
        asked = " ".join(block.text for block in request.system)
        return answer(request) if f"<{tag}>" in asked else "<scores>\n</scores>"

    return decide


# --------------------------------------------------------------------------------------------------------------- locked


async def test_f30_a_sleep_while_the_journal_is_locked_loses_nothing(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        impatient(it)
        await told(it, OSLO, "I never eat meat.")
        with locked(tmp_path / "character.db"):
            assert await it.app.sleep.scheduler.run_now("sleep") is None
            await told(it, "My sister Anna is a nurse.")
        assert it.bridge.bodies == ["Noted."] * 3
        assert (await asleep(it)).state == "done"
        assert entries(it) == ["I live in Oslo.", "I never eat meat.", "My sister Anna is a nurse."]
        assert sorted(await current(it)) == entries(it)


async def test_f30_a_journal_locked_in_the_middle_of_a_sleep_is_written_by_the_next(tmp_path: Path) -> None:
    writer = ScriptedModel()
    with ExitStack() as stack:

        def lock_and_learn(request: ModelRequest) -> ScriptStep:
            stack.enter_context(locked(tmp_path / "character.db"))
            return learn_every_line(request)

        writer.script = [lock_and_learn, learn_every_line]
        async with run_app(tmp_path, "Noted.", writer=writer) as it:
            impatient(it)
            await told(it, OSLO)
            assert await it.app.sleep.scheduler.run_now("sleep") is None
            assert entries(it) == []
            stack.close()
            report = await asleep(it)
            assert (report.phases["extract"]["written"], entries(it)) == (1, [f"Told: {OSLO}"])
            assert (await asleep(it)).phases["extract"]["read"] == 0
            assert entries(it) == [f"Told: {OSLO}"]


async def test_f30_a_tool_that_finds_the_journal_locked_says_so_to_the_model_which_may_try_again(
    tmp_path: Path,
) -> None:
    lock: list[Lock] = []
    note = ToolCall("c1", "add_journal_entry", {"content": OSLO})

    def while_locked(request: ModelRequest) -> ScriptStep:
        lock.append(Lock(tmp_path / "character.db"))
        return note

    def afterwards(request: ModelRequest) -> ScriptStep:
        lock.pop().let_go()
        return ToolCall("c2", "add_journal_entry", {"content": OSLO})

    async with run_app(tmp_path, while_locked, afterwards, "Noted.") as it:
        impatient(it)
        await told(it, "Remember that I live in Oslo.")
        results = [m.content for m in it.model.requests[-1].messages if m.role == "tool"]
        assert "locked" in results[0] and "locked" not in results[1]
        assert (it.bridge.bodies, entries(it)) == (["Noted."], [OSLO])


async def test_f35_a_message_that_finds_the_script_locked_is_refused_and_accepted_once_it_is_free(
    tmp_path: Path,
) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        impatient(it)
        with locked(tmp_path / "script.db"), pytest.raises(StoreError, match="locked"):
            await it.say(OSLO, "m1")
        await it.say(OSLO, "m1")
        await it.wait_idle()
        assert it.bridge.bodies == ["Noted."]


async def test_f35_a_turn_that_cannot_be_written_is_answered_once_the_script_is_free(tmp_path: Path) -> None:
    lock: list[Lock] = []

    def while_locked(request: ModelRequest) -> ScriptStep:
        lock.append(Lock(tmp_path / "script.db"))
        return "Noted."

    async with run_app(tmp_path, while_locked, "Noted again.") as it:
        impatient(it)
        await it.say(OSLO)
        await it.app.runtime.wait_until_idle()
        lock.pop().let_go()
        await _until_answered(it)
        said = [record.content for record in it.app.stores.history.recent("owner")]
        assert it.bridge.bodies in (["Noted."], ["Noted again."]) and said == [OSLO, *it.bridge.bodies]


async def test_f30_a_script_locked_in_the_middle_of_a_sleep_is_compacted_and_read_by_the_next(tmp_path: Path) -> None:
    writer = ScriptedModel()
    with ExitStack() as stack:

        def lock_and_learn(request: ModelRequest) -> ScriptStep:
            stack.enter_context(locked(tmp_path / "script.db"))
            return learn_every_line(request)

        writer.script = [lock_and_learn, learn_every_line]
        async with run_app(tmp_path, "Noted.", writer=writer) as it:
            impatient(it)
            await told(it, OSLO)
            first = await it.app.sleep.scheduler.run_now("sleep")
            assert first is None or first.state == "failed"
            stack.close()
            await asleep(it)
            assert entries(it) == [f"Told: {OSLO}"]


async def test_f30_a_memory_db_that_is_locked_for_a_whole_sleep_is_written_by_the_next(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        await told(it, OSLO)
        with locked(tmp_path / "memory.db"):
            report = await asleep(it)
            assert "locked" in report.phases["consolidate"]["error"] and is_red(it)
            await told(it, "I never eat meat.")
        assert (it.bridge.bodies, pending(it)) == (["Noted."] * 2, [OSLO])
        assert (await asleep(it)).state == "done" and not is_red(it)
        assert sorted(await current(it)) == [OSLO, "I never eat meat."]


async def _until_answered(it: LiveApp) -> None:
    for _ in range(20):
        it.clock.now = it.clock.now.replace(hour=(it.clock.now.hour + 1) % 24)
        await it.app.runtime.tick(it.clock())
        await it.wait_idle()
        if it.bridge.bodies:
            return


# -------------------------------------------------------------------------------------------------------------- damaged


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


async def test_f30_a_memory_db_that_cannot_be_opened_keeps_nobody_from_answering(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    async with run_app(tmp_path, "Noted.") as it:
        await told(it, OSLO)
    _directory(path)
    async with run_app(tmp_path, "Noted.") as it:
        await told(it, "I never eat meat.")
        assert it.bridge.bodies == ["Noted."]
        report = await asleep(it)
        assert (report.state, report.phases["extract"]["state"]) == ("failed", "done")
        assert report.phases["consolidate"]["error"] == MEMORY_DB_UNREADABLE
        assert MEMORY_DB_UNREADABLE in it.app.status()["problems"]
        assert sorted(pending(it)) == [OSLO, "I never eat meat."]
        path.rmdir()
    async with run_app(tmp_path, "Noted.") as it:
        assert (await asleep(it)).state == "done"
        assert sorted(await current(it)) == [OSLO, "I never eat meat."]
