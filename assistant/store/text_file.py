"""A text file of the home that a person may edit at any time: read with care, replaced as a whole.

What always holds: what is not a plain file of UTF-8 text within the home, of a bounded size, is left alone and told of
in one line. A new text is written beside the file under a name of ours (0600, durable) and then takes its place in one
step; until then, and after a crash in between, the new text lies there for whoever settles it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.store.files import make_directory, sync, sync_directory, write_all

MOST_BYTES = 1 << 20
_WAITING = ".partial"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file at `name` (relative, with "/") under `home`."""

    home: Path
    name: str

    @property
    def path(self) -> Path:
        return self.home / self.name

    def read(self) -> str:
        """The text, byte for byte; "" where there is no file. Raises `StoreError` for what is none."""
        place = self._place()
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error
        try:
            return self._text_of(descriptor)
        finally:
            os.close(descriptor)

    def changed_at(self) -> datetime | None:
        """When it was last written, by the file system's clock; None where there is no file. Raises `StoreError`."""
        try:
            return datetime.fromtimestamp(self._place().stat().st_mtime, UTC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error

    def waiting(self, mark: str) -> TextFile:
        """Where a new text lies before it takes its place; `mark` names the change."""
        head, _, last = self.name.rpartition("/")
        return TextFile(self.home, f"{head}/.{last}.{mark}{_WAITING}" if head else f".{last}.{mark}{_WAITING}")

    def marks(self) -> Iterator[str]:
        """The marks of all texts that wait. Raises `StoreError` as `read` does."""
        self._place()
        start = f".{self.path.name}."
        try:
            found = sorted(self.path.parent.glob(f"{start}*{_WAITING}"))
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error
        for one in found:
            yield one.name[len(start) : -len(_WAITING)]

    def write(self, text: str) -> None:
        """The text durable under this name, whatever stood there; only for a name of ours. Raises `StoreError`."""
        with self._explained():
            make_directory(self.path.parent, home=self.home)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.fchmod(descriptor, 0o600)
                write_all(descriptor, text.encode())
                sync(descriptor)
            finally:
                os.close(descriptor)
            sync_directory(self.path.parent)

    def move_to(self, target: TextFile) -> None:
        """Take the target's place, durably. Raises `StoreError`; then both are as they were, or it is there and nobody
        knows whether a power cut would leave it there."""
        with target._explained():
            place = target._place()
            self.path.replace(place)
            sync_directory(place.parent)

    def remove(self) -> None:
        with self._explained():
            self.path.unlink(missing_ok=True)

    # ----------------------------------------------------------------------------------------------------------- within

    def _place(self) -> Path:
        """Where the file really lies. Raises `StoreError` where a link leads out of the home."""
        place = Path(os.path.realpath(self.path))
        if not place.is_relative_to(os.path.realpath(self.home)):
            raise self._refused("is a link to a place outside the home")
        return place

    def _text_of(self, descriptor: int) -> str:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise self._refused("is a directory" if stat.S_ISDIR(state.st_mode) else "is not a plain file")
        try:
            data = b""
            while len(data) <= MOST_BYTES and (piece := os.read(descriptor, MOST_BYTES + 1 - len(data))):
                data += piece
        except OSError as error:
            raise self._refused(f"cannot be read ({error.strerror})") from error
        if len(data) > MOST_BYTES:
            raise self._refused(f"is larger than {MOST_BYTES // 1024} KB")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._refused("is not UTF-8 text") from error

    def _refused(self, why: str) -> StoreError:
        return StoreError(f"{self.path} {why}. It was left as it is; put a text file there, or take it away.")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.path} was not written: {error.strerror}. What it said before is kept; make room or make it"
                " writable, then try again."
            ) from error
