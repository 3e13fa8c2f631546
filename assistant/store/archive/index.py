"""The index of archives in script.db: which generation was archived where.

What always holds: a row is written after its object was verified. The words in a row are erased together with those of
the object: an erasure takes them out of the row and marks it as outdated in the same transaction (see
`assistant.store.erasure.archives`), so the object is rewritten even if its storage cannot be reached for a while.
"""

from __future__ import annotations

from sqlite3 import Row

from assistant.core.archives import ArchiveEntry, StoredObject
from assistant.store.archive.format import ArchiveHeader
from assistant.store.database import Database, column_names
from assistant.store.encoding import parse_time

_COLUMNS = (
    "session",
    "generation",
    "scope",
    "url",
    "records",
    "first_id",
    "last_id",
    "from_seq",
    "to_seq",
    "from_ts",
    "to_ts",
    "bytes",
    "sha256",
    "lines_sha256",
    "encrypted",
    "archived_at",
    "reason",
    "handover",
    "summary",
)


def save_archive_row(db: Database, header: ArchiveHeader, kept: StoredObject) -> None:
    """Inside `write()`; in place of an earlier row of the generation."""
    db.execute(
        f"INSERT OR REPLACE INTO archives ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
        (
            header.session,
            header.generation,
            header.scope,
            kept.url,
            header.records,
            header.first_id,
            header.last_id,
            header.from_seq,
            header.to_seq,
            header.from_ts,
            header.to_ts,
            kept.bytes,
            kept.sha256,
            header.lines_sha256,
            int(kept.encrypted),
            header.archived_at,
            header.reason,
            header.handover,
            header.summary,
        ),
    )


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


def archived_from_row(row: Row) -> ArchiveEntry:
    return ArchiveEntry(
        row["session"],
        row["generation"],
        row["scope"],
        row["url"],
        row["records"],
        row["first_id"],
        row["last_id"],
        row["from_seq"],
        row["to_seq"],
        row["bytes"],
        row["sha256"],
        bool(row["encrypted"]),
        parse_time(row["archived_at"]),
        row["reason"],
        parse_time(row["from_ts"]),
        parse_time(row["to_ts"]),
    )


def archived_from_header(header: ArchiveHeader, kept: StoredObject) -> ArchiveEntry:
    return ArchiveEntry(
        header.session,
        header.generation,
        header.scope,
        kept.url,
        header.records,
        header.first_id,
        header.last_id,
        header.from_seq,
        header.to_seq,
        kept.bytes,
        kept.sha256,
        kept.encrypted,
        parse_time(header.archived_at),
        header.reason,
        parse_time(header.from_ts),
        parse_time(header.to_ts),
    )
