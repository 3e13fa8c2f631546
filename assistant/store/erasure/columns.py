"""Columns that hold words, and the same change for all of them: the words to erase are cut out, sentence by sentence,
of texts and of texts within JSON.

What always holds: only rows of the scope are read or changed (I10), except in the few tables that belong to nobody; a
table or column that an older backup lacks is skipped. Repeating it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from assistant.store.database import Database, column_names
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns of a table that have words."""

    place: str  # what a person calls it
    table: str
    text: tuple[str, ...] = ()
    json: tuple[str, ...] = ()  # words within JSON
    scope: str | None = "scope"  # the column that tells whose a row is, or an SQL expression; None: nobody's
    goes: bool = False  # a row whose first text is left empty is removed


@dataclass(frozen=True, slots=True)
class RowChange:
    """What becomes of a row."""

    place: str
    table: str
    row: int  # its rowid
    values: dict[str, Any] | None  # other values by column; None: it is removed
    shown: str  # tells a person which one it is


def scoped_rows(db: Database, table: str, scope: str | None, plan: ErasurePlan, where: str = "1") -> Iterator[Row]:
    """Rows of the plan's scope, each with its rowid as `row_number`."""
    if not column_names(db, table):
        return iter(())
    if scope is None:
        return iter(db.rows(f"SELECT rowid AS row_number, * FROM {table} WHERE {where}"))
    sql = f"SELECT rowid AS row_number, * FROM {table} WHERE {scope} = ? AND ({where}) ORDER BY rowid"
    return db.iterate(sql, (plan.scope,))


def find_row_changes(db: Database, columns: TextColumns, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, columns.table, columns.scope, plan):
        change = _change(columns, row, plan)
        if change is not None:
            yield change


def apply_row_changes(db: Database, changes: Sequence[RowChange]) -> None:
    """Inside `write()`."""
    for change in changes:
        if change.values is None:
            db.execute(f"DELETE FROM {change.table} WHERE rowid = ?", (change.row,))
        else:
            db.update_rows(change.table, {"rowid": change.row}, **change.values)


def _change(columns: TextColumns, row: Row, plan: ErasurePlan) -> RowChange | None:
    wording, present = plan.wording, row.keys()
    values: dict[str, Any] = {}
    shown = ""
    for column in (*columns.text, *columns.json):
        if column not in present or not row[column] or not wording.matches(row[column]):
            continue
        shown = shown or wording.excerpt(row[column])
        values[column] = (
            redact_json(row[column], plan) if column in columns.json else wording.remove_from_text(row[column])
        )
    if not values:
        return None
    is_removed = columns.goes and values.get(columns.text[0]) == ""
    return RowChange(columns.place, columns.table, row["row_number"], None if is_removed else values, shown)


def redact_json(text: str, plan: ErasurePlan) -> str:
    """A JSON text whose texts have lost the words. What is no JSON is taken for plain text."""
    try:
        value = json.loads(text)
    except ValueError:
        return plan.wording.remove_from_text(text)
    return dump_json(plan.wording.remove_from_json(value, FORGOTTEN_PLACEHOLDER))
