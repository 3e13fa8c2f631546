"""Every regular expression of the program, found where it is made: at the import of a module, by a function that caches
what it makes, in a TOML file, or in the source within a function."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("assistant", "sleep", "tools")
_WORD_GIVEN = "kari"
"""What an expression made within a function gets for a value that it is given there."""
_FUNCTIONS = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "lazy_regex"}
_ANCHORED = {"match", "fullmatch"}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression: `places` in the program (`sleep/rules/sentences.py:67 _MARK`), and how it is asked."""

    pattern: str | bytes
    flags: int
    place: str
    methods: frozenset[str] = frozenset({"finditer"})

    def compiled(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self.flags)


_MEM0_FOLDER = tempfile.TemporaryDirectory(prefix="mem0-")


@functools.cache
def find_expressions() -> list[Expression]:
    """All of the program, each once by pattern and way of asking."""
    found: dict[tuple[str | bytes, int], list[Expression]] = {}
    # What Mem0 reads when it is imported: as in the child process, it calls nobody and writes nothing elsewhere.
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("MEM0_DIR", _MEM0_FOLDER.name)
    modules = [importlib.import_module(name) for name in _module_names()]
    sources = _Sources([Path(module.__file__ or "") for module in modules])
    for module in modules:
        place = str(Path(module.__file__ or "").relative_to(CHECKOUT))
        for expression in (*_of_values(module, place, sources), *_of_functions(module, place, sources)):
            found.setdefault((expression.pattern, expression.flags), []).append(expression)
    return [_joined(same) for same in found.values()]


def _joined(same: Sequence[Expression]) -> Expression:
    """One for those that are alike; what reads the files of patterns doesn't say how they are asked, their users do."""
    users = [one for one in same if "/pattern_files.py " not in one.place] or same
    methods = frozenset.union(*(one.methods for one in users))
    return replace(users[0], methods=frozenset({"finditer"}) if "finditer" in methods else methods)


def _module_names() -> list[str]:
    paths = (path for package in PACKAGES for path in sorted((CHECKOUT / package).rglob("*.py")))
    names = (".".join(path.relative_to(CHECKOUT).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


class _Sources:
    """What the sources say, each read and walked once: with which methods an expression that has a name is asked, of a
    private name in its module, else anywhere; and what is called within functions that may make one."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._asked: dict[str, set[str]] = {}
        self.calls: dict[Path, list[tuple[ast.Call, str]]] = {}
        for path in paths:
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            asked = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
            lines: set[int] = set()
            calls = []
            for node in nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    self._add(path, node.value.id, node.attr)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in asked:
                    self._add(path, node.id, "handed on")
                elif isinstance(node, ast.Call) and (name := _makes_expression(node)):
                    calls.append((node, name))
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            self.calls[path] = [(node, name) for node, name in calls if node.lineno in lines]

    def _add(self, path: Path, name: str, method: str) -> None:
        self._asked.setdefault(_key(path, name), set()).add(method)

    def find_methods(self, path: Path, name: str) -> frozenset[str]:
        asked = self._asked.get(_key(path, name), set())
        return frozenset(asked) if asked and asked <= _ANCHORED else frozenset({"finditer"})


def _key(path: Path, name: str) -> str:
    return f"{path}:{name}" if name.startswith("_") else name


def _makes_expression(node: ast.Call) -> str:
    """The name of what is called, where it is given an expression; else ""."""
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    of_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"
    return name if node.args and name in _FUNCTIONS and (of_re or name == "lazy_regex") else ""


def _of_values(module: ModuleType, place: str, sources: _Sources) -> Iterator[Expression]:
    path = Path(module.__file__ or "")
    for name, value in vars(module).items():
        values = [value]
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == module.__name__:
            values = list(_made(value))
        for pattern in _within(values, 0):
            asked = sources.find_methods(path, name) if pattern is value else frozenset({"finditer"})
            yield Expression(pattern.pattern, pattern.flags & ~re.DEBUG, f"{place} {name}", asked)


def _made(function: Any) -> Iterator[Any]:
    """What a function that caches makes: of each file of the rules, where it is asked for one."""
    parameters = function.__wrapped__.__code__.co_varnames[: function.__wrapped__.__code__.co_argcount]
    if not parameters:
        yield function()
    elif parameters == ("file",):
        for path in sorted((CHECKOUT / "sleep/rules/data").glob("*.toml")):
            yield function(path.stem)


def _within(values: Iterable[Any], depth: int) -> Iterator[Any]:
    for value in values:
        if isinstance(value, re.Pattern) or type(value).__name__ in ("_LazyPattern", "_CountedPattern"):
            yield value
        elif depth < 5:
            if isinstance(value, dict):
                yield from _within(value.values(), depth + 1)
            elif isinstance(value, list | tuple | set | frozenset):
                yield from _within(value, depth + 1)
            elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
                yield from _within((getattr(value, name, None) for name in value.__dataclass_fields__), depth + 1)
            elif type(value).__name__ == "mappingproxy" and depth:
                yield from _within(value.values(), depth + 1)


def _of_functions(module: ModuleType, place: str, sources: _Sources) -> Iterator[Expression]:
    """What is written within functions: `re.sub(r"...", ...)` and the like."""
    for node, name in sources.calls[Path(module.__file__ or "")]:
        text = _evaluate(node.args[0], module)
        if text is not None:
            flags = re.compile(text, _evaluate_flags(node, name, module)).flags
            asked = frozenset({name} if name in _ANCHORED else {"finditer"})
            yield Expression(text, flags, f"{place}:{node.lineno}", asked)


def _evaluate(node: ast.expr, module: ModuleType) -> str | bytes | None:
    """The text of an expression in the source; what is not known outside of its function is a word. None where all of
    it is given there, so that it was met where it is made."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return None
    if isinstance(node, ast.JoinedStr):
        parts = [
            str(value.value) if isinstance(value, ast.Constant) else _part(value, module)
            for value in node.values
            if isinstance(value, ast.Constant | ast.FormattedValue)
        ]
        return "".join(parts)
    try:
        text = eval(compile(ast.Expression(node), "", "eval"), dict(vars(module)))
    except NameError:
        return None
    return text if isinstance(text, str | bytes) else None


def _part(node: ast.FormattedValue, module: ModuleType) -> str:
    try:
        return str(eval(compile(ast.Expression(node.value), "", "eval"), dict(vars(module))))
    except (NameError, AttributeError, TypeError, KeyError):
        return _WORD_GIVEN


def _evaluate_flags(node: ast.Call, name: str, module: ModuleType) -> int:
    given = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
    place = {"compile": 1, "lazy_regex": 1, "sub": 4, "subn": 4, "split": 3}.get(name, 2)
    given += node.args[place : place + 1]
    try:
        return int(eval(compile(ast.Expression(given[0]), "", "eval"), dict(vars(module)))) if given else 0
    except NameError:
        return 0
