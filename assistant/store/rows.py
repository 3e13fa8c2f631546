"""Converts frozen dataclasses to and from rows of a table and JSON; SQL statements that list the columns of a table.

The field `opened_at` is the column `opened_at`, and its annotation determines how the column is decoded: times from
text, mappings and tuples from JSON, `bool` from 0 and 1. Columns without a field are ignored, so a table may have more.
`Database`, which runs all statements, encodes the values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from operator import itemgetter
from sqlite3 import Row
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from assistant.core.messages import (
    Media,
    Message,
    media_from_json,
    media_to_json,
    tool_call_from_json,
    tool_call_to_json,
)
from assistant.core.records import Button, LogRecord

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
_Decode = Callable[[Any], Any]

# mypy does not accept `type[T]` with `functools.cache`.
_adapters: dict[Any, TypeAdapter[Any]] = {}
# Fields of outgoing messages: decoded without pydantic, whose import would slow down the start.
_DECODE_ITEM: Mapping[Any, _Decode] = {Media: media_from_json, Button: lambda pair: Button(*pair)}


def class_row(kind: type[T], **sources: str | Callable[[Row], Any]) -> Callable[[Row], T]:
    """Return a function that makes a `kind` of a row. `sources` maps fields to the name of another column, or to a
    function that computes the field from the whole row."""
    readers: list[Callable[[Row], Any]] = []

    def read(row: Row) -> T:
        # Prepared at the first row: most processes read few tables.
        if not readers:
            readers.extend(_field_readers(kind, sources))
        return kind(*[read_field(row) for read_field in readers])

    return read


def to_row(value: Any) -> dict[str, Any]:
    """Return the columns of a dataclass, one per field."""
    columns = field_values(value)
    return {name: dump_json(of) if isinstance(of, tuple | list | Mapping) else of for name, of in columns.items()}


def field_values(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def from_values(kind: type[T], values: Any) -> T:
    """Convert JSON-like values to a `kind`. Raises `ValueError`."""
    value: T = _adapter(kind).validate_python(values)
    return value


def from_json(kind: type[T], text: str | bytes) -> T:
    """Decode the output of `dump_json`. Raises `ValueError`."""
    value: T = _adapter(kind).validate_json(text)
    return value


@cache
def insert_sql(table: str, columns: tuple[str, ...], key: tuple[str, ...] | None = None) -> str:
    """Return an INSERT statement. With `key`, an existing row with the same key is updated; with (), it is kept."""
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if key is None:
        return sql
    if not key:
        return f"{sql} ON CONFLICT DO NOTHING"
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    return f"{sql} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


@cache
def update_sql(table: str, columns: tuple[str, ...], where: tuple[str, ...]) -> str:
    """Return an UPDATE; its parameters are the values of `columns`, then those of `where`."""
    changes, conditions = ", ".join(f"{name} = ?" for name in columns), " AND ".join(f"{name} = ?" for name in where)
    return f"UPDATE {table} SET {changes} WHERE {conditions}"


def _field_readers(kind: Any, sources: Mapping[str, str | Callable[[Row], Any]]) -> Iterator[Callable[[Row], Any]]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        source = sources.get(field.name, field.name)
        if not isinstance(source, str):
            yield source
        elif decode := _decoder(hints[field.name]):
            yield partial(_read_decoded, source, decode)
        else:
            yield itemgetter(source)


def _read_decoded(column: str, decode: _Decode, row: Row) -> Any:
    value = row[column]
    return None if value is None else decode(value)


def _decoder(hint: Any) -> _Decode | None:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    kind = kinds[0] if NoneType in get_args(hint) and len(kinds) == 1 else hint
    if kind is datetime:
        return parse_time
    if kind is bool:
        return bool
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        if is_dataclass(item) and item not in _DECODE_ITEM:
            return lambda text: from_json(kind, text)
        decode = _DECODE_ITEM.get(item)
        return lambda text: tuple(json.loads(text) if decode is None else map(decode, json.loads(text)))
    return json.loads if get_origin(kind) in (Mapping, dict) else None


def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # not needed at start

    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


FORGOTTEN_PLACEHOLDER = "[forgotten]"
LOST_PLACEHOLDER = "[lost: the disk damaged these words, and no backup has them]"
"""What is shown where somebody had words forgotten."""


def format_time(when: datetime) -> str:
    """Format a time as stored: `2026-11-20T10:00:00.000000Z`, of constant width, so that times sort as text."""
    return when.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(stored: str) -> datetime:
    return datetime.fromisoformat(stored)


_STORED_AS_THEY_ARE = frozenset({int, float, bytes, type(None)})


def stored_row(row: Sequence[Any]) -> list[Any]:
    """Return parameters as they are stored: times in their form, text with valid Unicode (`clean_text`)."""
    return [value if type(value) in _STORED_AS_THEY_ARE else _stored(value) for value in row]


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return clean_text(value) if isinstance(value, str) else value


def clean_text(text: str) -> str:
    """Return `text` with surrogate pairs joined, and single surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def json_safe(value: Any) -> Any:
    """Convert `value` (of what `dump_json` takes) to JSON types: all text valid, NaN and infinity as text."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return value if value is None or isinstance(value, int | float) else json_safe(_plain(value))


def _plain(value: Any) -> Any:
    """Convert a time, a day, a set or a dataclass to JSON types."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(value)
    if is_dataclass(value):
        return field_values(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


# `json.dumps` with options creates an encoder per call, and a turn writes about fifteen values.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def dump_json(value: Any) -> str:
    """Encode JSON types, times, days, sets and dataclasses as compact JSON in valid UTF-8, keys in their order."""
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except ValueError:
        return _ENCODER.encode(json_safe(value))
    return text


def clean_message(message: Message) -> Message:
    """Return the message with valid text; the same object if it is valid already."""
    parts = message_parts(message)
    try:
        message.content.encode()
        _ENCODER.encode(parts).encode()
    except ValueError:
        return replace(message, content=clean_text(message.content), **parts_from_json(json_safe(parts)))
    return message


def message_parts(message: Message | LogRecord) -> dict[str, Any]:
    """Return the parts of a message other than its text, as JSON types."""
    return {
        "name": message.name,
        "tool_calls": [tool_call_to_json(call) for call in message.tool_calls],
        "media": [media_to_json(media) for media in message.media],
        "thinking": list(message.thinking),
    }


def parts_from_json(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Decode `message_parts` to fields of a message or record; missing ones are unset."""
    return {
        "name": raw.get("name"),
        "tool_calls": tuple(tool_call_from_json(call) for call in raw.get("tool_calls", ())),
        "media": tuple(media_from_json(media) for media in raw.get("media", ())),
        "thinking": tuple(raw.get("thinking", ())),
    }
