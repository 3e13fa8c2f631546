"""Access to one SQLite database of a data folder: opening, migration, reading and writing.

All writes use `write()`. It acquires the write lock immediately (`BEGIN IMMEDIATE`), does not nest, and always commits
or rolls back. A commit is durable when `write()` returns (WAL with `synchronous=FULL`); with `durable=False`, at the
next durable commit. SQLite errors are raised as `StoreError` with a text for people; the connection stays usable once
the cause is gone.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from assistant.core.errors import HomeReplaced, StoreError, UsageError
from assistant.store.files import (
    file_identity,
    prepare_home,
    reader_mode,
    require_plain_database,
    sync_directory,
    sync_file,
)
from assistant.store.pragmas import CONNECTION, READER_CACHE, WRITER, WRITER_CACHE
from assistant.store.remembered import RememberedRows
from assistant.store.replicated import change_checkpoint_mark, is_replicated
from assistant.store.rows import clean_text, format_time, insert_sql, stored_row, update_sql
from assistant.store.schema.creation import create_database
from assistant.store.schema.library import Migrations, apply_migrations, migration_names
from assistant.store.schema.versions import require_current_schema, require_known_schema
from assistant.store.sqlite_errors import DATA_KEPT, explain_error, translated_errors, unreadable_rows_explained

_STATEMENTS = 256
_COPIED = 1 << 18

SqlParameters = Sequence[Any]
T = TypeVar("T")


class Database:
    """An open database, to be used by one thread at a time; concurrent readers open their own (`open_reader`)."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._writing = threading.Lock()
        self._after: list[Callable[[], None]] = []
        self._durable, self.durable_commits = True, 0
        self._file = file_identity(path)
        self.remembered = RememberedRows(self.rows, lambda: int(self.value("PRAGMA data_version")))

    @classmethod
    def open(cls, path: Path, migrations: Migrations, now: datetime, *, keep_copy: bool = True) -> Database:
        """Open for reading and writing; create and migrate as needed, with a backup before migrating if `keep_copy`.
        Raises `HomeError`, `NewerSchema`, `StoreError`."""
        prepare_home(path.parent)
        create_database(path, migrations, now)
        database = cls.open_unmigrated(path)
        try:
            database._require_writable()
            database._migrate(migrations, now, keep_copy=keep_copy)
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def open_reader(cls, path: Path) -> Database:
        """Open read-only, concurrently with a writer. Raises `StoreError` if it does not exist."""
        try:
            return cls._connected(path, reader_mode(path), (*CONNECTION, READER_CACHE))
        except StoreError as error:
            if getattr(error.__cause__, "sqlite_errorcode", 0) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        # An interrupted first write to a new database must be rolled back by a writable connection.
        cls._connected(path, "rw", ("PRAGMA schema_version",)).close()
        return cls._connected(path, "ro", (*CONNECTION, READER_CACHE))

    @classmethod
    def open_unmigrated(cls, path: Path) -> Database:
        """Open an existing database for writing without migrating. Raises `StoreError`."""
        return cls._connected(path, "rw", (*WRITER, *CONNECTION, WRITER_CACHE))

    @classmethod
    def _connected(cls, path: Path, mode: str, setup: Sequence[str]) -> Database:
        require_plain_database(path)
        with translated_errors(path):
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=_STATEMENTS
            )
            try:
                connection.row_factory = sqlite3.Row
                for pragma in setup:
                    connection.execute(pragma)
                if is_replicated(path.parent):
                    connection.execute("PRAGMA wal_autocheckpoint = 0")
                return cls(path, connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """For what no method here does."""
        return self._connection

    # ---------------------------------------------------------------------------------------------------- reading

    def rows(self, sql: str, parameters: SqlParameters = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        try:
            return self._run(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise explain_error(self.path, error) from error

    def row(self, sql: str, parameters: SqlParameters = ()) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        try:
            row: sqlite3.Row | None = self._run(sql, parameters).fetchone()
            return row
        except sqlite3.Error as error:
            raise explain_error(self.path, error) from error

    def version(self) -> tuple[int, int]:
        """Return what differs once anything was changed since, by this connection or by another one."""
        return self.value("PRAGMA data_version"), self._connection.total_changes

    def value(self, sql: str, parameters: SqlParameters = ()) -> Any:
        """Return the first column of the first row, or None."""
        row = self.row(sql, parameters)
        return None if row is None else row[0]

    def read_all(
        self, read: Callable[[sqlite3.Row], T], sql: str, parameters: SqlParameters = (), *, remember: str = ""
    ) -> list[T]:
        """Apply `read` to each row of a query; with the table `remember`, of `remembered`."""
        rows = self.remembered.rows(remember, sql, (*parameters,)) if remember else self.rows(sql, parameters)
        with unreadable_rows_explained(self.path):
            return [read(row) for row in rows]

    def read_one(self, read: Callable[[sqlite3.Row], T], sql: str, parameters: SqlParameters = ()) -> T | None:
        """Apply `read` to the first row of a query, or return None."""
        row = self.row(sql, parameters)
        with unreadable_rows_explained(self.path):
            return None if row is None else read(row)

    def iterate(self, sql: str, parameters: SqlParameters = ()) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query one by one, for large results."""
        with translated_errors(self.path):
            yield from self._run(sql, parameters)

    def column_names(self, table: str) -> frozenset[str]:
        """Return the column names of a table; empty if it does not exist."""
        return frozenset(row["name"] for row in self.rows("SELECT name FROM pragma_table_info(?)", (table,)))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run queries within one consistent read transaction."""
        with translated_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    # ---------------------------------------------------------------------------------------------------- writing

    @contextmanager
    def write(self, *, references: bool = True, durable: bool = True) -> Iterator[Database]:
        """Run a write transaction. Raises `StoreError`.

        `references=False` disables foreign keys meanwhile, for rebuilding a table. `durable=False` does not wait for
        the disk, for data that may be lost; the next durable commit syncs it too.
        """
        if not self._writing.acquire(blocking=False):
            raise RuntimeError(f"{self.path.name}: a transaction within a transaction")
        try:
            self.require_same_file()
            self._after = []
            if not references:
                self._connection.execute("PRAGMA foreign_keys = OFF")
            if durable != self._durable:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            changes = self._connection.total_changes
            with translated_errors(self.path), self._transaction():
                yield self
            self.durable_commits += durable and self._connection.total_changes > changes
        finally:
            self._writing.release()
            if not references:
                self._connection.execute("PRAGMA foreign_keys = ON")
        for act in self._after:
            act()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self.remembered.clear()
            # Some errors already end the transaction.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def execute(self, sql: str, parameters: SqlParameters = ()) -> int:
        """Run a writing statement within `write()`; returns the number of changed rows."""
        self._require_transaction(sql)
        return self._run(sql, parameters).rowcount

    def execute_many(self, sql: str, rows: Iterable[SqlParameters]) -> None:
        """Run a writing statement within `write()` for each of these rows of parameters."""
        self._require_transaction(sql)
        self._connection.executemany(sql, map(stored_row, rows))

    def insert_row(self, table: str, /, **columns: Any) -> int:
        """Insert a row within `write()`; returns its id."""
        self._require_transaction(table)
        return self._run(insert_sql(table, (*columns,)), (*columns.values(),)).lastrowid or 0

    def insert_if_new(self, table: str, /, **columns: Any) -> bool:
        """Insert a row within `write()` unless its key exists; returns whether it was inserted."""
        return bool(self.execute(insert_sql(table, (*columns,), ()), (*columns.values(),)))

    def upsert_row(self, table: str, key: tuple[str, ...], /, **columns: Any) -> None:
        """Insert a row within `write()`, or update the one with the same `key` columns."""
        self.execute(insert_sql(table, (*columns,), key), (*columns.values(),))

    def update_rows(self, table: str, where: Mapping[str, Any], /, **columns: Any) -> int:
        """Update matching rows within `write()`; returns their number."""
        return self.execute(update_sql(table, (*columns,), (*where,)), (*columns.values(), *where.values()))

    def _run(self, sql: str, parameters: SqlParameters) -> sqlite3.Cursor:
        """Run a statement; times are converted to their stored form, and invalid Unicode is cleaned (`encoding`)."""
        # Most statements have no times, and all of a turn pass here.
        if datetime in map(type, parameters):
            parameters = [format_time(value) if isinstance(value, datetime) else value for value in parameters]
        try:
            return self._connection.execute(sql, parameters)
        except UnicodeEncodeError:
            cleaned = [clean_text(value) if isinstance(value, str) else value for value in parameters]
            return self._connection.execute(sql, cleaned)
        except OverflowError:
            raise UsageError("There is no number that large here. Nothing was changed.") from None

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` after this transaction is committed; never after a rollback."""
        self._require_transaction()
        self._after.append(callback)

    def require_writable(self) -> None:
        """Raises `StoreError` if the database is not writable. Writes nothing, so it does not detect a full disk."""
        self.require_same_file()
        # A write in progress proves it.
        if self._writing.acquire(blocking=False):
            try:
                self._require_writable()
            finally:
                self._writing.release()

    def require_same_file(self) -> None:
        """Raises `StoreError` if the file is missing, `HomeReplaced` if it was replaced: writes to an unlinked file
        would be lost."""
        identity = file_identity(self.path)
        if identity is None:
            raise StoreError(
                f"{self.path} is not there any more. {DATA_KEPT}; bring the data folder back (is its disk mounted?), "
                "and the assistant continues."
            )
        if identity != self._file:
            raise HomeReplaced(
                f"{self.path} is another file than the one that was opened. {DATA_KEPT} there; restart the assistant."
            )

    def is_at(self, path: Path) -> bool:
        """Return whether the open file is the one at `path`."""
        return self._file is not None and file_identity(path) == self._file

    def _require_writable(self) -> None:
        """Raise if SQLite has silently opened the file read-only."""
        with translated_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute("PRAGMA user_version = 1")
            finally:
                self._connection.execute("ROLLBACK")

    def _require_transaction(self, sql: str = "") -> None:
        if not self._writing.locked():
            raise RuntimeError(f"{self.path.name}: a write outside of `write()`")
        self.remembered.note_write(sql)

    def checkpoint(self) -> bool:
        """Checkpoint the WAL as far as readers permit, and return whether the file itself has everything then. Done
        while idle, so that turns do not have to."""
        frames, moved = (1, 0) if is_replicated(self.path.parent) else self.move_wal()
        return frames == moved

    def move_wal(self) -> tuple[int, int]:
        """As `checkpoint`: returns how many frames the WAL has, and how many of them are in the database now."""
        _, frames, moved = self.rows("PRAGMA wal_checkpoint(PASSIVE)")[0]
        return int(frames), int(moved)

    def serialize(self) -> bytes:
        """The whole database, as a file has it. Raises `StoreError`."""
        with translated_errors(self.path):
            return self._connection.serialize()

    def set_lock_timeout(self, milliseconds: int) -> None:
        """Set how long to wait for locks of other connections."""
        self.rows(f"PRAGMA busy_timeout = {milliseconds}")

    def overwrite_deleted(self) -> None:
        """Overwrite deleted content from now on."""
        self.rows("PRAGMA secure_delete = ON")

    def vacuum(self) -> None:
        """Rewrite the file without freed space, which may contain deleted text, and truncate the WAL. Raises
        `StoreError`, also if another process still reads an older state."""
        self.rows("VACUUM")
        if self.value("PRAGMA wal_checkpoint(TRUNCATE)"):
            raise StoreError(
                f"{self.path}: another process is still reading it, so deleted words may remain in the file "
                "next to it. Stop that process, then repeat this."
            )
        change_checkpoint_mark(self.path.parent)

    # -------------------------------------------------------------------------------------------------- migrating

    def _migrate(self, migrations: Migrations, now: datetime, *, keep_copy: bool) -> None:
        applied = self.applied_migrations(migrations.name)
        pending = [name for name in migration_names(migrations) if name not in applied]
        require_known_schema(self.path, applied, migrations)
        if applied and pending and keep_copy:
            self.backup(now, f"before-{pending[0]}")
        if pending:
            with self.write():
                apply_migrations(self._connection, migrations, applied, now)

    def require_schema(self, migrations: Migrations) -> None:
        """Raises `NewerSchema`, and `OlderSchema` if opening for writing would migrate it."""
        require_current_schema(self.path, self.applied_migrations(), migrations)

    def copy_to(self, target: Path, on_progress: Callable[[int], None] | None = None) -> None:
        """Copy the content (or the current snapshot) to an empty file; `on_progress` receives the bytes of each step.
        Raises `StoreError`."""
        with translated_errors(target):
            copy = sqlite3.connect(target, isolation_level=None)
            try:
                # An unfinished copy is discarded, so no journal is needed.
                for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2048"):
                    copy.execute(f"PRAGMA {pragma}")
                size = int(self._connection.execute("PRAGMA page_size").fetchone()[0])
                step = (-1, None) if on_progress is None else (_COPIED // size, lambda *_: on_progress(_COPIED))
                self._connection.backup(copy, pages=step[0], progress=step[1])
            finally:
                copy.close()

    def applied_migrations(self, migration_set: str = "") -> list[str]:
        """Return the names of applied migrations, in order; by default of the set that is named as the file is."""
        if not self.column_names(Migrations.migrations_table):
            return []
        sql = f"SELECT name FROM {Migrations.migrations_table} WHERE migration_set = ? ORDER BY rowid"
        return [row["name"] for row in self.rows(sql, (migration_set or self.path.stem,))]

    def backup(self, now: datetime, reason: str) -> Path:
        """Make a consistent copy in the data folder's `backups/`, durable on return. Raises `StoreError`."""
        folder = self.path.parent / "backups"
        target = folder / f"{self.path.stem}-{now:%Y%m%dT%H%M%SZ}-{reason}.db"
        partial = folder / f"{self.path.stem}.partial"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            partial.unlink(missing_ok=True)
            os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self.copy_to(partial)
            sync_file(partial)
            partial.replace(target)
            sync_directory(folder)
        except OSError as error:
            raise StoreError(f"No backup could be made in {folder}: {error.strerror}. Nothing was changed.") from error
        return target


class DatabaseStore:
    """Base class of stores that use some tables of a database."""

    def __init__(self, db: Database) -> None:
        self._db = db
