"""Rebuilds a damaged database from what is readable, filling gaps from backups.

Only a copy of the damaged file is read. Rows are read in both directions and around unreadable parts, so that a bad
page costs only its own rows. A table that was read completely is used as it is (deleted rows stay deleted); gaps in
other tables are filled from the newest copy that has the row. Rows newer than all copies are kept if they are readable.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.home.guard import check_database_pages
from assistant.store.rows import parse_time
from assistant.store.schema.library import Migrations, columns_when_new, migration_names
from assistant.store.schema.versions import is_list_damaged
from assistant.store.sqlite_errors import SQLITE_ERRORS, is_refused_by_machine

_HEADER = 100
# Header offsets of the number of pages, and of the first free page.
_PAGES, _FREE, _VALID_FOR = slice(28, 32), slice(32, 40), slice(92, 96)
_SMALLEST_PAGE = 512
# How often a gap between readable rows is halved.
_MOST_PROBES = 4000
# JSON columns, and their empty value; a row without a valid one is of no use.
_JSON_COLUMNS: Mapping[str, str | None] = {
    **dict.fromkeys(("parts", "metadata", "phases", "attributes", "arguments"), "{}"),
    **dict.fromkeys(("buttons", "media", "tags", "sources", "aliases", "cites", "absorbs", "key_facts"), "[]"),
    "spec": None,
}
# Stands for a time that cannot be read.
_UNKNOWN_TIME = "1970-01-01T00:00:00.000000Z"
Row = tuple[Any, ...]
Rows = Generator[Row, None, bool]
"""Rows up to the first that cannot be read; returns whether there was none such."""


@dataclass
class SalvagedTable:
    """How the rows of a table were recovered."""

    read: int = 0
    from_copy: int = 0
    has_holes: bool = False


@dataclass(frozen=True, slots=True)
class Salvage:
    """The result of salvaging a database. `rows`: how many were recovered, `rows_from_copy` of them from a copy."""

    tables: Mapping[str, SalvagedTable] = field(default_factory=dict)

    @property
    def incomplete_tables(self) -> list[str]:
        return [name for name, table in self.tables.items() if table.has_holes]

    @property
    def rows(self) -> int:
        return sum(table.read for table in self.tables.values())

    @property
    def rows_from_copy(self) -> int:
        return sum(table.from_copy for table in self.tables.values())


def salvage_database(
    damaged: Path, copies: Sequence[Path], target: Path, migrations: Migrations, now: datetime
) -> Salvage:
    """Build `target` from what is readable of `damaged` and from `copies`, which are intact and migrated, newest first.
    Raises `StoreError`."""
    tables: dict[str, SalvagedTable] = {}
    with closing(Database.open(target, migrations, now, keep_copy=False)) as made:
        names = _table_names(made)
        with _opened_copy(damaged, target.with_name(f"{target.name}.read"), target) as source:
            for name in names:
                tables[name] = _Table(made, name).fill_from(source, copies)
        for path in (damaged, *copies):
            _keep_counters(made, path)
    return Salvage(tables)


def find_damage(path: Path, migrations: Migrations) -> str:
    """Say what is wrong with a database, as the end of a sentence; "" if nothing. Reads everything. Raises `StoreError`
    if the machine refuses to open it: a full disk is no damage."""
    if not path.exists():
        return ""
    try:
        with closing(Database.open_reader(path)) as database:
            is_damaged = (
                path.stat().st_size % _SMALLEST_PAGE > 0
                or bool(check_database_pages(path))
                or _has_wrong_schema(database, migrations)
                or any(_Table(database, name).has_dubious_rows() for name in _table_names(database))
            )
    except StoreError as error:
        if path.is_file() and is_refused_by_machine(error):
            raise
        is_damaged = True
    return "is damaged" if is_damaged else ""


def _has_wrong_schema(database: Database, migrations: Migrations) -> bool:
    """Return whether a table, column or migration is missing, or no version can have applied what is listed."""
    applied = database.applied_migrations()
    names = migration_names(migrations)
    if not {*names} <= {*applied}:
        listed = database.value("SELECT count(*) FROM _sqlite_migrations") if applied else 0
        return listed != len(applied) or is_list_damaged(applied, names)
    return any(not columns <= database.column_names(name) for name, columns in columns_when_new(migrations).items())


def _table_names(database: Database) -> list[str]:
    rows = database.rows(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE '_sqlite_%' ORDER BY rowid"
    )
    return [str(row["name"]) for row in rows]


@contextmanager
def _opened_copy(damaged: Path, at: Path, healthy: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a copy of a damaged database as well as possible; None if nothing is readable. A copy that cannot be removed
    is removed with the folder of the repair."""
    if not damaged.is_file() or damaged.stat().st_size < _HEADER:
        yield None
        return
    copied = [at.with_name(f"{at.name}{part}") for part in ("", "-wal", "-shm")]
    try:
        try:
            for path in copied:
                path.unlink(missing_ok=True)
            shutil.copyfile(damaged, at)
            wal = damaged.with_name(f"{damaged.name}-wal")
            if wal.is_file():
                shutil.copyfile(wal, at.with_name(f"{at.name}-wal"))
            _mend_header(at, healthy)
        except OSError as error:
            why = f"{damaged.name} cannot be copied for repair: {error.strerror}."
            raise StoreError(f"{why} It is as it was; check the disk first.") from error
        with closing(sqlite3.connect(at, isolation_level=None)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            # SQLite then opens a file that is shorter than its header says.
            connection.execute("PRAGMA writable_schema = ON")
            yield connection
    finally:
        for path in copied:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _mend_header(path: Path, healthy: Path) -> None:
    """If the header is invalid, use that of a database with the same settings; its page counts are not trusted."""
    with path.open("r+b") as file:
        header = file.read(_HEADER)
        model = bytearray(healthy.read_bytes()[:_HEADER])
        # Page size, versions, and fixed values; schema format and encoding.
        fixed = (slice(0, 24), slice(44, 48), slice(56, 60))
        if all(header[part] == model[part] for part in fixed):
            return
        model[_PAGES] = model[_FREE.start : _FREE.start + 4] = bytes(4)
        model[_FREE] = bytes(8)
        model[_VALID_FOR] = b"\xff\xff\xff\xff"
        file.seek(0)
        file.write(model)


class _Table:
    """One table of the rebuilt database."""

    def __init__(self, made: Database, name: str) -> None:
        self._made = made
        self._name = name
        self._result = SalvagedTable()
        rows = made.rows("SELECT name, type, pk FROM pragma_table_info(?)", (name,))
        self._columns = [str(row["name"]) for row in rows]
        self._all_columns = self._columns
        keys = [row for row in rows if row["pk"]]
        self._keys = [str(row["name"]) for row in keys]
        # Such a column is the rowid.
        self._is_numbered = len(keys) == 1 and keys[0]["type"] == "INTEGER"
        self._has_rowid = "WITHOUT ROWID" not in str(
            made.value("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
        )

    def fill_from(self, source: sqlite3.Connection | None, copies: Sequence[Path]) -> SalvagedTable:
        dubious: list[Row] = []
        with self._made.write(references=False):
            # Rows that migrations inserted.
            self._made.execute(f"DELETE FROM {self._name}")
            if source is None:
                self._result.has_holes = True
            else:
                self._read(source, dubious)
            read = self._columns
            if self._result.has_holes or dubious:
                # If everything else was readable, only these rows are filled: others were deleted.
                wanted = None if self._result.has_holes else {row[0] for row in dubious}
                for path in copies:
                    self._result.from_copy += self._fill_holes(path, wanted)
            self._result.has_holes |= bool(dubious)
            self._columns = read
            for row in dubious:
                # Better than nothing if no copy has the row.
                self._insert([_as_text(name, value) for name, value in zip(self._selected(), row, strict=True)])
        return self._result

    def _read(self, source: sqlite3.Connection, dubious: list[Row]) -> None:
        try:
            present = {str(row[1]) for row in source.execute(f"PRAGMA table_info({self._name})")}
        except SQLITE_ERRORS:
            present = set()
        self._columns = [name for name in self._columns if name in present] or self._columns
        if not present:
            self._result.has_holes = True
            return
        for row in _read_table(source, self._name, self._selected(), self._keys, self._has_rowid, self._note_hole):
            if self.is_dubious(row):
                dubious.append(row)
            elif self._insert(row):
                self._result.read += 1
            else:
                self._result.has_holes = True

    def _note_hole(self) -> None:
        self._result.has_holes = True

    def _selected(self) -> list[str]:
        """Return the columns to read, with the rowid first if the table has one."""
        return ["rowid", *self._columns] if self._has_rowid else self._columns

    def is_dubious(self, row: Row) -> bool:
        """Return whether a row has invalid text, zeros in text, or an invalid JSON or time value."""
        return any(
            isinstance(value, str) and _as_text(name, value) != value
            for name, value in zip(self._selected(), row, strict=True)
        )

    def _insert(self, row: Sequence[Any]) -> bool:
        first = int(self._has_rowid and self._is_numbered)
        row, columns = row[first:], self._selected()[first:]
        names, marks = ", ".join(columns), ", ".join("?" * len(row))
        try:
            return bool(
                self._made.connection.execute(
                    f"INSERT OR IGNORE INTO {self._name} ({names}) VALUES ({marks})", tuple(row)
                ).rowcount
            )
        except (*SQLITE_ERRORS, OverflowError):
            # A value no such column can have.
            return False

    def _fill_holes(self, path: Path, wanted: set[Any] | None) -> int:
        self._columns = self._all_columns
        with closing(Database.open_reader(path)) as copy:
            rows = copy.iterate(f"SELECT {', '.join(self._selected())} FROM {self._name}")
            return sum(self._insert(tuple(row)) for row in rows if wanted is None or row[0] in wanted)

    def has_dubious_rows(self) -> bool:
        rows = self._made.iterate(f"SELECT {', '.join(self._selected())} FROM {self._name}")
        return any(self.is_dubious(tuple(row)) for row in rows)


def _as_text(name: str, value: Any) -> Any:
    """Return a valid value for a column: of a damaged one, what is left."""
    if not isinstance(value, str):
        return value
    if not value.isascii():
        value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    value = value.partition("\0")[0]
    if name in _JSON_COLUMNS:
        try:
            json.loads(value)
        except ValueError:
            return _JSON_COLUMNS[name]
    elif value and (name in ("ts", "timestamp") or name.endswith("_at")):
        try:
            parse_time(value)
        except ValueError:
            return _UNKNOWN_TIME
    return value


def _read_table(
    source: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    keys: Sequence[str],
    has_rowid: bool,
    note_hole: Callable[[], None],
) -> Iterator[Row]:
    """Yield the readable rows; `note_hole` is called where rows may be missing."""
    select = f"SELECT {', '.join(columns)} FROM {table}"
    if not has_rowid:
        order = ", ".join(keys)
        whole = yield from _read_until_error(source, f"{select} ORDER BY {order}", ())
        if not whole:
            note_hole()
            backwards = ", ".join(f"{key} DESC" for key in keys)
            yield from _read_until_error(source, f"{select} ORDER BY {backwards}", ())
        return
    first = _LastRow()
    whole = yield from first.watch(_read_until_error(source, f"{select} NOT INDEXED ORDER BY rowid", ()))
    if whole:
        return
    note_hole()
    last = _LastRow()
    yield from last.watch(_read_until_error(source, f"{select} NOT INDEXED ORDER BY rowid DESC", ()))
    if last.rowid is None:
        # The end of the table is unknown: search up to the largest possible id.
        last.rowid = (first.rowid or 0) + (1 << 20)
    yield from _read_gap(source, select, (first.rowid or 0) + 1, last.rowid - 1)


@dataclass
class _LastRow:
    """The last row id that was read."""

    rowid: int | None = None

    def watch(self, rows: Rows) -> Rows:
        while True:
            try:
                row = next(rows)
            except StopIteration as end:
                return bool(end.value)
            self.rowid = row[0]
            yield row


def _read_gap(source: sqlite3.Connection, select: str, low: int, high: int) -> Iterator[Row]:
    """Read the rows between two ids, halving the range: a half that is readable is read at once."""
    waiting = [(low, high)]
    for _ in range(_MOST_PROBES):
        if not waiting:
            return
        low, high = waiting.pop()
        if low > high:
            continue
        sql = f"{select} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        bound = _LastRow()
        whole = yield from bound.watch(_read_until_error(source, sql, (low, high)))
        if not whole and low < high:
            low = low if bound.rowid is None else bound.rowid + 1
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]


def _read_until_error(source: sqlite3.Connection, sql: str, values: Sequence[Any] = ()) -> Rows:
    try:
        yield from source.execute(sql, values)
    except (*SQLITE_ERRORS, OverflowError):
        return False
    return True


def _keep_counters(made: Database, path: Path) -> None:
    """Keep counters, so that no id is assigned again."""
    try:
        with closing(Database.open_reader(path)) as source:
            counters = [tuple(row) for row in source.rows("SELECT name, seq FROM sqlite_sequence")]
    except StoreError:
        return
    with made.write() as db:
        for name, number in counters:
            if db.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (number, name)) == 0:
                db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))


def drop_dangling(db: Database) -> None:
    """Within a transaction: clear references to lost rows, or delete the rows that need them."""
    while broken := {(row["table"], row["fkid"]) for row in db.rows("PRAGMA foreign_key_check")}:
        for table, key in broken:
            parts = db.rows(
                f'SELECT "table" AS parent, "from" AS name, "to" AS target FROM'
                f" pragma_foreign_key_list('{table}') WHERE id = ?",
                (key,),
            )
            names = [str(part["name"]) for part in parts]
            same = " AND ".join(f"p.{part['target']} = {table}.{part['name']}" for part in parts)
            given = " AND ".join(f"{name} IS NOT NULL" for name in names)
            where = f"{given} AND NOT EXISTS (SELECT 1 FROM {parts[0]['parent']} p WHERE {same})"
            fixed = db.rows(f"SELECT name FROM pragma_table_info('{table}') WHERE \"notnull\" OR pk")
            if {*names} & {str(row["name"]) for row in fixed}:
                db.execute(f"DELETE FROM {table} WHERE {where}")
            else:
                db.execute(f"UPDATE {table} SET {', '.join(f'{name} = NULL' for name in names)} WHERE {where}")
