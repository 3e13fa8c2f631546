"""The files of a repair: where it works, where it keeps what was damaged, and databases put in place.

What always holds: what is damaged is linked into a folder of its own before anything takes its place, and nothing ever
removes it from there. A database that was made is whole and on the disk before it is put in place, by a rename; killed
anywhere in between, the next repair or start continues, and does not make it again of less.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.store.files import make_directory, sync_directory, sync_file, write_file
from assistant.store.home.inventory import INVENTORY_FILE

BEFORE_REPAIR_PREFIX = "before-repair-"
_WORK = ".repairing"
_READY = "ready"
_PARTS = ("", "-wal", "-shm")


def work_folder(home: Path) -> Path:
    """Where backups are unpacked and databases are made; nothing else reads it."""
    return home / _WORK


def made_databases(home: Path) -> Path:
    """Where a database is until it is put in place."""
    return home / _WORK / "made"


def kept_folder(home: Path, now: datetime) -> Path:
    """Where a repair keeps the files that were damaged, under their names in the data folder."""
    return home / f"{BEFORE_REPAIR_PREFIX}{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def keep_file(home: Path, path: Path, folder: Path) -> Path:
    """A damaged file has another name as well, durably, which outlives what takes its place. Raises `OSError`."""
    kept = folder / path.relative_to(home)
    make_directory(kept.parent, home=home.parent)
    if not kept.exists():
        os.link(path, kept)
        sync_directory(kept.parent)
    return kept


@contextmanager
def repair_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(
            f"{home} was not repaired: {error.strerror}{where}. What is damaged is kept; make room or repair the disk, "
            "then run `assistant verify --repair` again."
        ) from error


def begin_work(home: Path) -> None:
    """A folder to work in, with what the stores held before the first try. Raises `StoreError`."""
    with repair_errors(home):
        work = work_folder(home)
        work.mkdir(mode=0o700, exist_ok=True)
        for path in work.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        made_databases(home).mkdir(mode=0o700)
        if not (work / INVENTORY_FILE).exists() and (home / INVENTORY_FILE).exists():
            fresh = work / f"{INVENTORY_FILE}.new"
            write_file(fresh, (home / INVENTORY_FILE).read_bytes())
            fresh.replace(work / INVENTORY_FILE)
            sync_directory(work)


def end_work(home: Path) -> None:
    """All is in its place. Raises `StoreError`."""
    with repair_errors(home):
        shutil.rmtree(work_folder(home))


def put_in_place(home: Path, now: datetime) -> None:
    """The databases that were made take the places of the damaged ones. Raises `StoreError`; then it continues with
    `finish_interrupted_repair`."""
    with repair_errors(home):
        made = made_databases(home)
        for path in made.glob("*.db"):
            sync_file(path)
        sync_directory(made)
        ready = made / _READY
        ready.write_text(kept_folder(home, now).name, encoding="utf-8")
        sync_file(ready)
        sync_directory(made)
    finish_interrupted_repair(home)


def finish_interrupted_repair(home: Path) -> bool:
    """Put in place what was ready when a repair was cut off; whether there was something. The caller holds the lock of
    the home. Raises `StoreError`."""
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
            # A log of changes to the damaged one must not be applied to the one that takes its place.
            for file in damaged[1:]:
                file.unlink()
            sync_directory(home)
            path.replace(home / path.name)
            sync_directory(home)
        ready.unlink()
        sync_directory(made)
    return True
