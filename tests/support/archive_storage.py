"""A home with an archive, and places for archives that fail in the ways in which places fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem
from pyrage import x25519

from assistant.archive.encryption import AgeEncryption
from assistant.archive.object_store import FsspecObjectStore, LocalDurability
from assistant.store.archive.archive import StoredArchive
from assistant.store.files import make_directory, sync_file
from tests.support.store_home import StoreHome

FAULTY_URL = "faulty://shelf"
IDENTITY = x25519.Identity.generate()
IDENTITY_KEY, OTHER_IDENTITY_KEY = str(IDENTITY), str(x25519.Identity.generate())
"""Identities: making a key of a passphrase takes seconds."""


class FaultyFileSystem(MemoryFileSystem):
    """In memory, and wrong where `faults` says so: a fault takes the path and what would be given, and gives or raises
    something else. Steps: write, read, move, list, remove."""

    protocol = "faulty"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    faults: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    calls: ClassVar[list[tuple[str, str]]] = []

    @classmethod
    def reset(cls) -> None:
        for kept in (cls.store, cls.faults, cls.calls):
            kept.clear()
        cls.pseudo_dirs[:] = [""]

    def _fault(self, step: str, path: str, given: Any = None) -> Any:
        self.calls.append((step, path))
        return self.faults[step](path, given) if step in self.faults else given

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        super().pipe_file(path, self._fault("write", path, value), mode, **kwargs)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        given: bytes = self._fault("read", path, super().cat_file(path, start, end, **kwargs))
        return given

    def mv(self, path1: str, path2: str, *args: Any, **kwargs: Any) -> None:
        self._fault("move", path1)
        super().mv(path1, path2, *args, **kwargs)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        return self._fault("list", path, super().ls(path, detail, **kwargs))

    def rm_file(self, path: str) -> None:
        self._fault("remove", path)
        super().rm_file(path)


register_implementation("faulty", FaultyFileSystem, clobber=True)


def permission_denied(path: str, given: Any) -> Any:
    raise PermissionError(13, "Permission denied")


def truncated(path: str, given: bytes) -> bytes:
    return given[: len(given) // 2]


def bit_flipped(path: str, given: bytes) -> bytes:
    """One bit of it is another."""
    return given[:-1] + bytes([given[-1] ^ 1])


@contextmanager
def hanging_step() -> Iterator[Callable[[str, Any], Any]]:
    """A step that does not end before the test does."""
    over = threading.Event()

    def wait(path: str, given: Any) -> Any:
        over.wait(60)
        return given

    try:
        yield wait
    finally:
        over.set()


def make_object_store(home: Path, url: str = "", key: str = "", timeout_seconds: float = 30.0) -> FsspecObjectStore:
    return FsspecObjectStore(home, url, AgeEncryption(key), timeout_seconds, LocalDurability(make_directory, sync_file))


def open_archive(home: StoreHome, url: str = "", key: str = "") -> StoredArchive:
    return StoredArchive(home.path, partial(make_object_store, home.path, url, key))
