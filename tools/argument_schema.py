"""The limits of what tools take as arguments, and the JSON Schema of these types, written as pydantic writes it.

pydantic can only describe what it has made a validator of, a millisecond for each tool. Every prompt has the schemas of
all tools, most of which are never called: those are made here, and the validator when a tool is called. pydantic itself
is loaded then: the limits are written in a class of our own, which tells pydantic what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal, get_args, get_origin

from assistant.core.dataclass import dataclass

_NAMED: Mapping[Any, Mapping[str, str]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    date: {"format": "date", "type": "string"},
}
# The attributes of limits, and their names by the type that is limited.
_LIMITS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "integer": {"ge": "minimum", "le": "maximum"},
    "number": {"ge": "minimum", "le": "maximum"},
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an argument, in its annotation: of a number, or of the length of a text or list. `strip`: of a text
    without the blanks around it."""

    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    strip: bool = False

    @property
    def __is_annotated_types_grouped_metadata__(self) -> Literal[True]:
        """What pydantic asks for before it takes what `__iter__` gives."""
        return True

    def __iter__(self) -> Iterator[Any]:
        """Yield what pydantic knows."""
        from annotated_types import Ge, Le, MaxLen, MinLen
        from pydantic import StringConstraints

        if self.strip:
            yield from StringConstraints(strip_whitespace=True)
        limits: Mapping[Any, Any] = {Ge: self.ge, Le: self.le, MinLen: self.min_length, MaxLen: self.max_length}
        yield from (kind(limit) for kind, limit in limits.items() if limit is not None)


@dataclass(frozen=True, slots=True)
class Check:
    """A check of an argument, in its annotation: makes the value of one of the right type. Raises `ValueError`. It is
    no part of the schema, to save tokens."""

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import AfterValidator

        return AfterValidator(self.check).__get_pydantic_core_schema__(source, handler)


class UnknownType(TypeError):
    """Only pydantic describes this type."""


def describe_arguments(types: Mapping[str, Any], optional: Collection[str], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with arguments of these types, of which `told` are the defaults that it names.
    Raises `UnknownType`."""
    properties = {}
    for name, kind in types.items():
        properties[name] = {"default": told[name], **_describe(kind)} if name in told else _describe(kind)
    required = [name for name in types if name not in optional]
    return {"properties": properties, **({"required": required} if required else {}), "type": "object"}


def _describe(hint: Any) -> Mapping[str, Any]:
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        schema = {**_describe(parts[0])}
        for rule in parts[1:]:
            schema |= _describe_rule(rule, schema["type"])
        return dict(sorted(schema.items()))
    if kind is Literal and all(isinstance(choice, str) for choice in parts):
        return {"enum": [*parts], "type": "string"}
    if kind is list:
        return {"items": _describe(parts[0]), "type": "array"}
    if kind is dict and parts[0] is str:
        return {"additionalProperties": True if parts[1] is Any else _describe(parts[1]), "type": "object"}
    if kind is None and hint in _NAMED:
        return _NAMED[hint]
    raise UnknownType(hint)


def _describe_rule(rule: Any, kind: str) -> Mapping[str, Any]:
    match rule:
        case Check():
            return {}
        case Limits():
            found = {name: getattr(rule, limit) for limit, name in _LIMITS.get(kind, {}).items()}
            return {name: value for name, value in found.items() if value is not None}
    raise UnknownType(rule)
