"""Declares tools: a function, with what it may do, who may use it and for how long; and argument types that several
tools share.

The JSON Schema and the validation of arguments are derived from the function's signature, and the description from its
docstring, so that they always match the code. The validator is made when a tool is first called. A tool uses ports and
values passed when the registry is built, never an adapter.
"""

from __future__ import annotations

import inspect
import json
import re
import reprlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from assistant.core.approvals import ApprovalPattern
from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError
from assistant.core.model_api import ToolSpec
from assistant.core.permissions import OWNER_ONLY
from assistant.core.ports import ASKED_TOUCHES, ToolContext, ToolEffects, ToolTouch, WordsOfCall
from assistant.core.quoting import quote_text
from assistant.core.text import parse_json
from tools.argument_schema import Check, UnknownType, describe_arguments

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def start_of_day(day: date | None, zone: ZoneInfo) -> datetime | None:
    """Return the start of a day in a zone, as UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC) if day else None


INVALID_JSON = "__invalid_json__"
_SHOWN = 80
# The words pydantic puts before the predicate of an error.
_SUBJECT = re.compile(r"^(?:Value error, |[A-Z][a-z]+ )(?=should|must|is|has)|^Value error, ")


def _storable(value: int) -> int:
    if not 0 <= value < 2**63:
        raise ValueError("must be 0 or more, and below 2^63")
    return value


# Integers that fit a database column; the limit is validated, but not included in the schema, to save tokens.
StorableInt = Annotated[int, Check(_storable)]


def bounded_text(limit: int, *, one_line: bool = True) -> Check:
    """Return a type for text of 1 to `limit` characters, by default joined to one line; validated, but not included in
    the schema."""

    def check(text: str) -> str:
        if not 0 < len(text.strip()) <= limit:
            raise ValueError(f"must have 1 to {limit} characters")
        return " ".join(text.split()) if one_line else text.strip()

    return Check(check)


def lines_within(room: int, lines: Iterable[str]) -> list[str]:
    """Return the first lines that fit into `room` bytes of UTF-8, at least one."""
    fitting: list[str] = []
    for line in lines:
        room -= len(line.encode())
        if room < 0 and fitting:
            break
        fitting.append(line)
    return fitting


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A `ports.Tool` that calls a function. `arguments` makes what validates what the model sent."""

    spec: ToolSpec
    effects: ToolEffects
    protected: bool
    roles: frozenset[str]
    timeout_seconds: float
    arguments: Callable[[], type[BaseModel]]
    function: Callable[..., str | Awaitable[str]]
    touches: frozenset[ToolTouch] = frozenset()
    words: WordsOfCall | None = None
    harmless: Callable[..., bool] = lambda context, **arguments: False
    effect: Callable[..., str | Awaitable[str]] | None = None
    topic: str = ""
    asked_each_time: bool = False
    allows: Callable[..., ApprovalPattern | None] = lambda context, **arguments: None

    def pattern(self, arguments: Mapping[str, Any], context: ToolContext) -> ApprovalPattern | None:
        return self.allows(context, **self._checked(arguments))

    def needs_word(self, arguments: Mapping[str, Any], context: ToolContext) -> bool:
        """Return whether the call needs approval. Invalid arguments do not: the call then only returns an error."""
        if not self.touches & ASKED_TOUCHES:
            return False
        try:
            return not self.harmless(context, **self._checked(arguments))
        except ToolError:
            return False

    async def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        values = self._checked(arguments)
        if self.effect is not None:
            effect = self.effect(context, **values)
            return effect if isinstance(effect, str) else await effect
        shown = ", ".join(
            f"{name} {_shown(value)}" for name, value in values.items() if value not in (None, "", [], {})
        )
        return f"{self.spec.name.replace('_', ' ')}: {shown}"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the function's result. Raises `ToolError` naming every invalid argument, before the function is
        called."""
        result = self.function(context, **self._checked(arguments))
        return result if isinstance(result, str) else await result

    def _checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if INVALID_JSON in arguments:
            raise ToolError(_broken_json(self.spec, str(arguments[INVALID_JSON])))
        from pydantic import ValidationError  # of the validator

        try:
            # Models send null for omitted arguments.
            sent = {name: value for name, value in arguments.items() if value is not None}
            checked = self.arguments().model_validate(sent)
        except ValidationError as error:
            raise ToolError(_wrong_arguments(self.spec, error)) from None
        return {name: getattr(checked, name) for name in type(checked).model_fields}


def tool(
    *,
    effects: ToolEffects = "none",
    protected: bool = False,
    roles: frozenset[str] = OWNER_ONLY,
    timeout_seconds: float = 10.0,
    touches: Collection[ToolTouch] = (),
    words: WordsOfCall | None = None,
    harmless: Callable[..., bool] = lambda context, **arguments: False,
    effect: Callable[..., str | Awaitable[str]] | None = None,
    topic: str = "",
    asked_each_time: bool = False,
    allows: Callable[..., ApprovalPattern | None] = lambda context, **arguments: None,
) -> Callable[[Callable[..., str | Awaitable[str]]], FunctionTool]:
    """Make a tool of a function `(context, arguments...) -> str`, sync or async, under its name.

    A sync function runs on the event loop, so it should only call stores. `timeout_seconds` can only stop an async one.

    - `touches`: everything it may do; a call that does more than read needs the person's approval
      (`docs/approvals.md`).
    - `words`: how the person's own message must match a call to count as asking for it; None: it never does.
    - `harmless`: returns whether a call with these arguments only reads and needs no approval.
    - `effect`: describes for people what a call will do; by default made from the arguments.
    - `topic`: with one, the tool is not in every prompt, but found by a search (`tools/tool_search.py`).
    - `asked_each_time`: the owner approves each call, even if their own message asks for it and nothing else was read.
    - `allows`: what the owner may allow for a while when they approve such a call, such as the host of an address. Its
      key must cover no more than its text says.
    """

    def declare(function: Callable[..., str | Awaitable[str]]) -> FunctionTool:
        written = (function.__code__, repr((function.__defaults__, function.__kwdefaults__)), function.__doc__)
        if written not in _declarations:
            signature = _Signature(function)
            description = " ".join((function.__doc__ or "").split())
            spec = ToolSpec(function.__name__, description, signature.schema())
            _declarations[written] = spec, cache(signature.validator)
        spec, arguments = _declarations[written]
        return FunctionTool(
            spec,
            effects,
            protected,
            roles,
            timeout_seconds,
            arguments,
            function,
            frozenset(touches),
            words,
            harmless,
            effect,
            topic,
            asked_each_time,
            allows,
        )

    return declare


# Cached by function code, whatever it closes over: once per process, however many apps it builds.
_declarations: dict[tuple[object, ...], tuple[ToolSpec, Callable[[], type[BaseModel]]]] = {}


class _Signature:
    """The arguments of a tool's function, without its context."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__
        hints = get_type_hints(function, include_extras=True)
        _context, *parameters = inspect.signature(function).parameters.values()
        self._types = {p.name: _without_none(hints[p.name]) for p in parameters}
        self._defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    def validator(self) -> type[BaseModel]:
        fields: dict[str, Any] = {name: (kind, self._defaults.get(name, ...)) for name, kind in self._types.items()}
        from pydantic import ConfigDict, create_model  # takes a tenth of a second, and most prompts call no tool

        return create_model(self._name, __config__=ConfigDict(extra="forbid"), **fields)

    def schema(self) -> Mapping[str, Any]:
        """Return the schema with only what the model needs, to save tokens. Unknown arguments are rejected by
        validation; defaults without information (None, "", 0, an empty list) are omitted."""
        told = {name: value for name, value in self._defaults.items() if value}
        try:
            return describe_arguments(self._types, self._defaults, told)
        except UnknownType:
            return _schema_by_library(self.validator())


def _without_none(hint: Any) -> Any:
    """Return `int` for `int | None`: an optional argument needs no second type in every prompt."""
    types = [part for part in get_args(hint) if part is not NoneType] if get_origin(hint) in (Union, UnionType) else []
    return reduce(or_, types) if types else hint


def _schema_by_library(arguments: type[BaseModel]) -> Mapping[str, Any]:
    from pydantic.json_schema import GenerateJsonSchema

    class PlainSchema(GenerateJsonSchema):
        """JSON Schema without titles, to save tokens in every prompt."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    schema = arguments.model_json_schema(schema_generator=PlainSchema)
    schema.pop("title", None)
    schema.pop("additionalProperties", None)
    for about in schema.get("properties", {}).values():
        if not about.get("default", True):
            del about["default"]
    return schema


def _wrong_arguments(spec: ToolSpec, error: ValidationError) -> str:
    wrong = [_wrong_argument(problem) for problem in error.errors(include_url=False, include_context=False)]
    properties = spec.schema.get("properties", {})
    required = spec.schema.get("required", ())
    arguments = ", ".join(f"{name} (required)" if name in required else name for name in properties) or "none"
    return f"{spec.name} was not run: {'; '.join(wrong[:5])}. Its arguments: {arguments}."


def _wrong_argument(problem: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{quote_text(name)} is not an argument"
    if problem["type"] == "missing":
        return f"{name} is missing"
    text = _SUBJECT.sub("", str(problem["msg"]))
    return f"{name} {text}, not {_short(problem['input'])}"


def _short(value: object) -> str:
    return quote_text(value[:_SHOWN]) if isinstance(value, str) else reprlib.repr(value)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return quote_text(json.dumps(value, ensure_ascii=False, default=str)) if isinstance(value, dict) else str(value)


def _broken_json(spec: ToolSpec, raw: str) -> str:
    try:
        parse_json(raw)
        where = "they are not one JSON object"
    except ValueError as error:
        where = str(error)
    example = json.dumps(dict.fromkeys(spec.schema.get("required", ()), "…"), ensure_ascii=False)
    return f"{spec.name} was not run: its arguments were not valid JSON ({where}). Send one object, such as {example}."
