"""Makes a backup: a consistent snapshot of the data folder in one file, verified before it gets its name.

- The databases and the lengths of the logs are of one instant: the state a crash at that instant would have left, from
  which every start recovers. For that instant, some milliseconds, all databases are locked for writing. Locks are only
  tried, never waited for while another is held, so that nobody waits for the longest writer. The databases are then
  read from their snapshots while writing continues.
- Databases are only opened through SQLite: if a process closes another descriptor of such a file, it loses all its
  locks on it (POSIX).
- The databases are copied from their snapshots into a temporary folder, checked, packed, and deleted. The file is
  synced, read back and compared to its manifest before it is renamed. A crash or a full disk leaves only files with
  temporary names. Earlier backups are not touched.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

from assistant import __version__
from assistant.core.backups import (
    BACKUP_DATABASES,
    BACKUP_FILES,
    BACKUP_FOLDERS,
    BackupEntry,
    BackupKind,
    BackupManifest,
    BackupResult,
    backup_name,
    parse_backup_name,
)
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.plain_files import open_own_file
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.tarball import BackupWriter, verify_backup_file
from assistant.store.database import Database
from assistant.store.derived import FILES_DB, SEARCH_DB
from assistant.store.files import WriteThrottle, find_files, sync_directory
from assistant.store.home.guard import check_database_pages
from assistant.store.log.reader import LOG_NAME

_MAX_TRIES = 400
_SECONDS_BETWEEN_TRIES = 0.025
_BLOCK = 1 << 16
# Can be rebuilt from the journal if it is damaged.
_MEMORY_DB = "memory.db"


@dataclass(frozen=True, slots=True)
class HomeSnapshot:
    """A consistent snapshot of a data folder."""

    databases: Mapping[str, Database]  # with open snapshots, by name
    log_lengths: Mapping[str, int]  # in bytes, up to the end of a line, by path in the data folder
    damaged: Sequence[str]  # databases that cannot be read and are rebuilt from others


@contextmanager
def open_snapshot(home: Path) -> Iterator[HomeSnapshot]:
    """Open snapshots, until they are copied. Raises `StoreError`, also if another process writes without pause."""
    with ExitStack() as stack:
        readers: dict[str, Database] = {}
        damaged = []
        holders = []
        for path in (home / name for name in BACKUP_DATABASES if (home / name).exists()):
            if path.name == _MEMORY_DB and not path.is_file():
                damaged.append(path.name)
                continue
            try:
                reader = stack.enter_context(closing(Database.open_reader(path)))
                reader.row("SELECT count(*) FROM sqlite_master")
                holders.append(stack.enter_context(closing(Database.open_unmigrated(path))))
            except CorruptStore:
                if path.name != _MEMORY_DB:
                    raise
                damaged.append(path.name)
            else:
                readers[path.name] = reader
        with _hold_write_locks(holders):
            for reader in readers.values():
                stack.enter_context(reader.snapshot())
                # A snapshot begins with the first read.
                reader.row("SELECT count(*) FROM sqlite_master")
            sizes = {path: path.stat().st_size for path in find_files(home / "log", f"*/{LOG_NAME}")}
        logs = {path.relative_to(home).as_posix(): length_of_whole_lines(path, size) for path, size in sizes.items()}
        yield HomeSnapshot(readers, logs, damaged)


@contextmanager
def _hold_write_locks(databases: Sequence[Database]) -> Iterator[None]:
    """Lock all databases for writing meanwhile."""
    for database in databases:
        database.set_lock_timeout(0)
    for tries in count(1):
        with ExitStack() as stack:
            try:
                for database in databases:
                    stack.enter_context(database.write())
            except StoreError:
                if tries == _MAX_TRIES:
                    raise
            else:
                yield
                return
        time.sleep(_SECONDS_BETWEEN_TRIES)


def length_of_whole_lines(path: Path, size: int) -> int:
    """Return the end of the last complete line within `size` bytes: a record being written does not count."""
    with open_own_file(path) as file:
        while size > 0:
            start = max(0, size - _BLOCK)
            file.seek(start)
            newline = file.read(size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
    return 0


_SPARE_BYTES = 16 << 20
# A backup carries no keys.
_SECRETS = {"secrets.toml": "secrets; `assistant config secret set` enters them again"}
# Small folders that change together with the databases.
_SMALL_FOLDERS = ("prompts", "memory")
_WORKSPACE = "workspace"
_MADE_ANEW = "damaged; `assistant memory rebuild` makes it again from the journal"


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """What to back up, and where."""

    kind: BackupKind
    now: datetime
    with_workspace: bool = True


def make_backup(folder: BackupFolder, request: BackupRequest, throttle: WriteThrottle) -> BackupResult:
    """Make a backup. Raises `UsageError` while another one is made, `StoreError` with nothing left of this one."""
    begun = time.monotonic()
    _require_home(folder.home)
    with folder.lock():
        folder.ensure_exists()
        folder.remove_partial()
        _require_room(folder, request)
        names = (backup_name(request.now, request.kind, number) for number in count(1))
        name = next(name for name in names if not (folder.path / name).exists())
        unnamed = folder.partial_path(name)
        try:
            manifest = _pack(folder, unnamed, request, throttle)
            if verify_backup_file(unnamed, throttle) != manifest:
                raise CorruptStore(f"The backup in {folder.path} was not read back as it was written. It was not kept.")
            _require_home(folder.home)
            size = unnamed.stat().st_size
            unnamed.rename(folder.path / name)
            sync_directory(folder.path)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise StoreError(
                f"No backup was made in {folder.path}: {error.strerror}{where}. Nothing was kept of it; earlier ones "
                "are."
            ) from error
        finally:
            # In any case nothing is left but the backup. What cannot be deleted now is deleted at the next start.
            with suppress(StoreError):
                folder.remove_partial()
    backup = parse_backup_name(name, size)
    assert backup is not None
    return BackupResult(backup, len(manifest.files), manifest.bytes, manifest.left_out, time.monotonic() - begun)


def _require_home(home: Path) -> None:
    """Raises `StoreError` if the data folder is missing, with its disk perhaps: backups of nothing would eventually
    replace the good ones."""
    if not (home / "script.db").exists():
        raise StoreError(f"{home} is not there any more. No backup was made, and those there are stay as they are.")


def _pack(folder: BackupFolder, path: Path, request: BackupRequest, throttle: WriteThrottle) -> BackupManifest:
    staged = folder.partial_path("databases")
    staged.mkdir(mode=0o700)
    home = folder.home
    left_out = {name: why for name, why in _SECRETS.items() if (home / name).exists()}
    left_out |= {name: why for name in BACKUP_FILES if (why := _why_left_out(home / name))}
    entries = []
    with closing(BackupWriter(path, throttle)) as writer:
        with open_snapshot(home) as snapshot:
            # Small files that change together with the databases are read while these are still unchanged.
            small = [name for name in BACKUP_FILES if name not in left_out and (home / name).exists()]
            entries += [writer.add(name, home / name) for name in small]
            entries += _add_folders(writer, folder, _SMALL_FOLDERS, left_out)
            copies, schemas = _copy_databases(snapshot, staged, throttle, left_out)
        for name, copy in copies.items():
            entries.append(writer.add(name, copy))
            copy.unlink()
        logs = dict(snapshot.log_lengths)
        entries += [writer.add(name, home / name, length) for name, length in logs.items()]
        late = [top for top in _folders(request) if top not in _SMALL_FOLDERS]
        left_out |= {} if request.with_workspace else {_WORKSPACE: "backup.workspace is off"}
        entries += _add_folders(writer, folder, late, left_out)
        manifest = BackupManifest(__version__, request.now, request.kind, tuple(entries), schemas, logs, left_out)
        writer.finish(manifest)
    return manifest


def _copy_databases(
    snapshot: HomeSnapshot, staged: Path, throttle: WriteThrottle, left_out: dict[str, str]
) -> tuple[dict[str, Path], dict[str, list[str]]]:
    """Copy the databases, by name, and return the migrations of each."""
    copies, schemas = {}, {}
    left_out |= dict.fromkeys(snapshot.damaged, _MADE_ANEW)
    for name, database in snapshot.databases.items():
        path = staged / name
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            database.copy_to(path, partial(throttle.count_written, file))
        finally:
            os.close(file)
        if is_database_intact(path):
            copies[name] = path
            with closing(Database.open_reader(path)) as copy:
                schemas[name] = copy.applied_migrations()
        elif name == _MEMORY_DB:
            left_out[name] = _MADE_ANEW
        else:
            raise CorruptStore(
                f"{database.path} is damaged. No backup was made of it, and the earlier ones are kept; run `assistant "
                "verify`."
            )
    return copies, schemas


def is_database_intact(path: Path) -> bool:
    """Return whether the pages of a copy that nobody writes are intact."""
    try:
        return not check_database_pages(path)
    except CorruptStore:
        return False


def _add_folders(
    writer: BackupWriter, folder: BackupFolder, tops: Sequence[str], left_out: dict[str, str]
) -> Iterator[BackupEntry]:
    """Add files and folders other than databases and logs; only plain files are included."""
    for top in tops:
        if (folder.home / top).is_symlink():
            left_out[top] = "a link"
            continue
        for place, names in _walk(folder, top):
            writer.add_folder(place.relative_to(folder.home).as_posix())
            for path in (place / name for name in sorted(names)):
                name = path.relative_to(folder.home).as_posix()
                if why := _why_left_out(path):
                    left_out[name] = why
                elif top != "log" or path.name != LOG_NAME:
                    try:
                        yield writer.add(name, path)
                    except FileNotFoundError:
                        left_out[name] = "removed while the backup was made"


def _walk(folder: BackupFolder, top: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders under `top`, except for that of the backups, in order, each with its files."""
    for at, folders, files in os.walk(folder.home / top, onerror=_refuse_unlisted):
        place = Path(at)
        links = [name for name in folders if (place / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in links and place / name != folder.path)
        yield place, [*links, *files]


def _refuse_unlisted(error: OSError) -> None:
    """Raise: the backup would not be complete without this folder. A folder deleted meanwhile is omitted."""
    if not isinstance(error, FileNotFoundError):
        raise StoreError(f"{error.filename} cannot be listed: {error.strerror}. No backup was made.") from error


def _why_left_out(path: Path) -> str:
    """Return why something in the data folder is not backed up; "" for a plain file, or where there is nothing."""
    if path.is_symlink():
        return "a link"
    return "no plain file" if path.exists() and not path.is_file() else ""


def _require_room(folder: BackupFolder, request: BackupRequest) -> None:
    """Require space for one copy of the databases, and for the packed data, which may not shrink. Raises
    `StoreError`."""
    databases = sum(path.stat().st_size for path in folder.home.glob("*.db") if path.name not in (SEARCH_DB, FILES_DB))
    rest = sum(_size(folder, top) for top in _folders(request))
    needed, free = 2 * databases + rest + _SPARE_BYTES, shutil.disk_usage(folder.path).free
    if free < needed:
        raise StoreError(
            f"A backup may need {_megabytes(needed)} MB at {folder.path}, where {_megabytes(free)} MB are free. "
            "Nothing was written; make room, or choose another backup.folder."
        )


def _size(folder: BackupFolder, top: str) -> int:
    total = 0
    for place, names in _walk(folder, top):
        for name in names:
            with suppress(FileNotFoundError):
                total += (place / name).lstat().st_size
    return total


def _megabytes(size: int) -> int:
    return -(-size // 10**6)


def _folders(request: BackupRequest) -> list[str]:
    return [top for top in BACKUP_FOLDERS if request.with_workspace or top != _WORKSPACE]
