"""The folders whose files the assistant reads: the workspace, and folders of the owner's that the settings name, which
it only reads.

What always holds: a path leads into one of them and nowhere else (`core/plain_files`): no link is followed, no ".."
leads out. Of the owner's folders no hidden file, no file that looks like a key or a password, and nothing of the data
folder is read, listed or indexed, no matter who asks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from assistant.core.dataclass import dataclass
from assistant.core.plain_files import FileKind, FileRefused, open_below, split_path

FOLDER_MARK = "@"
"""A path that begins so begins with the name of one of the owner's folders: "@letters/2026/lease.pdf"."""

_PRIVATE = "is hidden, or a key or a password by its name, and such files are not read"
_PRIVATE_SUFFIXES = frozenset(
    (".pem", ".key", ".p12", ".pfx", ".ppk", ".kdb", ".kdbx", ".keystore", ".jks", ".gpg", ".asc", ".ovpn", ".wallet")
)
_PRIVATE_NAMES = frozenset(("authorized_keys", "credentials", "passwords", "secrets", "wallet"))
_PRIVATE_BEGINNINGS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "client_secret", "service-account")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A plain file as it was when it was looked at."""

    path: str  # as tools and commands name it
    size: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class FileFolders:
    """`watched`: the owner's folders by name. `home`: the data folder."""

    workspace: Path
    home: Path
    watched: Mapping[str, Path] = field(default_factory=dict)

    def open(self, path: str, kind: FileKind) -> AbstractContextManager[int]:
        """A descriptor, open for reading. Raises `FileRefused`."""
        root, inside = self.locate(path)
        return open_below(root, inside, kind)

    def locate(self, path: str) -> tuple[Path, str]:
        """The folder that a path leads into, and the way below it. Raises `FileRefused`."""
        parts = split_path(path)
        root = self.watched.get(parts[0].removeprefix(FOLDER_MARK)) if path.startswith(FOLDER_MARK) else None
        if root is None:
            return self.workspace, "/".join(parts)
        if any(map(is_private_name, parts[1:])) or self._is_of_home(root, parts[1:]):
            raise FileRefused(_PRIVATE)
        return root, "/".join(parts[1:])

    def is_shown(self, folder: str, name: str) -> bool:
        """Whether what lies there is there for the assistant: all of the workspace is."""
        try:
            root, inside = self.locate(f"{folder}/{name}" if folder else name)
        except FileRefused:
            return False
        return root == self.workspace or bool(inside)

    def roots(self) -> Sequence[str]:
        """What a walk begins with: the workspace, "", and each of the owner's folders."""
        return ["", *(f"{FOLDER_MARK}{name}" for name in self.watched)]

    def list_files(self, root: str, most: int) -> tuple[list[FoundFile], bool]:
        """The plain files of a root that are not hidden, and whether these are all: `most` entries are looked at.
        Raises `FileRefused` where the root itself cannot be read; folders below that cannot be are passed over. Slow:
        for a worker thread."""
        waiting, files = [root], []
        while waiting and most > 0:
            folder = waiting.pop()
            try:
                entries = self._entries(folder, most)
            except (FileRefused, OSError) as error:
                if folder == root and (root or self.workspace.exists()):
                    raise FileRefused(str(error)) from error
                continue
            most -= len(entries)
            for name, status in entries:
                path = f"{folder}/{name}" if folder else name
                if name.startswith(".") or not _is_utf8(name) or not self.is_shown(folder, name):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                elif stat.S_ISREG(status.st_mode):
                    files.append(FoundFile(path, status.st_size, status.st_mtime_ns, status.st_ino))
        return files, not waiting and most > 0

    def _entries(self, folder: str, most: int) -> list[tuple[str, os.stat_result]]:
        entries: list[tuple[str, os.stat_result]] = []
        with self.open(folder, "folder") as descriptor, os.scandir(descriptor) as items:
            for item in items:
                if len(entries) == most:
                    break
                try:
                    entries.append((item.name, item.stat(follow_symlinks=False)))
                except OSError:  # it went meanwhile
                    continue
        return entries

    def _is_of_home(self, root: Path, parts: Sequence[str]) -> bool:
        """Also where the file system takes no notice of case."""
        home = _real_parts(self.home)
        return (*_real_parts(root), *(part.casefold() for part in parts))[: len(home)] == home


@lru_cache(maxsize=64)
def _real_parts(path: Path) -> tuple[str, ...]:
    return tuple(part.casefold() for part in Path(os.path.realpath(path)).parts)


def _is_utf8(name: str) -> bool:
    """Other names have no text that could be stored, or typed."""
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def is_private_name(name: str) -> bool:
    """Whether a file or folder of this name is nobody's to read but the owner's: hidden, a key, a password."""
    low = name.lower()
    is_key = not _PRIVATE_SUFFIXES.isdisjoint(PurePosixPath(low).suffixes)
    return is_key or low.startswith((".", *_PRIVATE_BEGINNINGS)) or low.partition(".")[0] in _PRIVATE_NAMES


def name_folders(paths: Sequence[str]) -> dict[str, Path]:
    """Folders of the settings by the names under which they are read: the last part of each path."""
    folders = [Path(path).expanduser() for path in paths]
    return {folder.name: folder for folder in folders}
