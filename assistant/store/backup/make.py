"""Making a backup: one instant of the home in one file, verified before it gets its name.

What always holds:
- The databases and the lengths of the logs are those of one instant: what a crash at that instant would have left,
  which every start can recover. For that instant, some milliseconds, all databases are locked for writing; none is
  waited for while another is held, so nobody waits for the longest writer. Then they are read from their snapshots
  while everybody writes on.
- Nothing here opens a database but through SQLite: a process that serves the home and closes another descriptor of such
  a file releases all its locks.
- The databases are copied from their snapshots into a folder of their own, checked there, packed, and removed. The file
  is on the disk, was read back and matches its manifest before it is renamed. A crash, or a full disk, leaves nothing
  but files under temporary names. Earlier backups are not touched.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from assistant import __version__
from assistant.core.backups import (
    BACKUP_DATABASES,
    BACKUP_FILES,
    BACKUP_FOLDERS,
    Backup,
    BackupEntry,
    BackupKind,
    BackupManifest,
    BackupResult,
    backup_name,
    parse_backup_name,
)
from assistant.core.errors import CorruptStore, StoreError
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.tarball import BackupWriter, manifest_to_json, verify_backup_file
from assistant.store.database import Database
from assistant.store.files import WriteThrottle, sync_directory
from assistant.store.log.reader import LOG_NAME

_TRIES = 400
_APART = 0.025
_BLOCK = 1 << 16
# What was learned is in the journal too: one that is damaged is made again from there.
_DISPENSABLE = "memory.db"


@dataclass(frozen=True, slots=True)
class HomeSnapshot:
    """`databases` are open in their snapshots, by name; `logs` are lengths in bytes by path in the home, at the end of
    a line; `damaged` are databases that cannot be read and are made again from others, with what is wrong."""

    databases: Mapping[str, Database]
    log_lengths: Mapping[str, int]
    damaged: Mapping[str, str]


@contextmanager
def open_snapshot(home: Path) -> Iterator[HomeSnapshot]:
    """Open while the snapshots are copied. Raises `StoreError`, also where somebody writes all the time."""
    with ExitStack() as stack:
        readers: dict[str, Database] = {}
        damaged: dict[str, str] = {}
        holders = []
        for path in (home / name for name in BACKUP_DATABASES if (home / name).is_file()):
            try:
                reader = stack.enter_context(closing(Database.open_reader(path)))
                reader.row("SELECT count(*) FROM sqlite_master")
                holders.append(stack.enter_context(closing(Database.open_unmigrated(path))))
            except CorruptStore as error:
                if path.name != _DISPENSABLE:
                    raise
                damaged[path.name] = str(error)
            else:
                readers[path.name] = reader
        with _held(holders):
            for reader in readers.values():
                stack.enter_context(reader.snapshot())
                # A snapshot begins with the first thing that is read.
                reader.row("SELECT count(*) FROM sqlite_master")
            sizes = {path: path.stat().st_size for path in (home / "log").glob(f"*/{LOG_NAME}")}
        logs = {path.relative_to(home).as_posix(): _whole_lines(path, size) for path, size in sizes.items()}
        yield HomeSnapshot(readers, logs, damaged)


@contextmanager
def _held(databases: Sequence[Database]) -> Iterator[None]:
    """Nobody writes to any of them meanwhile."""
    for database in databases:
        database.set_lock_timeout(0)
    tries = 0
    while True:
        with ExitStack() as stack:
            try:
                for database in databases:
                    stack.enter_context(database.write())
            except StoreError:
                tries += 1
                if tries == _TRIES:
                    raise
            else:
                yield
                return
        time.sleep(_APART)


def _whole_lines(path: Path, size: int) -> int:
    """The end of the last whole line within `size` bytes: a record that is being written is none yet."""
    with path.open("rb") as file:
        while size > 0:
            start = max(0, size - _BLOCK)
            file.seek(start)
            newline = file.read(size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
    return 0


_SPARE = 16 << 20
# Whoever carries a backup away carries no keys.
_SECRETS = {"secrets.toml": "secrets; `assistant config secret set` enters them anew"}
_MEMORY = "memory.db"
# Folders that are small and change together with the databases.
_EARLY = ("prompts", "memory")
_WORKSPACE = "workspace"
_MADE_ANEW = "damaged; `assistant memory rebuild` makes it again from the journal"


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """What is to be made: of which kind, as of when, with the files of the workspace or without."""

    kind: BackupKind
    now: datetime
    with_workspace: bool = True


def make_backup(folder: BackupFolder, request: BackupRequest, pace: WriteThrottle) -> BackupResult:
    """Raises `UsageError` while another backup is made, `StoreError` with nothing kept of this one."""
    begun = time.monotonic()
    _must_be_there(folder.home)
    with folder.lock():
        folder.ensure_exists()
        folder.remove_partial()
        _room_or_refuse(folder, request)
        name = _free_name(folder, request)
        partial = folder.partial_path(name)
        with _removed_in_the_end(folder), _explained(folder.path):
            manifest = _packed(folder, partial, request, pace)
            if manifest_to_json(verify_backup_file(partial, pace)) != manifest_to_json(manifest):
                raise CorruptStore(f"The backup in {folder.path} was not read back as it was written. It was not kept.")
            _must_be_there(folder.home)
            size = partial.stat().st_size
            partial.rename(folder.path / name)
            sync_directory(folder.path)
    backup = Backup(
        name,
        (parse_backup_name(name, size) or Backup(name, request.now, request.kind, size)).made_at,
        request.kind,
        size,
    )
    return BackupResult(backup, len(manifest.files), manifest.bytes, manifest.left_out, time.monotonic() - begun)


def _must_be_there(home: Path) -> None:
    """A home that was taken away, with its disk perhaps, is no empty home: a backup of nothing would in time take the
    place of the whole ones. Raises `StoreError`."""
    if not (home / "script.db").exists():
        raise StoreError(f"{home} is not there any more. No backup was made, and those there are stay as they are.")


def _packed(folder: BackupFolder, partial: Path, order: BackupRequest, pace: WriteThrottle) -> BackupManifest:
    staged = folder.partial_path("databases")
    staged.mkdir(mode=0o700)
    home = folder.home
    left_out = {name: why for name, why in _SECRETS.items() if (home / name).exists()}
    packing = BackupWriter(partial, pace)
    entries = []
    try:
        with open_snapshot(home) as of:
            # What is small, and changed together with the databases, is taken while these are still as they were.
            for name in BACKUP_FILES:
                if _is_plain(home / name):
                    entries.append(packing.add(name, home / name))
            entries += _added(packing, _below(folder, _EARLY, left_out), left_out)
            copies, schemas = _copied(of, staged, pace, left_out)
            logs = dict(of.log_lengths)
        for name, path in copies.items():
            entries.append(packing.add(name, path))
            path.unlink()
        for name, length in logs.items():
            entries.append(packing.add(name, home / name, length))
        late = [one for one in BACKUP_FOLDERS if one not in _EARLY and (order.with_workspace or one != _WORKSPACE)]
        left_out |= {} if order.with_workspace else {_WORKSPACE: "backup.workspace is off"}
        entries += _added(packing, _below(folder, late, left_out), left_out)
        manifest = BackupManifest(__version__, order.now, order.kind, tuple(entries), schemas, logs, left_out)
        packing.finish(manifest)
    finally:
        packing.close()
    return manifest


def _copied(
    of: HomeSnapshot, staged: Path, pace: WriteThrottle, left_out: dict[str, str]
) -> tuple[dict[str, Path], dict[str, list[str]]]:
    """Whole copies of the databases by their names, and the migrations that each has."""
    copies, schemas = {}, {}
    left_out |= dict.fromkeys(of.damaged, _MADE_ANEW)
    for name, database in of.databases.items():
        path = staged / name
        with _new_file(path) as file:
            database.copy_to(path, lambda count, file=file: pace.count_written(file, count))  # type: ignore[misc]
        if is_database_intact(path):
            copies[name] = path
            with closing(Database.open_reader(path)) as copy:
                schemas[name] = copy.applied_migrations()
        elif name == _MEMORY:
            left_out[name] = _MADE_ANEW
        else:
            raise CorruptStore(
                f"{database.path} is damaged. No backup was made of it, and the earlier ones are kept; run `assistant "
                "verify`."
            )
    return copies, schemas


def is_database_intact(path: Path) -> bool:
    """Whether the pages of a copy that nobody writes are as they should be."""
    try:
        with closing(Database.open_reader(path)) as copy:
            return [row[0] for row in copy.rows("PRAGMA quick_check(1)")] == ["ok"]
    except CorruptStore:
        return False


def _added(packing: BackupWriter, found: Iterator[tuple[str, Path]], left_out: dict[str, str]) -> Iterator[BackupEntry]:
    for name, path in found:
        if path.is_dir():
            packing.add_folder(name)
            continue
        try:
            yield packing.add(name, path)
        except FileNotFoundError:
            left_out[name] = "removed while the backup was made"


def _below(folder: BackupFolder, tops: Sequence[str], left_out: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Files and folders beside databases and logs; what is no plain file is left out, and so are the backups."""
    for top in tops:
        root = folder.home / top
        if root.is_symlink():
            left_out[top] = "a link"
            continue
        for at, folders, files in os.walk(root):
            place = Path(at)
            yield place.relative_to(folder.home).as_posix(), place
            real = sorted(one for one in folders if not (place / one).is_symlink() and place / one != folder.path)
            links = [one for one in folders if (place / one).is_symlink()]
            folders[:] = real
            for one in sorted((*links, *files)):
                path = place / one
                name = path.relative_to(folder.home).as_posix()
                if not _is_plain(path):
                    left_out[name] = "no plain file"
                elif top != "log" or one != LOG_NAME:
                    yield name, path


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


# ----------------------------------------------------------------------------------------------------------------- room


def _room_or_refuse(folder: BackupFolder, order: BackupRequest) -> None:
    """The databases once as they are, and everything packed, which in the worst case is as long. Raises
    `StoreError`."""
    databases = sum(path.stat().st_size for path in folder.home.glob("*.db") if path.name != "search.db")
    rest = sum(_size(folder, top) for top in BACKUP_FOLDERS if order.with_workspace or top != _WORKSPACE)
    needed, free = 2 * databases + rest + _SPARE, shutil.disk_usage(folder.path).free
    if free < needed:
        raise StoreError(
            f"A backup may need {_megabytes(needed)} MB at {folder.path}, where {_megabytes(free)} MB are free. "
            "Nothing was written; make room, or choose another backup.folder."
        )


def _size(folder: BackupFolder, top: str) -> int:
    total = 0
    for at, folders, files in os.walk(folder.home / top):
        folders[:] = [one for one in folders if Path(at, one) != folder.path]
        for one in files:
            try:
                total += (Path(at) / one).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _megabytes(count: int) -> int:
    return -(-count // 10**6)


# ---------------------------------------------------------------------------------------------------------------- files


def _free_name(folder: BackupFolder, order: BackupRequest) -> str:
    number = 1
    while (folder.path / backup_name(order.now, order.kind, number)).exists():
        number += 1
    return backup_name(order.now, order.kind, number)


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _removed_in_the_end(folder: BackupFolder) -> Iterator[None]:
    """However it ends, nothing is left but the backup. What cannot be removed now goes at the next start."""
    try:
        yield
    except BaseException:
        _tidied(folder)
        raise
    _tidied(folder)


def _tidied(folder: BackupFolder) -> None:
    try:
        folder.remove_partial()
    except StoreError:
        return


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(
            f"No backup was made in {folder}: {error.strerror}{where}. Nothing was kept of it; earlier ones are."
        ) from error
