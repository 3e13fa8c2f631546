"""Replaces a data folder by a backup, so that a crash at any moment leaves the old one or the new one; and finds
messages erased since the backup, which it would bring back.

The new data folder is unpacked and verified in a subfolder that nothing else reads. Then a marker is written durably;
from here on every start, and every restore, continues until the new one is in place. First everything old is moved into
its own folder, then the new one is moved in; each step is a rename and can be repeated. The settings, which are read
before anything is recovered, are always either the old or the new ones. The folder itself stays, with its lock, its
backups, and downloaded files.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import LogByteRange
from assistant.core.plain_files import read_own_file
from assistant.store.database import Database
from assistant.store.files import sync_directory, sync_file
from assistant.store.log.reader import LogFiles
from assistant.store.rows import dump_json, from_json
from assistant.store.script.index import find_spans
from assistant.store.sqlite_errors import is_refused_by_machine

PREVIOUS_HOME_PREFIX = "before-restore-"
_NEW = ".restoring"
_MARKER = ".restoring.json"
_STAYING_ALWAYS = frozenset(("run", "models", "mem0", _NEW, _MARKER, f"{_MARKER}.new"))
_STAYING = _STAYING_ALWAYS | {"backups", "bridges", "secrets.toml"}
_MADE_AGAIN = ("run", "backups")
_SETTINGS = "config.toml"


@dataclass(frozen=True, slots=True)
class _RestoreMarker:
    """The marker of a restore in progress."""

    aside: str  # where the old data folder is moved; "" for nowhere
    staying: tuple[str, ...]  # what does not move
    settings: bool  # whether the new data folder has settings
    out: bool  # whether everything old is moved
    whole: bool = False  # whether backups, keys of bridges and secrets move as well


def staging_folder(home: Path) -> Path:
    """Return where the new data folder is until it is put in place."""
    return home / _NEW


def is_restore_interrupted(home: Path) -> bool:
    """Return whether a restore was begun and has to be finished before the data folder is usable."""
    return (home / _MARKER).exists()


def list_occupants(home: Path, excluded: Collection[str] = (), *, whole: bool = False) -> list[str]:
    """Return the names a restore into this data folder would move aside; sorted."""
    if not home.is_dir():
        return []
    staying = {*excluded, *(_STAYING_ALWAYS if whole else _STAYING)}
    return sorted(
        path.name
        for path in home.iterdir()
        if path.name not in staying and not path.name.startswith(PREVIOUS_HOME_PREFIX)
    )


def finish_interrupted_restore(home: Path) -> str:
    """Continue an interrupted restore, or clean up after one that had changed nothing yet. Returns one line on what was
    done, "" for nothing. The caller holds the lock of the data folder. Raises `StoreError`."""
    if is_restore_interrupted(home):
        aside = _go_on(home)
        previous = f" What was here before is in {home / aside}." if aside else ""
        return f"A restore of {home} that was cut off was finished: the backup is in place.{previous}"
    if staging_folder(home).exists():
        remove_staging(home)
        return f"A restore of {home} that was cut off had changed nothing; what it left was removed."
    return ""


def remove_staging(home: Path) -> None:
    """Delete a new data folder that is not wanted. Raises `StoreError`."""
    with _explained(home):
        if staging_folder(home).exists():
            shutil.rmtree(staging_folder(home))


def require_no_conflict(home: Path, excluded: Collection[str]) -> None:
    """Raises `UsageError` if the new data folder would replace something that has to stay: once begun, the restore
    could not be finished."""
    taken = sorted(
        path.name for path in staging_folder(home).iterdir() if path.name in excluded and path.name not in _MADE_AGAIN
    )
    if taken:
        raise UsageError(
            f"There is a backup in {home / taken[0]}, which the restored folder would replace. Nothing was changed; "
            "move it (and backup.folder) elsewhere, then restore again."
        )


def replace_home(home: Path, now: datetime, excluded: Collection[str] = (), *, whole: bool = False) -> str:
    """Replace the data folder by the new one, which is complete and synced. Returns the folder in which the old one is
    kept ("" if there was none). `whole`: what backups do not have (keys of bridges, secrets) is replaced as well, and
    the old backups are kept with the rest. Raises `StoreError`; the next start or restore then continues."""
    with _explained(home):
        for made_again in _MADE_AGAIN:
            shutil.rmtree(staging_folder(home) / made_again, ignore_errors=True)
        sync_directory(staging_folder(home))
        aside = _free_name(home, now) if list_occupants(home, excluded, whole=whole) else ""
        settings = (staging_folder(home) / _SETTINGS).exists()
        _mark(home, _RestoreMarker(aside, tuple(sorted(excluded)), settings, out=False, whole=whole))
    return _go_on(home)


def _go_on(home: Path) -> str:
    with _explained(home):
        marked = from_json(_RestoreMarker, read_own_file(home / _MARKER))
        if not marked.out:
            _move_out(home, marked)
            _mark(home, replace(marked, out=True))
        if not marked.settings:
            (home / _SETTINGS).unlink(missing_ok=True)
        _move_in(home)
        (home / _MARKER).unlink()
        sync_directory(home)
    return marked.aside


def _move_out(home: Path, marked: _RestoreMarker) -> None:
    if not marked.aside:
        return
    aside = home / marked.aside
    aside.mkdir(mode=0o700, exist_ok=True)
    sync_directory(home)  # a folder without a durable name would take along what is moved into it
    if _SETTINGS in list_occupants(home):
        (aside / _SETTINGS).write_bytes((home / _SETTINGS).read_bytes())
        shutil.copymode(home / _SETTINGS, aside / _SETTINGS)
        sync_file(aside / _SETTINGS)
    for name in list_occupants(home, marked.staying, whole=marked.whole):
        if name != _SETTINGS:
            (home / name).rename(aside / name)
    sync_directory(aside)
    sync_directory(home)


def _move_in(home: Path) -> None:
    new = staging_folder(home)
    if not new.exists():
        return
    for path in sorted(new.iterdir()):
        path.replace(home / path.name)
    sync_directory(home)
    sync_directory(new)
    new.rmdir()


def _mark(home: Path, marked: _RestoreMarker) -> None:
    """Durable on return."""
    fresh = home / f"{_MARKER}.new"
    fresh.write_text(dump_json(marked), encoding="utf-8")
    sync_file(fresh)
    fresh.replace(home / _MARKER)
    sync_directory(home)


def _free_name(home: Path, now: datetime) -> str:
    name = f"{PREVIOUS_HOME_PREFIX}{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in names if not (home / candidate).exists())


@contextmanager
def _explained(home: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        where = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        state = (
            "Both data folders are kept; repeat the restore, or start the assistant, to finish it"
            if is_restore_interrupted(home)
            else "Nothing was changed"
        )
        raise StoreError(f"{home} was not restored: {what}{where}. {state}.") from error


def require_disk_space(home: Path, needed: int) -> None:
    """Raises `StoreError` if a data folder of so many bytes does not fit on the disk."""
    free = shutil.disk_usage(_existing(home)).free
    if free < needed:
        raise StoreError(
            f"The restored data folder needs {-(-needed // 10**6)} MB at {home}, where {free // 10**6} MB are free. "
            "Nothing was changed; make room, then try again."
        )


def _existing(path: Path) -> Path:
    return path if path.exists() or path == path.parent else _existing(path.parent)


def find_unredacted_messages(old: Path, new: Path) -> list[int]:
    """Return messages that were erased in the old data folder and have their text in the new one; none if the old one
    cannot be read. Raises `StoreError` if the machine refuses to open it now."""
    try:
        with closing(Database.open_reader(old / "script.db")) as db, closing(LogFiles(old)) as log:
            rows = db.rows("SELECT session, byte_start, byte_end FROM messages WHERE kind = 'redaction'")
            spans = [(row["session"], LogByteRange(row["byte_start"], row["byte_end"])) for row in rows]
            redacted = sorted({message_id for session, span in spans for message_id in log.read(session, span).refs})
        with closing(Database.open_reader(new / "script.db")) as db, closing(LogFiles(new)) as log:
            places = find_spans(db, redacted)
            return sorted(message_id for message_id, place in places.items() if not log.is_blank(*place))
    except StoreError as error:
        if (old / "script.db").is_file() and is_refused_by_machine(error):
            raise
        return []
