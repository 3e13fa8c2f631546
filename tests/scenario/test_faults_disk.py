"""A disk that is full, or refuses, while a turn runs: one clear line, nothing lost, nothing paid twice, and on it goes
when there is room again. Every single write is tried in `tests/crash`; here it is the whole disk, for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from assistant.cli.logging_setup import log_to_stderr
from assistant.core.errors import AssistantError, StoreError
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.crash.comparison import is_clear
from tests.support.faulty_disk import FullableDisk, can_mount, file_size_limit, mounted_disk
from tests.support.scripted import RecordingBridge, ScriptedModel, ScriptStep, SteppingClock, owner_message

LONG = "words that need room, " * 10_000 + "the end"
DISKS = {"files that may not grow": file_size_limit} | ({"a file system of 8 MB": mounted_disk} if can_mount() else {})


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """The daemon's own log, which is on the full disk as well."""
    log_to_stderr("error")
    yield
    structlog.reset_defaults()


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FullableDisk]:
    with DISKS[request.param](tmp_path / "disk") as disk:
        yield disk


@dataclass
class FaultyDiskApp:
    app: App
    model: ScriptedModel
    bridge: RecordingBridge
    clock: SteppingClock

    @property
    def notices(self) -> list[str]:
        return [str(event.data["text"]) for event in self.bridge.events if event.kind == "notice"]

    async def wake_ups(self, count: int) -> None:
        """An hour goes by with as many wake-ups, each of them let to do all it wants to."""
        for _ in range(count):
            self.clock.now += timedelta(hours=1) / count
            self.app.running_turns.wake.set()
            for _ in range(50):
                await asyncio.sleep(0)

    async def settled(self) -> None:
        """There is room again, and time: everything is answered and delivered."""
        await self.wake_ups(1)
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()


@asynccontextmanager
async def lived(disk: FullableDisk, *script: ScriptStep, **environ: str) -> AsyncIterator[FaultyDiskApp]:
    settings = load_settings(None, {"ASSISTANT_HOME": str(disk.place / "home"), **environ})
    bridge, clock, model = RecordingBridge(), SteppingClock(), ScriptedModel(*script)
    app = build_app(settings, clock, bridges={"kept": bridge}, model=model)
    await app.start()
    running = asyncio.create_task(app.runtime.run())
    try:
        yield FaultyDiskApp(app, model, bridge, clock)
        assert app.stores.verifier.verify().ok
    finally:
        disk.free()
        await app.stop(0)
        await running
        app.close()


def filling(disk: FullableDisk, step: ScriptStep) -> Callable[[ModelRequest], ScriptStep]:
    """The disk fills up while the model answers."""

    def answer(_: ModelRequest) -> ScriptStep:
        disk.fill()
        return step

    return answer


async def test_a_disk_that_fills_while_the_model_thinks_costs_one_call_and_one_line(disk: FullableDisk) -> None:
    async with lived(disk, filling(disk, LONG)) as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1"))
        await it.wake_ups(40)
        blocked, calls, notices = it.app.runtime.status()["blocked"], len(it.model.requests), it.notices
        disk.free()
        assert list(blocked) == ["main"]
        assert calls == 1, "the reply that the disk refused is kept, not paid for again"
        assert len(notices) == 1 and is_clear(notices[0])
        await it.settled()
        assert (it.bridge.bodies, len(it.model.requests)) == ([LONG], 1)
        assert [m.content for m in it.app.stores.conversation.load_view("main").messages] == ["hello", LONG]


async def test_a_tool_call_that_the_disk_refused_is_logged_and_run_once_when_there_is_room(disk: FullableDisk) -> None:
    call = ToolCall("c1", "manage_todo_list", {"action": "add", "items": ["x" * 500] * 50})
    async with lived(disk, filling(disk, call), "noted") as it:
        await it.app.runtime.accept(owner_message("many things", external_id="m1"))
        await it.model.called.wait()
        await it.wake_ups(10)
        disk.free()
        await it.settled()
        assert it.bridge.bodies == ["noted"]
        assert len(it.model.requests) == 2
        assert len(it.app.stores.todos.list_todos("owner")) == 50


async def test_a_message_that_cannot_be_kept_is_refused_in_a_clear_line_and_taken_when_there_is_room(
    disk: FullableDisk,
) -> None:
    async with lived(disk, "here I am") as it:
        disk.fill()
        # More than there is room for in the database's write-ahead log, which is written again from its beginning.
        message = LONG * 4
        with pytest.raises(StoreError) as refused:
            await it.app.runtime.accept(owner_message(message, external_id="m1"))
        disk.free()
        assert is_clear(str(refused.value))
        assert not it.app.stores.conversation.sessions_waiting()
        accepted = await it.app.runtime.accept(owner_message(message, external_id="m1"))
        await it.settled()
        assert not accepted.duplicate
        shortened, answer = it.bridge.bodies
        assert (shortened.startswith("Your message has about"), answer) == (True, "here I am")


async def test_a_turn_that_was_stopped_while_the_disk_was_full_stays_stopped(disk: FullableDisk) -> None:
    async with lived(disk, "never asked for") as it:
        it.model.gate = asyncio.Event()
        await it.app.runtime.accept(owner_message("a long task", external_id="m1"))
        await it.model.called.wait()
        disk.fill()
        await it.app.runtime.stop_turn("main")
        it.model.gate.set()
        await it.wake_ups(10)
        disk.free()
        await it.settled()
        assert it.bridge.bodies == ["Stopped."]
        assert len(it.model.requests) == 1


async def test_a_full_disk_blocks_one_line_of_status_and_clears_it(disk: FullableDisk) -> None:
    async with lived(disk, filling(disk, LONG)) as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1"))
        await it.wake_ups(3)
        problems = it.app.status()["problems"]
        disk.free()
        assert [text for text in problems if "main" in text]
        await it.settled()
        assert it.app.runtime.status()["blocked"] == {}


def first_notice(it: FaultyDiskApp) -> str:
    """What a terminal that attaches now is shown before anything happens; "" for nothing."""
    with it.app.terminal.attach("main") as terminal:
        events = [terminal.queue.get_nowait() for _ in range(terminal.queue.qsize())]
    return "".join(str(data["text"]) for name, data in filter(None, events) if name == "notice")


async def test_who_attaches_while_the_disk_is_full_is_shown_it_and_the_status_is_well_at_once_with_room(
    disk: FullableDisk,
) -> None:
    async with lived(disk, filling(disk, LONG)) as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1"))
        await it.wake_ups(3)
        shown = first_notice(it)
        problems = it.app.status()["problems"]
        disk.free()
        after = first_notice(it)
        assert is_clear(shown) and any(shown in text for text in problems)
        # Nobody wrote, and nothing was due.
        assert after == "" and it.app.runtime.status()["trouble"] == ""
        for _ in range(50):
            await asyncio.sleep(0)
        await it.app.runtime.wait_until_idle()
        await it.app.dispatcher.flush()
        assert it.bridge.bodies == [LONG] and it.app.runtime.status()["blocked"] == {}


def test_a_home_on_a_full_disk_does_not_start_and_says_why_and_starts_when_there_is_room(disk: FullableDisk) -> None:
    settings = load_settings(None, {"ASSISTANT_HOME": str(disk.place / "home")})
    disk.fill()
    try:
        with pytest.raises(AssistantError) as refused:
            build_app(settings, SteppingClock())
    finally:
        disk.free()
    assert is_clear(str(refused.value))
    build_app(settings, SteppingClock()).close()
