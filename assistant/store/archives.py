"""The index of archives: which generation was archived where.

What always holds: a row is written after its object was proved, and the words in it go with those of the object: a
forgetting takes them out here and marks the row in the same transaction, so that the object is rewritten even if that
takes until its place can be reached again.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Row

from assistant.core.archives import ArchiveEntry, StoredObject
from assistant.store.archive_form import Header
from assistant.store.cells import columns_of
from assistant.store.database import Database
from assistant.store.encoding import parse_time
from assistant.store.marked import Marked

_COLUMNS = (
    "session", "generation", "scope", "url", "records", "first_id", "last_id", "from_seq", "to_seq", "from_ts",
    "to_ts", "bytes", "sha256", "lines_sha256", "encrypted", "archived_at", "reason", "handover", "summary",
)  # fmt: skip


def put(db: Database, header: Header, kept: StoredObject) -> None:
    """Inside `write()`; in place of an earlier row of the generation."""
    db.execute(
        f"INSERT OR REPLACE INTO archives ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
        (
            header.session, header.generation, header.scope, kept.url, header.records, header.first_id,
            header.last_id, header.from_seq, header.to_seq, header.from_ts, header.to_ts, kept.bytes, kept.sha256,
            header.lines_sha256, int(kept.encrypted), header.archived_at, header.reason, header.handover,
            header.summary,
        ),
    )  # fmt: skip


def find(db: Database, session: str, generation: int) -> Row | None:
    if not columns_of(db, "archives"):
        return None
    return db.row("SELECT * FROM archives WHERE session = ? AND generation = ?", (session, generation))


def listed(db: Database, scope: str | None = None) -> list[Row]:
    """By session, oldest generation first; a home of an older version has none."""
    if not columns_of(db, "archives"):
        return []
    return db.rows("SELECT * FROM archives WHERE scope = ? OR ? IS NULL ORDER BY session, generation", (scope, scope))


def settle(db: Database, session: str, generation: int) -> None:
    """Inside `write()`: the object has none of the words any more."""
    db.execute("UPDATE archives SET outdated = 0 WHERE session = ? AND generation = ?", (session, generation))


def remove(db: Database, session: str, generation: int) -> None:
    """Inside `write()`."""
    db.execute("DELETE FROM archives WHERE session = ? AND generation = ?", (session, generation))


def concerned(db: Database, marked: Marked, ids: Sequence[int] | None = None) -> list[Row]:
    """The archives of the scope that have records (`ids`: of these alone) or words of what is to be forgotten, as far
    as the index can tell; one whose records the home's log no longer has may have any words."""
    places = [(place.session, place.id) for place in marked.records if ids is None or place.id in ids]
    found = []
    for row in listed(db, marked.scope):
        said = any(row["session"] == key and row["first_id"] <= one <= row["last_id"] for key, one in places)
        told = any(marked.wording.found(row[column]) for column in ("handover", "summary"))
        lost = marked.everywhere and ids is None and not _is_logged(db, row)
        if said or told or lost:
            found.append(row)
    return found


def names(db: Database) -> set[str]:
    """Where archives stand that the index knows."""
    return {row["url"] for row in db.rows("SELECT url FROM archives")}


def outdate(db: Database, marked: Marked) -> None:
    """Inside `write()`, before the words leave the index: the objects of these rows have to be rewritten."""
    for row in concerned(db, marked):
        db.execute(
            "UPDATE archives SET outdated = 1 WHERE session = ? AND generation = ?", (row["session"], row["generation"])
        )


def _is_logged(db: Database, row: Row) -> bool:
    known = db.row("SELECT 1 FROM messages WHERE session = ? AND seq = ?", (row["session"], row["from_seq"]))
    return known is not None


def archived(row: Row) -> ArchiveEntry:
    return ArchiveEntry(
        row["session"], row["generation"], row["scope"], row["url"], row["records"], row["first_id"], row["last_id"],
        row["from_seq"], row["to_seq"], row["bytes"], row["sha256"], bool(row["encrypted"]),
        parse_time(row["archived_at"]), row["reason"], parse_time(row["from_ts"]), parse_time(row["to_ts"]),
    )  # fmt: skip


def archived_of(header: Header, kept: StoredObject) -> ArchiveEntry:
    return ArchiveEntry(
        header.session, header.generation, header.scope, kept.url, header.records, header.first_id, header.last_id,
        header.from_seq, header.to_seq, kept.bytes, kept.sha256, kept.encrypted, parse_time(header.archived_at),
        header.reason, parse_time(header.from_ts), parse_time(header.to_ts),
    )  # fmt: skip
