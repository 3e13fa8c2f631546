"""The one folder that file tools may touch, and the only way into it.

What always holds: a path is walked part by part from the folder's own descriptor, and no part may be a link, so that
neither "..", nor an absolute path, nor a link that appears between a check and an open leads out. What is opened is a
plain file or a folder; devices, pipes and sockets are refused before they are opened and looked at again after.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from assistant.core.errors import ToolError
from assistant.core.tool_results import quote_text

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_PATH = 1000


def inside(path: str) -> str:
    """`path` in its shortest form; "" for the workspace itself. Raises `ToolError` where it leads out."""
    return "/".join(_parts(path))


@contextlib.contextmanager
def opened_folder(root: Path, path: str) -> Iterator[int]:
    """A descriptor of the folder `path` below `root`. Raises `ToolError`."""
    parts = _parts(path)
    with _explained(path):
        descriptor = os.open(root, _FOLDER)
    try:
        for part in parts:
            with _explained(path):
                _must_be(stat.S_ISDIR, os.stat(part, dir_fd=descriptor, follow_symlinks=False), path, "folder")
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_file(root: Path, path: str) -> Iterator[int]:
    """A descriptor of the plain file `path` below `root`, open for reading. Raises `ToolError`."""
    *folders, name = _parts(path) or [""]
    if not name:
        raise ToolError("path names the workspace itself, not a file. list_files shows what is in it.")
    with opened_folder(root, "/".join(folders)) as folder:
        with _explained(path):
            _must_be(stat.S_ISREG, os.stat(name, dir_fd=folder, follow_symlinks=False), path, "plain file")
            descriptor = os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _must_be(stat.S_ISREG, os.fstat(descriptor), path, "plain file")
            yield descriptor
        finally:
            os.close(descriptor)


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise ToolError(f"{quote_text(path)} leads out of the workspace. Paths start inside it, as in notes/plan.md.")
    if "\0" in path or len(path) > _LONGEST_PATH:
        raise ToolError("that is not the name of a file. list_files shows the names.")
    return parts


def _must_be(is_kind: Callable[[int], bool], found: os.stat_result, path: str, wanted: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise ToolError(f"{quote_text(path)} goes through a link, and links are not followed here. Nothing was read.")
    if not is_kind(found.st_mode):
        raise ToolError(f"{quote_text(path)} is not a {wanted}. list_files shows what is there.")


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise ToolError(f"{quote_text(path)} goes through a link, and links are not followed here.") from None
        reason = "is not there" if error.errno == errno.ENOENT else f"cannot be opened ({error.strerror})"
        raise ToolError(f"{quote_text(path or '.')} {reason}. list_files shows what is in the workspace.") from None
