"""The archive of a home, put together: one part of the composition root (`assistant.wire.house`)."""

from __future__ import annotations

from functools import partial

from assistant.core.archives import ArchivePort, LogRestoreResult, ObjectStore
from assistant.settings.settings import Settings
from assistant.store import files
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.restore import restore_to_log


def open_archive(settings: Settings, *, is_copy: bool = False) -> StoredArchive:
    """Nothing is read, made or imported before it is used. It opens databases of its own, for worker threads.
    `is_copy`: the home is one that a backup was unpacked to, which leaves archives elsewhere alone."""
    return StoredArchive(settings.home.path, partial(_open_shelf, settings), is_copy=is_copy)


def archive_of(settings: Settings) -> ArchivePort:
    """For commands, which need no more of it than the port."""
    return open_archive(settings)


def restored(settings: Settings, session: str, generation: int) -> LogRestoreResult:
    """Bring back what the home's log lost; who calls holds the home's lock. Raises `UsageError`, `ArchiveUnavailable`,
    `StoreError`."""
    return restore_to_log(open_archive(settings), settings.home.path, session, generation)


def _open_shelf(settings: Settings) -> ObjectStore:
    # File systems elsewhere take a while to import, and most homes need them once a day at most.
    from assistant.archive.encryption import AgeEncryption
    from assistant.archive.object_store import FsspecObjectStore

    chosen = settings.values.archive
    sealing = AgeEncryption(chosen.key.get_secret_value())
    return FsspecObjectStore(settings.home.path, chosen.url, sealing, chosen.timeout_seconds, files)
