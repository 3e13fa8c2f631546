"""The only access to files named from outside: in a command, by a tool, in the settings, in the data folder.

Invariant: only regular files of bounded size are opened. Pipes, sockets, devices and files of /proc and /sys are
refused without blocking, and checked again once open. Below a folder, each path component is opened relative to its
parent's descriptor without following links, so that neither "..", nor an absolute path, nor a link created between
check and open (TOCTOU) can escape. Reading may be slow: do not call it on the event loop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from assistant.core.errors import UsageError

FileKind = Literal["folder", "plain file"]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_PATH_LENGTH = 1000
# The kernel generates their content on read.
_KERNEL_FOLDERS = ("/proc", "/sys")


class FileRefused(UsageError):
    """The file cannot be read: its text ends a sentence that begins with the name of the file."""


def expand_home(name: str | Path) -> Path:
    """Return a path with a "~" or "~name" at its beginning replaced. Where there is no such person it stays, as in a
    shell, and names a file that does not exist: `Path.expanduser` raises, which nobody who takes a path expects."""
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def open_plain_file(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a file that the program itself keeps, and return its descriptor. What took its place and is no file (a pipe,
    a socket, a device) is refused: opening a pipe would wait forever. Raises `OSError`."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    what = "a directory" if stat.S_ISDIR(kind) else "a pipe, a socket or a device"
    raise OSError(errno.EINVAL, f"It is {what}, not a file; move it away", str(path))


def open_own_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file that the program itself keeps for reading, as `open_plain_file` does. Raises `OSError`."""
    return os.fdopen(open_plain_file(path), "rb", buffering)


def read_own_file(path: Path) -> bytes:
    """Read a file that the program itself keeps. Raises `OSError`."""
    with open_own_file(path) as file:
        return file.read()


def read_plain_file(path: Path, max_bytes: int) -> bytes:
    """Read a regular file. Raises `FileRefused`."""
    with _open_errors(follows_links=True):
        if _is_of_kernel(path):
            raise FileRefused("is not a plain file")
        _require_kind("plain file", path.stat())
        descriptor = os.open(path, _FILE)
        try:
            return _read(descriptor, max_bytes)
        finally:
            os.close(descriptor)


def read_plain_text(path: Path, max_bytes: int) -> str:
    """Read UTF-8 text. Raises `FileRefused`."""
    return decode_text(read_plain_file(path, max_bytes))


def decode_text(data: bytes) -> str:
    """Decode UTF-8. Raises `FileRefused` with the line of the first error."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileRefused(f"is not UTF-8 text (line {line})") from None


def read_file_below(root: Path, path: str, max_bytes: int) -> bytes:
    """Read a regular file below a folder. Raises `FileRefused`."""
    with open_below(root, path, "plain file") as descriptor, _open_errors():
        return _read(descriptor, max_bytes)


@contextlib.contextmanager
def open_below(root: Path, path: str, kind: FileKind) -> Iterator[int]:
    """Open `path` below `root` for reading and yield the descriptor. Raises `FileRefused`."""
    parts = split_path(path)
    if not parts and kind != "folder":
        raise FileRefused("is the folder itself, not a file")
    with contextlib.ExitStack() as stack:
        with _open_errors():
            descriptor = os.open(root, _FOLDER)
            stack.callback(os.close, descriptor)
            for place, part in enumerate(parts, 1):
                part_kind: FileKind = kind if place == len(parts) else "folder"
                _require_kind(part_kind, os.stat(part, dir_fd=descriptor, follow_symlinks=False))
                flags = _FOLDER if part_kind == "folder" else _FILE
                descriptor = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
                stack.callback(os.close, descriptor)
            _require_kind(kind, os.fstat(descriptor))
        yield descriptor


def split_path(path: str) -> list[str]:
    """Split a relative path into its components. Raises `FileRefused` if it would escape."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise FileRefused("leads out of the workspace; paths start inside it, as in notes/plan.md")
    if "\0" in path or len(path) > _MAX_PATH_LENGTH:
        raise FileRefused("is not the name of a file")
    return parts


def _read(descriptor: int, max_bytes: int) -> bytes:
    state = os.fstat(descriptor)
    _require_kind("plain file", state)
    data = b""
    if state.st_size <= max_bytes:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(max_bytes + 1)
    if state.st_size > max_bytes or len(data) > max_bytes:
        raise FileRefused(f"is larger than {_size(max_bytes)}")
    return data


def _size(count: int) -> str:
    return f"{count // 2**20} MB" if count >= 2**20 else f"{count // 1024} KB"


def _require_kind(kind: FileKind, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise FileRefused("goes through a link, and links are not followed here")
    if kind != "folder" and stat.S_ISDIR(status.st_mode):
        raise FileRefused("is a directory")
    if not (stat.S_ISDIR if kind == "folder" else stat.S_ISREG)(status.st_mode):
        raise FileRefused(f"is not a {kind}")


def _is_of_kernel(path: Path) -> bool:
    place = os.path.realpath(path)
    return any(place == folder or place.startswith(f"{folder}/") for folder in _KERNEL_FOLDERS)


@contextlib.contextmanager
def _open_errors(*, follows_links: bool = False) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) and not follows_links:
            raise FileRefused("goes through a link, and links are not followed here") from error
        why = "is not there" if error.errno == errno.ENOENT else f"cannot be read ({error.strerror})"
        raise FileRefused(why) from error
