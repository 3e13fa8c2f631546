"""Makes backups daily and on command.

- One backup per day in the time zone of the data folder, across clock changes; a missed one is made once, late.
- One at a time, and none during an erasure, so that no backup keeps erased text. It runs in the background, and nothing
  waits for it.
- An old backup is only deleted after a new one is complete and verified. Only daily backups are deleted automatically,
  and never the newest.
- A failed backup is reported until another succeeds, and is retried (I11).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta

from assistant.core.backups import Backup, BackupKind, BackupResult
from assistant.core.calendar import SleepSchedule, is_still_ahead
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.core.logger import get_logger
from assistant.store.backup.folder import BackupFolder

RETRY_AFTER = timedelta(hours=1)


def is_backup_due(
    schedule: SleepSchedule, backups: Sequence[Backup], first_message_at: datetime | None, now: datetime
) -> bool:
    """Return whether a backup is due."""
    return schedule.find_due_night(_last(backups, now), first_message_at, now) is not None


def first_missed_backup(
    schedule: SleepSchedule, backups: Sequence[Backup], first_message_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when the first missing backup was due, if that is more than a day ago."""
    return schedule.find_missed_night(_last(backups, now), first_message_at, now)


def find_backup_problems(
    folder: BackupFolder, schedule: SleepSchedule, first_message_at: Callable[[], datetime | None], now: datetime
) -> Iterator[str]:
    """Return problems: a day without its backup, or a missing folder of backups."""
    if not schedule.at:
        return
    try:
        missed = first_missed_backup(schedule, folder.list_backups(), first_message_at(), now)
    except StoreError as error:
        yield str(error)
        return
    if missed is not None:
        yield (
            f"There is no backup since {missed.astimezone(schedule.zone):%Y-%m-%d %H:%M}, when one was due. Keep "
            "`assistant run` running, or say `assistant backup create`."
        )


def backups_to_remove(backups: Sequence[Backup], keep: int, now: datetime) -> list[Backup]:
    """Return the automatic backups except for the newest `keep`, oldest first. A backup dated after `now` was made
    earlier, by a wrong clock."""
    daily = [backup for backup in backups if backup.kind == "daily"]
    daily.sort(key=lambda backup: (backup.made_at <= now, backup.made_at, backup.name))
    return daily[: max(0, len(daily) - max(1, keep))]


def _last(backups: Sequence[Backup], now: datetime) -> datetime | None:
    return max((backup.made_at for backup in backups if backup.made_at <= now), default=None)


log = get_logger()

MakeBackup = Callable[[BackupKind, datetime], Awaitable[BackupResult]]
"""Makes one and proves it. Raises `AssistantError` with nothing kept of it."""


class BackupScheduler:
    def __init__(
        self,
        folder: BackupFolder,
        make: MakeBackup,
        schedule: SleepSchedule,
        keep: int,
        *,
        first_message_at: Callable[[], datetime | None],
        is_erasing: Callable[[], bool],
        clock: Callable[[], datetime],
    ) -> None:
        """`schedule` is when the daily backup is made, `keep` how many daily ones are kept; `first_message_at` returns
        the time of the first message."""
        self._folder = folder
        self._make = make
        self._schedule = schedule
        self._keep = keep
        self._home_begun_at = first_message_at
        self._is_erasing = is_erasing
        self._clock = clock
        self._task: asyncio.Task[BackupResult] | None = None
        self._retry_at: datetime | None = None
        self.trouble = ""

    def is_running(self) -> bool:
        """Return whether one is being made."""
        return self._task is not None and not self._task.done()

    def check_due(self) -> None:
        """Called at every wake-up: start a backup that is due."""
        now = self._clock()
        waits = self._retry_at is not None and is_still_ahead(self._retry_at, now, RETRY_AFTER)
        if self.is_running() or self._is_erasing() or waits:
            return
        try:
            due = is_backup_due(self._schedule, self._folder.list_backups(), self._home_begun_at(), now)
        except AssistantError as error:
            self._failed(error, now)
        else:
            if due:
                self._begin("daily", now).add_done_callback(_ignore_reported_error)
            elif self.trouble:
                self._remove_outdated(now)

    async def create(self) -> BackupResult:
        """Make one now, even if the caller is cancelled meanwhile. Raises `UsageError` while another is made or an
        erasure runs, `StoreError` if it failed."""
        if self.is_running():
            raise UsageError("A backup is being made already. Nothing was changed; `assistant backup list` shows it.")
        if self._is_erasing():
            raise UsageError("Something is being forgotten just now. Nothing was changed; try again after that.")
        return await asyncio.shield(self._begin("manual", self._clock()))

    async def stop(self) -> None:
        """Abort a backup in progress; nothing of it is kept."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, AssistantError):
                await self._task

    def _begin(self, kind: BackupKind, now: datetime) -> asyncio.Task[BackupResult]:
        self._task = asyncio.create_task(self._run(kind, now), name=f"backup ({kind})")
        return self._task

    async def _run(self, kind: BackupKind, now: datetime) -> BackupResult:
        try:
            result = await self._make(kind, now)
        except AssistantError as error:
            self._failed(error, now)
            raise
        self._remove_outdated(self._clock())
        log.info("backed up", name=result.backup.name, bytes=result.backup.bytes, seconds=round(result.seconds, 1))
        return result

    def _remove_outdated(self, now: datetime) -> None:
        """Delete outdated backups after a new one was made, now or at a later attempt."""
        try:
            for old in backups_to_remove(self._folder.list_backups(), self._keep, now):
                self._folder.remove(old)
                log.info("an old backup was removed", name=old.name)
        except AssistantError as error:
            self._retry_at = now + RETRY_AFTER
            said = "Your data is backed up, but an older backup was kept"
            self.trouble = f"{said}: {error} It is tried again automatically."
            log.error("an old backup was not removed", error=str(error))
        else:
            self.trouble, self._retry_at = "", None

    def _failed(self, error: AssistantError, now: datetime) -> None:
        self._retry_at = now + RETRY_AFTER
        self.trouble = f"Your data is not backed up: {error} It is tried again automatically."
        log.error("the home is not backed up", error=str(error))


def _ignore_reported_error(task: asyncio.Task[BackupResult]) -> None:
    """Ignore an error that was already reported."""
    if not task.cancelled():
        task.exception()
