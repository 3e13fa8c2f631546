"""Finds backups with erased text, and replaces them by one new backup.

- A backup with the text is deleted only after a new backup was made, read back and found without it. If that fails, all
  old ones stay, are reported as not done, and are tried again at the next start.
- Only text of the plan's scope counts (I10): a backup in which only others said the same stays.
- A backup that cannot be read is reported and stays, since its content is unknown.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from assistant.core.backups import Backup, BackupKind, BackupResult
from assistant.core.dataclass import dataclass
from assistant.core.erasure import ErasureLeftover, ErasureRequest
from assistant.core.errors import AssistantError, StoreError
from assistant.store.backup.folder import BackupFolder
from assistant.store.erasure.byte_search import ByteSearch
from assistant.store.erasure.finder import open_home_copy
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.proof import search_home_for_remains
from assistant.store.files import WriteThrottle

_WAIT_SECONDS = 10.0
_AGAIN = "It is tried again at the next start, and when something is forgotten."

MakeBackup = Callable[[BackupKind, datetime], Awaitable[BackupResult]]
"""Makes a backup and proves it. Raises `AssistantError`; then nothing is kept of it."""


@dataclass(frozen=True, slots=True)
class ErasedBackups:
    """The outcome for backups."""

    names: tuple[str, ...] = ()  # of the deleted backups
    leftovers: tuple[ErasureLeftover, ...] = ()  # backups that still have the text, or may have it
    files_searched: int = 0


@dataclass(frozen=True, slots=True)
class _Search:
    with_words: tuple[Backup, ...]
    unread: tuple[ErasureLeftover, ...]  # what could not be searched
    files: int


class BackupErasure:
    """The backups of one data folder. Searching them is slow, and done in a worker thread."""

    def __init__(self, folder: BackupFolder, make_backup: MakeBackup) -> None:
        self._folder = folder
        self._make = make_backup

    def remove_partial(self) -> None:
        """At start-up, delete what an interrupted backup or search left. Raises `AssistantError`."""
        if self._folder.path.is_dir():
            with self._folder.lock(timeout_seconds=_WAIT_SECONDS):
                self._folder.remove_partial()

    async def find_names(self, plan: ErasurePlan) -> tuple[str, ...]:
        """Return the names of the backups that have the text, without unreadable ones. Raises `UsageError` while a
        backup is made, `StoreError`."""
        search = await asyncio.to_thread(self._search_all, plan)
        return tuple(backup.name for backup in search.with_words)

    async def erase(self, plan: ErasurePlan, now: datetime) -> ErasedBackups:
        """Replace the backups that have the text by a new one; if the plan keeps them, report them."""
        try:
            search = await asyncio.to_thread(self._search_all, plan)
        except AssistantError as error:
            return ErasedBackups((), (ErasureLeftover("backups", 1, f"not done: {error} {_AGAIN}"),), 0)
        names = [backup.name for backup in search.with_words]
        leftovers, files = list(search.unread), search.files
        if plan.keep_backups:
            leftovers += map(kept_backup, names)
        elif names:
            try:
                files += await self._make_without_words(search.with_words, plan, now)
                leftovers += await asyncio.to_thread(self._remove, search.with_words)
            except AssistantError as error:
                why = f"not done: no backup without the words could be made, so it stays. {error} {_AGAIN}"
                leftovers += [ErasureLeftover(name, 1, why) for name in names]
        places = {leftover.where for leftover in leftovers}
        return ErasedBackups(tuple(name for name in names if name not in places), tuple(leftovers), files)

    def _search_all(self, plan: ErasurePlan) -> _Search:
        try:
            backups = self._folder.list_backups()
        except StoreError as error:
            why = f"not done: {error} Backups in it may have the words. It is tried again at the next start."
            return _Search((), (ErasureLeftover(str(self._folder.path), 1, why),), 0)
        return self._search(backups, plan)

    def _search(self, backups: Sequence[Backup], plan: ErasurePlan) -> _Search:
        with_words, unread, files = [], [], 0
        if not backups:
            return _Search((), (), 0)
        with self._folder.lock(timeout_seconds=_WAIT_SECONDS):
            self._folder.remove_partial()
            for backup in backups:
                try:
                    has_words, searched = self._has_words(backup, plan)
                except AssistantError as error:
                    advice = f"Remove it with `assistant backup remove {backup.name}`, then make one with `assistant "
                    unread.append(ErasureLeftover(backup.name, 1, f"not done: {error} {advice}backup create`."))
                    continue
                with_words += [backup] if has_words else []
                files += searched
        return _Search(tuple(with_words), tuple(unread), files)

    def _has_words(self, backup: Backup, plan: ErasurePlan) -> tuple[bool, int]:
        """Return whether a backup has the text, and how many files were searched completely. The caller holds the
        folder's lock."""
        from assistant.store.backup.tarball import unpack_backup_file  # loaded with what reads archives

        copy = self._folder.partial_path("erasure")
        try:
            unpack_backup_file(self._folder.path / backup.name, copy, WriteThrottle(throttled=False))
            with open_home_copy(copy) as finder:
                own = finder.plan_for_copy(plan)
                if finder.preview(ErasureRequest(own.scope), own):
                    # It is deleted anyway: no need to read the rest.
                    return True, 0
                remains, searched = search_home_for_remains(finder, own)
            return any(self._is_only_in_backup(remain, own) for remain in remains), searched
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _is_only_in_backup(self, remain: ErasureLeftover, plan: ErasurePlan) -> bool:
        """Return whether a find is only in the backup: what is still in the data folder would be in a new backup as
        well."""
        if remain.kind not in ("not_done", "own_file"):
            return False
        return not ByteSearch(plan).count_in_file(self._folder.home / remain.where)

    async def _make_without_words(self, replaced: Sequence[Backup], plan: ErasurePlan, now: datetime) -> int:
        """Make a backup and return how many files of it were searched. If it replaces a manual one, it also stays until
        a person deletes it."""
        kind: BackupKind = "manual" if any(backup.kind == "manual" for backup in replaced) else "daily"
        backup = (await self._make(kind, now)).backup
        search = await asyncio.to_thread(self._search, [backup], plan)
        if search.with_words or search.unread:
            self._folder.remove(backup)
            raise StoreError("The new backup had the words too, as your data folder still has them.")
        return search.files

    def _remove(self, backups: Sequence[Backup]) -> list[ErasureLeftover]:
        """Delete backups and return what could not be deleted."""
        leftovers = []
        with self._folder.lock(timeout_seconds=_WAIT_SECONDS):
            for backup in backups:
                try:
                    self._folder.remove(backup)
                except StoreError as error:
                    leftovers.append(ErasureLeftover(backup.name, 1, f"not done: {error} {_AGAIN}"))
        return leftovers


def kept_backup(name: str) -> ErasureLeftover:
    """Describe a backup with the text that stays because the request keeps backups."""
    remove = f"remove {name}" if "/" in name else f"`assistant backup remove {name}` removes it"
    return ErasureLeftover(name, 1, f"a backup that you keep; {remove}", "kept_backup")
