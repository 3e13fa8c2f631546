"""Puts a new database in place as one whole file: a start waits for the disk twice for each, and not for every step of
making one; a crash leaves nothing of it, or all."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from assistant.core.errors import HomeError
from assistant.store.files import create_private_file, replace_file
from assistant.store.schema.library import Migrations, new_database

# The mark of a new database (`store/home/inventory.py`), which is recorded nowhere yet.
FIRST_MARK = 1
# Of another database that was here SQLite would take what is in its log or journal into the new one.
_PARTS = ("", "-wal", "-journal")


def create_database(path: Path, migrations: Migrations, now: datetime) -> None:
    """Create a database if nothing of one is there, with all migrations applied; else make sure that there is a file of
    which the caller's connection makes one. Raises `HomeError`."""
    if any(os.path.lexists(path.with_name(path.name + part)) for part in _PARTS):
        create_private_file(path)
        return
    try:
        replace_file(path, new_database(migrations, now, FIRST_MARK))
    except OSError as error:
        # It may be in place, where only its name could not be made durable.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        # What a start puts beside it first, where something else has that name.
        in_the_way = f"; move {error.filename} away" if error.filename and os.path.lexists(error.filename) else ""
        raise HomeError(f"{path} cannot be created: {error.strerror}. Nothing was changed{in_the_way}.") from error
