"""The one writer of files that a person configures the home with: config.toml, and any other text of that kind.

What always holds: a new text replaces the old one in one step, durable and closed to others (0600), or the old one
stays. Two processes that change the same file do it one after the other. A file that is a link stays one: the file that
it leads to is replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.settings.home import file_stamp
from assistant.settings.settings import Settings
from assistant.store.files import TextFile, prepare_home, write_all

_MARK = "new"


class ConfigFile:
    """The file at `path`, which may not exist yet; the home is made when something is first written."""

    def __init__(self, path: Path) -> None:
        self._home = path.parent
        place = Path(os.path.realpath(path))
        self._file = TextFile(place.parent, place.name)

    def read(self) -> str:
        """What it says; "" where there is none. Raises `StoreError` for what is no text."""
        return self._file.read()

    def change(self, edit: Callable[[str], str]) -> tuple[str, str]:
        """Replace what it says by what `edit` makes of it, while nobody else can; before and after. What `edit` raises
        leaves the file as it is. Raises `HomeError`, `StoreError`."""
        prepare_home(self._home)
        with _alone(self._home):
            before = self._file.read()
            after = edit(before)
            if after != before:
                self._replace(after)
        return before, after

    def _replace(self, text: str) -> None:
        new = self._file.pending_file(_MARK)
        try:
            new.write(text)
            new.move_to(self._file)
        except StoreError:
            with contextlib.suppress(StoreError):
                new.remove()
            raise


def write_copy(text: str, path: Path) -> None:
    """Have the file at `path` say `text`, whole and closed to others, for as long as this process runs: it is made
    again at each start, so that it need not be durable. Where it cannot be kept, whoever looks for it does without."""
    new = path.with_name(f"{path.name}.{_MARK}")
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, text.encode())
        finally:
            os.close(descriptor)
        new.replace(path)


def keep_valid_config(settings: Settings) -> None:
    """Copy a config.toml that was understood, for commands that run meanwhile (`Home.last_valid_config`). A file that
    changed since it was read is left for the next look."""
    with contextlib.suppress(StoreError):
        text = ConfigFile(settings.home.config).read()
        if file_stamp(settings.home.config) == settings.file_stamps[0]:
            write_copy(text, settings.home.last_valid_config)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One at a time, of all processes; the kernel lets go of it however a process ends."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{directory} cannot be read: {error.strerror}. Nothing was changed.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
