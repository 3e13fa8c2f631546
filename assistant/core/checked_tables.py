"""Tables of the settings and of other files that are read at each start: fields with types and limits, and validation.

msgspec has the types, the limits and what is done with a value. It stops at the first problem; here all are collected,
so that a person corrects a file once. Types are checked strictly: no text for a number, no 1 for true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from assistant.core.dataclass import dataclass
from assistant.core.imports import hidden_modules
from assistant.core.secret_text import SecretStr

# It takes what is in `typing` where this is not installed.
with hidden_modules("typing_extensions"):
    import msgspec
    from msgspec import Meta, Struct


def whole(pattern: str) -> str:
    """Return a pattern for `Meta` that the whole text must match."""
    return rf"^(?:{pattern})\Z"


@dataclass(frozen=True, slots=True)
class TableField:
    """One key of a table: its type with its limits (`annotation`) and without (`kind`).

    What of the `Meta`s msgspec does not know itself: the last `description` says what is allowed where that says it
    better than type and limits. `extra["convert"]` makes the value of what is in the file, before its type is checked;
    `extra["check"]` makes the value of one that is of the right type. Both raise `ValueError`, whose text continues a
    sentence about the value.
    """

    annotation: Any
    kind: Any
    metas: tuple[Meta, ...]
    default: Any  # NODEFAULT where it is required

    @property
    def description(self) -> str:
        return next((meta.description for meta in reversed(self.metas) if meta.description), "")

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The smallest and the largest allowed number."""
        low = (meta.ge for meta in self.metas if meta.ge is not None)
        high = (meta.le for meta in self.metas if meta.le is not None)
        return next(low, None), next(high, None)

    def apply(self, step: Literal["convert", "check"], value: Any) -> Any:
        """Return the value after a step of its own. Raises `ValueError`."""
        for meta in self.metas:
            if meta.extra and step in meta.extra:
                value = meta.extra[step](value)
        return value


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one value. `path` leads to it: names of fields, numbers of entries, keys of tables. `reason`
    is there where a check of our own refused it, and continues a sentence about it."""

    path: tuple[str | int, ...]
    kind: Literal["missing", "unknown", "refused"]
    value: Any
    reason: ValueError | None = None


class InvalidTable(ValueError):
    """`problems` are all that were found."""

    def __init__(self, problems: list[Problem]) -> None:
        # Values are not repeated: they may be secrets.
        super().__init__("; ".join(f"{'.'.join(map(str, it.path))} {it.reason or it.kind}".strip() for it in problems))
        self.problems = tuple(problems)


class CheckedTable(Struct, frozen=True):
    """A table: the annotations of its class are its keys. Immutable.

    The annotations are read when a class is made, so its module does without `from __future__ import annotations`.
    """

    @classmethod
    def from_values(cls, values: Any) -> Self:
        """Return a table of values by name. Raises `InvalidTable`."""
        problems: list[Problem] = []
        table = _checked_table(cls, values, (), problems)
        if problems:
            raise InvalidTable(problems)
        return table  # type: ignore[no-any-return]

    def check(self) -> None:
        """Check what concerns several keys. Raises `ValueError`, whose text continues a sentence about the table."""

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values, which are not checked."""
        return msgspec.structs.replace(self, **values)

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name."""
        return msgspec.structs.asdict(self)

    def as_json(self, *, without_defaults: bool = False) -> dict[str, Any]:
        """Return the values as JSON has them, secrets masked."""
        fields = fields_of(type(self))
        return {
            name: msgspec.to_builtins(value, enc_hook=str)
            for name, value in self.as_dict().items()
            if not without_defaults or value != fields[name].default
        }


@cache
def fields_of(table: type[CheckedTable]) -> Mapping[str, TableField]:
    """Return the keys of a table."""
    return {
        field.name: _field(field.type, {} if field.default_factory is dict else field.default)
        for field in msgspec.structs.fields(table)
    }


def _field(annotation: Any, default: Any = msgspec.NODEFAULT) -> TableField:
    if get_origin(annotation) in (Union, UnionType):  # with None, which only a default is
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is not Annotated:
        return TableField(annotation, annotation, (), default)
    kind, *metas = get_args(annotation)
    return TableField(annotation, kind, tuple(metas), default)


# ---------------------------------------------------------------------------------------------------------- validation

_Path = tuple[str | int, ...]


def _checked_table(cls: type[CheckedTable], values: Any, path: _Path, problems: list[Problem]) -> Any:
    """Return a table; None where it has problems, which are added to `problems`."""
    if isinstance(values, cls):
        return values
    if not isinstance(values, Mapping):
        problems.append(Problem(path, "refused", values))
        return None
    known, fields = len(problems), fields_of(cls)
    checked: dict[str, Any] = {}
    for name, field in fields.items():
        if name in values:
            checked[name] = _checked_value(field, values[name], (*path, name), problems)
        elif field.default is msgspec.NODEFAULT:
            problems.append(Problem((*path, name), "missing", values))
    problems += [Problem((*path, name), "unknown", values[name]) for name in values if name not in fields]
    if len(problems) > known:
        return None
    try:
        table = cls(**checked)
        table.check()
    except ValueError as error:
        problems.append(Problem(path, "refused", values, error))
    return table


def _checked_value(field: TableField, given: Any, path: _Path, problems: list[Problem]) -> Any:
    known = len(problems)
    try:
        value = _checked_parts(field, field.apply("convert", given), path, problems)
        if len(problems) == known:
            return field.apply("check", value)
    except msgspec.ValidationError:
        problems.append(Problem(path, "refused", given))
    except ValueError as error:
        problems.append(Problem(path, "refused", given, error))
    return None


def _checked_parts(field: TableField, value: Any, path: _Path, problems: list[Problem]) -> Any:
    """Return a value of this type within its limits; problems of its entries are added. Raises
    `msgspec.ValidationError`."""
    origin = get_origin(field.kind)
    if origin is tuple and isinstance(value, tuple):
        entry = _field(get_args(field.kind)[0])
        return tuple(_checked_value(entry, it, (*path, number), problems) for number, it in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        names, entries = map(_field, get_args(field.kind))
        return {
            _checked_value(names, name, (*path, name), problems): _checked_value(entries, it, (*path, name), problems)
            for name, it in value.items()
        }
    if origin is None and issubclass(field.kind, CheckedTable):
        return _checked_table(field.kind, value, path, problems)
    _refuse_broken(value)
    return msgspec.convert(value, field.annotation, dec_hook=_read_secret)


def _read_secret(kind: type, value: Any) -> SecretStr:
    """What msgspec calls for the one type that it does not know. Raises `ValueError`."""
    if isinstance(value, SecretStr):
        return value
    return SecretStr(msgspec.convert(value, str))


def _refuse_broken(value: Any) -> None:
    """Refuse infinity, and half a character, as variables of the environment may have. Raises
    `msgspec.ValidationError`."""
    if isinstance(value, float) and not math.isfinite(value):
        raise msgspec.ValidationError("not finite")
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise msgspec.ValidationError("not Unicode")
