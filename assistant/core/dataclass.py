"""A replacement for `dataclasses.dataclass` that takes a tenth of the time.

The standard library compiles the source of six methods per class, and looks at each annotation with three expressions:
with the hundreds of classes loaded at start, that was two fifths of the processor time of `assistant chat -m`. Here
only `__init__` is compiled, for classes of which more than two instances are made, and the other methods are shared
functions. `fields`, `replace` and `asdict` of `dataclasses` work as usual, and type checkers see the standard
decorator. The options `order`, `unsafe_hash` and `weakref_slot` and `InitVar` fields are not supported: use the
standard decorator for these.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

_set_attribute = object.__setattr__
# Compiling takes as long as some thirty instances without it; at a start, three classes of four get no more than these.
_MADE_PLAINLY = 2


def _declare(
    cls: Any = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Any:
    def make(cls: Any) -> Any:
        # None excludes the `__hash__ = None` that Python sets where `__eq__` is defined.
        own = {name for name, value in cls.__dict__.items() if value is not None}
        if "__doc__" not in own:
            cls.__doc__ = "-"  # otherwise dataclasses computes a signature
        made = _with_fields(cls, slots, kw_only) if _is_simple(cls) else _by_library(cls, slots, kw_only)
        if "__doc__" not in own:
            made.__doc__ = None
        for name, method in _methods(made, frozen, eq).items():
            if name not in own:
                setattr(made, name, method)
        return made

    return make if cls is None else make(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _declare


def _by_library(cls: Any, slots: bool, kw_only: bool) -> Any:
    return dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)


# What the standard library gives each class, by its options (slots, kw_only), and what it calls an ordinary field.
_SAMPLES: dict[tuple[bool, bool], Any] = {
    (slots, kw_only): dataclasses.make_dataclass(
        "Sample",
        ["field"],
        namespace={"__doc__": "-"},  # as above
        init=False,
        repr=False,
        eq=False,
        slots=slots,
        kw_only=kw_only,
    )
    for slots in (False, True)
    for kw_only in (False, True)
}
_ORDINARY = fields(_SAMPLES[True, True])[0]._field_type  # type: ignore[attr-defined]
_OWN_KINDS = tuple(sample.__dataclass_params__ for sample in _SAMPLES.values())
_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")


def _annotations(cls: Any) -> dict[str, Any]:
    """Return those of the class itself, or none where Python makes them when they are asked for (from 3.14 on)."""
    annotations: dict[str, Any] = vars(cls).get("__annotations__", {})
    return annotations


def _is_simple(cls: Any) -> bool:
    """Whether all fields, its own and inherited, are ordinary ones, and its annotations texts."""
    kinds = _annotations(cls).values()
    return (
        bool(kinds)
        and "__slots__" not in cls.__dict__
        and all(isinstance(kind, str) and not any(special in kind for special in _SPECIAL) for kind in kinds)
        and all(getattr(base, "__dataclass_params__", _OWN_KINDS[0]) in _OWN_KINDS for base in cls.__mro__[1:])
    )


def _with_fields(cls: Any, slots: bool, kw_only: bool) -> Any:
    """Do what the standard library does for a simple class. Raises `ValueError` for a default that can change."""
    found: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        found |= getattr(base, "__dataclass_fields__", {})
    for name, kind in _annotations(cls).items():
        given: Any = getattr(cls, name, MISSING)
        if isinstance(given, MemberDescriptorType):
            given = MISSING  # the place of an inherited field, not its default
        made: Any = given if isinstance(given, Field) else dataclasses.field(default=given)
        found[name] = made
        made.name, made.type, made._field_type = name, kind, _ORDINARY
        if made.kw_only is MISSING:
            made.kw_only = kw_only
        if type(made.default).__hash__ is None:
            raise ValueError(f"the default of {cls.__name__}.{name} can change: use default_factory")
        if made is given and made.default is MISSING:
            delattr(cls, name)
        elif made is given:
            setattr(cls, name, made.default)
    sample = _SAMPLES[slots, kw_only]
    cls.__dataclass_fields__, cls.__dataclass_params__ = found, sample.__dataclass_params__
    if "__match_args__" not in cls.__dict__:
        matched = tuple(name for name, made in found.items() if made.init and not made.kw_only)
        cls.__match_args__ = matched  # type: ignore[misc]  # the checker knows a class's own one only
    if "__replace__" in sample.__dict__ and "__replace__" not in cls.__dict__:  # from Python 3.13 on
        cls.__replace__ = sample.__replace__
    return _with_slots(cls, found) if slots else cls


def _with_slots(cls: Any, names: Iterable[str]) -> Any:
    """Return the class again, with slots for the fields that it does not inherit."""
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    left_out = {*names, "__dict__", "__weakref__"}
    content = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    content["__slots__"] = tuple(name for name in names if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _methods(cls: Any, frozen: bool, eq: bool) -> dict[str, Any]:
    compared = [field.name for field in fields(cls) if field.compare]
    values = attrgetter(*compared) if compared else lambda value: ()

    made = 0

    def first_init(self: Any, *args: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        if made > _MADE_PLAINLY or (given := _bind(cls, args, named)) is None:
            init = cls.__init__ = _compile_init(cls, frozen)
            init(self, *args, **named)
            return
        for name, value in given.items():
            (_set_attribute if frozen else setattr)(self, name, value)
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    def equals(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    methods: dict[str, Any] = {"__init__": first_init, "__repr__": _representation}
    if eq:
        methods |= {"__eq__": equals, "__hash__": hashed if frozen else None}
    if frozen:
        methods |= {"__getstate__": _state, "__setstate__": _set_state, **_refusals(cls)}
    return methods


@reprlib.recursive_repr()
def _representation(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refusals(cls: Any) -> dict[str, Any]:
    names = frozenset(field.name for field in fields(cls))

    def set_attribute(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


def _state(self: Any) -> list[Any]:
    """State for pickle and copy, which cannot set attributes of frozen instances."""
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        _set_attribute(self, field.name, value)


def _bind(cls: Any, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
    """Return the values of all fields; None where the arguments do not fit, which the compiled method explains."""
    taken = [field for field in fields(cls) if field.init]
    positional = [field.name for field in taken if not field.kw_only]
    given = dict(zip(positional, args, strict=False)) | named
    if len(given) < len(args) + len(named) or not given.keys() <= {field.name for field in taken}:
        return None
    values: dict[str, Any] = {}
    for field in fields(cls):
        if field.name in given:
            values[field.name] = given[field.name]
        elif field.default_factory is not MISSING:
            values[field.name] = field.default_factory()
        elif field.default is not MISSING:
            values[field.name] = field.default
        elif field.init:
            return None
    return values


def _compile_init(cls: Any, frozen: bool) -> Any:
    names: dict[str, Any] = {"_set": _set_attribute, "_unset": MISSING}
    taken, lines = [], []
    for field in sorted(fields(cls), key=lambda field: bool(field.kw_only)):
        if field.kw_only and field.init and "*" not in taken:
            taken.append("*")
        parameter, value = _parameter(field, names)
        if field.init:
            taken.append(parameter)
        if field.init or value != field.name:
            lines.append(f"_set(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *taken])}):\n " + "\n ".join(lines or ["pass"]), names)
    init = names["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return init


def _parameter(field: Field[Any], names: dict[str, Any]) -> tuple[str, str]:
    """Return a field's parameter and the expression of its value; adds its default or factory to `names`."""
    name = field.name
    if field.default_factory is not MISSING:
        names[f"_make_{name}"] = field.default_factory
        made = f"_make_{name}()"
        return f"{name}=_unset", f"{made} if {name} is _unset else {name}" if field.init else made
    if field.default is not MISSING:
        names[f"_default_{name}"] = field.default
        return f"{name}=_default_{name}", name if field.init else f"_default_{name}"
    return name, name
