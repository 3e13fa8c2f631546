"""Restores a data folder from the replica, or verifies it.

The target folder is only changed once the base and all later changes were downloaded, assembled, opened as a data
folder and found intact. What was there before is set aside whole: old keys of bridges do not belong to a newer home.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from assistant.backup.restore import BackupRestorer, RestoredHome, VerifiedBackup
from assistant.core.backups import BackupManifest
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, ReplicaUnavailable, UsageError
from assistant.replica.bases import BaseStore
from assistant.replica.capture import CaptureGap
from assistant.replica.holder import Holder, save_holder, save_remembered
from assistant.replica.postgres import ReplicaDatabase, ReplicaState
from assistant.replica.restore_changes import AssembledFolder, describe_assembled, find_changes
from assistant.replica.shipment import ChangeBytes, Cipher, apply_shipment, pack, unpack
from assistant.store.backup.tarball import unpack_backup_file
from assistant.store.files import WriteThrottle

_BYTES_AT_ONCE = 16 << 20


@dataclass(frozen=True, slots=True)
class ReplicaCopy:
    """What was downloaded from a replica."""

    state: ReplicaState
    changes: int
    bytes: int


class ReplicaReader:
    def __init__(self, database: ReplicaDatabase, bases: BaseStore, cipher: Cipher, restorer: BackupRestorer) -> None:
        self._database, self._bases, self._cipher, self._restorer = database, bases, cipher, restorer

    async def find_state(self) -> ReplicaState:
        """Return the state. Raises `UsageError` if the replica has no folder of this name, or no complete base."""
        state = await self._database.read_state()
        if state is None:
            raise UsageError(
                f"The replica has no home {self._database.home!r}. Nothing was changed; see replica.home_name."
            )
        if not state.base:
            raise UsageError(f"The replica has no whole copy of {state.home!r} yet. Nothing was changed.")
        return state

    async def verify(self, folder: Path, now: datetime) -> tuple[ReplicaCopy, VerifiedBackup]:
        """Assemble the data folder in `folder` and open it there. Raises `CorruptStore`, `StoreError`."""
        copy = await self._download_changes(*await self._download_base(folder), folder)
        return copy, await asyncio.to_thread(
            self._restorer.verify_unpacked,
            folder / "home",
            lambda home: _assemble(folder, home, self._cipher.decrypt),
            now,
        )

    async def take_over(
        self, home: Path, folder: Path, machine: str, now: datetime, *, force: bool
    ) -> tuple[ReplicaCopy, RestoredHome]:
        """Become the holder and restore into `home`. Once the base is here and intact, the former holder stores nothing
        more. `folder` is for downloads. Raises `UsageError`, `CorruptStore`, `StoreError`."""
        self._restorer.require_free(home, force=force)
        state, size = await self._download_base(folder)
        holder = Holder()
        epoch = await self._database.claim(holder.name, machine, state.epoch)
        # No changes are added from here on.
        if (fresh := await self.find_state()).base != state.base:
            fresh, size = await self._download_base(folder)
        copy = await self._download_changes(fresh, size, folder)
        assembled = []

        def assemble(target: Path) -> BackupManifest:
            manifest = _assemble(folder, target, self._cipher.decrypt)
            assembled.append(describe_assembled(target))
            return manifest

        restored = await asyncio.to_thread(
            self._restorer.restore_unpacked, assemble, home, now, force=force, whole=True
        )
        save_holder(home, Holder(holder.name, epoch, state.home))
        await self._keep_changes(home, assembled[0], epoch, fresh)
        return copy, restored

    async def _keep_changes(self, home: Path, before: AssembledFolder, epoch: int, state: ReplicaState) -> None:
        """Ship what the restore changed; if that fails, the next start makes a new base."""
        with contextlib.suppress(ReplicaUnavailable, CaptureGap):
            found = await asyncio.to_thread(find_changes, home, before)
            if found is None:
                return
            changes, remembered = found
            sequence = state.sequence
            if not changes.is_empty:
                change = await asyncio.to_thread(pack, changes, self._cipher.encrypt)
                await self._database.ship(epoch, sequence, change)
                sequence += 1
            save_remembered(home, remembered, (sequence, state.base, self._cipher.key_id))

    async def _download_base(self, folder: Path) -> tuple[ReplicaState, int]:
        """Download the base to one file; return the state and the base's size. Raises `CorruptStore`."""
        state = await self.find_state()
        decrypt, size = self._cipher.decrypt, 0
        try:
            with (folder / "base.tar.gz").open("wb") as file:
                async for part in self._bases.read(state.base):
                    file.write(part if decrypt is None else await asyncio.to_thread(decrypt, part))
                    size += len(part)
        except CorruptStore:
            if (await self.find_state()).base == state.base:
                raise
            return await self._download_base(folder)  # a new base replaced it meanwhile
        return state, size

    async def _download_changes(self, state: ReplicaState, size: int, folder: Path) -> ReplicaCopy:
        """Download each change since the base to a file of its own. Raises `CorruptStore`."""
        (folder / "changes").mkdir()
        expected = state.base_after
        while expected < state.sequence:
            changes = await self._database.read_changes(expected, _BYTES_AT_ONCE)
            for sequence, change in changes:
                if sequence != expected + 1:
                    raise CorruptStore(f"The replica lacks change {expected + 1}. Nothing was restored.")
                expected = sequence
                size += len(change)
                (folder / "changes" / f"{sequence:020}").write_bytes(change)
            if not changes:
                raise CorruptStore(f"The replica lacks changes after {expected}. Nothing was restored.")
        return ReplicaCopy(state, expected - state.base_after, size)


def _assemble(folder: Path, home: Path, decrypt: ChangeBytes | None) -> BackupManifest:
    """Assemble the download in a new folder."""
    manifest = unpack_backup_file(folder / "base.tar.gz", home, WriteThrottle(throttled=False))
    # Changes alone do not make a database that the base lacks because it was damaged.
    databases = {entry.path for entry in manifest.files}
    for path in sorted((folder / "changes").iterdir()):
        shipment = unpack(path.read_bytes(), decrypt)
        known = {name: pages for name, pages in shipment.databases.items() if name in databases}
        apply_shipment(replace(shipment, databases=known), home)
    return manifest
