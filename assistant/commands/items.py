"""The JSON of commands: what a value looks like to programs. Loaded with the first command that is used, since pydantic
takes as long to load as a short command takes otherwise."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter


class Item(BaseModel):
    """The JSON of a value: each field is the attribute of that name, or what its `validation_alias` names."""

    model_config = ConfigDict(frozen=True, from_attributes=True, defer_build=True)


def to_json(shape: TypeAdapter[Any], value: Any) -> Any:
    """A value as the JSON of `shape`: of `Item`s, lists of them, or its own type."""
    return shape.dump_python(shape.validate_python(value, from_attributes=True), mode="json")


TextOrNull = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""Null where there is no text."""
