"""Words taken out of backups: each is unpacked, loses them as a home does, is packed again, proved, and takes the place
of the one that was.

What always holds: a backup is as it was or has been rewritten, whatever comes between. What it says when it was made
stays; that it was rewritten stands in its manifest. A backup in which words stay that are a person's own to change
(files of the workspace) is named, never passed over.
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
from assistant.store.backup_folder import BackupFolder
from assistant.store.backup_manifest import manifest_bytes
from assistant.store.backup_tar import Packing, proved, unpacked
from assistant.store.database import Database
from assistant.store.files import WriteThrottle, sync_directory
from assistant.store.forgetting import ForgettingStore
from assistant.store.log.reader import LOG_NAME
from assistant.store.marked import Marked
from assistant.store.memory_words import forget_in_memory_copy
from assistant.store.proof import copies_in

_WAIT_SECONDS = 10.0
_MEMORY = "memory.db"

Opening = Callable[[Path], AbstractContextManager[ForgettingStore]]
"""The stores of a home that was unpacked, whatever version wrote it, open."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Backups that lost the words, what is left and why, and how many files were searched in them afterwards."""

    names: tuple[str, ...] = ()
    left: tuple[ErasureLeftover, ...] = ()
    searched: int = 0


def backups_with(folder: BackupFolder, marked: Marked) -> list[str]:
    """The names of backups in whose bytes the words are; of one that cannot be read, nothing."""
    found = []
    for backup in _all(folder)[0]:
        try:
            if copies_in(folder.path / backup.name, marked.wording):
                found.append(backup.name)
        except StoreError:
            continue
    return found


def forget_in_backups(
    folder: BackupFolder, marked: Marked, opening: Opening, now: datetime, pace: WriteThrottle
) -> Rewritten:
    """Every backup in the folder; what could not be done is left, and told."""
    backups, absent = _all(folder)
    names, left, searched = list[str](), absent, 0
    if backups:
        try:
            with folder.alone(within=_WAIT_SECONDS):
                folder.tidy()
                for backup in backups:
                    done = _attempted(folder, backup, marked, opening, now, pace)
                    names += done.names
                    left += done.left
                    searched += done.searched
        except AssistantError as error:
            left.append(ErasureLeftover("backups", len(backups), f"not done: {error}"))
    return Rewritten(tuple(names), tuple(left), searched)


def _all(folder: BackupFolder) -> tuple[list[Backup], list[ErasureLeftover]]:
    try:
        return folder.all(), []
    except StoreError as error:
        why = f"not done: {error} Backups in it may have the words. It is tried again at the next start."
        return [], [ErasureLeftover(str(folder.path), 1, why)]


def _attempted(
    folder: BackupFolder, backup: Backup, marked: Marked, opening: Opening, now: datetime, pace: WriteThrottle
) -> Rewritten:
    copy = folder.partial("forgetting")
    advice = f"Remove it with `assistant backup remove {backup.name}`, then make one with `assistant backup create`."
    try:
        manifest = unpacked(folder.path / backup.name, copy, pace)
        with opening(copy) as store:
            own = store.of_this_home(marked)
            has_words = bool(store.look(ErasureRequest(marked.scope), own))
            undone = _carried_out(store, copy, own, now) if has_words else []
            kept, searched = store.prove(own)
        if has_words:
            _pack_again(folder, backup, copy, replace(manifest, rewritten_at=now), pace)
    except AssistantError as error:
        return Rewritten(left=(ErasureLeftover(backup.name, 1, f"not done: {error} {advice}"),))
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return Rewritten((backup.name,) if has_words else (), tuple(_told(backup, [*undone, *kept], advice)), searched)


def _carried_out(store: ForgettingStore, copy: Path, own: Marked, now: datetime) -> list[ErasureLeftover]:
    undone = store.carry_out(own, now, again=True)
    undone += store.archived(own)
    undone += _without_memories(copy / _MEMORY, own)
    return [*undone, *store.sweep()]


def _told(backup: Backup, left: Sequence[ErasureLeftover], advice: str) -> Iterator[ErasureLeftover]:
    """A line or two a backup, however many of its files have the words."""
    undone = [one for one in left if one.why.startswith("not ")]
    own = [one for one in left if one.why.startswith("your own file")]
    if undone:
        yield ErasureLeftover(backup.name, sum(one.count for one in undone), f"not done in {undone[0].where}. {advice}")
        return
    if own:
        why = f"it has your own files as they were ({', '.join(one.where for one in own[:3])}). {advice}"
        yield ErasureLeftover(backup.name, sum(one.count for one in own), why)
    others = [one for one in left if one not in own and not one.why.startswith("another person's")]
    if others:
        why = f"the same words in something else that was said ({others[0].where}), as in the home"
        yield ErasureLeftover(backup.name, sum(one.count for one in others), why)


def _without_memories(path: Path, marked: Marked) -> list[ErasureLeftover]:
    if not marked.memories or not path.exists():
        return []
    try:
        with closing(Database.as_it_is(path)) as memory:
            memory.keep_nothing_deleted()
            forget_in_memory_copy(memory, marked.memories)
    except StoreError as error:
        return [ErasureLeftover(path.name, len(marked.memories), f"not done: {error}")]
    return []


# -------------------------------------------------------------------------------------------------------- packing again


def _pack_again(
    folder: BackupFolder, backup: Backup, copy: Path, manifest: BackupManifest, pace: WriteThrottle
) -> None:
    """Raises `StoreError`; then the backup is as it was."""
    partial = folder.partial(backup.name)
    try:
        again = _packed(copy, partial, manifest, pace)
        if manifest_bytes(proved(partial, pace)) != manifest_bytes(again):
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
        with closing(Database.reader(copy / name)) as database:
            schemas[name] = database.schema()
    packing = Packing(partial, pace)
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
