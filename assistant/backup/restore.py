"""Verifies a backup, and replaces a data folder by it.

The data folder is unchanged until the backup was read completely, unpacked, opened as a data folder, and found intact:
hash chain of the log, index against log, coverage, and database pages.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path

from assistant.core.backups import BackupManifest
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError, UsageError
from assistant.core.plain_files import expand_home
from assistant.core.records import IntegrityReport
from assistant.store.archive.archive import StoredArchive
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import is_database_intact
from assistant.store.backup.restore import (
    find_unredacted_messages,
    finish_interrupted_restore,
    list_occupants,
    remove_staging,
    replace_home,
    require_disk_space,
    require_no_conflict,
    staging_folder,
)
from assistant.store.backup.tarball import unpack_backup_file, verify_backup_file
from assistant.store.erasure.plan import PLAN_FILES
from assistant.store.files import WriteThrottle, prepare_home
from assistant.store.script.conversation import StoredConversation
from assistant.store.verify.verifier import Verifier

_SPARE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class UnpackedStores:
    """The stores of an unpacked backup."""

    conversation: StoredConversation
    verifier: Verifier
    archive: StoredArchive
    make_indexes: Callable[[], None]  # the search index, which backups do not have


OpenUnpacked = Callable[[Path, datetime], AbstractContextManager[UnpackedStores]]
"""Opens a data folder as a start would."""


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """A backup that was opened and found intact."""

    path: Path
    manifest: BackupManifest
    report: IntegrityReport


@dataclass(frozen=True, slots=True)
class RestoredHome(VerifiedBackup):
    """A restored data folder, and its backup."""

    home: Path
    former_home: Path | None  # where the previous content is kept; None if there was none
    restored_erased_ids: tuple[int, ...]  # messages that were erased after the backup was made
    erasure_unfinished: bool  # in the previous content


Unpack = Callable[[Path], BackupManifest]
"""Puts a home into a new folder. Raises `CorruptStore`, `StoreError`."""

# What is restored comes from elsewhere.
_NO_FILE = Path()


class BackupRestorer:
    def __init__(self, folder: BackupFolder, open_unpacked: OpenUnpacked) -> None:
        self._folder = folder
        self._open_unpacked = open_unpacked

    def find(self, name: str) -> Path:
        """Return the backup of this name in the folder of backups, or at this path; the newest for "". Raises
        `UsageError`, `StoreError`."""
        if not name:
            backups = self._folder.list_backups()
            if not backups:
                raise UsageError(f"There is no backup in {self._folder.path} yet; `assistant backup create` makes one.")
            return self._folder.path / backups[-1].name
        path = expand_home(name)
        if len(path.parts) > 1 and not path.exists():
            raise UsageError(
                f"There is no file {path}. Nothing was changed; `assistant backup list` shows all backups."
            )
        return path.absolute() if path.is_file() else self._folder.path / self._folder.find(name).name

    def verify(self, path: Path, now: datetime) -> VerifiedBackup:
        """Unpack a backup next to it, or to the temporary folder, and open it. Raises `CorruptStore`, `StoreError`."""
        manifest = verify_backup_file(path, WriteThrottle(throttled=False))
        with _temporary_folder(path, manifest.bytes + _SPARE_BYTES) as folder:
            return self.verify_unpacked(folder / "home", _unpacking(path), now, path)

    def verify_unpacked(self, target: Path, unpack: Unpack, now: datetime, path: Path = _NO_FILE) -> VerifiedBackup:
        """Open what `unpack` puts into the new folder `target`. Raises `CorruptStore`, `StoreError`."""
        manifest = unpack(target)
        return VerifiedBackup(path, manifest, self._check(target, manifest, now, index=False))

    def restore(self, path: Path, home: Path, now: datetime, *, force: bool) -> RestoredHome:
        """Replace a data folder, whose lock the caller holds, by a backup. Raises `UsageError` if it is not empty and
        `force` is not given, `CorruptStore` and `StoreError`; the folder is then unchanged."""
        self.require_free(home, force=force, path=path)
        manifest = verify_backup_file(path, WriteThrottle(throttled=False))
        prepare_home(home)
        require_disk_space(home, 2 * manifest.bytes + _SPARE_BYTES)
        return self.restore_unpacked(_unpacking(path), home, now, force=force, path=path)

    def require_free(self, home: Path, *, force: bool, path: Path = _NO_FILE) -> None:
        """Raise `UsageError` if the data folder is not empty and `force` is not given."""
        finish_interrupted_restore(home)
        occupants = list_occupants(home, _entries_to_keep(home, path, self._folder))
        if occupants and not force:
            raise UsageError(
                f"{home} is not empty ({', '.join(occupants[:4])}). Nothing was changed; --force restores into it and "
                "keeps what is there aside."
            )

    def restore_unpacked(
        self, unpack: Unpack, home: Path, now: datetime, *, force: bool, path: Path = _NO_FILE, whole: bool = False
    ) -> RestoredHome:
        """As `restore`, with what `unpack` puts into a new folder. `whole`: that has the keys of bridges and the
        secrets too, so nothing old stays; the assistant makes the search index when it runs."""
        self.require_free(home, force=force, path=path)
        keep = _entries_to_keep(home, path, self._folder)
        if whole and self._folder.is_in_home:
            keep.clear()  # old backups are kept with the rest; the restored home would delete them in time
        prepare_home(home)
        unpacked = staging_folder(home)
        try:
            manifest = unpack(unpacked)
            report = self._check(unpacked, manifest, now, index=not whole)
            require_no_conflict(home, keep)
            erased_ids, unfinished = tuple(find_unredacted_messages(home, unpacked)), any(home.glob(PLAN_FILES))
        except BaseException:
            remove_staging(home)
            raise
        if whole and not list_occupants(home, keep):
            # A new machine, where only secrets were set so far: they stay unless there are others.
            keep += [path.name for path in home.iterdir() if not (unpacked / path.name).exists()]
        aside = replace_home(home, now, keep, whole=whole)
        return RestoredHome(path, manifest, report, home, home / aside if aside else None, erased_ids, unfinished)

    def _check(self, home: Path, manifest: BackupManifest, now: datetime, *, index: bool) -> IntegrityReport:
        """Open the unpacked backup like a start would, and verify it; with `index`, the search index is built too.
        Raises `CorruptStore`."""
        absent = [name for name in ("script.db", "character.db") if not (home / name).is_file()]
        if absent:
            raise CorruptStore(f"The backup has no {absent[0]}: it is no backup of this program. Nothing was changed.")
        with self._open_unpacked(home, now) as stores:
            stores.conversation.recover_after_crash(now)
            report = stores.verifier.verify()
            problems = [f"{problem.where}: {problem.text}" for problem in report.problems]
            problems += ["memory.db: its pages are damaged"] if not is_database_intact(home / "memory.db") else []
            if problems:
                more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
                raise CorruptStore(
                    f"The backup of {manifest.made_at:%Y-%m-%d} is damaged: {problems[0]}{more}. It was not used."
                )
            if index:
                stores.make_indexes()
        return report


def _unpacking(path: Path) -> Unpack:
    return lambda target: unpack_backup_file(path, target, WriteThrottle(throttled=False))


def _entries_to_keep(home: Path, path: Path, folder: BackupFolder) -> list[str]:
    """Return what must stay in the data folder because backups are in it."""
    backups = (path, folder.path / "-")
    return sorted({backup.relative_to(home).parts[0] for backup in backups if home in backup.parents})


@contextmanager
def _temporary_folder(path: Path, needed: int) -> Iterator[Path]:
    for within in (path.parent, Path(tempfile.gettempdir())):
        try:
            if shutil.disk_usage(within).free < needed:
                continue
            with tempfile.TemporaryDirectory(prefix=".nocturne-backup-verify-", dir=within) as folder:
                yield Path(folder)
                return
        except PermissionError:
            continue
    raise StoreError(
        f"Unpacking {path.name} needs {-(-needed // 10**6)} MB, and no disk has them free. Nothing was changed."
    )
