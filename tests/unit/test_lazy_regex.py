"""Expressions that are compiled when they are first asked."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.core.text import lazy_regex

CHECKOUT = Path(__file__).parents[2]


def test_it_is_asked_as_a_compiled_one_is() -> None:
    one = lazy_regex(r"(\w+)@(\w+)", re.IGNORECASE)
    found = one.search("write to Kari@home")

    assert found is not None and found.groups() == ("Kari", "home")
    assert one.sub(r"\2", "kari@home") == "home"
    assert [match[0] for match in one.finditer("a@b c@d")] == ["a@b", "c@d"]
    assert (one.pattern, one.flags & re.IGNORECASE) == (r"(\w+)@(\w+)", re.IGNORECASE)


def test_it_is_compiled_once() -> None:
    one = lazy_regex("a")

    assert one.search is one.search
    assert one.match("a").re is one.search("a").re  # type: ignore[union-attr]


def test_a_fault_shows_at_the_first_use() -> None:
    one = lazy_regex("(")

    with pytest.raises(re.error):
        one.search("anything")


@pytest.mark.parametrize("root", ["assistant", "sleep"])
def test_every_lazy_regex_compiles(root: str) -> None:
    kind, seen = type(lazy_regex("")), 0
    for path in sorted((CHECKOUT / root).rglob("*.py")):
        if "lazy_regex(" in path.read_text():
            name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
            for one in _within(vars(importlib.import_module(name)).values(), kind):
                assert one.groups >= 0
                seen += 1
    assert seen > 50


def _within(values: Any, kind: type) -> Iterator[Any]:
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, dict):
            yield from _within(value.values(), kind)
        elif isinstance(value, list | tuple):
            yield from _within(value, kind)
