"""The index of archives in script.db: which generation was archived where.

What always holds: a row is written after its object was verified. The words in a row are erased together with those of
the object: an erasure takes them out of the row and marks it as outdated in the same transaction (see
`assistant.store.erasure.archives`), so the object is rewritten even if its storage cannot be reached for a while.
"""

from __future__ import annotations

from dataclasses import asdict
from sqlite3 import Row

from assistant.core.archives import ArchiveEntry, StoredObject
from assistant.store.archive.format import ArchiveHeader
from assistant.store.database import Database, column_names
from assistant.store.rows import class_row, from_values, to_row


def save_archive_row(db: Database, header: ArchiveHeader, stored: StoredObject) -> None:
    """Inside `write()`; in place of an earlier row of the generation."""
    names = column_names(db, "archives")
    columns = {name: value for name, value in (to_row(header) | to_row(stored)).items() if name in names}
    db.upsert_row("archives", ("session", "generation"), **columns, outdated=0)


def find_archive_row(db: Database, session: str, generation: int) -> Row | None:
    if not column_names(db, "archives"):
        return None
    return db.row("SELECT * FROM archives WHERE session = ? AND generation = ?", (session, generation))


def list_archive_rows(db: Database, scope: str | None = None) -> list[Row]:
    """By session, oldest generation first; a home of an older version has none."""
    if not column_names(db, "archives"):
        return []
    return db.rows("SELECT * FROM archives WHERE scope = ? OR ? IS NULL ORDER BY session, generation", (scope, scope))


def mark_rewritten(db: Database, session: str, generation: int) -> None:
    """Inside `write()`: the object has none of the words any more."""
    db.execute("UPDATE archives SET outdated = 0 WHERE session = ? AND generation = ?", (session, generation))


def delete_archive_row(db: Database, session: str, generation: int) -> None:
    """Inside `write()`."""
    db.execute("DELETE FROM archives WHERE session = ? AND generation = ?", (session, generation))


archived_from_row = class_row(ArchiveEntry)


def archived_from_header(header: ArchiveHeader, stored: StoredObject) -> ArchiveEntry:
    return from_values(ArchiveEntry, {**asdict(header), **asdict(stored)})
