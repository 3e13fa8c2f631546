"""The folders whose files the assistant reads: the workspace, and folders of the owner named in the settings
(read-only).

A path always stays within one of them (`core/plain_files`): links are not followed, and ".." is rejected. In the
owner's folders, hidden files, files that look like keys or passwords, and the data folder are never read, listed or
indexed.
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
from assistant.core.plain_files import FileKind, FileRefused, expand_home, open_below, split_path

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
    """A plain file when it was listed."""

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
        """Return a descriptor for reading. Raises `FileRefused`."""
        root, inside = self.locate(path)
        return open_below(root, inside, kind)

    def locate(self, path: str) -> tuple[Path, str]:
        """Return the folder of a path, and the rest of the path. Raises `FileRefused`."""
        parts = split_path(path)
        root = self.watched.get(parts[0].removeprefix(FOLDER_MARK)) if path.startswith(FOLDER_MARK) else None
        if root is None:
            return self.workspace, "/".join(parts)
        if any(map(is_private_name, parts[1:])) or self._is_of_home(root, parts[1:]):
            raise FileRefused(_PRIVATE)
        return root, "/".join(parts[1:])

    def is_shown(self, folder: str, name: str) -> bool:
        """Return whether a file may be read; everything in the workspace may."""
        try:
            root, inside = self.locate(f"{folder}/{name}" if folder else name)
        except FileRefused:
            return False
        return root == self.workspace or bool(inside)

    def roots(self) -> Sequence[str]:
        """Return the roots: the workspace, "", and each of the owner's folders."""
        return ["", *(f"{FOLDER_MARK}{name}" for name in self.watched)]

    def list_files(self, root: str, most: int) -> tuple[list[FoundFile], bool]:
        """Return the plain, visible files of a root, and whether these are all; at most `most` entries are read. Raises
        `FileRefused` if the root cannot be read; unreadable subfolders are skipped. Slow: call it in a worker
        thread."""
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
                except OSError:  # deleted meanwhile
                    continue
        return entries

    def _is_of_home(self, root: Path, parts: Sequence[str]) -> bool:
        """Return whether a path is in the data folder, also on file systems that ignore case."""
        home = _real_parts(self.home)
        return (*_real_parts(root), *(part.casefold() for part in parts))[: len(home)] == home


@lru_cache(maxsize=64)
def _real_parts(path: Path) -> tuple[str, ...]:
    return tuple(part.casefold() for part in Path(os.path.realpath(path)).parts)


def _is_utf8(name: str) -> bool:
    """Return whether a name is valid UTF-8; other names cannot be stored or typed."""
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def is_private_name(name: str) -> bool:
    """Return whether a name is private: hidden, a key, or a password file."""
    low = name.lower()
    is_key = not _PRIVATE_SUFFIXES.isdisjoint(PurePosixPath(low).suffixes)
    return is_key or low.startswith((".", *_PRIVATE_BEGINNINGS)) or low.partition(".")[0] in _PRIVATE_NAMES


def name_folders(paths: Sequence[str]) -> dict[str, Path]:
    """Return folders from the settings by name: the last part of each path."""
    folders = [expand_home(path) for path in paths]
    return {folder.name: folder for folder in folders}
