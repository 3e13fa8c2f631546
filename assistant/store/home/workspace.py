"""Writes files received from and sent to networks, and texts, into the workspace.

A file gets its name only when it is complete and synced, so a crash leaves no partial file under it. An existing file
is never overwritten by a received one, and a text that is replaced is first copied to `earlier/`. Links are not
followed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mimetypes
import os
import stat
import threading
import unicodedata
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

from assistant.core.errors import StoreError
from assistant.core.messages import Media
from assistant.core.plain_files import FileRefused, decode_text, read_file_below, split_path
from assistant.store.files import make_directory, sync, write_all

SENT_FOLDER = "sent"
ADDED_FOLDER = "files"
EARLIER_FOLDER = "earlier"
# Received and sent files, kept as they were.
_KEPT_AS_THEY_ARE = frozenset((SENT_FOLDER, "received", EARLIER_FOLDER))
_LONGEST_PART = 200
PAGES_FOLDER = "web"
MAX_SENT_BYTES = 10 * 1024 * 1024
_MAX_NAME_BYTES = 100
_MAX_SUFFIX = 16
_MOST_LIKE_IT = 1000
_LONGEST_PAGE_NAME = 60
_PARTIAL = ".partial-"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceFiles:
    """Writes files of the workspace, durably. May be called from any thread."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._saving = threading.Lock()

    def remove_partial(self) -> None:
        """At start-up, delete partial files of an interrupted run, as far as possible."""
        with contextlib.suppress(OSError):
            for path in (*self._workspace.glob(f"{_PARTIAL}*"), *self._workspace.glob(f"*/{_PARTIAL}*")):
                with contextlib.suppress(OSError):
                    path.unlink()

    def save(self, folder: str, candidate_names: tuple[str, ...], data: bytes) -> str:
        """Write a file unless one of the candidate names has the same data; return its path in the workspace. A first
        name that is taken gets a number. Raises `StoreError`."""
        try:
            with self._saving:
                make_directory(self._workspace / folder)
                where = os.open(self._workspace / folder, _FOLDER)
                try:
                    existing = next((name for name in candidate_names if _holds(where, name, data)), None)
                    return f"{folder}/{existing or self._put(where, candidate_names[0], data)}"
                finally:
                    os.close(where)
        except OSError as error:
            raise StoreError(
                f"A file was not written to {self._workspace / folder}: {error.strerror}. Nothing was accepted or sent "
                "with it; make room or repair the disk, then try again."
            ) from error

    def find_text(self, path: str) -> bytes | None:
        """Return the content of the file to be written; None if it does not exist. Raises `FileRefused`."""
        _require_writable(path)
        try:
            return read_file_below(self._workspace, path, MAX_SENT_BYTES)
        except FileRefused as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def write_text(self, path: str, data: bytes, now: datetime) -> str:
        """Write a file completely or not at all; return where its old content is kept, "" if there was none or it is
        the same. Raises `FileRefused`, `StoreError`."""
        former = self.find_text(path)
        if former == data:
            return ""
        parts = split_path(path)
        kept = ""
        if former is not None:
            stem, dot, ending = parts[-1].rpartition(".")
            stamp = f"{now:%Y-%m-%dT%H%M%S}"
            name = f"{stem}-{stamp}{dot}{ending}" if stem else f"{parts[-1]}-{stamp}"
            kept = self.save("/".join([EARLIER_FOLDER, *parts[:-1]]), (name,), former)
        try:
            with self._saving, contextlib.ExitStack() as stack:
                make_directory(self._workspace)
                where = os.open(self._workspace, _FOLDER)
                stack.callback(os.close, where)
                for part in parts[:-1]:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=where)
                        sync(where)
                    where = os.open(part, _FOLDER, dir_fd=where)
                    stack.callback(os.close, where)
                partial = f"{_PARTIAL}{hashlib.sha256(data).hexdigest()[:32]}"
                _write(where, partial, data)
                os.rename(partial, parts[-1], src_dir_fd=where, dst_dir_fd=where)
                sync(where)
        except OSError as error:
            raise StoreError(f"{path} in the workspace was not written: {error.strerror}.") from error
        return kept

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return a file. Raises `StoreError`, also if it is larger than `max_bytes`."""
        try:
            return read_file_below(self._workspace, path, max_bytes)
        except FileRefused as error:
            raise StoreError(f"{path} in the workspace {error}. It was not sent.") from error.__cause__

    def read_text(self, path: str, max_bytes: int) -> str:
        """Return a text file named by a person, relative to the workspace or absolute. Raises `FileRefused`."""
        inside = path.removeprefix(f"{self._workspace}/")
        return decode_text(read_file_below(self._workspace, inside, max_bytes))

    @staticmethod
    def _put(where: int, name: str, data: bytes) -> str:
        """Write a temporary file, then rename it to the first name like `name` that is free or already has this
        content."""
        partial = f"{_PARTIAL}{hashlib.sha256(data).hexdigest()[:32]}"
        try:
            _write(where, partial, data)
            final_name = _named(where, partial, name, data)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=where)
        sync(where)
        return final_name


def _require_writable(path: str) -> None:
    """Raises `FileRefused` for files that must not be written: hidden ones, and received or sent ones."""
    parts = split_path(path)
    if not parts:
        raise FileRefused("is the folder itself, not a file")
    if parts[0] in _KEPT_AS_THEY_ARE:
        raise FileRefused("is among the files that are kept as they were; choose another folder")
    if any(part.startswith((".", "@")) or not part.isprintable() for part in parts):
        raise FileRefused("is not a name for a file here: it begins with a dot or an @, or has invisible characters")
    if any(len(part.encode()) > _LONGEST_PART for part in parts):
        raise FileRefused("has too long a name")


def _write(where: int, name: str, data: bytes) -> None:
    descriptor = os.open(
        name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=where
    )
    try:
        write_all(descriptor, data)
        sync(descriptor)
    finally:
        os.close(descriptor)


def _named(where: int, partial: str, name: str, data: bytes) -> str:
    stem, dot, ending = name.rpartition(".")
    for number in range(1, _MOST_LIKE_IT):
        like_it = name if number == 1 else f"{stem}-{number}{dot}{ending}" if dot else f"{name}-{number}"
        if _holds(where, like_it, data):
            return like_it
        if not _is_taken(where, like_it):
            os.rename(partial, like_it, src_dir_fd=where, dst_dir_fd=where)
            return like_it
    raise FileExistsError(errno.EEXIST, "too many files have that name")


def _is_taken(where: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=where, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _holds(where: int, name: str, data: bytes) -> bool:
    """Return whether the file exists with these bytes."""
    try:
        descriptor = os.open(name, _READ, dir_fd=where)
    except OSError:
        return False
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size != len(data):
            return False
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read() == data
    finally:
        os.close(descriptor)


def safe_file_name(medium: Media) -> str:
    """Return a safe file name: no path, no characters that hide or reverse text, with its suffix."""
    file_name = unicodedata.normalize("NFC", medium.name).replace("\\", "/").rsplit("/", 1)[-1]
    safe = "".join(letter if letter.isprintable() and letter not in '<>:"|?*' else "_" for letter in file_name)
    stem, dot, ending = safe.strip(" .").rpartition(".")
    if not dot or len(ending) > _MAX_SUFFIX:
        stem, dot, ending = safe.strip(" ."), "", ""
    full_name = f"{_truncate_bytes(stem.strip(), _MAX_NAME_BYTES)}{dot}{ending}"
    return full_name if stem.strip() else f"{medium.kind}{dot}{ending}" if dot else _default_name(medium)


def page_file_name(address: str, suffix: str, day: date) -> str:
    """Return a file name for a web page: the day, the host and the end of the path, as in
    `2026-03-01-example.org-tickets.txt`."""
    parts = urlsplit(address)
    words = "-".join(filter(None, [parts.hostname, *parts.path.split("/")[-2:]])).removesuffix(suffix)
    name = "".join(letter if letter.isalnum() or letter in ".-_" else "-" for letter in words)[:_LONGEST_PAGE_NAME]
    return safe_file_name(Media("file", "", f"{day.isoformat()}-{name.strip('-.')}{suffix}", 0))


def _default_name(medium: Media) -> str:
    return f"{medium.kind}{mimetypes.guess_extension(medium.mime) or ''}"


def _truncate_bytes(text: str, max_bytes: int) -> str:
    """Truncate a text to at most so many bytes of UTF-8."""
    return text.encode()[:max_bytes].decode("utf-8", "ignore") if text.isprintable() else ""
