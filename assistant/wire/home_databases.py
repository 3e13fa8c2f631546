"""Opens script.db and character.db of a data folder, after checking that no data is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.logger import get_logger
from assistant.store.database import Database
from assistant.store.derived import set_aside
from assistant.store.home.inventory import (
    CHARACTER_DB,
    SCRIPT_DB,
    StoreCheck,
    check_stores,
    discard_fingerprints,
    require_stores,
)
from assistant.store.home.repair_files import finish_interrupted_repair
from assistant.store.schema.migrations import character_migrations, script_migrations

log = get_logger()


@contextmanager
def inventory_errors_logged() -> Iterator[None]:
    """Log errors of writing the inventory: the earlier one stays valid, so work continues."""
    try:
        yield
    except StoreError as error:
        log.warning("it was not written down what the stores hold", error=str(error))


def check_home(home: Path, *, reading: bool) -> StoreCheck:
    """Check that the stores are complete. Raises `StoreLost`."""
    if reading:
        require_stores(home)
        return StoreCheck(None)
    if finish_interrupted_repair(home):
        log.warning("a repair was cut off; its databases were put in place")
    found = check_stores(home)
    for remark in found.remarks:
        log.warning("a file of the data folder is not as it was left", what=remark)
    for name in found.derived_changed:
        log.warning("a database is not as it was left, and is made again", name=name)
        set_aside(home / name)
    # From here on the files change: an interrupted start would find them changed with the same marks.
    discard_fingerprints(home)
    return found


def open_databases(home: Path, stack: ExitStack, now: datetime, *, reading: bool) -> tuple[Database, Database]:
    """Open script.db and character.db; they are closed with the stack."""
    paths = home / SCRIPT_DB, home / CHARACTER_DB
    if reading:
        script, character = map(Database.open_reader, paths)
    else:
        script = Database.open(paths[0], script_migrations, now)
        character = Database.open(paths[1], character_migrations, now)
    stack.callback(character.close)
    stack.callback(script.close)
    if reading:
        script.require_schema(script_migrations)
        character.require_schema(character_migrations)
    return script, character
