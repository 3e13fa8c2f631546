"""Backups, put together: part of the composition root (`assistant.wire.app`), and the process that makes one:
`python -m assistant.wire.backup`.

A backup is made in a process of its own, at a low priority, so that it takes nothing from whoever answers. Its
order is the one line of its input; it ends with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from assistant.backup.scheduler import BackupCommands, BackupScheduler, MakeBackup
from assistant.core.backups import Backup, BackupKind, BackupResult
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.core.store_ports import Conversation as ConversationPort
from assistant.erasure.backups import BackupErasure
from assistant.settings.settings import Settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.files import WriteThrottle

# Enough to give way; the least there is would not come to an end beside somebody who works all the time.
_NOT_IMPORTANT = 10
_LEAST_DISK = ("ionice", "-c", "3")
_WAIT_FOR_THE_LAST = 10.0
_REFUSED = 2


def backup_folder(settings: Settings) -> BackupFolder:
    return BackupFolder(settings.home.path, settings.values.backup.folder)


def build_backup_scheduler(
    settings: Settings, conversation: ConversationPort, forgetting: Callable[[], bool], clock: Callable[[], datetime]
) -> BackupScheduler:
    values, folder = settings.values.backup, backup_folder(settings)
    return BackupScheduler(
        folder,
        partial(make_in_child, folder, values.workspace),
        SleepSchedule(values.at, settings.zone),
        values.keep,
        home_begun_at=lambda: find_first_message_time(conversation.list_sessions()),
        is_erasing=forgetting,
        clock=clock,
    )


def build_backup_erasure(settings: Settings) -> BackupErasure:
    folder = backup_folder(settings)
    return BackupErasure(folder, partial(make_in_child, folder, settings.values.backup.workspace))


def build_backup_commands(settings: Settings, backing_up: BackupScheduler) -> BackupCommands:
    return BackupCommands(backing_up, str(backup_folder(settings).path))


def tidy_backups(settings: Settings) -> None:
    """Before anything is forgotten or backed up: what a process that was killed had begun is over. Raises
    `AssistantError`."""
    folder = backup_folder(settings)
    if folder.path.is_dir():
        with folder.lock(timeout_seconds=_WAIT_FOR_THE_LAST):
            folder.remove_partial()


# ------------------------------------------------------------------------------------------------------------- apart


def make_in_process(folder: BackupFolder, workspace: bool) -> MakeBackup:
    """Making one within this process, for those who want to see every step of it."""

    async def made(kind: BackupKind, now: datetime) -> BackupResult:
        return make_backup(folder, BackupRequest(kind, now, workspace), WriteThrottle(throttled=False))

    return made


async def make_in_child(folder: BackupFolder, workspace: bool, kind: BackupKind, now: datetime) -> BackupResult:
    """As `make`, in a process of its own. Raises what it raises."""
    quiet = _LEAST_DISK if shutil.which(_LEAST_DISK[0]) else ()
    command = (*quiet, sys.executable, "-P", "-B", "-m", "assistant.wire.backup")
    order = {
        "home": str(folder.home),
        "folder": "" if folder.is_in_home else str(folder.path),
        "kind": kind,
        "now": now.isoformat(),
        "workspace": workspace,
        "parent": os.getpid(),
    }
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise StoreError(f"No backup was made: its process cannot be started ({error.strerror}).") from error
    try:
        out, err = await process.communicate(json.dumps(order).encode() + b"\n")
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # What cannot be taken away now goes at the next start.
        with contextlib.suppress(AssistantError), folder.lock():
            folder.remove_partial()
        raise
    if process.returncode == 0:
        return _parse_result(out)
    said = err.decode(errors="replace").strip().splitlines()
    why = said[-1] if said else f"its process ended with {process.returncode}"
    raise UsageError(why) if process.returncode == _REFUSED else StoreError(why)


def _parse_result(line: bytes) -> BackupResult:
    told = json.loads(line)
    about = told["backup"]
    made_at = datetime.fromisoformat(about["made_at"])
    return BackupResult(
        Backup(about["name"], made_at, about["kind"], about["bytes"]),
        told["files"],
        told["unpacked_bytes"],
        told["left_out"],
        told["seconds"],
    )


def main() -> int:
    """Make the backup that the line of input orders; the process that is forked for it has no other duties."""
    os.nice(_NOT_IMPORTANT)
    os.umask(0o077)
    told = json.loads(sys.stdin.buffer.readline())
    folder = BackupFolder(Path(told["home"]), told["folder"])
    order = BackupRequest(told["kind"], datetime.fromisoformat(told["now"]), told["workspace"])
    parent = int(told["parent"])
    try:
        made = make_backup(folder, order, WriteThrottle(lambda: os.getppid() == parent))
    except AssistantError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    backup = {
        "name": made.backup.name,
        "made_at": made.backup.made_at.isoformat(),
        "kind": made.backup.kind,
        "bytes": made.backup.bytes,
    }
    rest = {"files": made.files, "unpacked_bytes": made.unpacked_bytes, "left_out": dict(made.left_out)}
    sys.stdout.write(json.dumps({"backup": backup, **rest, "seconds": made.seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
