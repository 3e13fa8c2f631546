"""Columns that hold words, and the same change for all of them: what a person wants forgotten is cut out, sentence by
sentence, of texts and of texts within JSON.

What always holds: only rows of the scope are read or changed (I10), but for the few tables that are nobody's; a table
or column that an older backup lacks is passed over. Repeating it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from assistant.store.database import Database
from assistant.store.encoding import FORGOTTEN_PLACEHOLDER, dump_json
from assistant.store.marked import Marked


@dataclass(frozen=True, slots=True)
class Cells:
    """Of a table the columns with words: `text` as they are, `json` within JSON. `place` is what a person calls it.
    `scope` is the column that
    tells whose a row is, or an SQL expression that does; None: nobody's. With `goes`, a row whose first text is left
    empty is removed."""

    place: str
    table: str
    text: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    scope: str | None = "scope"
    goes: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a row: other values by column, or None where it goes. `shown` tells a person which one it is."""

    place: str
    table: str
    row: int
    values: dict[str, Any] | None
    shown: str


def columns_of(db: Database, table: str) -> frozenset[str]:
    """Empty where there is no such table."""
    return frozenset(row["name"] for row in db.rows("SELECT name FROM pragma_table_info(?)", (table,)))


def scoped_rows(db: Database, table: str, scope: str | None, marked: Marked, where: str = "1") -> Iterator[Row]:
    """Rows of the marked scope, each with its rowid as `row_number`."""
    known = columns_of(db, table)
    if not known:
        return iter(())
    if scope is None:
        return iter(db.rows(f"SELECT rowid AS row_number, * FROM {table} WHERE {where}"))
    sql = f"SELECT rowid AS row_number, * FROM {table} WHERE {scope} = ? AND ({where}) ORDER BY rowid"
    return db.each(sql, (marked.scope,))


def changes(db: Database, cells: Cells, marked: Marked) -> Iterator[Change]:
    for row in scoped_rows(db, cells.table, cells.scope, marked):
        change = _change(cells, row, marked)
        if change is not None:
            yield change


def carry_out(db: Database, changed: Sequence[Change]) -> None:
    """Inside `write()`."""
    for change in changed:
        if change.values is None:
            db.execute(f"DELETE FROM {change.table} WHERE rowid = ?", (change.row,))
        else:
            sets = ", ".join(f"{column} = ?" for column in change.values)
            db.execute(f"UPDATE {change.table} SET {sets} WHERE rowid = ?", (*change.values.values(), change.row))


def _change(cells: Cells, row: Row, marked: Marked) -> Change | None:
    wording, known = marked.wording, row.keys()
    values: dict[str, Any] = {}
    shown = ""
    for column in (*cells.text, *cells.json):
        if column not in known or not row[column] or not wording.found(row[column]):
            continue
        shown = shown or wording.excerpt(row[column])
        values[column] = without_json(row[column], marked) if column in cells.json else wording.without(row[column])
    if not values:
        return None
    gone = cells.goes and values.get(cells.text[0]) == ""
    return Change(cells.place, cells.table, row["row_number"], None if gone else values, shown)


def without_json(text: str, marked: Marked) -> str:
    """A JSON text whose texts have lost the words. What is no JSON is taken for plain text."""
    try:
        value = json.loads(text)
    except ValueError:
        return marked.wording.without(text)
    return dump_json(marked.wording.without_in(value, FORGOTTEN_PLACEHOLDER))
