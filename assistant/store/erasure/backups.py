"""Words removed from backups: each is unpacked, loses them as a home does, is packed again, verified, and replaces the
original.

What always holds: a backup is as it was or has been rewritten, whatever comes between. What its manifest says of the
time when it was made stays; the manifest also says that it was rewritten. A backup in which words stay that only a
person can change (files of the workspace) is named, never skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from assistant import __version__
from assistant.core.backups import BACKUP_DATABASES, BACKUP_PARTS, Backup, BackupEntry, BackupManifest
from assistant.core.erasure import ErasureLeftover, ErasureRequest
from assistant.core.errors import AssistantError, CorruptStore, StoreError
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.tarball import BackupWriter, manifest_to_json, unpack_backup_file, verify_backup_file
from assistant.store.database import Database
from assistant.store.erasure.character_db import erase_in_memory_db_copy
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.proof import count_words_in_file
from assistant.store.erasure.store import ErasureStore
from assistant.store.files import WriteThrottle, sync_directory
from assistant.store.log.reader import LOG_NAME

_WAIT_SECONDS = 10.0
_MEMORY = "memory.db"

OpenBackupCopy = Callable[[Path], AbstractContextManager[ErasureStore]]
"""The stores of a home that was unpacked, whatever version wrote it, open."""


@dataclass(frozen=True, slots=True)
class RewrittenBackups:
    """Backups that lost the words, what is left and why, and how many files were searched in them afterwards."""

    names: tuple[str, ...] = ()
    left: tuple[ErasureLeftover, ...] = ()
    searched: int = 0


def find_backups_with_words(folder: BackupFolder, marked: ErasurePlan) -> list[str]:
    """The names of backups in whose bytes the words are; of one that cannot be read, nothing."""
    found = []
    for backup in _all(folder)[0]:
        try:
            if count_words_in_file(folder.path / backup.name, marked.wording):
                found.append(backup.name)
        except StoreError:
            continue
    return found


def erase_in_backups(
    folder: BackupFolder, marked: ErasurePlan, opening: OpenBackupCopy, now: datetime, pace: WriteThrottle
) -> RewrittenBackups:
    """Every backup in the folder; what could not be done is left, and told."""
    backups, absent = _all(folder)
    names, left, searched = list[str](), absent, 0
    if backups:
        try:
            with folder.lock(timeout_seconds=_WAIT_SECONDS):
                folder.remove_partial()
                for backup in backups:
                    done = _attempted(folder, backup, marked, opening, now, pace)
                    names += done.names
                    left += done.left
                    searched += done.searched
        except AssistantError as error:
            left.append(ErasureLeftover("backups", len(backups), f"not done: {error}"))
    return RewrittenBackups(tuple(names), tuple(left), searched)


def _all(folder: BackupFolder) -> tuple[list[Backup], list[ErasureLeftover]]:
    try:
        return folder.list_backups(), []
    except StoreError as error:
        why = f"not done: {error} Backups in it may have the words. It is tried again at the next start."
        return [], [ErasureLeftover(str(folder.path), 1, why)]


def _attempted(
    folder: BackupFolder,
    backup: Backup,
    marked: ErasurePlan,
    opening: OpenBackupCopy,
    now: datetime,
    pace: WriteThrottle,
) -> RewrittenBackups:
    copy = folder.partial_path("forgetting")
    advice = f"Remove it with `assistant backup remove {backup.name}`, then make one with `assistant backup create`."
    try:
        manifest = unpack_backup_file(folder.path / backup.name, copy, pace)
        with opening(copy) as store:
            own = store.plan_for_copy(marked)
            has_words = bool(store.preview(ErasureRequest(marked.scope), own))
            undone = _carried_out(store, copy, own, now) if has_words else []
            kept, searched = store.search_remains(own)
        if has_words:
            _pack_again(folder, backup, copy, replace(manifest, rewritten_at=now), pace)
    except AssistantError as error:
        return RewrittenBackups(left=(ErasureLeftover(backup.name, 1, f"not done: {error} {advice}"),))
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return RewrittenBackups(
        (backup.name,) if has_words else (), tuple(_told(backup, [*undone, *kept], advice)), searched
    )


def _carried_out(store: ErasureStore, copy: Path, own: ErasurePlan, now: datetime) -> list[ErasureLeftover]:
    undone = store.execute(own, now, is_retry=True)
    undone += store.rewrite_archives(own)
    undone += _without_memories(copy / _MEMORY, own)
    return [*undone, *store.rewrite_databases()]


def _told(backup: Backup, left: Sequence[ErasureLeftover], advice: str) -> Iterator[ErasureLeftover]:
    """A line or two a backup, however many of its files have the words."""
    undone = [one for one in left if one.kind == "not_done"]
    own = [one for one in left if one.kind == "own_file"]
    if undone:
        yield ErasureLeftover(backup.name, sum(one.count for one in undone), f"not done in {undone[0].where}. {advice}")
        return
    if own:
        why = f"it has your own files as they were ({', '.join(one.where for one in own[:3])}). {advice}"
        yield ErasureLeftover(backup.name, sum(one.count for one in own), why, "own_file")
    others = [one for one in left if one not in own and one.kind != "other_scope"]
    if others:
        why = f"the same words in something else that was said ({others[0].where}), as in the home"
        yield ErasureLeftover(backup.name, sum(one.count for one in others), why, "same_words")


def _without_memories(path: Path, marked: ErasurePlan) -> list[ErasureLeftover]:
    if not marked.memories or not path.exists():
        return []
    try:
        with closing(Database.open_unmigrated(path)) as memory:
            memory.overwrite_deleted()
            erase_in_memory_db_copy(memory, marked.memories)
    except StoreError as error:
        return [ErasureLeftover(path.name, len(marked.memories), f"not done: {error}")]
    return []


# -------------------------------------------------------------------------------------------------------- packing again


def _pack_again(
    folder: BackupFolder, backup: Backup, copy: Path, manifest: BackupManifest, pace: WriteThrottle
) -> None:
    """Raises `StoreError`; then the backup is as it was."""
    partial = folder.partial_path(backup.name)
    try:
        again = _packed(copy, partial, manifest, pace)
        if manifest_to_json(verify_backup_file(partial, pace)) != manifest_to_json(again):
            raise CorruptStore(f"{backup.name} was not read back as it was written. It is as it was.")
        partial.replace(folder.path / backup.name)
        sync_directory(folder.path)
    except OSError as error:
        raise StoreError(f"{backup.name} was not rewritten: {error.strerror}. It is as it was.") from error
    finally:
        partial.unlink(missing_ok=True)


def _packed(copy: Path, partial: Path, manifest: BackupManifest, pace: WriteThrottle) -> BackupManifest:
    schemas, entries, logs = {}, list[BackupEntry](), dict[str, int]()
    for name in (one for one in BACKUP_DATABASES if one in manifest.schemas):
        with closing(Database.open_reader(copy / name)) as database:
            schemas[name] = database.applied_migrations()
    packing = BackupWriter(partial, pace)
    try:
        for name, path in _files(copy, {entry.path for entry in manifest.files}):
            if path.is_dir():
                packing.add_folder(name)
                continue
            entries.append(packing.add(name, path))
            if path.name == LOG_NAME and name.startswith("log/"):
                logs[name] = entries[-1].bytes
        again = replace(manifest, program=__version__, files=tuple(entries), schemas=schemas, logs=logs)
        packing.finish(again)
    finally:
        packing.close()
    return again


def _files(copy: Path, known: set[str]) -> Iterator[tuple[str, Path]]:
    """What is there of a home, with its folders; not the databases that were made while it was open."""
    for at, folders, files in os.walk(copy):
        folders.sort()
        if Path(at) == copy:
            folders[:] = [one for one in folders if one in BACKUP_PARTS]
        else:
            yield Path(at).relative_to(copy).as_posix(), Path(at)
        for one in sorted(files):
            name = (Path(at) / one).relative_to(copy).as_posix()
            if Path(at) != copy or name in known:
                yield name, Path(at) / one
