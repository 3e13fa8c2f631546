"""Builds the replica of a data folder in PostgreSQL; without `[replica] url`, none of its modules are imported."""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.core.calendar import SleepSchedule
from assistant.core.errors import HomeError, SettingsError
from assistant.settings.settings import Settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.files import make_directory, sync_file
from assistant.store.replicated import set_replicated

if TYPE_CHECKING:
    from assistant.replica.bases import BaseStore
    from assistant.replica.postgres import ReplicaDatabase
    from assistant.replica.restore import ReplicaReader
    from assistant.replica.service import Replicator
    from assistant.replica.shipment import Cipher
    from assistant.wire.app import App

_MEGABYTE = 1 << 20
# For one answer of the folder of bases, and as long again for every 10 MB.
_FOLDER_SECONDS = 60.0
_NIGHT = "03:00"


def mark_replicated(settings: Settings) -> None:
    """Record in the data folder whether it is replicated, before its databases are opened. Raises `HomeError`."""
    home = settings.home.path
    try:
        set_replicated(home, replicated=bool(settings.values.replica.url.get_secret_value()))
    except OSError as error:
        raise HomeError(f"The data folder {home} cannot be used: {error.strerror}. Nothing was changed.") from error


def attach_replica(app: App) -> Replicator | None:
    """Make acknowledgements and sends wait for the replica, if one is configured; return it."""
    settings = app.base.settings
    replica = settings.values.replica
    if not replica.url.get_secret_value():
        return None
    from assistant.replica.capture import FileLimits, HomeCapture
    from assistant.replica.options import ReplicaOptions
    from assistant.replica.service import Replicator

    cipher = make_cipher(settings)
    limits = FileLimits(secrets=cipher.encrypt is not None, max_bytes=replica.file_megabytes * _MEGABYTE)
    replicator = Replicator(
        settings.home.path,
        HomeCapture(settings.home.path, limits),
        open_replica(settings),
        open_bases(settings, open_replica(settings)),
        ReplicaOptions(replica.on_failure, replica.timeout_seconds, cipher, platform.node(), is_base_due_by(settings)),
        make_base,
        is_erasing=app.erasure.is_running,
        clock=app.base.clock,
    )
    app.runtime.barrier = app.inbound.barrier = app.toolbox.barrier = replicator.barrier
    app.dispatcher.keep_before_sending(replicator.barrier)
    app.erasure.on_erased.append(replicator.request_base)
    return replicator


async def stop_replica(app: App) -> None:
    """Ship what is left, if there is a replica."""
    if app.replica is not None:
        # Closing the stores would record it after the replica.
        app.stores.record(app.base.clock())
        await app.replica.stop()


def open_replica(settings: Settings) -> ReplicaDatabase:
    """Return the replica's tables; the connection is opened at first use."""
    from assistant.replica.postgres import ReplicaDatabase

    replica = settings.values.replica
    return ReplicaDatabase(replica.url.get_secret_value(), replica.home_name)


def open_bases(settings: Settings, database: ReplicaDatabase) -> BaseStore:
    """Return the bases of a replica; their folder is opened at first use."""
    from assistant.archive.object_store import FolderWords, FsspecFolder, LocalDurability
    from assistant.replica.bases import BaseStore

    words = FolderWords("folder of whole copies", "[replica]", "Nothing was lost", "")
    durability = LocalDurability(make_directory, sync_file)
    return BaseStore(
        database,
        settings.values.replica.bases,
        lambda url: FsspecFolder(url, _FOLDER_SECONDS, durability, words),
    )


def is_base_due_by(settings: Settings) -> Callable[[datetime, datetime], bool]:
    """Return whether a base of one time is to be replaced at another: once a night, before the sleep."""
    schedule = SleepSchedule(settings.values.sleep.at or _NIGHT, settings.zone)
    return lambda base_at, now: schedule.find_due_night(base_at, base_at, now) is not None


def build_replica_reader(settings: Settings, database: ReplicaDatabase) -> ReplicaReader:
    """Raises `SettingsError` if the replica's key is no age identity."""
    from assistant.replica.restore import ReplicaReader
    from assistant.wire.checks import build_restorer

    bases = open_bases(settings, database)
    return ReplicaReader(database, bases, make_cipher(settings), build_restorer(settings))


def make_cipher(settings: Settings) -> Cipher:
    """Raises `SettingsError` if the key is no age identity."""
    from assistant.archive.encryption import IDENTITY_PREFIX, change_with_age
    from assistant.replica.shipment import Cipher

    key = settings.values.replica.key.get_secret_value().strip()
    if not key:
        return Cipher()
    # With a passphrase each shipment would take a second.
    if not key.startswith(IDENTITY_PREFIX):
        raise SettingsError(
            f"replica.key is no age identity, which begins with {IDENTITY_PREFIX}. Nothing was started; `age-keygen` "
            "makes one."
        )
    key_id = hashlib.sha256(key.encode()).hexdigest()[:16]
    return Cipher(key_id, partial(change_with_age, key, encrypts=True), partial(change_with_age, key, encrypts=False))


async def make_base(home: Path, now: datetime) -> Path:
    """Make a backup without the workspace, and return its file. Raises `AssistantError`."""
    folder = home / "run" / "replica-base"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    from assistant.backup.process import make_in_child  # loaded with what packs archives

    result = await make_in_child(BackupFolder(home, str(folder)), False, "manual", now)
    return folder / result.backup.name
