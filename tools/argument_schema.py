"""The JSON Schema of the types that tools take as arguments, written as pydantic writes it.

pydantic can only describe what it has made a validator of, a millisecond for each tool. Every prompt has the schemas of
all tools, most of which are never called: those are made here, and the validator when a tool is called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, StringConstraints
from pydantic.fields import FieldInfo

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
        case AfterValidator():
            return {}
        case FieldInfo(description=None) if rule.is_required():
            limits: dict[str, Any] = {}
            for one in rule.metadata:
                limits |= _describe_rule(one, kind)
            return limits
        case StringConstraints(pattern=None) | MinLen() | MaxLen() | Ge() | Le():
            found = {name: getattr(rule, limit, None) for limit, name in _LIMITS.get(kind, {}).items()}
            return {name: value for name, value in found.items() if value is not None}
    raise UnknownType(rule)
