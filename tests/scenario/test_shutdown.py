"""The end of the daemon, step by step, while something hangs (F38): each step has its time, what did not end is told
of and left, and the next start answers it."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, MutableMapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Literal

import pytest
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, EVENT_JOB_SUBMITTED
from pytest import MonkeyPatch
from structlog.testing import capture_logs

from assistant import daemon
from assistant.cli.client import open_socket_link
from assistant.cli.status import read_status_report
from assistant.core.bridge_api import Bridge, OutgoingPart
from assistant.core.errors import AssistantError, BridgeError, StoreError
from assistant.core.model_api import CallPurpose, ModelEvent, ModelRequest
from assistant.core.shutdown import ShutdownTimeouts, finish_within
from assistant.runtime.recall import MemoryRecall
from assistant.service.home_lock import home_lock
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.web.errors import REQUEST_INTERRUPTED
from assistant.web.servers import listen_unix
from assistant.wire.app import App, build_app
from tests.support.command_line import run_in_process
from tests.support.faulty_disk import file_size_limit
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock, owner_message

# Long enough for what does not hang, and soon over for what does.
LITTLE = ShutdownTimeouts(sleep=0.5, abort=0.5, flush=0.5, bridge=0.5, runtime=0.5, model=0.5, serving=0.5)
LEFT = "did not end in time and is left for the next start"


class UncancellableModel(ScriptedModel):
    """Never answers, and does not take an end for one."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        self.called.set()
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        raise asyncio.CancelledError
        yield


@dataclass
class HangingBridge(RecordingBridge):
    """A bridge whose `stop` hangs, or whose `send` does, or both."""

    hangs: tuple[str, ...] = ("stop",)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, part: OutgoingPart) -> None:
        if "send" in self.hangs:
            self.reached.set()
            await asyncio.Event().wait()
        await super().send(part)

    async def aclose(self) -> None:
        if "stop" in self.hangs:
            self.reached.set()
            await asyncio.Event().wait()


@dataclass
class StopRecordingBridge(RecordingBridge):
    """Notes that it was stopped; `trouble` is what it says of it."""

    stopped: bool = False
    trouble: str = ""

    async def aclose(self) -> None:
        self.stopped = True
        if self.trouble:
            raise BridgeError(self.trouble)


@asynccontextmanager
async def started(home: Path, model: ScriptedModel, *bridges: Bridge) -> AsyncIterator[tuple[App, asyncio.Task[None]]]:
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    app = build_app(settings, SteppingClock(), bridges={bridge.name: bridge for bridge in bridges}, model=model)
    try:
        await app.start()
        worker = asyncio.create_task(app.runtime.run())
        yield app, worker
    finally:
        app.close()


async def answered_by_the_next(home: Path, text: str) -> None:
    """A new start on the same home answers what was asked, once."""
    bridge = RecordingBridge()
    async with started(home, ScriptedModel(text), bridge) as (app, worker):
        await app.runtime.wait_until_idle()
        await daemon.shut_down(app, worker, 5)
        assert app.stores.verifier.verify().ok
    assert bridge.bodies == [text]


def left(logs: Iterable[MutableMapping[str, Any]]) -> list[str]:
    return [entry["what"] for entry in logs if entry["event"] == LEFT]


async def test_f38_a_turn_that_hangs_in_a_model_call_is_aborted_after_the_drain(tmp_path: Path) -> None:
    model, bridge = ScriptedModel(), RecordingBridge()
    model.gate = asyncio.Event()
    async with started(tmp_path, model, bridge) as (app, worker):
        accepted = await app.runtime.accept(owner_message("hello", external_id="1"))
        await model.called.wait()
        await daemon.shut_down(app, worker, 0.01, LITTLE)
        item = app.stores.conversation.inbox_item(accepted.inbox_id)
        assert item is not None
        assert item.state == "failed"
        assert app.stores.verifier.verify().ok
    assert len(bridge.bodies) == 1
    assert "shut down before this was answered" in bridge.bodies[0]


async def test_a_recall_that_the_end_cuts_off_is_no_failure(tmp_path: Path) -> None:
    began, goes_on, ended = Event(), Event(), Event()

    def budget() -> int:
        began.set()
        goes_on.wait()
        ended.set()
        return 400

    with capture_logs() as logs:
        async with started(tmp_path, ScriptedModel("hello"), RecordingBridge()) as (app, worker):
            recall = MemoryRecall(app.stores.memory_search, len, app.settings.zone, budget)
            app.runtime._turn_context._recall._memory = recall
            await app.runtime.accept(owner_message("Where does the boat lie?", external_id="1"))
            await asyncio.to_thread(began.wait)
            await daemon.shut_down(app, worker, 0.01, LITTLE)
            worker.cancel()
        # The stores are closed, and its thread goes on in them.
        goes_on.set()
        await asyncio.get_running_loop().shutdown_default_executor()
    assert ended.is_set()
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


class ObservedEvent(asyncio.Event):
    """`for_` is set once somebody waits for this."""

    def __init__(self) -> None:
        super().__init__()
        self.for_ = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.for_.set()
        return await super().wait()


async def test_f38_a_turn_that_ends_within_the_drain_is_answered_and_what_comes_meanwhile_by_the_next_start(
    tmp_path: Path,
) -> None:
    model, bridge, draining = ScriptedModel("in time"), RecordingBridge(), ObservedEvent()
    model.gate = asyncio.Event()
    async with started(tmp_path, model, bridge) as (app, worker):
        await app.runtime.accept(owner_message("hello", external_id="m1"))
        await model.called.wait()
        ending = asyncio.create_task(daemon.shut_down(app, worker, 60, force_stop=draining))
        await draining.for_.wait()
        await app.runtime.accept(owner_message("and then?", external_id="m2"))
        model.gate.set()
        await ending
        assert len(model.requests) == 1
    assert bridge.bodies == ["in time"]
    await answered_by_the_next(tmp_path, "and then this")


async def test_f38_a_second_signal_cuts_the_drain_short(tmp_path: Path) -> None:
    model, hurry = ScriptedModel(), asyncio.Event()
    model.gate = asyncio.Event()
    async with started(tmp_path, model, RecordingBridge()) as (app, worker):
        await app.runtime.accept(owner_message("hello", external_id="1"))
        await model.called.wait()
        ending = asyncio.create_task(daemon.shut_down(app, worker, 3600, LITTLE, hurry))
        await asyncio.sleep(0)
        hurry.set()
        await ending
        assert not app.running_turns.any_running


async def test_f38_a_turn_that_ignores_its_end_is_told_of_and_answered_by_the_next_start(tmp_path: Path) -> None:
    model, bridge = UncancellableModel(), StopRecordingBridge()
    async with started(tmp_path, model, bridge) as (app, worker):
        await app.runtime.accept(owner_message("hello", external_id="1"))
        await model.called.wait()
        try:
            with capture_logs() as logs:
                await daemon.shut_down(app, worker, 0.01, LITTLE)
        finally:
            model.released.set()
        assert "a turn could not be ended and is left for the next start" in [entry["event"] for entry in logs]
        assert bridge.stopped
    await asyncio.sleep(0)
    await answered_by_the_next(tmp_path, "here I am")


@pytest.mark.parametrize("hangs", [("stop",), ("send",), ("send", "stop")])
async def test_f38_a_bridge_that_hangs_holds_up_neither_the_end_nor_the_others(
    tmp_path: Path, hangs: tuple[str, ...]
) -> None:
    hanging, well = (
        HangingBridge(name="kept", hangs=hangs),
        StopRecordingBridge(name="well", trouble="It was gone already."),
    )
    async with started(tmp_path, ScriptedModel("fine"), hanging, well) as (app, worker):
        await app.runtime.accept(owner_message("hello", external_id="1"))
        await app.runtime.wait_until_idle()
        with capture_logs() as logs:
            await daemon.shut_down(app, worker, 5, LITTLE)
    assert hanging.reached.is_set()
    assert well.stopped
    told = {"stop": "bridge kept", "send": "deliveries to kept"}
    assert left(logs) == [told[step] for step in hangs]


async def test_f38_a_disk_that_refuses_leaves_the_turn_to_the_next_start(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.gate = asyncio.Event()
    async with started(tmp_path, model, RecordingBridge()) as (app, worker):
        await app.runtime.accept(owner_message("hello", external_id="1"))
        await model.called.wait()
        with file_size_limit(tmp_path) as disk:
            disk.fill()
            with pytest.raises(StoreError):
                await app.runtime.accept(owner_message("more", external_id="2"))
            await daemon.shut_down(app, worker, 0.01, LITTLE)
    await answered_by_the_next(tmp_path, "here I am")


async def test_a_step_that_fails_says_so_and_one_that_is_late_is_left() -> None:
    async def fails() -> None:
        raise BridgeError("no")

    with pytest.raises(BridgeError):
        await finish_within(5, fails(), "a step")
    with capture_logs() as logs:
        assert not await finish_within(0.001, asyncio.Event().wait(), "another")
        assert await finish_within(5, asyncio.sleep(0), "a third")
    assert left(logs) == ["another"]


async def test_f40_a_runtime_that_does_not_pass_turns_the_status_red(tmp_path: Path) -> None:
    async with started(tmp_path, ScriptedModel(), RecordingBridge()) as (app, worker):
        for beat in range(3):
            app.progress.check_progress(app.runtime.progress_snapshot(), 30.0 * beat, late=0, every=30)
        report = app.status()
        assert not report["ok"]
        assert [told for told in report["problems"] if told.startswith("The runtime has not passed for 60 s.")]
        await daemon.shut_down(app, worker, 1, LITTLE)


async def test_f40_a_store_that_refuses_is_told_of_and_is_no_standstill(tmp_path: Path) -> None:
    """What keeps it is in the status, and a new start would not mend it."""
    async with started(tmp_path, ScriptedModel(), RecordingBridge()) as (app, worker):
        await rounds()
        passes = app.runtime.progress_snapshot().ticks
        with closing(sqlite3.connect(tmp_path / "script.db", isolation_level=None)) as other:
            other.execute("ALTER TABLE inbox RENAME TO lost")
            app.running_turns.wake.set()
            await rounds()
            assert app.runtime.progress_snapshot().ticks == passes + 1
            assert "no such table: inbox" in app.runtime.storage_error
            other.execute("ALTER TABLE lost RENAME TO inbox")
        app.running_turns.wake.set()
        await rounds()
        assert (app.runtime.progress_snapshot().ticks, app.runtime.storage_error) == (passes + 2, "")
        await daemon.shut_down(app, worker, 1, LITTLE)


async def test_a_command_that_the_end_cuts_off_is_answered_and_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings(None, {"ASSISTANT_HOME": str(tmp_path)})
    writer = ScriptedModel(name="claude-haiku-5-5")
    writer.gate = asyncio.Event()
    app = build_app(
        settings, SteppingClock(), bridges={"kept": RecordingBridge()}, model=ScriptedModel(), writer=writer
    )
    with closing(app):
        await app.start()
        worker = asyncio.create_task(app.runtime.run())
        async with app.serve():
            await app.runtime.accept(owner_message("My cat is called Mio.", external_id="1"))
            await app.runtime.wait_until_idle()
            async with open_socket_link(settings.home.socket) as link:
                asked = asyncio.create_task(link.run_command("/sleep", "main"))
                await writer.called.wait()
                with capture_logs() as logs:
                    await daemon.shut_down(app, worker, 5)
                with pytest.raises(AssistantError) as told:
                    await asked
    assert str(told.value) == REQUEST_INTERRUPTED
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_upkeep_that_the_end_cuts_off_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings(None, {"ASSISTANT_HOME": str(tmp_path)})
    loop, begun, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    async with started(tmp_path, ScriptedModel(), RecordingBridge()) as (app, worker):
        scheduler = daemon._schedule(app, settings)
        scheduler.add_listener(lambda _: loop.call_soon_threadsafe(begun.set), EVENT_JOB_SUBMITTED)
        scheduler.add_listener(lambda _: loop.call_soon_threadsafe(ended.set), EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
        # Whoever reads the index holds it, so that the job cannot end.
        with app.stores.message_index._lock:
            scheduler.get_job("upkeep").modify(next_run_time=datetime.now(UTC))
            await begun.wait()
            await rounds()
            scheduler.shutdown(wait=False)
            await ended.wait()
        await daemon.shut_down(app, worker, 1, LITTLE)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def rounds() -> None:
    """Some of the loop: enough for a pass."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_f40_a_daemon_that_does_not_answer_turns_the_status_red(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert run_in_process(home.path, "chat", "-m", "hello").returncode == 0
    with listen_unix(home.socket), home_lock(home.path), MonkeyPatch.context() as patch:
        patch.setenv("ASSISTANT_HOME", str(home.path))
        report = read_status_report(home, 0.05)
    assert (report["ok"], report["running"]) == (False, True)
    said = f"The assistant (process {os.getpid()}) has not answered for 1 second. What follows is read from its files."
    assert report["problems"][0].startswith(said)
