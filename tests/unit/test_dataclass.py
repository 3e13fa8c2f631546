"""The program's own `dataclass` says of a class what the standard library's says."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from assistant.core import dataclass as own

_Decorate = Callable[..., Any]


def _point(decorate: _Decorate, **options: Any) -> Any:
    @decorate(**options)
    class Point:
        """A place."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="hidden", repr=False)
        note: str = field(default="", compare=False)
        size: int = field(default=0, kw_only=True)
        double: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.x)

    return Point


@pytest.mark.parametrize(
    "options",
    [
        {"frozen": True, "slots": True},
        {"frozen": True, "slots": True, "kw_only": True},
        {"frozen": True},
        {"slots": True},
        {"slots": True, "eq": False},
        {"frozen": True, "slots": True, "eq": False},
        {},
    ],
)
def test_instances_are_made_shown_and_compared_as_those_of_the_standard_library(options: dict[str, Any]) -> None:
    ours, theirs = _point(own.dataclass, **options), _point(dataclasses.dataclass, **options)
    # The first instances are made without a compiled method, the later ones by it.
    for arguments, named in 2 * (((), {"x": 1}), ((), {"x": 1, "y": 5, "tags": ["a"], "size": 3})):
        mine, yours = ours(*arguments, **named), theirs(*arguments, **named)
        assert repr(mine) == repr(yours)
        assert asdict(mine) == asdict(yours)
        assert (mine == ours(*arguments, **named)) == (yours == theirs(*arguments, **named))
        assert (mine == replace(mine, note="else")) == (yours == replace(yours, note="else"))
        assert (mine == replace(mine, y=9)) == (yours == replace(yours, y=9))
        assert mine != yours and mine != 1
    assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__doc__ == theirs.__doc__
    assert hasattr(ours(x=1), "__dict__") == hasattr(theirs(x=1), "__dict__")
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, 2, [], "", "", 4), {}), ((1,), {"z": 2})])
def test_what_does_not_fit_is_refused_as_by_the_standard_library(arguments: Any, named: Any) -> None:
    refusals = []
    for decorate in (own.dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError) as refusal:
            _point(decorate, frozen=True, slots=True)(*arguments, **named)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


@own.dataclass(frozen=True, slots=True)
class Name:
    first: str
    last: str = "Doe"


@own.dataclass(frozen=True, slots=True)
class TitledName(Name):
    title: str = "Dr."

    def __str__(self) -> str:
        return f"{self.title} {self.last}"


@own.dataclass(frozen=True, slots=True)
class Alias:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alias) and other.name.lower() == self.name.lower()


def test_what_is_frozen_cannot_be_changed_and_can_be_hashed_copied_and_pickled() -> None:
    for name in (Name("Ann"), TitledName("Ann", title="Prof.")):
        for change in (lambda name=name: setattr(name, "first", "Bob"), lambda name=name: delattr(name, "first")):
            with pytest.raises(FrozenInstanceError, match="'first'"):
                change()
        assert {name: 1}[replace(name)] == 1
        assert copy.copy(name) == copy.deepcopy(name) == pickle.loads(pickle.dumps(name)) == name
    assert Name("Ann") != TitledName("Ann")
    assert str(TitledName("Ann")) == "Dr. Doe"
    assert repr(TitledName("Ann")) == "TitledName(first='Ann', last='Doe', title='Dr.')"


def test_a_class_with_special_annotations_is_left_to_the_standard_library() -> None:
    @own.dataclass(slots=True)
    class Counted:
        name: str
        made: ClassVar[int] = 0

    @own.dataclass(slots=True)
    class Nested(Counted):
        depth: int = 0

    assert [field.name for field in fields(Counted)] == ["name"] and Counted.made == 0
    assert asdict(Nested("a", 2)) == {"name": "a", "depth": 2}


def test_a_default_that_can_change_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @own.dataclass(frozen=True, slots=True)
        class Shared:
            names: list[str] = []  # noqa: RUF012


def test_a_class_keeps_the_equality_that_it_defines() -> None:
    assert Alias("ann") == Alias("ANN")
    assert hash(Alias("ann")) == hash(Alias("ann"))


def test_a_start_compiles_no_methods_of_classes_that_it_does_not_use() -> None:
    """The standard library would compile those of each of six hundred classes; some of its own and of libraries are."""
    code = (
        "import builtins, sys\ncompiled = 0\noriginal = builtins.exec\n"
        "def count(*arguments, **named):\n"
        "    global compiled\n    compiled += sys._getframe(1).f_globals['__name__'] == 'dataclasses'\n"
        "    return original(*arguments, **named)\n"
        "builtins.exec = count\n"
        "import assistant.cli.chat.command, assistant.daemon\nprint(compiled)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) < 600
