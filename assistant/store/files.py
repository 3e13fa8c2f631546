"""Durable files, throttled large writes, and text files that people may edit.

- When a function here returns, what it wrote survives a power cut.
- Throttled writing (`WriteThrottle`): only a small amount is unsynced at a time, so that no other fsync waits behind
  hundreds of megabytes. After each sync it pauses for as long as the sync took. It checks regularly whether the work is
  still wanted.
- `TextFile`: a file that is not plain UTF-8 of limited size within the data folder is left unchanged and reported in
  one line. A new text is written next to the file (0600, durable) and then replaces it in one step; after a crash in
  between, the new text stays there until the change is completed or removed.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import HomeError, StoreError
from assistant.core.plain_files import FileRefused, open_plain_file, read_plain_text

_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def sync(descriptor: int) -> None:
    """Flush an open file to the medium. On macOS plain fsync only reaches the drive's cache."""
    if _FULL_FSYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FSYNC)
            return
        except OSError:
            # Network file systems and some external volumes only support plain fsync.
            pass
    os.fsync(descriptor)


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file, whatever its name; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def reader_mode(path: Path) -> str:
    """Return the mode in which a database is opened for reading. Beside it SQLite makes files for readers, which a file
    system that can only be read refuses: there it is opened as one that never changes, unless some of it is beside it
    in a log."""
    wal = path.with_name(f"{path.name}-wal")
    try:
        is_read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
        return "ro&immutable=1" if is_read_only and not (wal.exists() and wal.stat().st_size) else "ro"
    except OSError:
        return "ro"


def sync_file(path: Path) -> None:
    """Make the file's content durable; its name needs `sync_directory`. Raises `OSError`."""
    _sync_path(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Make created, renamed or removed names in a directory durable."""
    _sync_path(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync_path(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, or raise `OSError`. After a short write it continues, which shows the cause."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def write_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create or overwrite a file; its content is durable, its name not yet. Raises `OSError`."""
    descriptor = open_plain_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, mode)
        write_all(descriptor, data)
        sync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Create or replace a file in one step, durably: after a crash there is what was there before, or all of this.
    Raises `OSError`."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        write_file(fresh, data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the matches of a pattern under a folder (`*/conversation.jsonl`), sorted; empty if the folder does not
    exist. Raises `StoreError` if a folder cannot be listed, which `Path.glob` may ignore."""
    paths = [folder]
    for part in pattern.split("/"):
        paths = [path / name for path in paths for name in fnmatch.filter(_list_names(path), part)]
    return sorted(paths)


def walk_files(folder: Path) -> list[Path]:
    """Yield all files under a folder, sorted. Raises `StoreError` like `find_files`."""
    try:
        return sorted(Path(at, name) for at, _, names in os.walk(folder, onerror=_refuse) for name in names)
    except OSError as error:
        raise _unlistable(folder, error) from error


def _list_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unlistable(folder, error) from error


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _unlistable(folder: Path, error: OSError) -> StoreError:
    place = error.filename or folder
    return StoreError(f"{place} cannot be listed: {error.strerror}. Nothing was changed; repair it, then try again.")


def make_directory(path: Path, *, home: Path | None = None) -> None:
    """Create a directory (0700) and its missing parents, each entry durable. Never creates `home` itself: if it is
    missing, so is everything in it."""
    if path.is_dir():
        return
    if path == home:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_directory(path.parent, home=home)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_directory(path.parent)


_PUSH_BYTES = 1 << 20
_LONGEST_REST = 0.25
_advise = getattr(os, "posix_fadvise", None)
_ADVICE_DONE = getattr(os, "POSIX_FADV_DONTNEED", 0)
# macOS has no fdatasync; its fsync only reaches the drive's cache, which is enough for throttling.
_push: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def always_wanted() -> bool:
    return True


class WriteThrottle:
    """Throttles all writes of one task. `throttled` False: no pauses, when nothing else writes meanwhile."""

    def __init__(self, is_wanted: Callable[[], bool] = always_wanted, *, throttled: bool = True) -> None:
        self._is_wanted = is_wanted
        self._throttled = throttled
        self._unpushed = 0

    def count_written(self, descriptor: int, count: int) -> None:
        """Record that `count` more bytes were written to an open file. Raises `OSError`, and `StoreError` if the task
        is not wanted any more."""
        self._unpushed += count
        if self._unpushed < _PUSH_BYTES:
            return
        self._unpushed = 0
        self.require_wanted()
        if self._throttled:
            begun = time.monotonic()
            _push(descriptor)
            if _advise is not None:
                _advise(descriptor, 0, 0, _ADVICE_DONE)
            time.sleep(min(_LONGEST_REST, time.monotonic() - begun))

    def require_wanted(self) -> None:
        """Raises `StoreError` if the task is not wanted any more."""
        if not self._is_wanted():
            raise StoreError("The assistant stopped meanwhile, and this work with it. Nothing was changed.")


class ThrottledFile:
    """A new file (0600), written with a throttle. `path` must not exist."""

    def __init__(self, path: Path, throttle: WriteThrottle, mode: int = 0o600) -> None:
        self._pace = throttle
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)

    def write(self, data: bytes) -> int:
        """Write all of it, and pause as the throttle asks for. Raises `OSError`, and `StoreError` if the task is not
        wanted any more."""
        written = 0
        while written < len(data):
            count = os.write(self._file, memoryview(data)[written:])
            written += count
            self._pace.count_written(self._file, count)
        return written

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""

    def fileno(self) -> int:
        return self._file

    def close(self) -> None:
        os.close(self._file)


MAX_TEXT_BYTES = 1 << 20
_PENDING_SUFFIX = ".partial"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file at `name` (relative, with "/") under `home`."""

    home: Path
    name: str

    @property
    def path(self) -> Path:
        return self.home / self.name

    def read(self) -> str:
        """Return the text unchanged; "" if the file does not exist. Raises `StoreError` if it is not text."""
        place = self._place()
        try:
            return read_plain_text(place, MAX_TEXT_BYTES)
        except FileRefused as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return ""
            raise self._refused(str(error)) from error.__cause__

    def changed_at(self) -> datetime | None:
        """Return when it was last written, by the file system's clock; None if it does not exist. Raises
        `StoreError`."""
        try:
            return datetime.fromtimestamp(self._place().stat().st_mtime, UTC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error

    def pending_file(self, mark: str) -> TextFile:
        """Return the file that has a new text before it replaces this one; `mark` names the change."""
        head, _, last = self.name.rpartition("/")
        return TextFile(
            self.home, f"{head}/.{last}.{mark}{_PENDING_SUFFIX}" if head else f".{last}.{mark}{_PENDING_SUFFIX}"
        )

    def pending_marks(self) -> Iterator[str]:
        """Return the marks of all pending texts. Raises `StoreError` like `read`."""
        self._place()
        start = f".{self.path.name}."
        try:
            paths = sorted(self.path.parent.glob(f"{start}*{_PENDING_SUFFIX}"))
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error
        for path in paths:
            yield path.name[len(start) : -len(_PENDING_SUFFIX)]

    def write(self, text: str) -> None:
        """Write a durable file, overwriting any other; only for names this program chose. Raises `StoreError`."""
        with self._explained():
            make_directory(self.path.parent, home=self.home)
            write_file(self.path, text.encode())
            sync_directory(self.path.parent)

    def move_to(self, target: TextFile) -> None:
        """Replace the target, durably. Raises `StoreError`: then both are unchanged, or it was replaced, but may not
        survive a power cut."""
        with target._explained():
            place = target._place()
            self.path.replace(place)
            sync_directory(place.parent)

    def remove(self) -> None:
        """Delete the file, if it exists. Raises `StoreError`. Not durable: after a power cut it may be back."""
        with self._explained():
            self.path.unlink(missing_ok=True)

    # ----------------------------------------------------------------------------------------------------------- within

    def _place(self) -> Path:
        """Return the real location of the file. Raises `StoreError` if a link leads out of the data folder."""
        place = Path(os.path.realpath(self.path))
        if not place.is_relative_to(os.path.realpath(self.home)):
            raise self._refused("is a link to a place outside the data folder")
        return place

    def _refused(self, why: str) -> StoreError:
        return StoreError(f"{self.path} {why}. It was left as it is; put a text file there, or remove it.")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.path} was not written: {error.strerror}. What it said before is kept; make room or make it"
                " writable, then try again."
            ) from error


def prepare_home(home: Path) -> None:
    """Create the data folder, or restrict it to its owner (0700). Raises `HomeError`."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077:
            home.chmod(0o700)
    except OSError as error:
        raise HomeError(f"The data folder {home} cannot be used: {error.strerror}. Nothing was changed.") from error


def require_plain_database(path: Path) -> None:
    """Raises `StoreError` if a pipe, a socket or a device took the place of a database, of its log or its journal:
    SQLite would wait for it forever."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-journal"):
        try:
            kind = path.with_name(name).stat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise StoreError(
                f"{path.with_name(name)} is not a plain file. Nothing was changed; move it away, then run `assistant "
                "verify --repair`."
            )


def create_private_file(path: Path) -> None:
    """Create a private file if it does not exist. An existing one is not opened: closing any descriptor of a file
    releases all locks of the process on it (POSIX), including those of SQLite's open connections. Raises
    `HomeError`."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.is_symlink() and not path.exists():
            raise HomeError(
                f"{path} is a link to {path.readlink()}, which is not there. Nothing was changed; mount or restore it, "
                "or remove the link."
            ) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise HomeError(f"{path} cannot be opened: {os.strerror(errno.EACCES)}. Nothing was changed.") from None
    except OSError as error:
        raise HomeError(f"{path} cannot be opened: {error.strerror}. Nothing was changed.") from error
