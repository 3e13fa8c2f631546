"""The shelf of archives over fsspec: implements `archive_ports.Shelf`.

What always holds: an object stands at its name only after it was read back at another one and proved, and is read
back there once more. What is being written stands in `.part/` below the same root, under a name that the next attempt
takes again. The home's own folder is never encrypted, since the log stands beside it as it is; any other is where
there is a key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from assistant.archive.place import Disk, Place, told
from assistant.archive.sealing import SUFFIX, Sealing
from assistant.core.archives import FetchedObject, StoredObject
from assistant.core.errors import ArchiveUnavailable

FOLDER = "archive"
_PARTS = ".part"
_LOCAL = ("/", "file://", "local://")


class FsspecShelf:
    """`url` "" keeps objects in `archive/` of the home."""

    def __init__(self, home: Path, url: str, sealing: Sealing, timeout_seconds: float, disk: Disk) -> None:
        self._sealing = sealing
        self._seals = bool(url) and sealing.has_key
        self._disk = disk
        self._timeout = timeout_seconds
        self._own = self._place(str(home / FOLDER))
        self._chosen = self._place(url) if url else self._own
        self._root = told(url) if url else FOLDER

    def url_of(self, name: str) -> str:
        return f"{self._root}/{name}{SUFFIX if self._seals else ''}"

    def put(self, name: str, data: bytes, prove: Callable[[bytes], None]) -> StoredObject:
        """See `Shelf.put`."""
        object_name = f"{name}{SUFFIX}" if self._seals else name
        whole = self._sealing.sealed(data) if self._seals else data
        kept = StoredObject(self.url_of(name), len(whole), hashlib.sha256(whole).hexdigest(), self._seals)
        part = f"{_PARTS}/{object_name.replace('/', '.')}"
        self._chosen.write(part, whole)
        back = self._read_back(self._chosen, part, kept)
        prove(self._sealing.opened(back, kept.url) if self._seals else back)
        self._chosen.move(part, object_name)
        self._read_back(self._chosen, object_name, kept)
        return kept

    def get(self, url: str) -> FetchedObject:
        place, name = self._at(url)
        whole = place.read(name)
        data = self._sealing.opened(whole, url) if url.endswith(SUFFIX) else whole
        return FetchedObject(data, len(whole), hashlib.sha256(whole).hexdigest())

    def has(self, url: str) -> bool:
        place, name = self._at(url)
        return place.has(name)

    def is_local(self, url: str) -> bool:
        return url.startswith((f"{FOLDER}/", *_LOCAL))

    def remove(self, url: str) -> None:
        place, name = self._at(url)
        place.remove(name)

    def tidy(self) -> None:
        for name in self._chosen.names(_PARTS):
            self._chosen.remove(f"{_PARTS}/{name}")

    def _at(self, url: str) -> tuple[Place, str]:
        """An object that was put where archives do not go any more is found there all the same."""
        if url.startswith(f"{self._root}/"):
            return self._chosen, url[len(self._root) + 1 :]
        if url.startswith(f"{FOLDER}/"):
            return self._own, url[len(FOLDER) + 1 :]
        root, _, name = url.rpartition("/")
        return self._place(root), name

    def _place(self, root: str) -> Place:
        return Place(root, self._disk, self._timeout)

    @staticmethod
    def _read_back(place: Place, name: str, kept: StoredObject) -> bytes:
        back = place.read(name)
        if len(back) != kept.bytes or hashlib.sha256(back).hexdigest() != kept.sha256:
            raise ArchiveUnavailable(
                f"{kept.url} was written, but other bytes came back ({len(back)} of {kept.bytes}). Nothing was "
                "cleared; check the archive's store. It is tried again later."
            )
        return back
