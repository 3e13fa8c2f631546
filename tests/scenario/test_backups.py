"""Backups as the app makes them: by the clock, by hand, in a process of its own; and a drill of losing everything."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.backup.scheduler import BackupScheduler
from assistant.core.backups import parse_backup_name
from assistant.core.calendar import SleepSchedule
from assistant.core.erasure import ErasureRequest
from assistant.core.errors import UsageError
from assistant.service.home_lock import home_lock
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.wire.app import App, build_app
from assistant.wire.stores import Stores, stored_status
from tests.support.backup_home import BackupHome, make_backup_in_process
from tests.support.command_line import ROOT, command_environment, one_line_error, run_in_process
from tests.support.scripted import ScriptedModel, SteppingClock
from tests.support.store_home import NOW

DUE = datetime(2026, 11, 21, 5, tzinfo=UTC)
A_DAY = timedelta(days=1)


def settings_of(home: Path, **variables: str) -> Settings:
    return load_settings(
        Home(home), {"TIKTOKEN_CACHE_DIR": "", "ASSISTANT_HOME__TIMEZONE": "UTC", **variables}, ring=None
    )


@dataclass
class ByTheClock:
    """A home whose backups are made within this process; `forgetting` may be set."""

    home: BackupHome
    keep: int = 2
    forgetting: bool = False
    clock: SteppingClock = field(default_factory=lambda: SteppingClock(NOW))

    def __post_init__(self) -> None:
        self.room = BackupScheduler(
            self.home.folder,
            make_backup_in_process(self.home.folder),
            SleepSchedule("05:00", UTC),
            self.keep,
            first_message_at=lambda: NOW,
            is_erasing=lambda: self.forgetting,
            clock=self.clock,
        )

    async def look(self, now: datetime) -> list[str]:
        """What there is once whatever was begun has ended."""
        self.clock.now = now
        self.room.check_due()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)  # type: ignore[arg-type]
        return [f"{one.made_at:%d-%H} {one.kind}" for one in self.home.folder.list_backups()]


@pytest.fixture
def daily(tmp_path: Path) -> Iterator[ByTheClock]:
    home = BackupHome(tmp_path / "home").open().write_files()
    yield ByTheClock(home)
    home.close()


# -------------------------------------------------------------------------------------------------------- by the clock


async def test_one_is_made_every_day_and_the_oldest_goes(daily: ByTheClock) -> None:
    assert await daily.look(DUE - timedelta(minutes=1)) == []
    assert await daily.look(DUE) == ["21-05 daily"]
    assert await daily.look(DUE + timedelta(hours=1)) == ["21-05 daily"]
    daily.clock.now = DUE + timedelta(hours=2)
    await daily.room.create()
    assert await daily.look(DUE + A_DAY) == ["21-05 daily", "21-07 manual", "22-05 daily"]
    assert await daily.look(DUE + 5 * A_DAY) == ["21-07 manual", "22-05 daily", "26-05 daily"]


async def test_one_that_fails_is_told_keeps_the_old_ones_and_is_tried_again_later(daily: ByTheClock) -> None:
    daily.room._keep = 1
    assert await daily.look(DUE) == ["21-05 daily"]
    huge = daily.home.path / "workspace" / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 42)
    assert await daily.look(DUE + A_DAY) == ["21-05 daily"]
    assert "not backed up" in daily.room.trouble and "tried again" in daily.room.trouble
    huge.unlink()
    assert await daily.look(DUE + A_DAY + timedelta(minutes=59)) == ["21-05 daily"]
    assert await daily.look(DUE + A_DAY + timedelta(minutes=60)) == ["22-06 daily"]
    assert daily.room.trouble == ""


async def test_one_that_fails_by_a_clock_that_is_ahead_is_tried_again_once_that_is_right(daily: ByTheClock) -> None:
    huge = daily.home.path / "workspace" / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 42)
    assert await daily.look(DUE + 3 * 365 * A_DAY) == []
    huge.unlink()
    assert await daily.look(DUE) == ["21-05 daily"] and daily.room.trouble == ""


async def test_an_older_backup_that_the_disk_kept_is_told_as_that_and_removed_later(
    daily: ByTheClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily.room._keep = 1
    assert await daily.look(DUE) == ["21-05 daily"]

    os_unlink = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name.endswith("-daily.tar.gz"):
            raise OSError(errno.EIO, "Input/output error")
        os_unlink(path, missing_ok)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "unlink", unlink)
        assert await daily.look(DUE + A_DAY) == ["21-05 daily", "22-05 daily"]
    assert daily.room.trouble.startswith("Your data is backed up, but an older backup was kept: ")
    assert await daily.look(DUE + A_DAY + timedelta(minutes=59)) == ["21-05 daily", "22-05 daily"]
    assert await daily.look(DUE + A_DAY + timedelta(minutes=61)) == ["22-05 daily"]
    assert daily.room.trouble == ""


async def test_of_a_home_that_was_taken_away_none_is_made_and_nothing_is_put_in_its_place(
    daily: ByTheClock,
) -> None:
    away = daily.home.path.with_name("away")
    daily.home.path.rename(away)
    assert await daily.look(DUE) == []
    assert "is not there any more" in daily.room.trouble and not daily.home.path.exists()
    away.rename(daily.home.path)
    assert await daily.look(DUE + timedelta(hours=1)) == ["21-06 daily"]


async def test_none_is_made_while_something_is_forgotten(daily: ByTheClock) -> None:
    daily.forgetting = True
    assert await daily.look(DUE) == []
    with pytest.raises(UsageError, match="being forgotten"):
        await daily.room.create()
    daily.forgetting = False
    assert await daily.look(DUE) == ["21-05 daily"]


@pytest.mark.parametrize(("hours", "is_red"), [(20, False), (44, True)])
def test_a_day_without_a_backup_turns_the_status_red(tmp_path: Path, hours: int, is_red: bool) -> None:
    with closing(BackupHome(tmp_path / "home").open()) as home:
        home.chat(1)
    assert _is_red(settings_of(home.path), NOW + timedelta(hours=hours)) == is_red
    assert not _is_red(settings_of(home.path, ASSISTANT_BACKUP__AT=""), NOW + timedelta(hours=hours))
    home.back_up(hours=hours - 2)
    assert not _is_red(settings_of(home.path), NOW + timedelta(hours=hours))


def test_a_folder_that_is_not_there_turns_the_status_red(tmp_path: Path) -> None:
    with closing(BackupHome(tmp_path / "home").open()) as home:
        home.chat(1)
    assert _is_red(settings_of(home.path, ASSISTANT_BACKUP__FOLDER=str(tmp_path / "usb")), NOW)


def _is_red(settings: Settings, now: datetime) -> bool:
    with closing(Stores(settings, now)) as stores:
        problems = stored_status(settings, stores, now)["problems"]
    return any("backup" in one for one in problems)


# ------------------------------------------------------------------------------------------------------------- apart


async def test_the_app_makes_one_in_a_process_of_its_own_and_forgets_nothing_meanwhile(tmp_path: Path) -> None:
    BackupHome(tmp_path / "home").open().write_files().close()
    app = build_app(settings_of(tmp_path / "home"), SteppingClock(NOW), model=ScriptedModel(lambda request: "Yes."))
    try:
        making = asyncio.create_task(app.commands.run("/backup create --json", "main"))
        await _begun(app)
        for refused in (
            app.backup_scheduler.create(),
            app.erasure.erase(ErasureRequest("owner", text="Albatross"), NOW),
        ):
            with pytest.raises(UsageError, match="Nothing was changed"):
                await refused
        told = json.loads(await making)
        assert parse_backup_name(told["name"], told["bytes"]) == app.stores.backups.list_backups()[0]
        assert told["left_out"].keys() == {"secrets.toml"} and not app.backup_scheduler.is_running()
        with pytest.raises(UsageError, match="No such command 'everything'"):
            await app.commands.run("/backup everything", "main")
    finally:
        await app.backup_scheduler.stop()
        await app.models.aclose()
        app.close()


async def _begun(app: App) -> None:
    """The backup that a task is about to make is being made."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert app.backup_scheduler.is_running()


async def test_one_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    BackupHome(tmp_path / "home").open().write_files().close()
    app = build_app(settings_of(tmp_path / "home"), SteppingClock(NOW), model=ScriptedModel(lambda request: "Yes."))
    making = asyncio.create_task(app.backup_scheduler.create())
    await _begun(app)
    await app.backup_scheduler.stop()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert not app.backup_scheduler.is_running() and list((tmp_path / "home" / "backups").iterdir()) == [
        tmp_path / "home" / "backups" / "script-before.db"
    ]
    await app.models.aclose()
    app.close()


def test_the_process_ends_with_the_one_that_wanted_the_backup(tmp_path: Path) -> None:
    home = BackupHome(tmp_path / "home").open().write_files()
    home.close()
    request = {"kind": "manual", "now": NOW.isoformat()}
    job = {"home": str(home.path), "folder": "", "request": request, "parent": 1}
    done = subprocess.run(
        (sys.executable, "-m", "assistant.backup.process"),
        input=json.dumps(job).encode() + b"\n",
        capture_output=True,
        env=command_environment(home.path),
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1 and b"stopped meanwhile" in done.stderr
    assert home.backup_files() == []


# -------------------------------------------------------------------------------------------------- on the command line


OFFLINE = {"ASSISTANT_MODEL__PROVIDER": "offline", "TIKTOKEN_CACHE_DIR": ""}


def test_a_drill_talk_back_up_talk_on_lose_everything_restore_verify_talk_on(tmp_path: Path) -> None:
    home, usb = tmp_path / "home", tmp_path / "usb"
    assert run_in_process(home, "chat", "-m", "My boat is called Albatross.", **OFFLINE).returncode == 0
    made = json.loads(run_in_process(home, "backup", "create", "--json", **OFFLINE).out)
    usb.mkdir()
    shutil.copy(home / "backups" / made["name"], usb)
    run_in_process(home, "chat", "-m", "The spare key is under the flowerpot.", **OFFLINE)
    shutil.rmtree(home)
    proof = json.loads(run_in_process(home, "backup", "verify", str(usb / made["name"]), "--json", **OFFLINE).out)
    restored = run_in_process(home, "backup", "restore", str(usb / made["name"]), **OFFLINE)
    assert restored.returncode == 0 and restored.out.startswith(f"Restored {home}.")
    again = run_in_process(home, "backup", "restore", str(usb / made["name"]), "--force", "--json", **OFFLINE)
    assert proof.items() <= json.loads(again.out).items()
    assert run_in_process(home, "verify", **OFFLINE).returncode == 0
    assert "Albatross" in run_in_process(home, "chat", "-m", "What is my boat called?", **OFFLINE).out
    assert "flowerpot" not in run_in_process(home, "log", **OFFLINE).out


def test_what_is_there_is_listed_proved_and_removed(tmp_path: Path) -> None:
    home = BackupHome(tmp_path / "home").open().write_files()
    home.close()
    assert "no backup" in run_in_process(home.path, "backup", "list", **OFFLINE).out
    assert "no backup" in one_line_error(run_in_process(home.path, "backup", "verify", **OFFLINE))
    names = [home.back_up("daily").backup.name, home.back_up(hours=1).backup.name]
    listed = run_in_process(home.path, "backup", "list", **OFFLINE).out
    assert [line.split("`")[1] for line in listed.splitlines()] == names
    assert [
        one["name"] for one in json.loads(run_in_process(home.path, "backup", "list", "--json", **OFFLINE).out)
    ] == names
    proved = run_in_process(home.path, "backup", "verify", **OFFLINE)
    assert proved.returncode == 0 and proved.out.startswith(names[1]) and "Not in it: secrets.toml" in proved.out
    assert json.loads(run_in_process(home.path, "backup", "verify", names[0], "--json", **OFFLINE).out)["ok"] is True
    (home.folder.path / names[1]).write_bytes(b"nonsense")
    assert "is not a complete backup" in one_line_error(
        run_in_process(home.path, "backup", "verify", names[1], **OFFLINE)
    )
    assert json.loads(run_in_process(home.path, "backup", "remove", *names, "--json", **OFFLINE).out) == names
    assert home.backup_files() == []
    assert run_in_process(home.path, "backup", "remove", names[0], **OFFLINE).returncode == 2


def test_a_home_that_is_served_is_not_restored(tmp_path: Path) -> None:
    home = BackupHome(tmp_path / "home").open().write_files()
    name = home.back_up().backup.name
    home.close()
    with home_lock(home.path):
        told = one_line_error(run_in_process(home.path, "backup", "restore", name, "--force", **OFFLINE))
    assert "uses the data folder" in told and "assistant stop" in told
