"""Files of a repair: its work folder, the folder for damaged originals, and putting rebuilt databases in place.

A damaged file is linked into a folder of its own before it is replaced, and is never deleted from there. A rebuilt
database is complete and synced before it is renamed into place; after a crash, the next repair or start continues, and
does not rebuild it from less.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.plain_files import read_own_file
from assistant.store.files import make_directory, sync_directory, sync_file, write_file
from assistant.store.home.inventory import INVENTORY_FILE

BEFORE_REPAIR_PREFIX = "before-repair-"
_WORK = ".repairing"
_READY = "ready"
_PARTS = ("", "-wal", "-shm")


def work_folder(home: Path) -> Path:
    """Return the folder where backups are unpacked and databases rebuilt; nothing else reads it."""
    return home / _WORK


def made_databases(home: Path) -> Path:
    """Return where rebuilt databases are until they are put in place."""
    return home / _WORK / "made"


def kept_folder(home: Path, now: datetime) -> Path:
    """Return where a repair keeps damaged files, under their paths in the data folder."""
    return home / f"{BEFORE_REPAIR_PREFIX}{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def keep_file(home: Path, path: Path, folder: Path) -> Path:
    """Link a damaged file to a second name, durably; it survives the replacement. Raises `OSError`."""
    kept = folder / path.relative_to(home)
    make_directory(kept.parent, home=home.parent)
    if not kept.exists():
        os.link(path, kept)
        sync_directory(kept.parent)
    return kept


@contextmanager
def repair_errors(home: Path) -> Iterator[None]:
    """A context that raises `OSError` as `StoreError`, with what to do."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(
            f"{home} was not repaired: {error.strerror}{where}. What is damaged is kept; make room or repair the disk, "
            "then run `assistant verify --repair` again."
        ) from error


def begin_work(home: Path) -> None:
    """Return a folder to work in, with a record of what the stores held before the first attempt. Raises
    `StoreError`."""
    with repair_errors(home):
        work = work_folder(home)
        work.mkdir(mode=0o700, exist_ok=True)
        for path in work.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        made_databases(home).mkdir(mode=0o700)
        if not (work / INVENTORY_FILE).exists() and (home / INVENTORY_FILE).exists():
            fresh = work / f"{INVENTORY_FILE}.new"
            write_file(fresh, read_own_file(home / INVENTORY_FILE))
            fresh.replace(work / INVENTORY_FILE)
            sync_directory(work)


def end_work(home: Path) -> None:
    """Remove the work folder when everything is in place. Raises `StoreError`."""
    with repair_errors(home):
        shutil.rmtree(work_folder(home))


def put_in_place(home: Path, now: datetime) -> None:
    """Replace the damaged databases by the rebuilt ones. Raises `StoreError`; `finish_interrupted_repair` then
    continues."""
    with repair_errors(home):
        made = made_databases(home)
        for path in made.glob("*.db"):
            sync_file(path)
        sync_directory(made)
        # By its name it is whole: an empty one would name the data folder itself, and the damaged files were not kept.
        fresh = made / f"{_READY}.new"
        write_file(fresh, kept_folder(home, now).name.encode())
        fresh.replace(made / _READY)
        sync_directory(made)
    finish_interrupted_repair(home)


def finish_interrupted_repair(home: Path) -> bool:
    """Put in place what an interrupted repair had ready; return whether there was something. The caller holds the lock
    of the data folder. Raises `StoreError`."""
    made = made_databases(home)
    ready = made / _READY
    if not ready.exists():
        return False
    with repair_errors(home):
        folder = home / ready.read_text(encoding="utf-8")
        for path in sorted(made.glob("*.db")):
            damaged = [home / f"{path.name}{part}" for part in _PARTS if (home / f"{path.name}{part}").exists()]
            for file in damaged:
                keep_file(home, file, folder)
            # The write-ahead log of the damaged database, which may be missing, must not be applied to the new one.
            for file in damaged:
                if file.name != path.name:
                    file.unlink()
            sync_directory(home)
            path.replace(home / path.name)
            sync_directory(home)
        ready.unlink()
        sync_directory(made)
    return True
