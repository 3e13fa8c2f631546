"""Tables that contain text, and how a row with text to erase changes.

Only rows of the scope are read or changed (I10), except in the few tables without a scope; a table or column that an
older backup lacks is skipped. Repeating it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from sqlite3 import Row
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.erasure_phrases import PhraseMatcher
from assistant.store.database import Database
from assistant.store.erasure.own_words import remove_said
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json

# New values of a row by column (None: delete the row), and a label of it for people, "" for none.
Change = tuple[dict[str, Any] | None, str]
ChangeRow = Callable[[Row, ErasurePlan], Change | None]  # None if the row is unchanged


PROGRAM_NAMES = {
    "tool_runs": ("name",),
    "approvals": ("tool",),
    "mcp_tools": ("server", "name"),
    "model_facts": ("model",),
    "breakers": ("name",),
    "model_outages": ("model", "name"),
    "collections": ("name",),
    "read_to": ("stream",),
    "names": ("text",),
    "turns": ("untrusted",),
    "edits": ("key", "target"),
    "_sqlite_migrations": ("migration_set", "name"),
    "usage": ("provider", "model"),
}
"""Columns of databases, by table, with names that the program gives itself: of tools and models, and the like."""
PROGRAM_COLUMNS = ("kind", "role", "scope", "state", "trust")
"""Columns of any table with words that the program chooses, and with whose a row is."""


@dataclass(frozen=True, slots=True)
class WordTable:
    """A table that contains text."""

    place: str  # its name for people
    name: str
    change: ChangeRow
    scope: str | None = "scope"  # the column, or SQL expression, with the scope; None: no scope
    columns: str = "*"


@dataclass(frozen=True, slots=True)
class RowChange:
    """The change of one row."""

    place: str
    table: str
    row: int  # its rowid
    values: dict[str, Any] | None  # by column; None: delete the row
    shown: str


def find_changes(db: Database, plan: ErasurePlan, tables: Iterable[WordTable]) -> Iterator[RowChange]:
    """Yield the changes of rows that have something to erase; nothing is changed yet."""
    for table in tables:
        for row in _scoped_rows(db, table.name, plan, scope=table.scope, columns=table.columns):
            change = table.change(row, plan)
            if change is not None:
                yield RowChange(table.place, table.name, row["row_number"], *change)


def _scoped_rows(
    db: Database, table: str, plan: ErasurePlan, *, scope: str | None = "scope", columns: str = "*"
) -> Iterator[Row]:
    """Yield rows of the plan's scope, each with its rowid as `row_number`."""
    if not db.column_names(table):
        return iter(())
    sql = f"SELECT rowid AS row_number, {columns} FROM {table}"
    return db.iterate(sql) if scope is None else db.iterate(f"{sql} WHERE {scope} = ? ORDER BY rowid", (plan.scope,))


def apply_changes(db: Database, changes: Sequence[RowChange]) -> None:
    """Apply the changes within `write()`."""
    for change in changes:
        if change.values is None:
            db.execute(f"DELETE FROM {change.table} WHERE rowid = ?", (change.row,))
        else:
            db.update_rows(change.table, {"rowid": change.row}, **change.values)


def words_in(*texts: str, jsons: tuple[str, ...] = (), goes: bool = False, retells: bool = False) -> ChangeRow:
    """Return a function that cuts the sentences with the text out of these columns, and out of texts within the JSON of
    `jsons`. With `goes`, a row whose first text becomes empty is deleted. `retells`: the columns retell messages in
    other words."""

    def change(row: Row, plan: ErasurePlan) -> Change | None:
        wording = plan.retelling if retells else plan.wording
        present = row.keys()
        columns = [name for name in (*texts, *jsons) if name in present]
        if not wording.matches(join_columns(row, columns)):
            return None
        redacted = {
            name: redact_json(row[name], wording, depth=1 if name == "arguments" else 0)
            if name in jsons
            else wording.remove_from_text(row[name])
            for name in columns
            if row[name]
        }
        values = {name: text for name, text in redacted.items() if text != row[name]}
        if not values:
            return None
        is_removed = goes and values.get(texts[0]) == ""
        return None if is_removed else values, wording.excerpt(row[next(iter(values))])

    return change


def join_columns(row: Row, columns: Iterable[str]) -> str:
    """Join columns so that they are searched at once. No match spans the separators."""
    return "\0".join(row[name] or "" for name in columns)


def redact_json(text: str, wording: PhraseMatcher, depth: int = 0) -> str:
    """Remove the text from what somebody said in a JSON text (`remove_said`). Invalid JSON is treated as plain text."""
    try:
        value = json.loads(text)
    except ValueError:
        return wording.remove_from_text(text)
    redacted = remove_said(value, wording, FORGOTTEN_PLACEHOLDER, depth)
    return text if redacted == value else dump_json(redacted)
