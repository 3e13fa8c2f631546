"""Keeps a process of one home from seeing the folders of the others beside it, on Linux.

The process gets user and mount namespaces of its own (user_namespaces(7), mount_namespaces(7)), which need no rights.
There an empty folder, which cannot be written, is mounted over the one that has all homes, and its own folder in that.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from assistant.core.errors import StoreError

_NEW_MOUNTS, _NEW_USERS = 0x0002_0000, 0x1000_0000  # unshare(2)
# mount(2)
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_EMPTY = _NO_SUID | _NO_DEVICES
_OPTIONS = b"size=64k,mode=0700"


def hide_siblings(folder: Path) -> None:
    """Hide what is beside a folder from this process, which has one thread, and from those that it starts. The folder
    is made if it is missing. Raises `StoreError` if the system does not allow it: the process has to end then."""
    parent = folder.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _unshare()
        own = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            _mount(None, Path("/"), None, _RECURSIVE | _PRIVATE)
            _mount(b"homes", parent, b"tmpfs", _EMPTY, _OPTIONS)
            folder.mkdir(mode=0o700)
            _mount(b"/proc/self/fd/%d" % own, folder, None, _BIND | _RECURSIVE)
            _mount(None, parent, None, _REMOUNT | _READ_ONLY | _EMPTY, _OPTIONS)
        finally:
            os.close(own)
        # Mounts of an outer namespace cannot be taken away in an inner one.
        _unshare()
    except OSError as error:
        raise StoreError(f"The folders beside {folder} could not be hidden: {error.strerror}.") from error


def _unshare() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_MOUNTS | _NEW_USERS)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _mount(source: bytes | None, target: Path, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _call("mount", source, os.fsencode(target), kind, ctypes.c_ulong(flags), options)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises `OSError`."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
