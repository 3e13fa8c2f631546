"""A new database of a test is a copy of one that this process has created and migrated before.

Migrating six databases takes 40 ms of processor time, and thousands of tests open a new data folder. What is opened is
the same file, byte for byte but for the time of each migration; a database that is there already is opened as ever.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlite_utils import Migrations

from assistant.store.database import Database
from assistant.store.files import create_private_file, prepare_home
from assistant.store.schema import migrations as shipped

_create = Database.open
_SHIPPED = [value for value in vars(shipped).values() if isinstance(value, Migrations)]


@cache
def _created(number: int) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "home" / "new.db"
        _create(path, _SHIPPED[number], datetime.now(UTC)).close()
        return path.read_bytes()


def _open(path: Path, migrations: Migrations, now: datetime, **options: Any) -> Database:
    if migrations in _SHIPPED and not path.exists():
        content = _created(_SHIPPED.index(migrations))
        prepare_home(path.parent)
        create_private_file(path)
        try:
            path.write_bytes(content)
        except OSError:
            with contextlib.suppress(OSError):
                path.write_bytes(b"")
    return _create(path, migrations, now, **options)


def copy_new_databases() -> None:
    setattr(Database, "open", staticmethod(_open))  # noqa: B010 -- a method is not assigned to
