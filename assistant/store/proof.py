"""The proof of a forgetting: every byte of every file under the home is searched for the words; in backups, every byte
of what they hold (`backup_forget`).

What always holds: nothing is changed. Files are read as they are, gzip unpacked; words are found in UTF-8 and as JSON
escapes them. A database file may rightly have the words in rows of other scopes: these are counted, and what goes
beyond them is told. Databases are read in another process: a process that closes any descriptor of a file lets go of
every lock that SQLite has on it there, and whoever closes the same database next would take its write-ahead log away
from under a connection that is open.
"""

from __future__ import annotations

import gzip
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from assistant.core.backups import parse_backup_name
from assistant.core.erasure import PhraseMatcher
from assistant.core.errors import StoreError
from assistant.store.cells import columns_of
from assistant.store.database import Database
from assistant.store.marked import Marked, is_note

_BLOCK = 4 << 20
# Longer than any phrase, its spaces and escapes included.
_OVERLAP = 64 << 10
_DATABASE = b"SQLite format 3\0"
# Tables that tell otherwise whose a row is. What memories that are gone said before is the owner's.
_WHOSE = {
    "history": "coalesce((SELECT scope FROM memories WHERE id = memory_id), 'owner')",
    "consolidated_entry_ids": "(SELECT scope FROM journal WHERE id = entry_id)",
}


def files(home: Path) -> Iterator[Path]:
    """Every plain file under the home but the notes of forgettings themselves, and backups, whose files are searched
    one by one; links are not followed."""
    for path in sorted(home.rglob("*")):
        own = (path.parent == home and is_note(path)) or parse_backup_name(path.name, 0) is not None
        # Files may go meanwhile.
        with suppress(FileNotFoundError):
            if not own and stat.S_ISREG(path.lstat().st_mode):
                yield path


def copies_in(path: Path, wording: PhraseMatcher) -> int:
    """How often a file has the words. Raises `StoreError` where it cannot be read."""
    try:
        with _read(path) as file:
            return _copies(gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file, wording)
    except FileNotFoundError:
        return 0
    except (OSError, EOFError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


@contextmanager
def _read(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, from its beginning. Raises `OSError`, also at the end where not all could be read."""
    if ".db" not in path.suffixes and not path.suffix.startswith(".db-"):
        with path.open("rb") as file:
            yield file
        return
    path.stat()
    with subprocess.Popen(("cat", "--", path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reading:
        assert reading.stdout is not None
        yield reading.stdout
        all_read = not reading.stdout.read(1)
    if all_read and reading.returncode:
        path.stat()
        raise OSError("it could not be read to its end")


def _copies(file: IO[bytes] | gzip.GzipFile, wording: PhraseMatcher) -> int:
    """A copy belongs to the block in which it ends, so that none is counted twice."""
    count, before = 0, b""
    while block := file.read(_BLOCK):
        data = before + block
        count += sum(end > len(before) for end in wording.ends_in(data))
        before = data[-_OVERLAP:]
    return count


def is_database(path: Path) -> bool:
    try:
        with _read(path) as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def rightly_in(path: Path, marked: Marked) -> int:
    """How often a database has the words in rows of other scopes, indexes included. Raises `StoreError`."""
    db = Database.reader(path)
    try:
        tables = db.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        return sum(_rightly_in(db, row["name"], marked) for row in tables)
    finally:
        db.close()


def _rightly_in(db: Database, table: str, marked: Marked) -> int:
    whose = _WHOSE.get(table, "scope" if "scope" in columns_of(db, table) else None)
    if whose is None:
        return 0
    indexed = [
        row["name"]
        for row in db.rows(
            "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE i.name IS NOT NULL",
            (table,),
        )
    ]
    count = 0
    for row in db.each(f"SELECT * FROM {table} WHERE {whose} <> ?", (marked.scope,)):
        for column in row.keys():  # noqa: SIM118 - a Row iterates values
            if isinstance(row[column], str):
                count += marked.wording.count(row[column]) * (1 + indexed.count(column))
    return count
