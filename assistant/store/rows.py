"""Frozen dataclasses as rows of a table, and read from JSON.

What always holds: a column has the name of its field; times are stored by `format_time`, tuples and mappings as JSON,
text clean. Columns that the dataclass has no field for are ignored, so a table may have more of them. What is read
back is checked against the types of the fields: `ValueError` for what does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from sqlite3 import Row
from typing import TYPE_CHECKING, Any, TypeVar, get_origin, get_type_hints

from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, format_time

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
# `functools.cache` takes no `type[T]` for mypy.
_adapters: dict[Any, TypeAdapter[Any]] = {}
_fields_as_json: dict[Any, frozenset[str]] = {}


def from_row(kind: type[T], row: Row, **values: Any) -> T:
    """The dataclass that a row is; `values` go before its columns."""
    columns: dict[str, Any] = {**dict(row), **values}
    for name in _json_fields(kind) & columns.keys():
        if isinstance(columns[name], str):
            columns[name] = json.loads(columns[name])
    return from_values(kind, columns)


def to_row(value: Any) -> dict[str, Any]:
    """The columns of a dataclass, one for each field."""
    return {field.name: _column(getattr(value, field.name)) for field in fields(value)}


def insert_row(db: Database, table: str, columns: Mapping[str, Any], *, replace: bool = False) -> int:
    """Inside `write()`: the id of the new row. `replace`: in place of one with the same key."""
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    places = ", ".join("?" * len(columns))
    return db.insert(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({places})", tuple(columns.values()))


def update_row(db: Database, table: str, columns: Mapping[str, Any], row_id: int) -> None:
    """Inside `write()`."""
    assignments = ", ".join(f"{column} = ?" for column in columns)
    db.execute(f"UPDATE {table} SET {assignments} WHERE rowid = ?", (*columns.values(), row_id))


def from_values(kind: type[T], values: Any) -> T:
    """The value that JSON-like values are. Raises `ValueError`."""
    value: T = _adapter(kind).validate_python(values)
    return value


def from_json(kind: type[T], text: str | bytes) -> T:
    """The value that `dump_json` wrote. Raises `ValueError`."""
    value: T = _adapter(kind).validate_json(text)
    return value


def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # not needed at start

    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def _json_fields(kind: Any) -> frozenset[str]:
    if kind not in _fields_as_json:
        hints = get_type_hints(kind)
        with_parts = (name for name, hint in hints.items() if get_origin(hint) in (tuple, list, dict, Mapping))
        _fields_as_json[kind] = frozenset(with_parts)
    return _fields_as_json[kind]


def _column(value: Any) -> Any:
    match value:
        case datetime():
            return format_time(value)
        case str():
            return clean_text(value)
        case bool():
            return int(value)
        case tuple() | list() | Mapping():
            return dump_json(value)
    return value
