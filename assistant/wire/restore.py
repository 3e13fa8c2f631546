"""Backups opened again: proved, and put in the place of a home. Part of the composition root (`assistant.wire.app`).

What always holds: nothing of a home is touched before the backup was read whole, unpacked beside it, opened as a home,
and found sound: its log's chain, the index against the log, coverage, the pages of its databases.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from assistant.core.backups import BackupManifest
from assistant.core.errors import CorruptStore, StoreError, UsageError
from assistant.core.records import IntegrityReport
from assistant.settings.home import Home
from assistant.settings.settings import Settings
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
from assistant.wire.backup import backup_folder
from assistant.wire.stores import open_stores

_SPARE = 64 << 20


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """A backup that was opened and found sound."""

    path: Path
    manifest: BackupManifest
    report: IntegrityReport


@dataclass(frozen=True, slots=True)
class RestoredHome:
    """A home that a backup was put in the place of. `aside` is where what was there is kept, None where nothing was;
    `said_again` are messages that were forgotten after the backup was made; `unfinished` tells whether a forgetting had
    not been finished in what is aside."""

    home: Path
    backup: VerifiedBackup
    former_home: Path | None
    restored_erased_ids: tuple[int, ...]
    erasure_unfinished: bool


def find_backup(settings: Settings, named: str) -> Path:
    """The backup of this name in the folder of backups, or at this path; the newest for "". Raises `UsageError`,
    `StoreError`."""
    folder = backup_folder(settings)
    if not named:
        backups = folder.list_backups()
        if not backups:
            raise UsageError(f"There is no backup in {folder.path} yet; `assistant backup create` makes one.")
        return folder.path / backups[-1].name
    path = Path(named).expanduser()
    return path.absolute() if path.is_file() else folder.path / folder.find(named).name


def verify_backup(settings: Settings, path: Path, now: datetime) -> VerifiedBackup:
    """Unpack a backup beside it, or where temporary files go, and open it as a home. Raises `CorruptStore`,
    `StoreError`."""
    manifest = verify_backup_file(path, WriteThrottle(throttled=False))
    with _folder_for(path, manifest.bytes + _SPARE) as place:
        unpack_backup_file(path, place / "home", WriteThrottle(throttled=False))
        return VerifiedBackup(path, manifest, _check_unpacked(settings, place / "home", manifest, now, search=False))


def restore_backup(settings: Settings, path: Path, home: Path, now: datetime, *, force: bool) -> RestoredHome:
    """Put a backup in the place of a home, whose lock the caller holds. Raises `UsageError` where something is there
    and `force` is not given, `CorruptStore` and `StoreError`; then nothing of the home was changed."""
    finish_interrupted_restore(home)
    staying = _entries_to_keep(home, path, backup_folder(settings))
    there = list_occupants(home, staying)
    if there and not force:
        some = ", ".join(there[:4])
        raise UsageError(
            f"{home} is not empty ({some}). Nothing was changed; --force restores into it and keeps what is there "
            "aside."
        )
    manifest = verify_backup_file(path, WriteThrottle(throttled=False))
    prepare_home(home)
    require_disk_space(home, 2 * manifest.bytes + _SPARE)
    new = staging_folder(home)
    try:
        unpack_backup_file(path, new, WriteThrottle(throttled=False))
        report = _check_unpacked(settings, new, manifest, now, search=True)
        require_no_conflict(home, staying)
    except BaseException:
        remove_staging(home)
        raise
    again, unfinished = tuple(find_unredacted_messages(home, new)), any(home.glob(PLAN_FILES))
    aside = replace_home(home, now, staying)
    return RestoredHome(
        home, VerifiedBackup(path, manifest, report), home / aside if aside else None, again, unfinished
    )


def finish_restore(home: Path) -> str:
    """Go on with a restore that was cut off; what was done, "" for nothing. The caller holds the home's lock. Raises
    `StoreError`."""
    return finish_interrupted_restore(home)


def _entries_to_keep(home: Path, path: Path, folder: BackupFolder) -> list[str]:
    """What of the home has to stay because backups are in it."""
    return sorted({one.relative_to(home).parts[0] for one in (path, folder.path / "-") if home in one.parents})


def _check_unpacked(
    settings: Settings, home: Path, manifest: BackupManifest, now: datetime, *, search: bool
) -> IntegrityReport:
    """Open what was unpacked as a start would, and prove it; with its search index made again where it will be
    searched. Raises `CorruptStore` where anything is wrong."""
    absent = [name for name in ("script.db", "character.db") if not (home / name).is_file()]
    if absent:
        raise CorruptStore(f"The backup has no {absent[0]}: it is none of a home. Nothing was changed.")
    with closing(open_stores(replace(settings, home=Home(home)), now)) as stores:
        stores.conversation.recover_after_crash(now)
        report = stores.verifier.verify()
        odd = [f"{problem.where}: {problem.text}" for problem in report.problems]
        odd += ["memory.db: its pages are damaged"] if not is_database_intact(home / "memory.db") else []
        if odd:
            of, more = f"{manifest.made_at:%Y-%m-%d}", f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
            raise CorruptStore(f"The backup of {of} is not sound: {odd[0]}{more}. It was not used.")
        for finder in (stores.message_index, stores.journal_index) if search else ():
            while finder.index_next_batch():
                continue
    return report


@contextmanager
def _folder_for(path: Path, needed: int) -> Iterator[Path]:
    """A folder of one's own with so much room."""
    for within in (path.parent, Path(tempfile.gettempdir())):
        try:
            if shutil.disk_usage(within).free < needed:
                continue
            with tempfile.TemporaryDirectory(prefix=".nocturne-backup-verify-", dir=within) as place:
                yield Path(place)
                return
        except PermissionError:
            continue
    raise StoreError(
        f"Unpacking {path.name} needs {-(-needed // 10**6)} MB; there is no such room. Nothing was changed."
    )
