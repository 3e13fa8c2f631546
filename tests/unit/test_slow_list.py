"""`tests/slow.toml` names tests that there are, and leaves something of every other module to `make test`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "slow.toml").read_text(encoding="utf-8"))


@cache
def functions_named_test(module: str) -> set[str]:
    source = (TESTS / module).read_text(encoding="utf-8")
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", source, re.MULTILINE))


def test_every_name_is_a_test() -> None:
    named = {
        (module, name.partition("[")[0])
        for module, entry in TABLE.items()
        for name in (*entry["tests"], *entry.get("first", ()))
    }
    assert {
        (module, name) for module, name in named if name != "*" and name not in functions_named_test(module)
    } == set()


def test_every_module_keeps_a_test_unless_it_is_slow_as_a_whole() -> None:
    emptied = [
        module
        for module, entry in TABLE.items()
        if "*" not in entry["tests"] and functions_named_test(module) <= set(entry["tests"])
    ]
    assert emptied == []
