"""Bases, in parts: rows in PostgreSQL, or files in a folder that fsspec knows.

The last row of a base, always in PostgreSQL, lists its parts and their hash, so that a base that was cut or altered is
refused. Names of files begin with the epoch: a holder that was replaced cannot overwrite or delete a later one's.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from assistant.archive.object_store import FsspecFolder
from assistant.core.dataclass import dataclass
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable, CorruptStore, ReplicaUnavailable
from assistant.replica.postgres import ReplicaDatabase
from assistant.replica.shipment import ChangeBytes

T = TypeVar("T")

_LIST_PART = -1
_EPOCH = re.compile(r"\d{10}-")
_PART_BYTES = 4 << 20
OpenFolder = Callable[[str], FsspecFolder]


@dataclass(frozen=True, slots=True)
class BaseList:
    """The last row of a base."""

    place: str  # address of the folder, without credentials; "" for PostgreSQL
    prefix: str  # of the files there
    parts: int
    bytes: int
    sha256: str  # of all parts

    def name(self, home: str, part: int) -> str:
        return f"{home}/{self.prefix}-{part:06}"


class BaseStore:
    """`place`: the folder's address from the settings, "" for PostgreSQL. Every method raises `ReplicaUnavailable`."""

    def __init__(self, database: ReplicaDatabase, place: str, open_folder: OpenFolder) -> None:
        self._database, self._place, self._open = database, place, open_folder
        self._home = database.home

    async def aclose(self) -> None:
        await self._database.aclose()

    async def store(self, epoch: int, path: Path, encrypt: ChangeBytes | None) -> int:
        """Store a file as a base that is not valid yet; return its number. Raises `ReplicaLost`."""
        base = await self._database.next_base()
        folder = self._open(self._place) if self._place else None
        place = folder.display_url if folder is not None else ""
        listed = BaseList(place, f"{epoch:010}-{secrets.token_hex(4)}", 0, 0, "")
        digest, part, size = hashlib.sha256(), 0, 0
        with path.open("rb") as file:
            while data := await asyncio.to_thread(file.read, _PART_BYTES):
                if encrypt is not None:
                    data = await asyncio.to_thread(encrypt, data)
                if folder is None:
                    await self._database.store_base_part(epoch, base, part, data)
                else:
                    await _call(_write, folder, listed.name(self._home, part), data)
                digest.update(data)
                part, size = part + 1, size + len(data)
        listed = BaseList(place, listed.prefix, part, size, digest.hexdigest())
        await self._database.store_base_part(epoch, base, _LIST_PART, json.dumps(asdict(listed)).encode())
        return base

    async def find_list(self, base: int) -> BaseList:
        """Return the list of a base; one that no parts fit if there is none, or it is damaged."""
        try:
            return BaseList(**json.loads(await self._database.read_base_part(base, _LIST_PART) or b""))
        except (ValueError, TypeError):
            return BaseList("", "", -1, 0, "")

    async def read(self, base: int) -> AsyncIterator[bytes]:
        """Return the parts as they were stored. Raises `CorruptStore`, after the last, if any was changed."""
        listed = await self.find_list(base)
        # The folder may have another address here, or one with credentials.
        folder = self._open(self._place or listed.place) if listed.place else None
        digest, count = hashlib.sha256(), 0
        for part in range(listed.parts):
            if folder is None:
                data = await self._database.read_base_part(base, part)
            else:
                data = await _call(_read, folder, listed.name(self._home, part))
            if data is None:
                break
            digest.update(data)
            count += 1
            yield data
        if (count, digest.hexdigest()) != (listed.parts, listed.sha256):
            where = f"in {listed.place}" if listed.place else "on the server"
            fault = f"cut after {count} of {listed.parts} parts" if count < listed.parts else "altered"
            await self._database.distrust_base(base)
            raise CorruptStore(
                f"The whole copy {where} is {fault}. Nothing was restored or taken over. If the machine that has this "
                "home lives, restart the assistant there: it makes a new copy; otherwise restore a backup."
            )

    async def is_stored(self, base: int) -> bool:
        """Return whether all parts of a base are where it was stored."""
        listed = await self.find_list(base)
        if not listed.place:
            return True  # with the changes
        folder = self._open(self._place or listed.place)
        names = await _call(folder.list_names, self._home)
        return sum(name.startswith(f"{listed.prefix}-") for name in names) == listed.parts

    async def is_current(self, base: int) -> bool:
        """Return whether a base is where the settings say, with all its parts, and nobody found it damaged."""
        state = await self._database.read_state()
        if state is None or state.base_at is None:
            return False
        listed = await self.find_list(base)
        place = self._open(self._place).display_url if self._place else ""
        return listed.place == place and await self.is_stored(base)

    async def remove_others(self, epoch: int, base: int) -> None:
        """Delete files of other bases of this epoch and earlier ones. `base` 0: of all."""
        if not self._place:
            return
        folder, prefix = self._open(self._place), (await self.find_list(base)).prefix
        for name in await _call(folder.list_names, self._home):
            if _EPOCH.match(name) and name[:10] <= f"{epoch:010}" and not (prefix and name.startswith(f"{prefix}-")):
                await _call(folder.remove, f"{self._home}/{name}")


def _write(folder: FsspecFolder, name: str, data: bytes) -> None:
    folder.write(name, data)
    if folder.read(name) != data:
        raise ReplicaUnavailable(f"Other bytes came back from {folder.display_url} than were written.")


def _read(folder: FsspecFolder, name: str) -> bytes | None:
    try:
        return folder.read(name)
    except ArchiveMissing:
        return None


async def _call(act: Callable[..., T], *arguments: object) -> T:
    try:
        return await asyncio.to_thread(act, *arguments)
    except ArchiveUnavailable as error:
        raise ReplicaUnavailable(str(error)) from error
