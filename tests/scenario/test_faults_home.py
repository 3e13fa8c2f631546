"""The home itself fails under an assistant that runs: taken away, replaced by another one, read-only, its log full.

What was accepted is answered, once; the trouble is told while it lasts; what can come back by itself does."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from assistant.cli.logging_setup import log_to_stderr
from assistant.cli.status import read_status_report
from assistant.core.errors import HomeError, HomeLocked, HomeReplaced, StoreError
from assistant.core.messages import Media
from assistant.core.model_api import ModelRequest
from assistant.daemon import serve_daemon
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.files import TextFile
from assistant.store.home.guard import HomeGuard
from assistant.web.metrics import render_metrics
from assistant.wire.app import App, build_app
from tests.crash.comparison import is_clear
from tests.support.faulty_disk import can_mount, file_size_limit, mounted_disk
from tests.support.scripted import RecordingBridge, ScriptedModel, ScriptStep, SteppingClock, owner_message
from tests.support.store_home import NOW, StoreHome

needs_mounts = pytest.mark.skipif(not can_mount(), reason="only who may mount file systems can try this")


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """The daemon's own log, which may be on the full disk as well."""
    log_to_stderr("error")
    yield
    structlog.reset_defaults()


@dataclass
class FaultyHomeApp:
    home: Path
    app: App
    model: ScriptedModel
    bridge: RecordingBridge
    clock: SteppingClock

    @property
    def away(self) -> Path:
        return self.home.with_name("unplugged")

    def take_away(self) -> None:
        self.home.rename(self.away)

    def bring_back(self) -> None:
        self.away.rename(self.home)

    async def pass_by(self, minutes: int = 1) -> None:
        """So many minutes go by, with a wake-up each."""
        for _ in range(minutes):
            self.clock.now += timedelta(minutes=1)
            self.app.check_due()
            for _ in range(50):
                await asyncio.sleep(0)

    async def settled(self) -> None:
        await self.pass_by()
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()


@asynccontextmanager
async def lived(home: Path, *script: ScriptStep) -> AsyncIterator[FaultyHomeApp]:
    settings = load_settings(None, {"ASSISTANT_HOME": str(home), "ASSISTANT_SLEEP__AT": ""})
    bridge, clock, model = RecordingBridge(), SteppingClock(), ScriptedModel(*script)
    app = build_app(settings, clock, bridges={"kept": bridge}, model=model)
    await app.start()
    passing = asyncio.create_task(app.runtime.run())
    try:
        yield FaultyHomeApp(home, app, model, bridge, clock)
        assert app.stores.verifier.verify().ok
    finally:
        await app.stop(0)
        await passing
        app.close()


async def test_a_home_that_is_taken_away_in_mid_turn_is_told_of_and_what_was_accepted_is_answered_once_when_it_is_back(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"

    def unplug(_: ModelRequest) -> ScriptStep:
        it.take_away()
        return "an answer worth keeping"

    async with lived(home, unplug) as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1"))
        await it.pass_by(5)
        assert any("not there any more" in one for one in it.app.daemon_status.readiness_problems())
        assert b"nocturne_problems 0.0" not in render_metrics(it.app.daemon_status)
        with pytest.raises(StoreError) as refused:
            await it.app.runtime.accept(owner_message("are you there?", external_id="m2"))
        assert is_clear(str(refused.value))
        assert not home.exists(), "no other home is made in its place"
        assert it.bridge.bodies == []

        it.bring_back()
        await it.settled()
        assert it.app.daemon_status.readiness_problems() == [] and it.app.status()["ok"]
        assert it.bridge.bodies == ["an answer worth keeping"]
        assert len(it.model.requests) == 1, "it is not paid for twice"
        await it.app.runtime.accept(owner_message("are you there?", external_id="m2"))


async def test_a_file_of_a_message_makes_no_home_anew_where_one_was_taken_away(tmp_path: Path) -> None:
    key = Media("file", "text/plain", "key.txt", data=base64.b64encode(b"under the pot").decode())
    message = replace(owner_message("keep this", external_id="m1"), media=(key,))
    async with lived(tmp_path / "home", "kept") as it:
        it.take_away()
        with pytest.raises(StoreError):
            await it.app.runtime.accept(message)
        assert not it.home.exists()
        it.bring_back()
        await it.settled()
        await it.app.runtime.accept(message)
        await it.settled()
        assert it.bridge.bodies == ["kept"]


def test_no_store_makes_a_home_anew_where_one_was_taken_away(tmp_path: Path) -> None:
    stores = StoreHome(tmp_path / "home").open()
    item = stores.inbox_item("the first words of a conversation")
    stores.path.rename(tmp_path / "unplugged")
    with pytest.raises(StoreError) as refused:
        stores.conversation.begin_turn(item, "", NOW)
    assert is_clear(str(refused.value))
    with pytest.raises(StoreError):
        TextFile(stores.path, "memory/2026-11-20.md").write("a note")
    with pytest.raises(StoreError):
        BackupFolder(stores.path, "").ensure_exists()
    assert not stores.path.exists()
    (tmp_path / "unplugged").rename(stores.path)
    stores.conversation.begin_turn(item, "", NOW)
    stores.close()


async def test_a_home_that_is_away_is_no_reason_to_start_anew(tmp_path: Path) -> None:
    async with lived(tmp_path / "home", "hello") as it:
        await it.settled()
        it.take_away()
        for second in range(0, 600, 30):
            await it.pass_by()
            assert (
                it.app.progress.check_progress(it.app.runtime.progress_snapshot(), float(second), late=0, every=30)
                == ""
            )
        it.bring_back()


@pytest.mark.parametrize("is_link", [False, True])
async def test_another_home_in_its_place_is_not_touched_and_ends_the_daemon_with_a_clear_line(
    tmp_path: Path, is_link: bool
) -> None:
    """Moved away for a copy of it, or a link to it that leads to a copy now."""
    home = tmp_path / "home"
    if is_link:
        (tmp_path / "first").mkdir()
        home.symlink_to(tmp_path / "first")
    settings = load_settings(None, {"ASSISTANT_HOME": str(home), "ASSISTANT_SLEEP__AT": ""})
    with pytest.raises(HomeReplaced) as ended:
        async with serve_daemon(settings) as daemon:
            home.rename(tmp_path / "unplugged")
            copy = tmp_path / "copy" if is_link else home
            shutil.copytree(tmp_path / "unplugged", copy, ignore=shutil.ignore_patterns("*.sock"))
            if is_link:
                home.symlink_to(copy)
            before = _contents(home)
            daemon.app.check_due()
            await daemon.wait_until(asyncio.Event())
    assert is_clear(str(ended.value)) and "restart the assistant" in str(ended.value)
    assert _contents(home) == before


def _contents(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@needs_mounts
async def test_a_full_disk_under_the_log_alone_keeps_what_was_accepted_until_there_is_room(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with mounted_disk(home / "log") as disk:
        async with lived(home, "an answer") as it:
            disk.fill()
            accepted = await it.app.runtime.accept(owner_message("hello", external_id="m1"))
            async with asyncio.timeout(30):  # what comes to mind is looked up beside the loop
                while not (problems := [one for one in it.app.status()["problems"] if "waits for the disk" in one]):
                    await it.pass_by(1)
            (problem,) = problems
            assert "No space left" in problem
            assert it.bridge.bodies == [] and len(it.model.requests) == 0, "what is not in the log no model sees"
            disk.free()
            await it.settled()
            assert it.bridge.bodies == ["an answer"]
            assert (await it.app.runtime.accept(owner_message("hello", external_id="m1"))).inbox_id == accepted.inbox_id
            assert it.app.status()["ok"]


async def test_a_disk_that_refused_a_message_is_told_of_until_it_takes_one_again(tmp_path: Path) -> None:
    with file_size_limit(tmp_path) as disk:
        async with lived(tmp_path / "home", "an answer") as it:
            await it.settled()
            disk.fill()
            with pytest.raises(StoreError):
                await it.app.runtime.accept(owner_message("hello " * 100_000, external_id="m1"))
            await it.pass_by(3)
            told = it.app.status()
            disk.free()
            assert not told["ok"] and told["daemon"]["trouble"]
            await it.pass_by(1)
            assert it.app.status()["ok"]


def test_the_lock_of_a_home_on_a_full_disk_is_refused_in_a_clear_line_and_given_back(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with file_size_limit(tmp_path) as disk:
        disk.fill()
        with pytest.raises(HomeError) as refused, home_lock(home.path):
            pytest.fail("it cannot be held")
        disk.free()
        assert "Nothing was started" in str(refused.value) and is_clear(str(refused.value))
        assert not is_home_served(home.path)
        with home_lock(home.path):
            assert is_home_served(home.path)


def test_a_data_folder_that_is_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(tmp_path / "unmounted")
    with pytest.raises(HomeError, match=r"a link to .*unmounted, which is not there"), home_lock(tmp_path / "home"):
        pytest.fail("it cannot be held")


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)


@needs_mounts
def test_a_home_that_can_only_be_read_does_not_start_says_why_and_starts_when_it_can_be_written(
    tmp_path: Path,
) -> None:
    with mounted_disk(tmp_path / "disk") as disk:
        settings = load_settings(None, {"ASSISTANT_HOME": str(disk.place / "home")})
        build_app(settings, SteppingClock()).close()
        with read_only(disk.place):
            with pytest.raises(HomeError) as refused, home_lock(settings.home.path):
                pytest.fail("it cannot be held")
            assert "Read-only file system" in str(refused.value) and is_clear(str(refused.value))
            with pytest.raises(StoreError) as found:
                HomeGuard(settings.home.path, []).require_writable()
            assert is_clear(str(found.value))
            assert str(found.value) in read_status_report(settings.home)["problems"]
        with home_lock(settings.home.path):
            build_app(settings, SteppingClock()).close()


@needs_mounts
def test_a_second_process_is_refused_under_another_name_of_the_same_folder(tmp_path: Path) -> None:
    home, beside = tmp_path / "home", tmp_path / "beside"
    home.mkdir()
    beside.mkdir()
    subprocess.run(["mount", "--bind", str(home), str(beside)], check=True)
    try:
        with home_lock(home):
            assert is_home_served(beside)
            with pytest.raises(HomeLocked), home_lock(beside):
                pytest.fail("two processes serve one folder")
    finally:
        subprocess.run(["umount", str(beside)], check=True)


@needs_mounts
def test_a_home_that_became_read_only_under_its_process_is_still_seen_to_be_served(tmp_path: Path) -> None:
    """Else `assistant stop` says that nothing runs, and leaves it running."""
    with mounted_disk(tmp_path / "home") as disk:
        with home_lock(disk.place):
            pass
        # The kernel takes a disk with errors from under files that are open; a remount waits for those open to write.
        holder = os.open(disk.place / "run" / "lock", os.O_RDONLY)
        fcntl.flock(holder, fcntl.LOCK_EX)
        with read_only(disk.place):
            assert is_home_served(disk.place)
        os.close(holder)
        assert not is_home_served(disk.place)


def test_a_second_process_is_refused_though_somebody_removed_run(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "link"
    elsewhere.symlink_to(home)
    (home / "log").mkdir(parents=True)
    with home_lock(home):
        shutil.rmtree(home / "run")
        for path in (home, elsewhere):
            with pytest.raises(HomeLocked, match="run was removed or replaced"), home_lock(path):
                pass
        home.rename(tmp_path / "moved")
        with pytest.raises(HomeLocked), home_lock(tmp_path / "moved"):
            pass
    with home_lock(tmp_path / "moved"):
        pass
