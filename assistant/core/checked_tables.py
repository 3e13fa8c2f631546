"""Tables of the settings and of other files that are read at each start: typed fields with rules, and their validation.

Written here since every command reads the settings first: to import a validation library and to have it compile forty
tables took a quarter of a short command. Types are checked strictly (no text for a number, no 1 for true), and all
problems are found before anything is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from assistant.core.dataclass import dataclass
from assistant.core.secret_text import SecretStr

REQUIRED: Any = object()
"""The default of a field that has none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be beside its type; part of an annotation.

    - `ge`, `le`: the smallest and the largest number.
    - `min_length`, `max_length`: of a text, in characters.
    - `pattern`: what the whole text must match.
    - `description`: what is allowed, where that says it better than type and limits; the last one counts.
    - `convert`: makes the value of what is in the file, before its type is checked; raises `ValueError`.
    - `check`: makes the value of one that is of the right type; raises `ValueError`.
    """

    ge: float | None = None
    le: float | None = None
    min_length: int = 0
    max_length: int | None = None
    pattern: str = ""
    description: str = ""
    convert: Callable[[Any], Any] | None = None
    check: Callable[[Any], Any] | None = None

    def allows(self, value: Any) -> bool:
        """Return whether a value of the right type is within the limits."""
        return not (
            (self.ge is not None and value < self.ge)
            or (self.le is not None and value > self.le)
            or (self.min_length and len(value) < self.min_length)
            or (self.max_length is not None and len(value) > self.max_length)
            or (self.pattern and not re.fullmatch(self.pattern, value))
        )


@dataclass(frozen=True, slots=True)
class TableField:
    """One key of a table: its type without the rules, the rules, and its default, `REQUIRED` for none."""

    annotation: Any
    rules: tuple[Rule, ...] = ()
    default: Any = REQUIRED

    @property
    def description(self) -> str:
        return next((rule.description for rule in reversed(self.rules) if rule.description), "")

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The smallest and the largest allowed number."""
        low = (rule.ge for rule in self.rules if rule.ge is not None)
        high = (rule.le for rule in self.rules if rule.le is not None)
        return next(low, None), next(high, None)


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


class CheckedTable:
    """A table: the annotations of its class are its keys, which may have defaults. Immutable.

    The annotations are read when a class is made, so its module does without `from __future__ import annotations`.
    """

    fields: ClassVar[Mapping[str, TableField]] = {}

    def __init_subclass__(cls) -> None:
        own = {
            name: _read_field(annotation, vars(cls).get(name, REQUIRED))
            for name, annotation in cls.__annotations__.items()
        }
        cls.fields = {**cls.fields, **own}

    def __init__(self, **values: Any) -> None:
        """Take values as they are, and defaults for the others. `from_values` checks them."""
        defaults = {name: field.default for name, field in self.fields.items() if field.default is not REQUIRED}
        vars(self).update(defaults | values)

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
        return type(self)(**{**vars(self), **values})

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name."""
        return dict(vars(self))

    def as_json(self, *, without_defaults: bool = False) -> dict[str, Any]:
        """Return the values as JSON has them, secrets masked."""
        left_out = self.fields if without_defaults else {}
        return {
            name: _as_json(value)
            for name, value in vars(self).items()
            if name not in left_out or value != left_out[name].default
        }

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _read_field(annotation: Any, default: Any) -> TableField:
    if get_origin(annotation) in (Union, UnionType):  # with None, which only a default is
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is not Annotated:
        return TableField(annotation, (), default)
    kind, *rules = get_args(annotation)
    return TableField(kind, tuple(rules), default)


def _as_json(value: Any) -> Any:
    match value:
        case CheckedTable():
            return value.as_json()
        case SecretStr():
            return str(value)
        case list() | tuple():
            return [_as_json(entry) for entry in value]
        case dict():
            return {key: _as_json(entry) for key, entry in value.items()}
    return value


# ---------------------------------------------------------------------------------------------------------- validation

_Path = tuple[str | int, ...]


class _WrongType(Exception):
    """A value is not of its type."""


def _checked_table(cls: type[CheckedTable], values: Any, path: _Path, problems: list[Problem]) -> Any:
    """Return a table, also one with problems, which are added to `problems`."""
    if isinstance(values, cls):
        return values
    if not isinstance(values, Mapping):
        problems.append(Problem(path, "refused", values))
        return values
    known = len(problems)
    checked: dict[str, Any] = {}
    for name, field in cls.fields.items():
        if name in values:
            checked[name] = _checked_value(field, values[name], (*path, name), problems)
        elif field.default is REQUIRED:
            problems.append(Problem((*path, name), "missing", values))
    problems += [Problem((*path, name), "unknown", values[name]) for name in values if name not in cls.fields]
    table = cls(**checked)
    if len(problems) == known:
        try:
            table.check()
        except ValueError as error:
            problems.append(Problem(path, "refused", values, error))
    return table


def _checked_value(field: TableField, given: Any, path: _Path, problems: list[Problem]) -> Any:
    known, value = len(problems), given
    try:
        for rule in field.rules:
            value = rule.convert(value) if rule.convert else value
        value = _checked_type(field.annotation, value, path, problems)
        if len(problems) > known:
            return value
        for rule in field.rules:
            if not rule.allows(value):
                raise _WrongType
            value = rule.check(value) if rule.check else value
    except _WrongType:
        problems.append(Problem(path, "refused", given))
    except ValueError as error:
        problems.append(Problem(path, "refused", given, error))
    return value


def _checked_type(kind: Any, value: Any, path: _Path, problems: list[Problem]) -> Any:
    """Return a value of this type. Raises `_WrongType`; problems within it are added."""
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, tuple):
        entry = _read_field(get_args(kind)[0], REQUIRED)
        return tuple(_checked_value(entry, it, (*path, number), problems) for number, it in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return dict(_checked_entries(kind, value, path, problems))
    if origin is Literal and isinstance(value, str) and value in get_args(kind):
        return value
    if origin is None and issubclass(kind, CheckedTable):
        return _checked_table(kind, value, path, problems)
    return _checked_scalar(kind, value)


def _checked_entries(
    kind: Any, table: dict[Any, Any], path: _Path, problems: list[Problem]
) -> Iterator[tuple[Any, Any]]:
    name_field, entry_field = (_read_field(part, REQUIRED) for part in get_args(kind))
    for name, entry in table.items():
        yield (
            _checked_value(name_field, name, (*path, name), problems),
            _checked_value(entry_field, entry, (*path, name), problems),
        )


def _checked_scalar(kind: Any, value: Any) -> Any:
    if kind is SecretStr and isinstance(value, SecretStr):
        return value
    if kind in (str, SecretStr) and isinstance(value, str) and _is_unicode(value):
        return value if kind is str else SecretStr(value)
    if kind is float and type(value) in (int, float) and _is_finite(value):
        return float(value)
    if kind in (int, bool) and type(value) is kind:
        return value
    raise _WrongType


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, as variables of the environment may."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False
