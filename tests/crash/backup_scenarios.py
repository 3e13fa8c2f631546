"""Scenarios of backups: one is made by the clock while the home is open, an old one goes; a home is restored over
another. Each step is made within the process, so that each can be the one at which it is killed."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from assistant.backup.scheduler import BackupScheduler
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.errors import AssistantError, StoreError
from assistant.core.records import SessionInfo
from assistant.erasure.backups import BackupErasure
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.backup.restore import PREVIOUS_HOME_PREFIX, finish_interrupted_restore
from assistant.store.backup.tarball import unpack_backup_file
from assistant.store.files import WriteThrottle
from assistant.wire.checks import build_restorer
from assistant.wire.stores import Stores
from tests.crash import pictures
from tests.crash.comparison import DIFFER, but, look
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.witness import EffectLog, effect_log_path
from tests.crash.world import BEGUN, CrashEnvironment, live, message, settings_of
from tests.support.backup_home import make_backup_in_process
from tests.support.scripted import SteppingClock

_TRIES = 15
_DUE = BEGUN + timedelta(days=1)
_QUICK = WriteThrottle(throttled=False)
_SINCE = CrashEnvironment((*LIVED.messages, message("The boat was sold to Ines.", 9)), LIVED.answer)


def _files(home: Path) -> None:
    (home / "workspace").mkdir(mode=0o700, exist_ok=True)
    (home / "workspace" / "plan.txt").write_text("Paint the gate.\n" * 40, encoding="utf-8")
    (home / "config.toml").write_text('[log]\nlevel = "error"\n', encoding="utf-8")


def _old_backup(home: Path, hours: int) -> None:
    make_backup(BackupFolder(home), BackupRequest("daily", BEGUN + timedelta(hours=hours)), _QUICK)


# ------------------------------------------------------------------------------------------------------------- backup


def _lived(home: Path) -> None:
    live(home, LIVED)
    _files(home)
    _old_backup(home, 1)


def _back_up(home: Path) -> None:
    asyncio.run(_backed_up(home))


async def _backed_up(home: Path) -> None:
    settings = settings_of(home)
    witness, clock, folder = EffectLog(home), SteppingClock(_DUE), BackupFolder(home)
    with closing(Stores(settings, _DUE)) as stores:

        def sessions() -> list[SessionInfo]:
            return stores.conversation.list_sessions()

        room = BackupScheduler(
            folder,
            make_backup_in_process(folder),
            SleepSchedule("05:00", UTC),
            1,
            first_message_at=lambda: find_first_message_time(sessions()),
            is_erasing=lambda: False,
            clock=clock,
        )
        for _ in range(_TRIES):
            try:
                BackupErasure(folder, make_backup_in_process(folder)).remove_partial()
            except AssistantError as error:
                witness.record("told", text=str(error))
            room.check_due()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)  # type: ignore[arg-type]
            if not room.trouble:
                return
            witness.record("told", text=room.trouble)
            clock.now += timedelta(minutes=61)


def _kept(home: Path) -> Snapshot:
    """The home, and what the backups in it hold."""
    picture = {**look(home)}
    folder = BackupFolder(home)
    picture["files"] = [one for one in picture["files"] if not one[0].startswith("backups/nocturne-")]
    picture["backups"] = [
        [one.kind, f"{one.made_at:%Y-%m-%d}", _held(folder.path / one.name)] for one in folder.list_backups()
    ]
    return picture


def _held(path: Path) -> dict[str, Any]:
    """What a backup holds, as a home; unpacked beside the home that it is of, and gone again."""
    place = effect_log_path(path.parents[1]).with_name("unpacked")
    shutil.rmtree(place, ignore_errors=True)
    try:
        unpack_backup_file(path, place, _QUICK)
        held = {**pictures.stored(place), "log": pictures.logged(place), "files": pictures.files(place)}
        return pictures.without_turn_ids(held, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _one_too_many(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """An old backup goes with the next day's where the fault came when it was its turn."""
    return bool(faults.all) and after[-1] == before[-1] and len(after) == 2


BACKUP = Scenario(
    "backup",
    "the day's backup of an open home is made and proved, and the one before goes",
    _lived,
    _back_up,
    _kept,
    but(AllowedDifference("backups", "one that was to go stays until the next is made", _one_too_many)),
)


# ------------------------------------------------------------------------------------------------------------ restore


def _lived_on(home: Path) -> None:
    live(home, LIVED)
    _files(home)
    _old_backup(home, 1)
    live(home, _SINCE)
    (home / "workspace" / "later.txt").write_text("Later.\n", encoding="utf-8")


def _restore(home: Path) -> None:
    """As often as a person would try who is told that the disk is in trouble."""
    restorer, witness = build_restorer(settings_of(home)), EffectLog(home)
    for left in reversed(range(_TRIES)):
        try:
            finish_interrupted_restore(home)
            if not any(home.glob(f"{PREVIOUS_HOME_PREFIX}*")):
                restorer.restore(restorer.find(""), home, _DUE, force=True)
            return
        except StoreError as error:
            witness.record("told", text=str(error))
            if not left:
                raise


def _both(home: Path) -> Snapshot:
    """The restored home, and the one that was there before."""
    picture = {**look(home)}
    for aside in home.glob(f"{PREVIOUS_HOME_PREFIX}*"):
        before = {**pictures.stored(aside), "log": pictures.logged(aside)}
        picture["before"] = pictures.without_turn_ids(before, aside)
    return picture


RESTORE = Scenario(
    "restore", "a backup takes the place of a home that was talked in since", _lived_on, _restore, _both, DIFFER
)
